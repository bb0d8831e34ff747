// SPDX-License-Identifier: Apache-2.0

package memsys

// passing is the derivative of the lines of one way, from a place to a node's CPUs, with
// respect to an unknown.
type passing struct {
	column int32 // position among the unknowns; for a server that is none: the server
	by     [3]float64
}

// Derivatives of a way's lines.
const (
	all = iota
	read
	written
)

func passes(column int32, read, back float64) passing {
	return passing{column, [...]float64{read + back, read, back}}
}

// way adds the effect of lines from place m to c's CPUs on the servers they pass. All the
// unknowns that they change with are collected first. A row of the matrix is then visited
// once for each server that they pass, and not once for each pair of both.
func (n *newton) way(s *Solver, c, m int) {
	at := (c*n.wide + m) * n.wide
	p, lines := &s.pairs[c*s.nodes+m%s.nodes], 0.0
	if m < s.nodes {
		lines = p.lines + p.back
	} else {
		lines = p.transfers
	}
	if lines == 0 {
		return
	}
	n.passing, n.aside = n.passing[:0], n.aside[:0]
	for to := range n.wide {
		read, back := n.readBy[at+to], n.backBy[at+to]
		if read == 0 && back == 0 {
			continue
		}
		for _, k := range s.servedBy(c, to) {
			by := s.slope(k, to)
			switch column := n.serverAt[k]; {
			case by == 0:
			case column >= 0:
				n.passing = append(n.passing, passes(int32(column), read*by, back*by))
			default:
				n.aside = append(n.aside, passes(k, read*by, back*by))
			}
		}
	}
	for _, i := range s.domainsOf[c] {
		if n.domainAt[i] < 0 {
			continue
		}
		for u := range n.per {
			of := (int(i)*ofDomain+u)*n.wide + m
			n.passing = append(n.passing, passes(int32(n.domainAt[i]+u), n.readOf[of], n.backOf[of]))
		}
	}
	n.pass(p, m < s.nodes)
}

// servedBy are the servers that a line from a place waits at; slope is the derivative of
// that wait with respect to the demand on one.
func (s *Solver) servedBy(c, place int) []int32 {
	if place >= s.nodes {
		return s.pairs[c*s.nodes+place-s.nodes].read[1:]
	}
	return s.pairs[c*s.nodes+place].read
}

func (s *Solver) slope(k int32, place int) float64 {
	if place >= s.nodes {
		return s.servers[k].byOver
	}
	return s.servers[k].byAsk
}

// pass adds to the rows of the servers that the lines pass: the node's controller, links of
// reads, and links of writes.
func (n *newton) pass(p *pair, home bool) {
	if home {
		n.row(p.read[0], all)
	}
	for _, k := range p.read[1:] {
		n.row(k, read)
	}
	for _, k := range p.written {
		n.row(k, written)
	}
}

func (n *newton) row(server int32, which int) {
	at := n.serverAt[server]
	if at < 0 {
		for i := range n.aside {
			if n.aside[i].column == server {
				n.alone[server] += n.aside[i].by[which]
			}
		}
		return
	}
	row := n.matrix[at*n.size:][:n.size]
	for i := range n.passing {
		row[n.passing[i].column] += n.passing[i].by[which]
	}
}

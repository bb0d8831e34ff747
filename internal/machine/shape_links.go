// SPDX-License-Identifier: Apache-2.0

package machine

// LinkPairs returns the pairs of nodes that have a link. Pair i carries two
// directed links: 2*i from [0] to [1], and 2*i+1 back.
//
//  1. The links that the shape names, if it names any.
//  2. Otherwise the pairs at the smallest remote distance, if they join all nodes.
//  3. Otherwise every pair.
func (s Shape) LinkPairs() [][2]int {
	if s.Links != nil {
		return s.Links
	}
	if near := s.pairsWithin(s.smallestRemote()); connected(len(s.Nodes), near) {
		return near
	}
	const anywhere = maxDistance + 1
	return s.pairsWithin(anywhere)
}

// pairsWithin returns the pairs no farther than d in either direction.
func (s Shape) pairsWithin(d int) [][2]int {
	var pairs [][2]int
	for a := range s.Nodes {
		for b := a + 1; b < len(s.Nodes); b++ {
			if s.Distances[a][b] <= d || s.Distances[b][a] <= d {
				pairs = append(pairs, [2]int{a, b})
			}
		}
	}
	return pairs
}

func (s Shape) smallestRemote() int {
	smallest := maxDistance
	for a, row := range s.Distances {
		for b, d := range row {
			if a != b {
				smallest = min(smallest, d)
			}
		}
	}
	return smallest
}

// Routes returns the links that a cache line takes on its way from memory to the CPU
// that asked: Routes()[src][dst] are the directed links, in order of travel, from node
// dst (the line's home) to node src (the CPU's); empty when src == dst.
//
//  1. A route has as few hops as possible.
//  2. Of several such routes, it is the one whose nodes, read from the home node on,
//     come first by id.
func (s Shape) Routes() [][][]int {
	hop := newHops(len(s.Nodes), s.LinkPairs())
	routes := make([][][]int, len(s.Nodes))
	for src := range routes {
		routes[src] = make([][]int, len(s.Nodes))
		left := hop.left(src)
		for dst := range s.Nodes {
			routes[src][dst] = hop.route(dst, left)
		}
	}
	return routes
}

const noLink = -1

// hops[a][b] is the directed link from a to b, or noLink.
type hops [][]int

func newHops(nodes int, pairs [][2]int) hops {
	h := make(hops, nodes)
	for a := range h {
		h[a] = make([]int, nodes)
		for b := range h[a] {
			h[a][b] = noLink
		}
	}
	for i, p := range pairs {
		h[p[0]][p[1]] = 2 * i
		h[p[1]][p[0]] = 2*i + 1
	}
	return h
}

// left returns the number of hops from each node to target, breadth first; -1 if there
// is no path.
func (h hops) left(target int) []int {
	left := make([]int, len(h))
	for i := range left {
		left[i] = -1
	}
	left[target] = 0
	for queue := []int{target}; len(queue) > 0; queue = queue[1:] {
		for from := range h {
			if left[from] < 0 && h[from][queue[0]] != noLink {
				left[from] = left[queue[0]] + 1
				queue = append(queue, from)
			}
		}
	}
	return left
}

// route walks from a node to the target of left: always one hop closer (1), always by
// the lowest such id (2).
func (h hops) route(at int, left []int) []int {
	var links []int
	for left[at] > 0 {
		for next := range h {
			if h[at][next] != noLink && left[next] == left[at]-1 {
				links = append(links, h[at][next])
				at = next
				break
			}
		}
	}
	return links
}

// connected reports whether every node reaches every other. Pairs name nodes that exist.
func connected(nodes int, pairs [][2]int) bool {
	if nodes == 0 {
		return true
	}
	for _, n := range newHops(nodes, pairs).left(0) {
		if n < 0 {
			return false
		}
	}
	return true
}

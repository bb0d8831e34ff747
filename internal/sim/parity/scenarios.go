// SPDX-License-Identifier: Apache-2.0

package parity

// Scenario is loads that run at the same time on a shape of the lab, with all threads tied
// to CPUs and all memory placed.
type Scenario struct {
	Name  string
	Shape string
	// Work names what its loads do. Scenarios with the same work differ only in placement,
	// and both sides put these in the same order.
	Work   string
	Fitted bool // false: it is judged
	Loads  []Load
}

// Load is one process: 'homenode-load Args'. Its memory is where --bind-mem, or with
// --touch worker each worker's CPU, puts it, unless it is interleaved.
type Load struct {
	Name string
	Args string
	// Interleave lists the nodes over which all of its memory is interleaved, e.g. "0-1";
	// "": none.
	Interleave string
}

// Kind of a load is its mode: chase, stream, rao, server.
func (l Load) Kind() string {
	for i, c := range l.Args {
		if c == ' ' {
			return l.Args[:i]
		}
	}
	return l.Args
}

// An operation is a step of a chase (also in rao), a line of a stream, or a unit of a
// request's work (8 loads, 200 instructions).

// The work of the scenarios. Working sets of 4 MiB miss an LLC of 512 KiB; 1 MiB is twice
// its size; two sets of 384 KiB exceed it together, but each fits alone.
const (
	chaseLarge = "chase --thp off --ws 4MiB"
	chaseHalf  = "chase --thp off --ws 1MiB"
	chaseTight = "chase --thp off --ws 384KiB"
	streamRead = "stream --thp off --ws 4MiB"
	streamPut  = "stream --thp off --ws 4MiB --write"
	raoFew     = "rao --thp off --ws 1MiB --sharing 1KiB --share-every 8"
	raoMany    = "rao --thp off --ws 1MiB --sharing 64KiB --share-every 8"
	// Moves of lines between cores take most of its time. It was added to the list after
	// the others were compared: none of them noticed if such moves were free.
	raoTight = "rao --thp off --ws 32KiB --sharing 1KiB --share-every 16"
	// Requests of 100 µs on hardware: all alike, one after the other.
	serve = "server --thp off --ws 4MiB --closed --short-share 1 --short-us 100:100"
)

// Scenarios lists all scenarios.
func Scenarios() []Scenario { return append(onTwo(), onFour()...) }

func one(name, shape, work, args string) Scenario {
	return Scenario{Name: shape + "/" + name, Shape: shape, Work: work, Loads: []Load{{Name: "load", Args: args}}}
}

func (s Scenario) interleaved(nodes string) Scenario {
	s.Loads[0].Interleave = nodes
	return s
}

func (s Scenario) fitted() Scenario {
	s.Fitted = true
	return s
}

// onTwo: CPUs 0 and 1 are on node 0, 2 and 3 on node 1.
func onTwo() []Scenario {
	on := func(name, work, args, where string) Scenario { return one(name, "two", work, args+" "+where) }
	return []Scenario{
		on("chase-local", "chase 4 MiB", chaseLarge, "--threads 1 --cpus 0 --bind-mem 0").fitted(),
		on("chase-remote", "chase 4 MiB", chaseLarge, "--threads 1 --cpus 0 --bind-mem 1"),
		on("chase-interleaved", "chase 4 MiB", chaseLarge, "--threads 1 --cpus 0").interleaved("0-1"),
		on("chase-2-local", "chase 4 MiB, 2 threads", chaseLarge, "--threads 2 --cpus 0-1 --bind-mem 0"),
		on("chase-2-remote", "chase 4 MiB, 2 threads", chaseLarge, "--threads 2 --cpus 0-1 --bind-mem 1"),
		on("chase-half-local", "chase 1 MiB", chaseHalf, "--threads 1 --cpus 0 --bind-mem 0"),
		on("chase-half-remote", "chase 1 MiB", chaseHalf, "--threads 1 --cpus 0 --bind-mem 1"),
		on("chase-tight-together", "chase 384 KiB, 2 threads, memory on node 0", chaseTight, "--threads 2 --cpus 0-1 --bind-mem 0"),
		on("chase-tight-apart", "chase 384 KiB, 2 threads, memory on node 0", chaseTight, "--threads 2 --cpus 0,2 --bind-mem 0"),

		on("stream-1-local", "stream", streamRead, "--threads 1 --cpus 0 --bind-mem 0").fitted(),
		on("stream-1-remote", "stream", streamRead, "--threads 1 --cpus 0 --bind-mem 1"),
		on("stream-2-local", "stream, 2 threads", streamRead, "--threads 2 --cpus 0-1 --bind-mem 0"),
		on("stream-2-remote", "stream, 2 threads", streamRead, "--threads 2 --cpus 0-1 --bind-mem 1"), // they wait for the link
		on("stream-4-home", "stream, 4 threads", streamRead, "--threads 4 --cpus 0-3 --touch worker"),
		on("stream-4-one", "stream, 4 threads", streamRead, "--threads 4 --cpus 0-3 --bind-mem 0"),
		on("write-2-local", "stream of stores, 2 threads", streamPut, "--threads 2 --cpus 0-1 --bind-mem 0"),
		on("write-2-remote", "stream of stores, 2 threads", streamPut, "--threads 2 --cpus 0-1 --bind-mem 1"),

		on("rao-few-together", "rao, 16 lines, 2 threads", raoFew, "--threads 2 --cpus 0-1 --bind-mem 0").fitted(),
		on("rao-few-apart", "rao, 16 lines, 2 threads", raoFew, "--threads 2 --cpus 0,2 --touch worker"),
		on("rao-many-together", "rao, 1024 lines, 2 threads", raoMany, "--threads 2 --cpus 0-1 --bind-mem 0"),
		on("rao-many-apart", "rao, 1024 lines, 2 threads", raoMany, "--threads 2 --cpus 0,2 --touch worker"),
		on("rao-few-4", "rao, 16 lines, 4 threads", raoFew, "--threads 4 --cpus 0-3 --touch worker"),
		on("rao-tight-together", "rao, 32 KiB, 2 threads", raoTight, "--threads 2 --cpus 0-1 --bind-mem 0"),
		on("rao-tight-apart", "rao, 32 KiB, 2 threads", raoTight, "--threads 2 --cpus 0,2 --touch worker"),
		on("rao-tight-4", "rao, 32 KiB, 4 threads", raoTight, "--threads 4 --cpus 0-3 --touch worker"),

		on("server-local", "server, 2 workers", serve, "--workers 2 --cpus 0-1 --bind-mem 0").fitted(),
		on("server-remote", "server, 2 workers", serve, "--workers 2 --cpus 0-1 --bind-mem 1"),
		on("server-interleaved", "server, 2 workers", serve, "--workers 2 --cpus 0-1").interleaved("0-1"),
		mixOnTwo("mix-home", 0, 1),
		mixOnTwo("mix-crossed", 1, 0),
	}
}

// onFour is a ring: node 3 is two hops from node 0. CPU 8 is kept free.
func onFour() []Scenario {
	on := func(name, work, args, where string) Scenario { return one(name, "four", work, args+" "+where) }
	return []Scenario{
		on("chase-local", "chase 4 MiB", chaseLarge, "--threads 1 --cpus 2 --bind-mem 1"),
		on("chase-near", "chase 4 MiB", chaseLarge, "--threads 1 --cpus 2 --bind-mem 0"),
		on("chase-far", "chase 4 MiB", chaseLarge, "--threads 1 --cpus 2 --bind-mem 2"),
		on("chase-interleaved", "chase 4 MiB", chaseLarge, "--threads 1 --cpus 2").interleaved("0-3"),
		on("chase-8-home", "chase 4 MiB, 8 threads", chaseLarge, "--threads 8 --cpus 0-7 --touch worker"),
		on("chase-8-one", "chase 4 MiB, 8 threads", chaseLarge, "--threads 8 --cpus 0-7 --bind-mem 0"),
		on("chase-half-far", "chase 1 MiB", chaseHalf, "--threads 1 --cpus 2 --bind-mem 2"),

		on("stream-8-home", "stream, 8 threads", streamRead, "--threads 8 --cpus 0-7 --touch worker"),
		on("stream-8-one", "stream, 8 threads", streamRead, "--threads 8 --cpus 0-7 --bind-mem 0"), // the controller is saturated
		on("stream-8-interleaved", "stream, 8 threads", streamRead, "--threads 8 --cpus 0-7").interleaved("0-3"),
		on("stream-2-local", "stream, 2 threads", streamRead, "--threads 2 --cpus 2-3 --bind-mem 1"),
		on("stream-2-far", "stream, 2 threads", streamRead, "--threads 2 --cpus 2-3 --bind-mem 2"),
		on("write-2-local", "stream of stores, 2 threads", streamPut, "--threads 2 --cpus 2-3 --bind-mem 1"),
		on("write-2-far", "stream of stores, 2 threads", streamPut, "--threads 2 --cpus 2-3 --bind-mem 2"),

		on("rao-few-together", "rao, 16 lines, 2 threads", raoFew, "--threads 2 --cpus 2-3 --bind-mem 1"),
		on("rao-few-far", "rao, 16 lines, 2 threads", raoFew, "--threads 2 --cpus 2,4 --touch worker"),
		on("rao-few-8", "rao, 16 lines, 8 threads", raoFew, "--threads 8 --cpus 0-7 --touch worker"),
		on("rao-many-8", "rao, 1024 lines, 8 threads", raoMany, "--threads 8 --cpus 0-7 --touch worker"),
		on("rao-tight-together", "rao, 32 KiB, 2 threads", raoTight, "--threads 2 --cpus 2-3 --bind-mem 1"),
		on("rao-tight-far", "rao, 32 KiB, 2 threads", raoTight, "--threads 2 --cpus 2,4 --touch worker"),
		on("rao-tight-8", "rao, 32 KiB, 8 threads", raoTight, "--threads 8 --cpus 0-7 --touch worker"),

		on("server-local", "server, 2 workers", serve, "--workers 2 --cpus 2-3 --bind-mem 1"),
		on("server-far", "server, 2 workers", serve, "--workers 2 --cpus 2-3 --bind-mem 2"),
		on("server-interleaved", "server, 2 workers", serve, "--workers 2 --cpus 2-3").interleaved("0-3"),
		on("server-8-one", "server, 8 workers", serve, "--workers 8 --cpus 0-7 --bind-mem 0"),
		on("server-8-interleaved", "server, 8 workers", serve, "--workers 8 --cpus 0-7").interleaved("0-3"),
		mixOnFour("mix-home", 1, 2),
		mixOnFour("mix-crossed", 2, 1),
	}
}

// mixOnTwo: two services, one per node, with their memory on nodes a and b, and a hog that
// streams on node 1.
func mixOnTwo(name string, a, b int) Scenario {
	return Scenario{Name: "two/" + name, Shape: "two", Work: "two servers and a stream", Loads: []Load{
		{Name: "a", Args: serve + " --workers 1 --cpus 0 --bind-mem " + digit(a)},
		{Name: "b", Args: serve + " --workers 1 --cpus 2 --bind-mem " + digit(b)},
		{Name: "hog", Args: streamRead + " --threads 1 --cpus 3 --bind-mem 1"},
	}}
}

// mixOnFour: the services' nodes are opposite corners, and the hog's memory is on one of
// them.
func mixOnFour(name string, a, b int) Scenario {
	return Scenario{Name: "four/" + name, Shape: "four", Work: "two servers and a stream", Loads: []Load{
		{Name: "a", Args: serve + " --workers 2 --cpus 2-3 --bind-mem " + digit(a)},
		{Name: "b", Args: serve + " --workers 2 --cpus 4-5 --bind-mem " + digit(b)},
		{Name: "hog", Args: streamRead + " --threads 2 --cpus 6-7 --bind-mem 1"},
	}}
}

func digit(n int) string { return string(rune('0' + n)) }

// Convergence is a case of NUMA balancing: a chase whose main thread first touched its
// memory on another node than that of its workers.
type Convergence struct {
	Name  string
	Shape string
	Args  string // --bind-cpu is the main thread's, --cpus are the workers'
	Home  int    // node of the workers
	From  int    // of the memory
	// Running: NUMA balancing is switched on when the load has run for longer than the
	// scan's delay. Else it is on from the start of the process.
	Running bool
}

// Convergences are all cases: until 90 % of the pages are local. From the start only where
// setup takes less than the scan's delay: 32 MiB take longer.
func Convergences() (all []Convergence) {
	for _, running := range []bool{false, true} {
		on := func(name, shape, args string, home, from int) {
			name = shape + "/balance-" + name + "-start"
			if running {
				name = name[:len(name)-len("start")] + "running"
			}
			all = append(all, Convergence{name, shape, "chase --thp off --touch main " + args, home, from, running})
		}
		on("8", "two", "--ws 8MiB --threads 1 --cpus 0 --bind-cpu 2", 0, 1)
		on("2x4", "two", "--ws 4MiB --threads 2 --cpus 0-1 --bind-cpu 2", 0, 1)
		on("8-far", "four", "--ws 8MiB --threads 1 --cpus 2 --bind-cpu 4", 1, 2)
		if running {
			on("32", "two", "--ws 32MiB --threads 1 --cpus 0 --bind-cpu 2", 0, 1)
			on("32-far", "four", "--ws 32MiB --threads 1 --cpus 2 --bind-cpu 4", 1, 2)
		}
	}
	return all
}

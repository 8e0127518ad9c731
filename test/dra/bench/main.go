// What the scheduler makes of the agent's slices: how well a node stays usable, and what the search costs. docs/dra-partitions.md
// has the figures and how to read them.
package main

import (
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
)

func main() {
	seeds := flag.Int("seeds", 40, "simulated days for each node and mix")
	load := flag.Float64("load", 0.8, "core-minutes asked for over core-minutes there are")
	only := flag.String("node", "", "this type alone of those of docs/allocation.md")
	nodes := flag.Int("nodes", 100, "the largest cluster of costs")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: bench [OPTION]... fragmentation|orders|packing|cost|shares|mixed|kinds|search...")
		flag.PrintDefaults()
	}
	flag.Parse()
	types := benchNodes
	if *only != "" {
		types = []string{*only}
	}
	parts := map[string]func(){
		"fragmentation": func() { printFragmentation(types, setups(), *seeds, *load) },
		"orders":        func() { printFragmentation(types, orders(), *seeds, *load) },
		"packing":       func() { printFragmentation(types, packings(), *seeds, *load) },
		"cost":          func() { printCosts(*nodes) },
		"kinds":         printKinds,
		"shares":        func() { printShares(*nodes) },
		"mixed": func() {
			printMixed(tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight), costNode(), *nodes)
		},
		"search": printSearch,
	}
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	for _, name := range flag.Args() {
		if parts[name] == nil {
			flag.Usage()
			os.Exit(2)
		}
		parts[name]()
	}
}

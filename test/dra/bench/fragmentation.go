package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"text/tabwriter"

	"neuron-agent.test/dra/node"
	"neuron-agent.test/dra/pool"
)

// The nodes of docs/allocation.md.
var benchNodes = []string{"trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge"}

// setup is one way to offer a node and to ask for it.
type setup struct {
	name   string
	form   form
	parts  pool.Partitions
	order  pool.Order
	ownIDs bool // claims match on our ids too
}

var all = pool.Partitions{Cores: true, Groups: true}

func setups() []setup {
	order := pool.Default()
	return []setup{
		{"all: groups", groups, all, order, true},
		{"all: matched", constrained, all, order, true},
		{"cores: matched", constrained, pool.Partitions{Cores: true}, order, true},
		{"groups: groups", groups, pool.Partitions{Groups: true}, order, true},
		{"none: matched", constrained, pool.Partitions{}, order, true},
		{"none: shares", shares, pool.Partitions{}, order, true},
		{"none: matched, AWS's ids", constrained, pool.Partitions{}, order, false},
		{"all: counts", plain, all, order, false},
		{"none: counts", plain, pool.Partitions{}, order, false},
	}
}

// packings are orders of devices that claims share; beside them what the same pods get with cores and groups as devices.
func packings() []setup {
	order := pool.Default()
	list := []setup{{"groups: groups", groups, pool.Partitions{Groups: true}, order, true}, {"cores: matched", constrained, pool.Partitions{Cores: true}, order, true}}
	for _, direction := range []pool.Direction{pool.Low, pool.High} {
		o := pool.Default()
		o.Devices = direction
		for _, form := range []form{shares, apart} {
			list = append(list, setup{fmt.Sprintf("none: %s, devices %s", form, direction), form, pool.Partitions{}, o, true})
		}
	}
	return list
}

// orders are all directions of the kinds.
func orders() []setup {
	var list []setup
	for _, devices := range []pool.Direction{pool.Low, pool.High} {
		for _, cores := range []pool.Direction{pool.Low, pool.High} {
			for _, direction := range []pool.Direction{pool.Low, pool.High} {
				o := pool.Default()
				o.Devices, o.Cores, o.Groups = devices, cores, direction
				name := fmt.Sprintf("devices %s, cores %s, groups %s", devices, cores, direction)
				list = append(list, setup{name, groups, all, o, true})
			}
		}
	}
	aligned := pool.Default()
	aligned.AlignedFirst = true
	return append(list, setup{"as published, runs at multiples of their size first", groups, all, aligned, true})
}

// every runs the function for each of n on all processors.
func every(n int, run func(i int)) {
	var wait sync.WaitGroup
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	for range runtime.NumCPU() {
		wait.Go(func() {
			for i := range next {
				run(i)
			}
		})
	}
	wait.Wait()
}

// sum over the seeds.
func sum(seeds int, one func(seed uint64) measures) measures {
	parts := make([]measures, seeds)
	every(seeds, func(i int) { parts[i] = one(firstSeed + uint64(i)) })
	var total measures
	for _, part := range parts {
		total.add(part)
	}
	return total
}

func printFragmentation(types []string, list []setup, seeds int, load float64) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, name := range types {
		t, _ := node.Find(name)
		fabric := node.NewFabric(t)
		for _, m := range mixesOf(t) {
			bound := sum(seeds, func(seed uint64) measures { return simulateByCount(t, stream(t, m, load, seed)) })
			fmt.Fprintf(w, "\n%s, %s\tfitted\tof bound\tof room\twork\tof bound\tinvalid\tmissed\thops\tNICs\t(could)\tlargest\t\n", name, m.name)
			for _, s := range list {
				total := sum(seeds, func(seed uint64) measures {
					p := newClaimed(t, s.form, s.parts, s.order)
					p.ownIDs = s.ownIDs
					return simulate(fabric, p, stream(t, m, load, seed))
				})
				total.print(w, s.name, bound)
			}
			bound.print(w, "bound by count", bound)
			w.Flush()
		}
	}
}

func (m measures) print(w *tabwriter.Writer, name string, bound measures) {
	share := func(part, whole float64) string {
		if whole == 0 {
			return "-"
		}
		return fmt.Sprintf("%.4f", part/whole)
	}
	offered, fitted, work := float64(m.offered), float64(m.fitted)/float64(m.offered), m.fittedWork/m.offeredWork
	fmt.Fprintf(w, "%s\t%.4f\t%.4f\t%s\t%.4f\t%.4f\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name, fitted, fitted*float64(bound.offered)/float64(bound.fitted),
		share(float64(m.fitted), float64(m.room)), work, work*bound.offeredWork/bound.fittedWork,
		share(float64(m.invalid), offered), share(float64(m.missed), offered), share(m.hops, float64(m.pairs)),
		share(float64(m.aligned), float64(m.withNICs)), share(float64(m.alignable), float64(m.withNICs)), share(m.largest, offered))
}

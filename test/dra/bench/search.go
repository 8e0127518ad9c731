package main

import (
	"fmt"
	"math"
	"os"
	"text/tabwriter"
	"time"

	"neuron-agent.test/dra/claims"
	"neuron-agent.test/dra/node"
	"neuron-agent.test/dra/pool"
)

// One unit too few: the allocator tries every combination before it says no. A node is given up after 10 s, and with it the pod's
// attempt on all nodes.
const patience = 10 * time.Second

func printSearch() {
	t := costNode()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\n%s, one too few\tfree\tsteps\ttime\tper step\t10 s with\t\n", t.Name)
	for _, s := range []struct {
		what, kind string
		parts      pool.Partitions
	}{
		{"devices, none", pool.Device, pool.Partitions{}},
		{"devices, all", pool.Device, all},
		{"cores, cores", pool.Core, pool.Partitions{Cores: true}},
		{"cores, all", pool.Core, all},
	} {
		for _, free := range []int{3, 7, 11, 15} {
			printSteps(w, t, s.what, s.kind, s.parts, free)
		}
	}
	for _, size := range []int{4, 8, 16} {
		printAligned(w, t, size)
	}
	w.Flush()
}

// The scheduler of a node with so many units of the kind left.
func withLeft(t node.Type, kind string, p pool.Partitions, free int) *cluster {
	c := newCluster(t, 1, p, pool.Default())
	if kind == pool.Device {
		c.fill(t, free)
		return c
	}
	// The cores that are left lie on the last devices.
	whole := t.Devices - (free+t.Cores()-1)/t.Cores()
	c.fill(t, t.Devices-whole)
	for core := whole * t.Cores(); core < t.Devices*t.Cores()-free; core++ {
		name := fmt.Sprintf("%s-core-%d", pool.DeviceName(core/t.Cores()), core%t.Cores())
		c.Take([]claims.Result{{Pool: c.names[0], Device: name}})
	}
	return c
}

func printSteps(w *tabwriter.Writer, t node.Type, what, kind string, p pool.Partitions, free int) {
	c, claim := withLeft(t, kind, p, free), claims.Claim(claims.Request(claims.Units, kind, free+1))
	served, steps := c.pass(claim)
	if served != 0 {
		must(fmt.Errorf("%s: %d of %d were there", what, free+1, free))
	}
	took := spent(func() { c.pass(claim) })
	each := took / time.Duration(steps)
	fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%.0f\t\n", what, free, steps, milliseconds(took), each, math.Log2(float64(patience)/float64(each)))
}

// A whole group, of each of which one device is taken: as a group one step each, as devices a search in each.
func printAligned(w *tabwriter.Writer, t node.Type, size int) {
	for _, s := range []struct {
		what  string
		parts pool.Partitions
		form
	}{
		{"matched, none", pool.Partitions{}, constrained},
		{"matched, all", all, constrained},
		{"a group, groups", pool.Partitions{Groups: true}, groups},
		{"a group, all", all, groups},
	} {
		asks := newClaimed(t, s.form, s.parts, pool.Default())
		claim := asks.claim(request{size: size})
		c := newCluster(t, 1, s.parts, pool.Default())
		for device := 0; device < t.Devices; device += size {
			c.Take([]claims.Result{{Pool: c.names[0], Device: pool.DeviceName(device)}})
		}
		served, steps := c.pass(claim)
		if served != 0 {
			must(fmt.Errorf("%s of %d were there", s.what, size))
		}
		took := spent(func() { c.pass(claim) })
		fmt.Fprintf(w, "%s of %d, each broken\t%d\t%d\t%s\t%s\t\t\n", s.what, size, t.Devices-t.Devices/size, steps, milliseconds(took), took/time.Duration(steps))
	}
}

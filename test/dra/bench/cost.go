package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"text/tabwriter"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"neuron-agent.test/dra/claims"
	"neuron-agent.test/dra/node"
	"neuron-agent.test/dra/pool"
)

// What the scheduler spends on one pod: an allocator over the whole cluster, asked for each node, as its plugin does it with
// percentageOfNodesToScore of 100. Processor time of the whole process, so that neither other programs nor the number of
// goroutines matter; a scheduler with enough processors divides it by up to 16.

type question struct {
	name  string
	parts []func(*resourceapi.DeviceClaim)
	needs pool.Partitions
}

func questions() []question {
	device := func(count int) func(*resourceapi.DeviceClaim) {
		return claims.Request(claims.Units, pool.Device, count)
	}
	group := func(size int) func(*resourceapi.DeviceClaim) {
		return claims.Request(claims.Units, pool.Group, 1, claims.GroupOf(size))
	}
	match, efas := claims.Match(claims.GroupID(4)), claims.Request(claims.EFAs, pool.EFA, 4)
	type parts = []func(*resourceapi.DeviceClaim)
	return []question{
		{"1 device", parts{device(1)}, pool.Partitions{}},
		{"4 devices, matched", parts{device(4), match}, pool.Partitions{}},
		{"4 devices + 4 EFAs, matched", parts{device(4), efas, match}, pool.Partitions{}},
		{"16 devices", parts{device(16)}, pool.Partitions{}},
		{"1 core", parts{claims.Request(claims.Units, pool.Core, 1)}, pool.Partitions{Cores: true}},
		{"group of 4", parts{group(4)}, pool.Partitions{Groups: true}},
		{"group of 4 + 4 EFAs, matched", parts{group(4), efas, match}, pool.Partitions{Groups: true}},
		{"group of 16", parts{group(16)}, pool.Partitions{Groups: true}},
	}
}

func (q question) possible(p pool.Partitions) bool {
	return (!q.needs.Cores || p.Cores) && (!q.needs.Groups || p.Groups)
}

// cluster of nodes that are alike.
type cluster struct {
	*claims.Scheduler
	names []string
}

func newCluster(t node.Type, count int, p pool.Partitions, order pool.Order) *cluster {
	return newMixed(t, count, count, p, order)
}

// newMixed has partitions on the first `some` nodes alone.
func newMixed(t node.Type, count, some int, p pool.Partitions, order pool.Order) *cluster {
	c := &cluster{}
	var slices []*resourceapi.ResourceSlice
	for i := range count {
		c.names = append(c.names, fmt.Sprintf("n%04d", i))
		if i == some {
			p = pool.Partitions{}
		}
		slices = append(slices, pool.Slices(c.names[i], t, p, order, pool.Split)...)
	}
	c.Scheduler = claims.NewScheduler(slices)
	return c
}

// fill takes the lower devices of each node, so that so many are left.
func (c *cluster) fill(t node.Type, left int) {
	for _, name := range c.names {
		for device := range t.Devices - left {
			c.Take([]claims.Result{{Pool: name, Device: pool.DeviceName(device)}})
		}
	}
}

// pass asks every node, and counts those that can serve the claim and the steps of the search.
func (c *cluster) pass(claim *resourceapi.ResourceClaim) (served int, steps int64) {
	ctx := context.Background()
	p, err := c.NewPass(ctx, claim)
	must(err)
	for _, name := range c.names {
		results, err := p.Try(ctx, name)
		must(err)
		if results != nil {
			served++
		}
	}
	return served, p.Steps()
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// spent is the processor time of one call, over as many as take a while, after one that fills caches.
func spent(call func()) time.Duration {
	call()
	const enough = 300 * time.Millisecond
	start := processorTime()
	for n := 1; ; n++ {
		call()
		if total := processorTime() - start; total >= enough {
			return total / time.Duration(n)
		}
	}
}

// The type with the most cores.
func costNode() node.Type {
	t, _ := node.Find("trn2.48xlarge")
	return t
}

func printCosts(most int) {
	t := costNode()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for count := 1; count <= most; count *= 10 {
		for _, left := range []int{16, 4} {
			printCost(w, t, count, left)
		}
	}
}

// Partitions on a part of the nodes: the price is nodes times nodes that have counters.
func printMixed(w *tabwriter.Writer, t node.Type, count int) {
	fmt.Fprintf(w, "\n1 device, %d × %s, of which offer all\t", count, t.Name)
	for _, some := range []int{0, count / 20, count / 10, count / 4, count / 2, count} {
		c, claim := newMixed(t, count, some, all, pool.Default()), claims.Claim(questions()[0].parts...)
		fmt.Fprintf(w, "%d: %s\t", some, milliseconds(spent(func() { c.pass(claim) })))
	}
	fmt.Fprintln(w)
	w.Flush()
}

// Each line begins with its own floor: one device on nodes that offer nothing else.
func printCost(w *tabwriter.Writer, t node.Type, count, left int) {
	fmt.Fprintf(w, "\n%d × %s, %d devices free on each\tfloor\t", count, t.Name, left)
	for _, p := range pool.AllPartitions {
		fmt.Fprintf(w, "%s\t\t", p)
	}
	fmt.Fprintln(w)
	bare := newCluster(t, count, pool.Partitions{}, pool.Default())
	bare.fill(t, left)
	one := claims.Claim(questions()[0].parts...)
	for _, q := range questions() {
		floor := spent(func() { bare.pass(one) })
		fmt.Fprintf(w, "%s\t%s\t", q.name, milliseconds(floor))
		for _, p := range pool.AllPartitions {
			if !q.possible(p) {
				fmt.Fprint(w, "-\t\t")
				continue
			}
			c, claim := newCluster(t, count, p, pool.Default()), claims.Claim(q.parts...)
			c.fill(t, left)
			took := spent(func() { c.pass(claim) })
			fmt.Fprintf(w, "%s\t×%.1f\t", milliseconds(took), float64(took)/float64(floor))
		}
		fmt.Fprintln(w)
		w.Flush()
	}
}

// What shares cost, with nothing held, and with one core, or all, of each of the lower half of the devices held on every node.
func printShares(most int) {
	t := costNode()
	questions := []question{
		{"1 device", []func(*resourceapi.DeviceClaim){claims.Request(claims.Units, pool.Device, 1)}, pool.Partitions{}},
		{"1 core", []func(*resourceapi.DeviceClaim){claims.Shares(claims.Units, 1, 1)}, pool.Partitions{}},
		{"3 cores of one device", []func(*resourceapi.DeviceClaim){claims.Shares(claims.Units, 1, 3)}, pool.Partitions{}},
		{"1 core of each of 3", []func(*resourceapi.DeviceClaim){claims.Shares(claims.Units, 3, 1)}, pool.Partitions{}},
	}
	for count := 1; count <= most; count *= 10 {
		bare := newCluster(t, count, pool.Partitions{}, pool.Default())
		floor := spent(func() { bare.pass(claims.Claim(questions[0].parts...)) })
		fmt.Printf("%d × %s: 1 device, not shared %s", count, t.Name, milliseconds(floor))
		bare.fill(t, t.Devices/2)
		half := spent(func() { bare.pass(claims.Claim(questions[0].parts...)) })
		fmt.Printf(", half of them held %s\n", milliseconds(half))
		for _, busy := range []int{0, 1, t.Cores()} {
			c := &cluster{}
			var slices []*resourceapi.ResourceSlice
			for i := range count {
				c.names = append(c.names, fmt.Sprintf("n%04d", i))
				slices = append(slices, pool.Share(pool.Slices(c.names[i], t, pool.Partitions{}, pool.Default(), pool.Split))...)
			}
			c.Scheduler = claims.NewScheduler(slices)
			for device := 0; busy > 0 && device < t.Devices/2; device++ {
				for _, name := range c.names {
					id := types.UID(fmt.Sprintf("%s-%d", name, device))
					c.Take([]claims.Result{{Pool: name, Device: pool.DeviceName(device), ShareID: &id,
						Consumed: map[resourceapi.QualifiedName]resource.Quantity{pool.Cores: *resource.NewQuantity(int64(busy), resource.DecimalSI)}}})
				}
			}
			for _, q := range questions {
				took := spent(func() { c.pass(claims.Claim(q.parts...)) })
				fmt.Printf("  %d cores of each of 8 held: %s %s, ×%.2f\n", busy, q.name, milliseconds(took), float64(took)/float64(floor))
			}
		}
	}
}

// The order of the kinds, which changes only how many expressions are evaluated before the first that fits.
func printKinds() {
	t := costNode()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\n1 × %s, all, 16 devices free\t", t.Name)
	for _, q := range questions() {
		fmt.Fprintf(w, "%s\t", q.name)
	}
	fmt.Fprintln(w)
	for _, kinds := range [][]string{
		{pool.Device, pool.Group, pool.Core, pool.EFA},
		{pool.Device, pool.Group, pool.EFA, pool.Core},
		{pool.Device, pool.EFA, pool.Group, pool.Core},
		{pool.Group, pool.Device, pool.EFA, pool.Core},
		{pool.Group, pool.EFA, pool.Device, pool.Core},
		{pool.Core, pool.Device, pool.Group, pool.EFA},
	} {
		order := pool.Default()
		order.Kinds = kinds
		c := newCluster(t, 1, all, order)
		fmt.Fprintf(w, "%v\t", kinds)
		for _, q := range questions() {
			claim := claims.Claim(q.parts...)
			fmt.Fprintf(w, "%s\t", milliseconds(spent(func() { c.pass(claim) })))
		}
		fmt.Fprintln(w)
		w.Flush()
	}
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.3f ms", float64(d)/float64(time.Millisecond))
}

package scenarios

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"neuron-agent.test/cluster/chaos"
	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/cluster/judge"
)

// TestChaos: whatever happens to nodes and control plane, no core and no interface is in two running containers, nobody lacks
// what was asked for, and everything comes back. CHAOS_SEED draws the same faults again, CHAOS_MINUTES makes it longer, and
// CHAOS_SLOWER multiplies the bounds, for a machine that does much else.
func TestChaos(t *testing.T) {
	o := chaos.Options{Seed: 20261122, Length: time.Minute, Storm: time.Minute, Bounds: judge.Bounds{
		Serve: 15 * time.Second, Hardware: 12 * time.Second, Release: 15 * time.Second, Withhold: 5 * time.Second}}
	specs := []cluster.Spec{cluster.Trn1, cluster.Inf2}
	if minutes := number(t, "CHAOS_MINUTES"); minutes > 0 {
		o.Length = time.Duration(minutes) * time.Minute
		o.Seed = uint64(time.Now().Unix())
		if minutes >= 10 {
			specs = append(specs, cluster.Trn2)
		}
	}
	if seed := number(t, "CHAOS_SEED"); seed > 0 {
		o.Seed = uint64(seed)
	}
	if slower := time.Duration(number(t, "CHAOS_SLOWER")); slower > 0 {
		b := &o.Bounds
		b.Serve, b.Hardware, b.Release, b.Withhold = b.Serve*slower, b.Hardware*slower, b.Release*slower, b.Withhold*slower
	}
	t.Logf("chaos: seed %d, %v, bounds %+v", o.Seed, o.Length, o.Bounds)
	c := cluster.Get(t)
	nodes := c.Nodes(t, specs...)
	c.Apply(t, cluster.Manifest("static/neuron-agent.yaml"))
	nodes[0].ExpectAllocatable(t, cluster.Counts{Cores: 32, Devices: 16, EFAs: 8})
	nodes[1].ExpectAllocatable(t, cluster.Counts{Cores: 24, Devices: 12})
	for _, n := range nodes[2:] {
		cluster.Eventually(t, cluster.Patience, n.Name+" offers something", func() error {
			if now, err := n.Allocatable(); err != nil || now.Devices == 0 || now.Cores == 0 || now.EFAs == 0 {
				return fmt.Errorf("allocatable %+v, %v", now, err)
			}
			return nil
		})
	}
	t.Cleanup(func() { c.Kubectl(t, "delete", "namespace", "chaos", "--ignore-not-found") })
	chaos.Run(t, c, nodes, o)
}

// TestChaosSchedule: a seed is a schedule, every kind comes before any comes twice in its lane, and lanes do not overlap.
func TestChaosSchedule(t *testing.T) {
	nodes := []string{"a", "b"}
	events := chaos.Schedule(7, 10*time.Minute, nodes)
	if !slices.Equal(events, chaos.Schedule(7, 10*time.Minute, nodes)) || slices.Equal(events, chaos.Schedule(8, 10*time.Minute, nodes)) {
		t.Error("a seed is not a schedule")
	}
	kinds, ends := map[string]int{}, map[string]time.Duration{}
	for _, e := range events {
		kinds[e.Kind]++
		if e.At < ends[e.Lane] || e.At+e.For > 10*time.Minute {
			t.Errorf("%v in %s begins before the one before has ended, or ends too late", e, e.Lane)
		}
		ends[e.Lane] = e.At + e.For
	}
	if len(kinds) != 22 || len(ends) != 6 {
		t.Errorf("%d kinds %v in %d lanes", len(kinds), kinds, len(ends))
	}
}

func number(t *testing.T, variable string) int {
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	value, err := strconv.Atoi(text)
	if err != nil || value < 1 {
		t.Fatalf("%s=%q is not a number", variable, text)
	}
	return value
}

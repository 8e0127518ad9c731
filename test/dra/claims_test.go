package dra

import (
	"context"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"neuron-agent.test/dra/claims"
	"neuron-agent.test/dra/node"
	"neuron-agent.test/dra/pool"
)

// What claims get one after the other on an empty node: the order of the list, seen through the scheduler.
func TestFirstClaims(t *testing.T) {
	device := claims.Request(claims.Units, pool.Device, 1)
	core := claims.Request(claims.Units, pool.Core, 1)
	efa := func(count int) func(*resourceapi.DeviceClaim) { return claims.Request(claims.EFAs, pool.EFA, count) }
	group := func(size int) func(*resourceapi.DeviceClaim) {
		return claims.Request(claims.Units, pool.Group, 1, claims.GroupOf(size))
	}
	steps := []struct {
		parts []func(*resourceapi.DeviceClaim)
		want  string
	}{
		{[]func(*resourceapi.DeviceClaim){core}, "neuron-device-0-core-0"},
		{[]func(*resourceapi.DeviceClaim){device}, "neuron-device-1"},
		{[]func(*resourceapi.DeviceClaim){core}, "neuron-device-0-core-1"},
		{[]func(*resourceapi.DeviceClaim){group(4), efa(2), claims.Match(claims.GroupID(4))},
			"neuron-group-12-15 efa-rdmap16s25 efa-rdmap160s25"},
		{[]func(*resourceapi.DeviceClaim){group(8)}, ""}, // 0 to 7 are not whole
		{[]func(*resourceapi.DeviceClaim){claims.Request(claims.Units, pool.Device, 4), claims.Match(claims.GroupID(4))},
			"neuron-device-4 neuron-device-5 neuron-device-6 neuron-device-7"},
		{[]func(*resourceapi.DeviceClaim){claims.Request(claims.Units, pool.Device, 2), efa(1), claims.Match(claims.GroupID(1))},
			"neuron-device-2 neuron-device-3 efa-rdmap160s26"},
		{[]func(*resourceapi.DeviceClaim){group(4)}, "neuron-group-8-11"},
		{[]func(*resourceapi.DeviceClaim){device}, ""},
		{[]func(*resourceapi.DeviceClaim){core}, ""},
	}
	kind, _ := node.Find("trn1.32xlarge")
	all := pool.Slices(nodeName, kind, pool.Partitions{Cores: true, Groups: true}, pool.Default(), pool.Split)
	scheduler := claims.NewScheduler(all)
	for i, step := range steps {
		results, err := scheduler.Allocate(context.Background(), nodeName, claims.Claim(step.parts...))
		var got []string
		for _, result := range results {
			got = append(got, result.Device)
		}
		if text := strings.Join(got, " "); err != nil || text != step.want {
			t.Errorf("step %d: %q (%v) instead of %q", i, text, err, step.want)
		}
	}
}

// AWS's vectors (docs/reference/topology.md).
func TestGroupIDs(t *testing.T) {
	kind, _ := node.Find("trn1.32xlarge")
	for _, vector := range []struct {
		device, size int
		want         string
	}{
		{0, 1, "0000:10:1a.0"}, {3, 4, "88a3c6ad1661fe1d"}, {4, 4, "69b2225fd72a59dd"}, {8, 4, "e3c29faa0cd11323"},
		{15, 4, "178a9e264a26793e"}, {0, 8, "86c451036f622685"}, {8, 8, "aa86c05423d6e8cd"}, {5, 16, "fb838249c99a6341"},
	} {
		if got := pool.GroupID(kind, vector.device, vector.size); got != vector.want {
			t.Errorf("device %d, group of %d: %s instead of %s", vector.device, vector.size, got, vector.want)
		}
	}
}

// Every group is a set on which the runtime starts, and none is there twice.
func TestGroupsAreValid(t *testing.T) {
	for _, kind := range node.Types() {
		fabric := node.NewFabric(kind)
		seen := map[string]bool{}
		for _, e := range pool.Entries(kind, pool.Partitions{Groups: true}) {
			if e.Kind != pool.Group {
				continue
			}
			sorted := slices.Sorted(slices.Values(e.Devices))
			if !fabric.Valid(sorted) {
				t.Errorf("%s: %s is %v", kind.Name, e.Name, e.Devices)
			}
			if seen[e.Name] {
				t.Errorf("%s: %s twice", kind.Name, e.Name)
			}
			seen[e.Name] = true
		}
	}
}

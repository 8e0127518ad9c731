// Package pool makes the devices of a node as docs/adr/0011-dra.md has them, in an order that can be chosen, and lays them
// out in ResourceSlices. It is what the agent's slices are compared with, and what the benchmark tries other orders on.
package pool

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"neuron-agent.test/dra/node"
)

// Driver is the name that stands in slices and claims.
const Driver = "neuron.aws.com"

// Values of resourceType.
const (
	Device = "neuron_device"
	Core   = "neuron_core"
	Group  = "neuron_group"
	EFA    = "efa"
)

// Partitions say what is offered beside whole devices and interfaces.
type Partitions struct{ Cores, Groups bool }

func (p Partitions) String() string {
	switch p {
	case Partitions{}:
		return "none"
	case Partitions{Cores: true}:
		return "cores"
	case Partitions{Groups: true}:
		return "groups"
	}
	return "all"
}

// AllPartitions are the values of --dra-partitions.
var AllPartitions = []Partitions{{}, {Cores: true}, {Groups: true}, {true, true}}

// Entry is one device of the pool: silicon or an interface.
type Entry struct {
	Name    string
	Kind    string
	Devices []int // touched; of a run that passes the end in its own order
	Core    int   // global id; -1 none
	EFA     int   // position in Type.EFAs; -1 none
}

// Size counts whole devices.
func (e Entry) Size() int { return len(e.Devices) }

// DeviceName as AWS gives it.
func DeviceName(device int) string { return fmt.Sprintf("neuron-device-%d", device) }

// GroupName of the devices from first to last; on a ring last may be lower.
func GroupName(first, last int) string { return fmt.Sprintf("neuron-group-%d-%d", first, last) }

// Entries of a node: devices, cores, groups of two or more, interfaces, each ascending, groups the small ones first.
func Entries(t node.Type, p Partitions) []Entry {
	var all []Entry
	for device := range t.Devices {
		all = append(all, Entry{DeviceName(device), Device, []int{device}, -1, -1})
	}
	for core := 0; p.Cores && core < t.Devices*t.Cores(); core++ {
		device := core / t.Cores()
		all = append(all, Entry{fmt.Sprintf("%s-core-%d", DeviceName(device), core%t.Cores()), Core, []int{device}, core, -1})
	}
	if p.Groups {
		all = append(all, groups(t)...)
	}
	for i, efa := range t.EFAs {
		all = append(all, Entry{"efa-" + efa.Name, EFA, nil, -1, i})
	}
	return all
}

// Aligned groups of 4, 8, 16; else every run of two devices or more, of a ring also those that pass its end.
func groups(t node.Type) []Entry {
	var all []Entry
	for size := 2; size <= t.Devices && t.Shape != node.Alone; size++ {
		if t.Shape.Grouped() && size != 4 && size != 8 && size != 16 {
			continue
		}
		for first := range t.Devices {
			if t.Shape.Grouped() && first%size != 0 || first+size > t.Devices && t.Shape != node.Ring || first > 0 && size == t.Devices {
				continue
			}
			e := Entry{GroupName(first, (first+size-1)%t.Devices), Group, nil, -1, -1}
			for i := range size {
				e.Devices = append(e.Devices, (first+i)%t.Devices)
			}
			all = append(all, e)
		}
	}
	return all
}

// GroupID of the aligned group of `size` that the device is in, as AWS computes it: the interfaces' addresses, hashed; of
// one device the address. "" where no table has the type.
func GroupID(t node.Type, device, size int) string {
	var addresses []string
	first := device / size * size
	for i := first; i < first+size && i < t.Devices; i++ {
		if near := t.Near(i); near >= 0 {
			addresses = append(addresses, t.EFAs[near].BDF)
		}
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	if len(addresses) == 0 {
		return ""
	}
	if size == 1 {
		return addresses[0]
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(addresses, ","))))[:16]
}

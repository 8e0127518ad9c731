package pool

import (
	"cmp"
	"slices"
)

// Direction of the indices of one kind in the list.
type Direction int

const (
	Low  Direction = iota // the lowest first
	High                  // the highest first
)

func (d Direction) String() string {
	if d == Low {
		return "low"
	}
	return "high"
}

// Order in which the scheduler tries the devices of a pool. It takes the first that fits.
type Order struct {
	Devices, Cores, Groups Direction
	Kinds                  []string // which kind is tried before which
	// Of runs those that begin at a multiple of their size before those that lie across two such.
	AlignedFirst bool
}

// Default is the order of plugin/dra/slices/pool.
func Default() Order {
	return Order{Devices: Low, Cores: Low, Groups: High, Kinds: []string{Device, Group, EFA, Core}}
}

// Sort puts the entries in order.
func (o Order) Sort(all []Entry) {
	slices.SortStableFunc(all, func(a, b Entry) int {
		if a.Kind != b.Kind {
			return cmp.Compare(slices.Index(o.Kinds, a.Kind), slices.Index(o.Kinds, b.Kind))
		}
		switch a.Kind {
		case Device:
			return directed(o.Devices, a.Devices[0], b.Devices[0])
		case Core:
			return o.cores(a, b)
		case Group:
			return o.groups(a, b)
		}
		return cmp.Compare(a.EFA, b.EFA)
	})
}

func directed(d Direction, a, b int) int {
	if d == High {
		a, b = b, a
	}
	return cmp.Compare(a, b)
}

// Of a device that cores break always the lowest first.
func (o Order) cores(a, b Entry) int {
	return cmp.Or(directed(o.Cores, a.Devices[0], b.Devices[0]), cmp.Compare(a.Core, b.Core))
}

// Small ones first; those past the end of a ring after all others of their size.
func (o Order) groups(a, b Entry) int {
	rank := func(e Entry) int {
		switch {
		case e.Devices[0] > e.Devices[len(e.Devices)-1]:
			return 2
		case o.AlignedFirst && e.Devices[0]%e.Size() != 0:
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.Size(), b.Size()), cmp.Compare(rank(a), rank(b)), directed(o.Groups, a.Devices[0], b.Devices[0]))
}

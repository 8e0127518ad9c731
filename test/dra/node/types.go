// Package node has what the instance types are made of (docs/reference/topology.md), and a judge of what a container may
// be given there. It shares no code and no table with the agent.
package node

import "fmt"

// Shape is how the devices of a node are linked.
type Shape int

const (
	Alone    Shape = iota // one device, or nothing known
	Line                  // 0-1-2-…
	Ring                  // a line whose ends are linked
	Torus                 // 4×4, row by row
	Switched              // every device reaches every other alike
)

// Grouped: devices come in aligned groups of 4, 8, 16.
func (s Shape) Grouped() bool { return s == Torus || s == Switched }

// EFA is one interface.
type EFA struct {
	Name string // RDMA name
	BDF  string // 0000:10:1a.0
	Near []int  // devices whose nearest it is, ascending
}

// Type is one kind of node, with a given LNC.
type Type struct {
	Name     string
	LNC      int
	Devices  int
	Physical int // physical cores of a device
	Shape    Shape
	EFAs     []EFA // ascending address
}

// Cores is the number of logical cores of one device.
func (t Type) Cores() int { return t.Physical / t.LNC }

// Near gives the position in EFAs of the device's nearest, -1 where no table says.
func (t Type) Near(device int) int {
	for i, efa := range t.EFAs {
		for _, near := range efa.Near {
			if near == device {
				return i
			}
		}
	}
	return -1
}

// AWS's tables: address of the nearest EFA by device index.
type address struct{ bus, slot int }

func onBuses(buses ...int) []address {
	var all []address
	for _, bus := range buses {
		all = append(all, address{bus, 0})
	}
	return all
}

var (
	trn1Near = []address{{0x10, 0x1a}, {0x10, 0x1a}, {0xa0, 0x1a}, {0xa0, 0x1a}, {0x20, 0x19}, {0x20, 0x19}, {0x90, 0x19}, {0x90, 0x19},
		{0x20, 0x1a}, {0x20, 0x1a}, {0x90, 0x1a}, {0x90, 0x1a}, {0x10, 0x19}, {0x10, 0x19}, {0xa0, 0x19}, {0xa0, 0x19}}
	trn1nNear = []address{{0x10, 0x17}, {0x10, 0x1a}, {0xa0, 0x17}, {0xa0, 0x1a}, {0x20, 0x19}, {0x20, 0x18}, {0x90, 0x19}, {0x90, 0x18},
		{0x20, 0x17}, {0x20, 0x1a}, {0x90, 0x17}, {0x90, 0x1a}, {0x10, 0x19}, {0x10, 0x18}, {0xa0, 0x19}, {0xa0, 0x18}}
	trn2Near    = onBuses(0xc9, 0xb4, 0xb3, 0xca, 0x6c, 0x57, 0x56, 0x6d, 0x98, 0x83, 0x82, 0x99, 0xf5, 0xe0, 0xdf, 0xf6)
	trn3Near    = onBuses(0xbe, 0xa9, 0xa8, 0xbf, 0x61, 0x4c, 0x4b, 0x62, 0x8d, 0x78, 0x77, 0x8e, 0xea, 0xd5, 0xd4, 0xeb)
	trn3PdsNear = onBuses(0xa9, 0xa8, 0xbf, 0xbe, 0xd5, 0xd4, 0xeb, 0xea, 0x4c, 0x4b, 0x62, 0x61, 0x78, 0x77, 0x8e, 0x8d)
)

func withNear(t Type, near []address) Type {
	for bus := range 256 {
		for slot := range 32 {
			efa := EFA{Name: fmt.Sprintf("rdmap%ds%d", bus, slot), BDF: fmt.Sprintf("0000:%02x:%02x.0", bus, slot)}
			for device, at := range near {
				if at == (address{bus, slot}) {
					efa.Near = append(efa.Near, device)
				}
			}
			if efa.Near != nil {
				t.EFAs = append(t.EFAs, efa)
			}
		}
	}
	return t
}

func of(devices, perDevice, lnc int, shape Shape, near []address, names ...string) []Type {
	var all []Type
	for _, name := range names {
		all = append(all, withNear(Type{Name: name, LNC: lnc, Devices: devices, Physical: perDevice, Shape: shape}, near))
	}
	return all
}

// Types has every type with Neuron devices, each with its usual LNC. EFAs are those of the tables alone: where no table
// has the type, it has none here.
func Types() []Type {
	var all []Type
	for _, some := range [][]Type{
		of(1, 4, 1, Alone, nil, "inf1.xlarge", "inf1.2xlarge"),
		of(4, 4, 1, Line, nil, "inf1.6xlarge"),
		of(16, 4, 1, Line, nil, "inf1.24xlarge"), // its links are unknown; AWS gives consecutive ids
		of(1, 2, 1, Alone, nil, "inf2.xlarge", "inf2.8xlarge"),
		of(6, 2, 1, Line, nil, "inf2.24xlarge"),
		of(12, 2, 1, Ring, nil, "inf2.48xlarge"),
		of(1, 2, 1, Alone, nil, "trn1.2xlarge"),
		of(16, 2, 1, Torus, trn1Near, "trn1.32xlarge"),
		of(16, 2, 1, Torus, trn1nNear, "trn1n.32xlarge"),
		of(1, 8, 2, Alone, nil, "trn2.3xlarge"),
		of(16, 8, 2, Torus, trn2Near, "trn2.48xlarge", "trn2u.48xlarge", "trn2e.48xlarge"),
		of(16, 8, 2, Torus, nil, "trn2p.48xlarge", "trn2eu.48xlarge"),
		of(16, 8, 2, Switched, nil, "trn2es.48xlarge"),
		of(4, 8, 2, Switched, nil, "trn2en.24xlarge"),
		of(16, 8, 2, Switched, trn3Near, "trn3.48xlarge", "trn3s.48xlarge"),
		of(16, 8, 2, Torus, trn3Near, "trn3p.48xlarge", "trn3pd98.48xlarge"),
		of(16, 8, 2, Switched, trn3PdsNear, "trn3-dev0.48xlarge", "trn3-dev1.48xlarge"),
		of(16, 8, 2, Switched, nil, "trn3n.48xlarge", "trn3s-es.48xlarge", "trn3sn.48xlarge", "trn3sn-es.48xlarge"),
		of(4, 8, 2, Switched, nil, "trn3e.24xlarge", "trn3e-dev0.24xlarge", "trn3en.24xlarge"),
		of(1, 8, 2, Alone, nil, "trn3.3xlarge", "trn3pd98.3xlarge", "trn3s-es.3xlarge", "trn3sn.3xlarge", "trn3sn-es.3xlarge"),
	} {
		all = append(all, some...)
	}
	return all
}

// AllLNC adds to each type the other LNC that it can have.
func AllLNC() []Type {
	var all []Type
	for _, t := range Types() {
		all = append(all, t)
		if t.LNC == 2 {
			t.LNC = 1
			all = append(all, t)
		}
	}
	return all
}

// Find gives the type of that name with its usual LNC.
func Find(name string) (Type, bool) {
	for _, t := range Types() {
		if t.Name == name {
			return t, true
		}
	}
	return Type{}, false
}

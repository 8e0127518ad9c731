package node

import (
	"math/bits"
	"slices"
)

// Fabric judges sets of devices, cores and interfaces of one type; the same rules as test/bench/fragmentation_fabric.cpp.
type Fabric struct {
	Type
	hops [][]int
}

// NewFabric of a node with a torus, a ring or a line.
func NewFabric(t Type) *Fabric {
	f := &Fabric{Type: t}
	for from := range t.Devices {
		row := make([]int, t.Devices)
		for to := range row {
			row[to] = t.distance(from, to)
		}
		f.hops = append(f.hops, row)
	}
	return f
}

func around(a, b, size int) int {
	distance := max(a-b, b-a)
	return min(distance, size-distance)
}

func (t Type) distance(a, b int) int {
	switch t.Shape {
	case Torus:
		return around(a/4, b/4, 4) + around(a%4, b%4, 4)
	case Ring:
		return around(a, b, t.Devices)
	case Switched:
		return min(1, max(a-b, b-a))
	}
	return max(a-b, b-a)
}

// Valid: the runtime starts on exactly these devices, ascending. Groups: aligned ones of 1, 4, 8, 16, a connected set of
// any other size; else one run, which on a ring may pass the end.
func (f *Fabric) Valid(devices []int) bool {
	size := len(devices)
	switch {
	case size == 0:
		return false
	case !f.Shape.Grouped():
		return f.oneRun(devices)
	case size == 1 || size == 4 || size == 8 || size == 16:
		return devices[0]%size == 0 && devices[size-1]-devices[0] == size-1
	}
	return f.connected(devices)
}

func (f *Fabric) oneRun(devices []int) bool {
	gaps := 0
	for i := 1; i < len(devices); i++ {
		if devices[i] != devices[i-1]+1 {
			gaps++
		}
	}
	passesEnd := f.Shape == Ring && devices[0] == 0 && devices[len(devices)-1] == f.Devices-1
	return gaps == 0 || gaps == 1 && passesEnd
}

func (f *Fabric) connected(devices []int) bool {
	reached := []int{devices[0]}
	for i := 0; i < len(reached); i++ {
		for _, next := range devices {
			if f.hops[reached[i]][next] == 1 && !slices.Contains(reached, next) {
				reached = append(reached, next)
			}
		}
	}
	return len(reached) == len(devices)
}

// ValidCores: global ids, ascending, are one range as the container counts, from 0 over the devices that it sees.
func (f *Fabric) ValidCores(cores []int) bool {
	devices := f.DevicesOf(cores)
	counted := func(core int) int { return slices.Index(devices, core/f.Cores())*f.Cores() + core%f.Cores() }
	return counted(cores[len(cores)-1])-counted(cores[0])+1 == len(cores)
}

// DevicesOf gives the devices that these global core ids touch, ascending.
func (f *Fabric) DevicesOf(cores []int) []int {
	var devices []int
	for _, core := range cores {
		devices = append(devices, core/f.Cores())
	}
	slices.Sort(devices)
	return slices.Compact(devices)
}

// MeanHops over all pairs; of two devices or more.
func (f *Fabric) MeanHops(devices []int) float64 {
	sum, pairs := 0, 0
	for i, a := range devices {
		for _, b := range devices[i+1:] {
			sum += f.hops[a][b]
			pairs++
		}
	}
	return float64(sum) / float64(pairs)
}

// Aligned: every interface (position in EFAs) is the nearest of one of the devices, and every device has its nearest among them.
func (f *Fabric) Aligned(devices, efas []int) bool {
	for _, efa := range efas {
		if !slices.ContainsFunc(f.EFAs[efa].Near, func(device int) bool { return slices.Contains(devices, device) }) {
			return false
		}
	}
	return !slices.ContainsFunc(devices, func(device int) bool { return !slices.Contains(efas, f.Near(device)) })
}

// Largest is the size of the largest set among the free devices that the fabric has as a whole: of an aligned group, or of
// a run; 0 when none is free.
func (f *Fabric) Largest(free []int) int {
	for size := f.Devices; size > 0; size-- {
		if f.Shape.Grouped() && size&(size-1) != 0 || f.Shape.Grouped() && size == 2 {
			continue
		}
		for first := range f.Devices {
			if f.wholeFrom(first, size, free) {
				return size
			}
		}
	}
	return 0
}

func (f *Fabric) wholeFrom(first, size int, free []int) bool {
	if f.Shape.Grouped() && first%size != 0 || f.Shape != Ring && first+size > f.Devices {
		return false
	}
	for i := range size {
		if !slices.Contains(free, (first+i)%f.Devices) {
			return false
		}
	}
	return true
}

// AnyValid: whether some set of `size` of the free devices is valid and accepted; by trying all.
func (f *Fabric) AnyValid(free []int, size int, accepts func(devices []int) bool) bool {
	for mask := uint(0); mask < 1<<len(free); mask++ {
		if bits.OnesCount(mask) != size {
			continue
		}
		var devices []int
		for i, device := range free {
			if mask>>i&1 != 0 {
				devices = append(devices, device)
			}
		}
		if f.Valid(devices) && accepts(devices) {
			return true
		}
	}
	return false
}

// AnyValidCores: whether some range of `size` cores is free. It begins and ends on devices that may be taken in part, with
// whole free devices between.
func (f *Fabric) AnyValidCores(isFree func(core int) bool, whole []int, size int) bool {
	run := func(first, count, step int) int {
		n := 0
		for n < count && isFree(first+n*step) {
			n++
		}
		return n
	}
	per := f.Cores()
	for start := range f.Devices * per {
		rest := per - start%per
		tail := run(start, rest, 1)
		if tail >= size {
			return true
		}
		if tail < rest {
			continue
		}
		between := 0
		for last := start/per + 1; last < f.Devices; last++ {
			head := run(last*per, per, 1)
			for middle := 0; middle <= between; middle++ {
				if need := size - tail - middle*per; need >= 1 && need <= head {
					return true
				}
			}
			if slices.Contains(whole, last) {
				between++
			}
		}
	}
	return false
}

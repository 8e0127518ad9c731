package main

import (
	"container/heap"

	"neuron-agent.test/dra/node"
)

// One node through one stream of requests, as test/bench/fragmentation_simulation.cpp plays it with requests that are lost
// when they do not fit.

// placement is what one container got. Core ids are global, interfaces are positions in Type.EFAs; all ascending.
type placement struct {
	devices, cores, efas []int // devices or cores, never both
	release              func()
}

// policy chooses on a node of its own. place answers nil when it refuses; what it answered is held until release.
type policy interface {
	place(free *occupancy, r request) *placement
}

// measures are sums over the requests that arrived in the measured day.
type measures struct {
	offered, fitted, invalid, missed, room int
	offeredWork, fittedWork                float64 // core-minutes
	hops                                   float64
	pairs, withNICs, aligned, alignable    int
	largest                                float64 // sum over arrivals of the largest whole group or run that is free, in devices
}

func (m *measures) add(o measures) {
	m.offered += o.offered
	m.fitted += o.fitted
	m.invalid += o.invalid
	m.missed += o.missed
	m.room += o.room
	m.offeredWork += o.offeredWork
	m.fittedWork += o.fittedWork
	m.hops += o.hops
	m.pairs += o.pairs
	m.withNICs += o.withNICs
	m.aligned += o.aligned
	m.alignable += o.alignable
	m.largest += o.largest
}

// occupancy is what is free by the judge's books.
type occupancy struct {
	*node.Fabric
	cores, efas []bool // in use
}

func newOccupancy(f *node.Fabric) *occupancy {
	return &occupancy{f, make([]bool, f.Devices*f.Cores()), make([]bool, len(f.EFAs))}
}

func (o *occupancy) freeDevices() []int {
	var free []int
next:
	for device := range o.Devices {
		for _, used := range o.cores[device*o.Cores() : (device+1)*o.Cores()] {
			if used {
				continue next
			}
		}
		free = append(free, device)
	}
	return free
}

func free(used []bool) []int {
	var ids []int
	for id, u := range used {
		if !u {
			ids = append(ids, id)
		}
	}
	return ids
}

func (o *occupancy) mark(p *placement, used bool) {
	for _, device := range p.devices {
		for core := range o.Cores() {
			o.cores[device*o.Cores()+core] = used
		}
	}
	for _, core := range p.cores {
		o.cores[core] = used
	}
	for _, efa := range p.efas {
		o.efas[efa] = used
	}
}

// enough units, wherever they lie.
func (o *occupancy) enough(r request) bool {
	units := len(o.freeDevices())
	if r.cores {
		units = len(free(o.cores))
	}
	return units >= r.size && len(free(o.efas)) >= r.efas
}

func (o *occupancy) anyValid(r request) bool {
	if !o.enough(r) {
		return false
	}
	if r.cores {
		return o.AnyValidCores(func(core int) bool { return !o.cores[core] }, o.freeDevices(), r.size)
	}
	return o.AnyValid(o.freeDevices(), r.size, func([]int) bool { return true })
}

// anyAligned: some free valid set of devices has all of its nearest interfaces free, as many as asked for.
func (o *occupancy) anyAligned(r request) bool {
	return o.AnyValid(o.freeDevices(), r.size, func(devices []int) bool {
		var nearest []int
		for _, efa := range free(o.efas) {
			for _, near := range o.EFAs[efa].Near {
				for _, device := range devices {
					if near == device && (len(nearest) == 0 || nearest[len(nearest)-1] != efa) {
						nearest = append(nearest, efa)
					}
				}
			}
		}
		return len(nearest) == r.efas && o.Aligned(devices, nearest)
	})
}

// Whether the container starts with this.
func (o *occupancy) starts(r request, p *placement) bool {
	if r.cores && p.cores != nil {
		return len(p.cores) == r.size && o.ValidCores(p.cores)
	}
	return o.Valid(p.devices)
}

type simulation struct {
	policy
	*occupancy
	measures
	ends departures
}

func simulate(f *node.Fabric, p policy, requests []request) measures {
	s := &simulation{policy: p, occupancy: newOccupancy(f)}
	for _, r := range requests {
		for len(s.ends) > 0 && s.ends[0].at <= r.arrival {
			s.finish(heap.Pop(&s.ends).(departure))
		}
		s.arrive(r)
	}
	return s.measures
}

func (s *simulation) finish(d departure) {
	s.mark(d.placement, false)
	d.release()
}

func (s *simulation) arrive(r request) {
	measured := r.arrival >= warmUp
	size := coresOf(s.Type, r.cores, r.size)
	if measured {
		s.offered++
		s.offeredWork += float64(size) * r.lifetime
		s.largest += float64(s.Largest(s.freeDevices()))
		if size <= len(free(s.occupancy.cores)) {
			s.room++
		}
	}
	p := s.place(s.occupancy, r)
	if p != nil && !s.starts(r, p) { // the container fails in the runtime and gives all back
		p.release()
		p = nil
		if measured {
			s.invalid++
		}
	}
	if p == nil {
		if measured && s.anyValid(r) {
			s.missed++
		}
		return
	}
	if measured {
		s.fitted++
		s.fittedWork += float64(size) * r.lifetime
		s.rate(r, p)
	}
	s.mark(p, true)
	heap.Push(&s.ends, departure{r.arrival + r.lifetime, r.id, p})
}

func (s *simulation) rate(r request, p *placement) {
	devices := p.devices
	if p.cores != nil {
		devices = s.DevicesOf(p.cores)
	}
	if len(devices) > 1 {
		s.hops += s.MeanHops(devices)
		s.pairs++
	}
	if r.efas == 0 {
		return
	}
	s.withNICs++
	aligned := s.Aligned(devices, p.efas)
	if aligned {
		s.aligned++
	}
	if aligned || s.anyAligned(r) {
		s.alignable++
	}
}

type departure struct {
	at float64
	id int
	*placement
}

// departures is a heap by time, then request.
type departures []departure

func (d departures) Len() int { return len(d) }
func (d departures) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].id < d[j].id
}
func (d departures) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *departures) Push(x any)   { *d = append(*d, x.(departure)) }
func (d *departures) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

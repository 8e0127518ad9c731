package main

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"neuron-agent.test/dra/claims"
	"neuron-agent.test/dra/node"
	"neuron-agent.test/dra/pool"
)

// simulateByCount is the bound: cores are one heap.
func simulateByCount(t node.Type, requests []request) measures {
	var m measures
	left := t.Devices * t.Cores()
	type held struct {
		until float64
		cores int
	}
	var holding []held
	for _, r := range requests {
		holding = slices.DeleteFunc(holding, func(h held) bool {
			if h.until > r.arrival {
				return false
			}
			left += h.cores
			return true
		})
		size := coresOf(t, r.cores, r.size)
		fits := size <= left
		if fits {
			left -= size
			holding = append(holding, held{r.arrival + r.lifetime, size})
		}
		if r.arrival < warmUp {
			continue
		}
		m.offered++
		m.offeredWork += float64(size) * r.lifetime
		if fits {
			m.fitted++
			m.fittedWork += float64(size) * r.lifetime
		}
	}
	return m
}

// lowest takes the lowest indices: "lowest index" of docs/allocation.md, to see that this simulation is that one.
type lowest struct{}

func (lowest) place(o *occupancy, r request) *placement {
	if !o.enough(r) {
		return nil
	}
	p := &placement{efas: free(o.efas)[:r.efas], release: func() {}}
	if r.cores {
		p.cores = free(o.cores)[:r.size]
	} else {
		p.devices = o.freeDevices()[:r.size]
	}
	return p
}

// form is how pods of a policy ask.
type form int

const (
	groups      form = iota // a group where one of the size is offered, else as constrained
	constrained             // whole devices of one group id, cores of one device
	plain                   // counts alone: unmodified pods
	shares                  // as constrained, cores as whole devices and a share of one more
	apart                   // as shares, which try the last quarter of the devices first
)

func (f form) String() string {
	return [...]string{"groups", "constraints", "counts", "shares", "shares apart"}[f]
}

func (f form) shared() bool { return f == shares || f == apart }

// claimed asks the scheduler's allocator.
type claimed struct {
	form
	pool.Partitions
	t         node.Type
	entries   map[string]pool.Entry
	scheduler *claims.Scheduler
	ownIDs    bool
	cache     map[[3]int]*resourceapi.ResourceClaim
}

const nodeName = "n1"

func newClaimed(t node.Type, f form, p pool.Partitions, order pool.Order) *claimed {
	c := &claimed{form: f, Partitions: p, t: t, entries: map[string]pool.Entry{}, cache: map[[3]int]*resourceapi.ResourceClaim{}}
	for _, e := range pool.Entries(t, p) {
		c.entries[e.Name] = e
	}
	offered := pool.Slices(nodeName, t, p, order, pool.Split)
	if f.shared() {
		offered = pool.Share(offered)
	}
	c.scheduler = claims.NewScheduler(offered)
	return c
}

func (c *claimed) place(o *occupancy, r request) *placement {
	claim := c.claim(r)
	ctx := context.Background()
	results, err := c.scheduler.Allocate(ctx, nodeName, claim)
	if err != nil {
		panic(fmt.Sprintf("%s, %d: %v", c.t.Name, r.size, err)) // the benchmark's own claims: no input makes this
	}
	if results == nil {
		return nil
	}
	p := &placement{release: func() { c.scheduler.Release(results) }}
	for _, result := range results {
		switch e := c.entries[result.Device]; e.Kind {
		case pool.EFA:
			p.efas = append(p.efas, e.EFA)
		case pool.Core:
			p.cores = append(p.cores, e.Core)
		default:
			p.devices = append(p.devices, e.Devices...)
		}
	}
	if c.form.shared() && r.cores {
		c.chooseCores(o, p, results)
	}
	slices.Sort(p.devices)
	slices.Sort(p.cores)
	slices.Sort(p.efas)
	return p
}

// chooseCores does what Prepare does: all cores of whole devices, and of a share the run at the end that joins it to these.
func (c *claimed) chooseCores(o *occupancy, p *placement, results []claims.Result) {
	per, whole := c.t.Cores(), 0
	first := -1 // whole device
	results = slices.DeleteFunc(slices.Clone(results), func(r claims.Result) bool { return c.entries[r.Device].Kind == pool.EFA })
	for _, result := range results {
		device := c.entries[result.Device].Devices[0]
		if result.Cores() == per {
			whole++
			if first < 0 || device < first {
				first = device
			}
		}
	}
	p.devices = nil
	for _, result := range results {
		device, count := c.entries[result.Device].Devices[0], result.Cores()
		begin, runs := device*per, []int{}
		for at := 0; at+count <= per; at++ {
			if !slices.Contains(o.cores[begin+at:begin+at+count], true) {
				runs = append(runs, at)
			}
		}
		switch {
		case len(runs) == 0: // no run is left: the lowest
			for core := begin; core < begin+per && count > 0; core++ {
				if !o.cores[core] {
					p.cores = append(p.cores, core)
					count--
				}
			}
			continue
		case whole > 0 && device < first:
			begin += runs[len(runs)-1]
		default:
			begin += runs[0]
		}
		for core := range count {
			p.cores = append(p.cores, begin+core)
		}
	}
}

func (c *claimed) claim(r request) *resourceapi.ResourceClaim {
	key := [3]int{r.size, r.efas}
	if r.cores {
		key[2] = 1
	}
	if c.cache[key] == nil {
		c.cache[key] = claims.Claim(c.parts(r)...)
	}
	return c.cache[key]
}

func (c *claimed) parts(r request) []func(*resourceapi.DeviceClaim) {
	if r.cores {
		return c.coreParts(r)
	}
	units, attribute := claims.Request(claims.Units, pool.Device, r.size), c.attribute(r.size)
	if c.form == groups && c.offersGroup(r.size) {
		units = claims.Request(claims.Units, pool.Group, 1, claims.GroupOf(r.size))
		if r.efas == 0 {
			attribute = "" // one unit, which is whole as it is
		}
	}
	parts := []func(*resourceapi.DeviceClaim){units}
	if r.efas > 0 {
		parts = append(parts, claims.Request(claims.EFAs, pool.EFA, r.efas))
	}
	// One device alone has no shape, and with an interface the nearest.
	if c.form != plain && attribute != "" && (r.efas > 0 || r.size > 1) {
		parts = append(parts, claims.Match(attribute))
	}
	return parts
}

func (c *claimed) offersGroup(size int) bool {
	return c.Groups && slices.ContainsFunc(pool.Entries(c.t, c.Partitions), func(e pool.Entry) bool {
		return e.Kind == pool.Group && e.Size() == size
	})
}

// The attribute to match on: our id of exactly this size, else AWS's of the smallest that has room; "" where there is none. On
// trn1 the two devices of one interface have one id of AWS's of size 1.
func (c *claimed) attribute(devices int) string {
	for _, size := range []int{1, 4, 8, 16} {
		room := size
		if size == 1 && len(c.t.EFAs) > 0 {
			room = c.t.Devices / len(c.t.EFAs)
		}
		has := pool.GroupID(c.t, 0, size) != ""
		switch {
		case has && devices == room:
			return claims.GroupID(size)
		case c.ownIDs && slices.Contains(pool.OwnSizes(c.t), devices):
			return claims.OwnID(devices)
		case has && devices < room:
			return claims.GroupID(size)
		}
	}
	return ""
}

// Where cores are not offered a pod has to ask for whole devices.
func (c *claimed) coreParts(r request) []func(*resourceapi.DeviceClaim) {
	per := c.t.Cores()
	if c.form.shared() {
		var parts []func(*resourceapi.DeviceClaim)
		if whole := r.size / per; whole > 0 {
			parts = append(parts, claims.Request(claims.Units, pool.Device, whole))
		}
		if rest := r.size % per; rest > 0 {
			parts = append(parts, c.share(rest))
		}
		if r.efas > 0 {
			parts = append(parts, claims.Request(claims.EFAs, pool.EFA, r.efas))
		}
		return parts
	}
	if !c.Cores {
		devices := r
		devices.cores, devices.size = false, (r.size+per-1)/per
		return c.parts(devices)
	}
	parts := []func(*resourceapi.DeviceClaim){claims.Request(claims.Units, pool.Core, r.size)}
	if c.form != plain && r.size > 1 && r.size <= per {
		parts = append(parts, claims.Match(claims.DeviceID))
	}
	return parts
}

// share of one device: with apart of the last devices, and of any other only where these have no room.
func (c *claimed) share(cores int) func(*resourceapi.DeviceClaim) {
	if c.form == shares {
		return claims.Shares("rest", 1, cores)
	}
	last := fmt.Sprintf("device.attributes['%s'].deviceId >= %d", pool.Driver, c.t.Devices*3/4)
	return claims.First("rest", claims.Shares("apart", 1, cores, last), claims.Shares("any", 1, cores))
}

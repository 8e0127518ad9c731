package dra

import (
	"cmp"
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"neuron-agent.test/dra/claims"
	"neuron-agent.test/dra/node"
	"neuron-agent.test/dra/pool"
)

// Random claims come and go through the scheduler's allocator: no physical core and no interface is ever given twice, groups
// and matched sets are aligned, and nothing is refused for which there is room.
// DRA_STEPS: claims for each kind of node and partitions (250); DRA_SEED.
func TestNeverOversold(t *testing.T) {
	steps, seed := fromEnvironment("DRA_STEPS", 250), fromEnvironment("DRA_SEED", 1)
	for _, kind := range kinds(false) {
		t.Run(title(kind, pool.Partitions{})+"-shares", func(t *testing.T) {
			t.Parallel()
			s := newSweep(t, kind, pool.Partitions{}, uint64(seed))
			s.shared = true
			s.scheduler = claims.NewScheduler(pool.Share(pool.Slices(nodeName, kind, pool.Partitions{}, pool.Default(), pool.Split)))
			for range 4 * steps {
				s.step()
			}
			s.drain()
		})
		for _, partitions := range pool.AllPartitions {
			t.Run(title(kind, partitions), func(t *testing.T) {
				t.Parallel()
				s := newSweep(t, kind, partitions, uint64(seed))
				for range steps {
					s.step()
				}
				s.drain()
			})
		}
	}
}

func fromEnvironment(name string, otherwise int) int {
	if value, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return value
	}
	return otherwise
}

type sweep struct {
	*testing.T
	kind      node.Type
	fabric    *node.Fabric
	entries   map[string]pool.Entry
	groups    []pool.Entry
	scheduler *claims.Scheduler
	random    *rand.Rand
	holder    []int // by logical core of the node; 0 nobody
	efaHolder []int
	held      []holding
	number    int
	shared    bool // claims may share devices by their cores
}

type holding struct {
	number  int
	results []claims.Result
}

func newSweep(t *testing.T, kind node.Type, p pool.Partitions, seed uint64) *sweep {
	s := &sweep{T: t, kind: kind, fabric: node.NewFabric(kind), entries: map[string]pool.Entry{},
		scheduler: claims.NewScheduler(pool.Slices(nodeName, kind, p, pool.Default(), pool.Split)),
		random:    rand.New(rand.NewPCG(seed, 1)),
		holder:    make([]int, kind.Devices*kind.Cores()), efaHolder: make([]int, len(kind.EFAs))}
	for _, e := range pool.Entries(kind, p) {
		s.entries[e.Name] = e
		if e.Kind == pool.Group {
			s.groups = append(s.groups, e)
		}
	}
	return s
}

// order is one claim, and what must hold for its results.
type order struct {
	kind    string
	units   int
	group   int  // size of the group, 0 none
	aligned int  // matched on the group id of this size, 0 not
	one     bool // all cores on one device
	efas    int
	share   int  // cores of each unit, a share of a device; 0 none
	admin   bool // admin access: it is always served, and holds nothing
}

func (s *sweep) draw() order {
	var choices []order
	add := func(o order) { choices = append(choices, o) }
	add(order{kind: pool.Device, units: 1 + s.random.IntN(3)})
	if len(s.kind.EFAs) > 0 {
		size := []int{1, 4, 8, 16}[s.random.IntN(4)]
		share := max(1, size*len(s.kind.EFAs)/s.kind.Devices)
		if size < 16 { // one of 16 too few is 2^15 steps
			add(order{kind: pool.Device, units: size, aligned: size, efas: share})
			add(order{kind: pool.Device, units: size, aligned: size})
		}
		add(order{efas: 1 + s.random.IntN(2)})
		if len(s.groups) > 0 && size > 1 {
			add(order{kind: pool.Group, units: 1, group: size, aligned: size, efas: share})
		}
	}
	if len(s.groups) > 0 {
		add(order{kind: pool.Group, units: 1, group: s.groups[s.random.IntN(len(s.groups))].Size()})
	}
	if _, cores := s.entries[pool.DeviceName(0)+"-core-0"]; cores {
		add(order{kind: pool.Core, units: 1 + s.random.IntN(5)})
		add(order{kind: pool.Core, units: 1 + s.random.IntN(s.kind.Cores()), one: true})
	}
	for range 2 {
		if s.shared {
			add(order{kind: pool.Device, units: 1 + s.random.IntN(s.kind.Devices), admin: true})
			add(order{kind: pool.Device, units: 1, share: 1 + s.random.IntN(s.kind.Cores())})
			add(order{kind: pool.Device, units: 1 + s.random.IntN(min(3, s.kind.Devices)), share: 1, efas: s.random.IntN(1 + min(1, len(s.kind.EFAs)))})
		}
	}
	return choices[s.random.IntN(len(choices))]
}

func (o order) claim() *resourceapi.ResourceClaim {
	var parts []func(*resourceapi.DeviceClaim)
	switch {
	case o.share > 0:
		parts = append(parts, claims.Shares(claims.Units, o.units, o.share))
	case o.kind == pool.Group:
		parts = append(parts, claims.Request(claims.Units, pool.Group, 1, claims.GroupOf(o.group)))
	case o.units > 0:
		parts = append(parts, claims.Request(claims.Units, o.kind, o.units))
	}
	if o.admin {
		parts = append(parts, claims.AdminAccess(true))
	}
	if o.efas > 0 {
		parts = append(parts, claims.Request(claims.EFAs, pool.EFA, o.efas))
	}
	if o.aligned > 0 {
		parts = append(parts, claims.Match(claims.GroupID(o.aligned)))
	}
	if o.one {
		parts = append(parts, claims.Match(claims.DeviceID))
	}
	return claims.Claim(parts...)
}

func (s *sweep) step() {
	if len(s.held) > 0 && s.random.IntN(5) < 2 {
		s.release(s.random.IntN(len(s.held)))
	}
	o := s.draw()
	results, err := s.scheduler.Allocate(context.Background(), nodeName, o.claim())
	if err != nil {
		s.Fatalf("%+v: %v", o, err)
	}
	if results == nil {
		if s.room(o) {
			s.Fatalf("%+v was refused, free cores %v, free interfaces %v", o, s.freeCores(), s.freeEFAs())
		}
		return
	}
	s.number++
	s.held = append(s.held, holding{s.number, results})
	s.judge(o, results)
}

func (s *sweep) release(i int) {
	number := s.held[i].number
	s.scheduler.Release(s.held[i].results)
	s.held = slices.Delete(s.held, i, i+1)
	for _, holders := range [][]int{s.holder, s.efaHolder} {
		for id, holder := range holders {
			if holder == number {
				holders[id] = 0
			}
		}
	}
}

// With nothing held any more, all of the node is to be had at once.
func (s *sweep) drain() {
	for len(s.held) > 0 {
		s.release(0)
	}
	results, err := s.scheduler.Allocate(context.Background(), nodeName, order{kind: pool.Device, units: s.kind.Devices}.claim())
	if err != nil || len(results) != s.kind.Devices {
		s.Errorf("on the empty node %d of %d devices, %v", len(results), s.kind.Devices, err)
	}
}

func (s *sweep) takeLowest(device, count int, what string) {
	for core := device * s.kind.Cores(); core < (device+1)*s.kind.Cores() && count > 0; core++ {
		if s.holder[core] == 0 {
			s.holder[core] = s.number
			count--
		}
	}
	if count > 0 {
		s.Errorf("claim %d got %d cores of %s too many", s.number, count, what)
	}
}

func (s *sweep) take(holders []int, id int, what string) {
	if holders[id] != 0 {
		s.Errorf("claim %d got %s, which claim %d holds", s.number, what, holders[id])
	}
	holders[id] = s.number
}

func (s *sweep) judge(o order, results []claims.Result) {
	units, efas := 0, 0
	var devices, nics []int
	for _, result := range results {
		e := s.entries[result.Device]
		if e.Kind == pool.EFA {
			efas++
			nics = append(nics, e.EFA)
			s.take(s.efaHolder, e.EFA, result.Device)
			continue
		}
		units++
		devices = append(devices, e.Devices...)
		if o.admin {
			continue
		}
		first, count := e.Devices[0]*s.kind.Cores(), s.kind.Cores()
		if e.Core >= 0 {
			first, count = e.Core, 1
		}
		if want := cmp.Or(o.share, s.kind.Cores()); s.shared && result.Cores() != want {
			s.Errorf("%+v consumes %d cores of %s", o, result.Cores(), result.Device)
		}
		if o.share > 0 { // which cores the agent chooses; here the lowest free ones
			s.takeLowest(e.Devices[0], o.share, result.Device)
			continue
		}
		for i := range e.Devices {
			for core := range count {
				if i > 0 {
					first = e.Devices[i] * s.kind.Cores()
				}
				s.take(s.holder, first+core, result.Device)
			}
		}
	}
	slices.Sort(devices)
	switch {
	case units != o.units || efas != o.efas:
		s.Errorf("%+v got %d units and %d interfaces", o, units, efas)
	case o.group > 0 && (len(devices) != o.group || !s.fabric.Valid(devices)):
		s.Errorf("%+v got %v", o, devices)
	case o.aligned > 0 && !s.fabric.Valid(devices):
		s.Errorf("%+v got %v", o, devices)
	case o.aligned > 0 && o.efas > 0 && !s.aligned(o, devices, nics):
		s.Errorf("%+v got %v with interfaces %v", o, devices, nics)
	case o.one && devices[0] != devices[len(devices)-1]:
		s.Errorf("%+v got cores of %v", o, devices)
	}
}

// A whole group has all the interfaces of the group, and one device its own.
func (s *sweep) aligned(_ order, devices, nics []int) bool {
	return !slices.ContainsFunc(nics, func(nic int) bool {
		return !slices.ContainsFunc(s.kind.EFAs[nic].Near, func(device int) bool { return slices.Contains(devices, device) })
	})
}

func (s *sweep) freeCores() []int { return zeros(s.holder) }
func (s *sweep) freeEFAs() []int  { return zeros(s.efaHolder) }

func zeros(holders []int) []int {
	var free []int
	for id, holder := range holders {
		if holder == 0 {
			free = append(free, id)
		}
	}
	return free
}

func (s *sweep) freeOf(device int) int {
	count := 0
	for core := range s.kind.Cores() {
		if s.holder[device*s.kind.Cores()+core] == 0 {
			count++
		}
	}
	return count
}

func (s *sweep) whole(devices ...int) bool {
	return !slices.ContainsFunc(devices, func(device int) bool { return s.freeOf(device) < s.kind.Cores() })
}

// Whether the order could have been met, by the judge's own books.
func (s *sweep) room(o order) bool {
	if o.efas > len(s.freeEFAs()) {
		return false
	}
	var sets [][]int // of devices, one of which must have what is asked for
	switch {
	case o.admin:
		return true
	case o.aligned > 0:
		for first := 0; first < s.kind.Devices; first += o.aligned {
			sets = append(sets, nil)
			for i := range o.aligned {
				sets[len(sets)-1] = append(sets[len(sets)-1], first+i)
			}
		}
	case o.group > 0:
		for _, e := range s.groups {
			if e.Size() == o.group {
				sets = append(sets, e.Devices)
			}
		}
	case o.one:
		return slices.ContainsFunc(s.all(), func(device int) bool { return s.freeOf(device) >= o.units })
	case o.share > 0:
		return len(slices.DeleteFunc(s.all(), func(device int) bool { return s.freeOf(device) < o.share })) >= o.units
	case o.kind == pool.Core:
		return len(s.freeCores()) >= o.units
	default:
		return len(slices.DeleteFunc(s.all(), func(device int) bool { return !s.whole(device) })) >= o.units
	}
	return slices.ContainsFunc(sets, func(set []int) bool { return s.whole(set...) && s.nicsOf(set) >= o.efas })
}

func (s *sweep) all() []int {
	var all []int
	for device := range s.kind.Devices {
		all = append(all, device)
	}
	return all
}

// Free interfaces with the group id of these devices.
func (s *sweep) nicsOf(devices []int) int {
	var near []int
	for _, device := range devices {
		if nic := s.kind.Near(device); nic >= 0 && s.efaHolder[nic] == 0 {
			near = append(near, nic)
		}
	}
	slices.Sort(near)
	return len(slices.Compact(near))
}

// What a server whose gate is off makes of it: the same silicon goes out twice.
func TestOversoldWithoutCounters(t *testing.T) {
	kind, _ := node.Find("trn1.32xlarge")
	both := pool.Partitions{Cores: true, Groups: true}
	entries := pool.Entries(kind, both)
	pool.Default().Sort(entries)
	all := pool.Lay(nodeName, kind, entries, pool.Split)
	for _, slice := range all {
		slice.Spec.SharedCounters = nil
		for i := range slice.Spec.Devices {
			slice.Spec.Devices[i].ConsumesCounters = nil
		}
	}
	scheduler := claims.NewScheduler(all)
	var got []string
	for _, part := range []func(*resourceapi.DeviceClaim){claims.Request(claims.Units, pool.Device, 16), claims.Request(claims.Units, pool.Core, 1)} {
		results, err := scheduler.Allocate(context.Background(), nodeName, claims.Claim(part))
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range results {
			got = append(got, result.Device)
		}
	}
	if len(got) != 17 || !strings.HasSuffix(got[16], "-core-0") {
		t.Errorf("without counters a core beside all devices was refused: %v", got)
	}
}

package main

import (
	"math"

	"neuron-agent.test/dra/node"
)

// The arrivals of docs/allocation.md: test/bench/fragmentation_workload.cpp in Go, the same requests for the same seed.

// mersenne is std::mt19937_64.
type mersenne struct {
	state [312]uint64
	next  int
}

func newMersenne(seed uint64) *mersenne {
	m := &mersenne{next: 312}
	m.state[0] = seed
	for i := 1; i < 312; i++ {
		m.state[i] = 6364136223846793005*(m.state[i-1]^m.state[i-1]>>62) + uint64(i)
	}
	return m
}

func (m *mersenne) twist() {
	const low = 1<<31 - 1
	for i := range m.state {
		x := m.state[i]&^low | m.state[(i+1)%312]&low
		m.state[i] = m.state[(i+156)%312] ^ x>>1
		if x&1 != 0 {
			m.state[i] ^= 0xb5026f5aa96619e9
		}
	}
	m.next = 0
}

func (m *mersenne) draw() uint64 {
	if m.next == 312 {
		m.twist()
	}
	x := m.state[m.next]
	m.next++
	x ^= x >> 29 & 0x5555555555555555
	x ^= x << 17 & 0x71d67fffeda60000
	x ^= x << 37 & 0xfff7eee000000000
	return x ^ x>>43
}

func (m *mersenne) uniform() float64 { return float64(m.draw()>>11) * 0x1p-53 }

func (m *mersenne) exponential(mean float64) float64 { return -mean * math.Log(1-m.uniform()) }

type demand struct {
	cores   bool // else whole devices
	size    int
	weight  float64 // share of the arrivals
	minutes float64 // of the exponential lifetime
}

type mix struct {
	name    string
	demands []demand
}

func mixesOf(t node.Type) []mix {
	whole, per := 12, t.Cores()
	if t.Shape.Grouped() {
		whole = 16
	}
	const cores = true
	return []mix{
		{"training", []demand{{!cores, whole, 0.05, 90}, {!cores, whole / 2, 0.15, 120}, {!cores, 4, 0.40, 90},
			{!cores, 2, 0.10, 45}, {!cores, 1, 0.20, 30}, {cores, 1, 0.10, 30}}},
		{"inference", []demand{{!cores, whole / 2, 0.02, 240}, {!cores, 4, 0.13, 180}, {!cores, 2, 0.20, 120},
			{!cores, 1, 0.35, 90}, {cores, 2, 0.10, 60}, {cores, 1, 0.20, 60}}},
		{"mixed", []demand{{!cores, whole, 0.02, 60}, {!cores, whole / 2, 0.08, 90}, {!cores, 4, 0.25, 90},
			{!cores, 3, 0.05, 60}, {!cores, 2, 0.15, 60}, {!cores, 1, 0.20, 60}, {cores, per * 3 / 2, 0.05, 60},
			{cores, 2, 0.10, 60}, {cores, 1, 0.10, 60}}},
	}
}

// request of one container; times in minutes.
type request struct {
	id, size          int
	cores             bool
	efas              int // in proportion; 0 where that is no integer
	arrival, lifetime float64
}

const (
	firstSeed = 20260101
	warmUp    = 6 * 60.0
	day       = 24 * 60.0
)

func coresOf(t node.Type, cores bool, size int) int {
	if cores {
		return size
	}
	return size * t.Cores()
}

func stream(t node.Type, m mix, load float64, seed uint64) []request {
	mean := 0.0 // core-minutes of a request
	for _, d := range m.demands {
		mean += d.weight * d.minutes * float64(coresOf(t, d.cores, d.size))
	}
	gap := mean / (load * float64(t.Devices) * float64(t.Cores()))
	random := newMersenne(seed)
	var all []request
	for now := random.exponential(gap); now < warmUp+day; now += random.exponential(gap) {
		d := pick(random, m)
		r := request{id: len(all), size: d.size, cores: d.cores, arrival: now}
		r.lifetime = random.exponential(d.minutes)
		if whole := d.size * len(t.EFAs); !d.cores && whole%t.Devices == 0 {
			r.efas = whole / t.Devices
		}
		random.uniform() // the kubelet's order of calls, which is nothing to the scheduler
		all = append(all, r)
	}
	return all
}

func pick(random *mersenne, m mix) demand {
	point := random.uniform()
	for _, d := range m.demands {
		if point < d.weight {
			return d
		}
		point -= d.weight
	}
	return m.demands[len(m.demands)-1]
}

// Package chaos does everything to a cluster that happens to nodes, at random times from a seed, while pods come and go, and
// records what the package judge needs to decide whether the agent kept its word.
package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Event is one fault to come. Events of one lane happen one after the other, those of different lanes at the same time.
type Event struct {
	At   time.Duration // since the beginning; later if the lane is still at the one before
	Lane string        // "programs NODE", "hardware NODE", "control", "cluster"
	Node string
	Kind string
	For  time.Duration // how long it lasts
	Pick int           // chooses a device, an interface, a pod
}

func (e Event) String() string {
	return fmt.Sprintf("%6.1fs %-14s %-8s for %v", e.At.Seconds(), e.Kind, e.Node, e.For.Round(time.Millisecond))
}

// weighted is a kind with how often it is drawn, and how long it lasts.
type weighted struct {
	kind        string
	weight      int
	least, most time.Duration
}

const ms = time.Millisecond

var lanes = map[string][]weighted{
	"programs": {
		{"agent-kill", 4, 0, 0}, {"agent-term", 2, 0, 0}, {"agent-pod-deleted", 3, 0, 0}, {"agent-stopped", 4, 1000 * ms, 9000 * ms},
		{"kubelet-kill", 6, 0, 3000 * ms}, {"kubelet-stopped", 2, 2000 * ms, 9000 * ms},
		{"containerd-kill", 2, 0, 1500 * ms}, {"containerd-term", 2, 0, 1500 * ms}, {"wire-cut", 2, 2000 * ms, 9000 * ms},
		{"reboot", 1, 0, 0},
	},
	"hardware": {
		{"device-vanishes", 4, 8000 * ms, 20000 * ms}, {"device-ecc", 3, 8000 * ms, 20000 * ms},
		{"efa-vanishes", 3, 8000 * ms, 20000 * ms}, {"efa-unbound", 3, 8000 * ms, 20000 * ms},
		{"driver-reload", 2, 1000 * ms, 9000 * ms},
	},
	"control": {
		{"api-away", 3, 1000 * ms, 12000 * ms}, {"etcd-away", 2, 1000 * ms, 9000 * ms}, {"scheduler-kill", 2, 0, 4000 * ms},
		{"controllers-kill", 2, 0, 4000 * ms},
	},
	"cluster": {
		{"pod-grace-0", 6, 0, 0}, {"drain", 2, 1000 * ms, 4000 * ms}, {"rolling-restart", 1, 0, 0},
	},
}

// gaps between two events of a lane: a half to three halves of these.
var gaps = map[string]time.Duration{"programs": 8 * time.Second, "hardware": 5 * time.Second, "control": 14 * time.Second,
	"cluster": 8 * time.Second}

// Schedule draws the faults of so long a time on these nodes. The same seed draws the same. Every kind comes before any comes
// a second time in its lane.
func Schedule(seed uint64, length time.Duration, nodes []string) []Event {
	var all []Event
	add := func(lane, node string) {
		random := rand.New(rand.NewPCG(seed, uint64(len(lane)*1000+len(node))+nodeNumber(node, nodes)))
		kinds, gap := lanes[lane], gaps[lane]
		var bag []weighted
		for at := gap / 4; ; at += gap/2 + time.Duration(random.Int64N(int64(gap))) {
			if len(bag) == 0 {
				bag = shuffled(random, kinds)
			}
			w := bag[0]
			bag = bag[1:]
			e := Event{At: at, Lane: strings.TrimSpace(lane + " " + node), Node: node, Kind: w.kind, For: w.least, Pick: int(random.Int32N(1 << 20))}
			if w.most > w.least {
				e.For += time.Duration(random.Int64N(int64(w.most - w.least)))
			}
			if at+e.For >= length {
				return
			}
			if e.Kind == "drain" {
				e.Node = nodes[e.Pick%len(nodes)]
			}
			all = append(all, e)
			at += e.For
		}
	}
	for _, node := range nodes {
		add("programs", node)
		add("hardware", node)
	}
	add("control", "")
	add("cluster", "")
	slices.SortStableFunc(all, func(a, b Event) int { return int(a.At - b.At) })
	return all
}

func nodeNumber(node string, nodes []string) uint64 { return uint64(slices.Index(nodes, node)+1) << 32 }

// shuffled holds every kind as often as its weight says, those that come a first time before all others.
func shuffled(random *rand.Rand, kinds []weighted) []weighted {
	firsts := slices.Clone(kinds)
	var others []weighted
	for _, w := range kinds {
		for range w.weight - 1 {
			others = append(others, w)
		}
	}
	random.Shuffle(len(firsts), func(i, j int) { firsts[i], firsts[j] = firsts[j], firsts[i] })
	random.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	return append(firsts, others...)
}

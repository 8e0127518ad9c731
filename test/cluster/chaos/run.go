package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/cluster/judge"
	"neuron-agent.test/suite"
)

// Options say how long and what.
type Options struct {
	Seed   uint64
	Length time.Duration // of all storms together
	Storm  time.Duration // faults and pods; a calm follows each
	Bounds judge.Bounds
}

// run is one chaos.
type run struct {
	*recorder
	c      *cluster.Cluster
	nodes  []*cluster.Node
	load   *load
	whole  map[string]cluster.Counts
	first  map[string]*judge.Footprint // of the first calm
	bounds judge.Bounds
}

// Run makes chaos on nodes that serve everything, for so long as asked, and reports each violation as an error of the test.
func Run(t testing.TB, c *cluster.Cluster, nodes []*cluster.Node, o Options) {
	rec := newRecorder(t)
	r := &run{recorder: rec, c: c, nodes: nodes, whole: map[string]cluster.Counts{}, first: map[string]*judge.Footprint{}, bounds: o.Bounds,
		load: &load{r: rec, c: c, random: rand.New(rand.NewPCG(o.Seed, 1)), outstanding: 10 * len(nodes), waiting: map[string]bool{}}}
	if err := r.prepare(); err != nil {
		t.Fatal(err)
	}
	names := map[string]*cluster.Node{}
	for _, n := range nodes {
		names[n.Name] = n
	}
	watching, stop := context.WithCancel(context.Background())
	var watchers sync.WaitGroup
	watchers.Go(func() { r.watchProcesses(watching, nodes) })
	watchers.Go(func() { r.load.follow(watching) })
	watchers.Go(func() { r.watchDeletions(watching, c) })
	for _, n := range nodes {
		watchers.Go(func() { r.watchOffers(watching, n) })
	}
	r.calm()
	var schedules []string
	for done, round := time.Duration(0), uint64(0); done < o.Length && !t.Failed(); round++ {
		length := min(o.Storm, o.Length-done)
		done += length
		events := Schedule(o.Seed+round<<32, length, slices.Sorted(maps.Keys(names)))
		schedules = append(schedules, fmt.Sprintf("storm %d", round+1))
		for _, e := range events {
			schedules = append(schedules, e.String())
		}
		r.storm(events, length)
		r.calm()
		r.progress(round+1, done, o.Length)
	}
	stop()
	watchers.Wait()
	verdict := judge.Judge(r.finish(names), o.Bounds)
	r.report(verdict, o, schedules)
}

// storm lets every lane go through its events while pods come.
func (r *run) storm(events []Event, length time.Duration) {
	begin := time.Now()
	whole, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	lanes := map[string][]Event{}
	for _, e := range events {
		lanes[e.Lane] = append(lanes[e.Lane], e)
	}
	var all sync.WaitGroup
	all.Go(func() {
		ctx, cancel := context.WithTimeout(whole, length)
		defer cancel()
		r.load.arrive(ctx)
	})
	for _, lane := range lanes {
		all.Go(func() {
			for _, e := range lane {
				lasts(whole, time.Until(begin.Add(e.At)))
				if whole.Err() != nil {
					return
				}
				if time.Since(begin) > length {
					r.count("faults left out: the lane was late")
					continue
				}
				r.note("begins: %s %s", e.Kind, e.Node)
				if err := r.do(whole, e); err != nil {
					r.note("%s %s: %v", e.Kind, e.Node, err)
					r.t.Errorf("chaos: %s %s did not end: %v", e.Kind, e.Node, err)
					giveUp()
					return
				}
			}
		})
	}
	all.Wait()
}

func (r *run) do(ctx context.Context, e Event) error {
	at := slices.IndexFunc(r.nodes, func(n *cluster.Node) bool { return n.Name == e.Node })
	switch strings.Fields(e.Lane)[0] {
	case "programs":
		return r.node(ctx, r.nodes[at], e)
	case "hardware":
		return r.hardware(ctx, r.nodes[at], e)
	case "control":
		return r.control(ctx, e)
	default:
		return r.cluster(ctx, e)
	}
}

// await fails the test at the deadline; awaitQuietly leaves that to the judge.
func (r *run) await(what string, limit time.Duration, check func() error) {
	if err := suite.WaitEvery(every, limit, what, check); err != nil {
		r.t.Errorf("chaos: %v", err)
	}
}

func (r *run) awaitQuietly(limit time.Duration, check func() error) {
	_ = suite.WaitEvery(every, limit, "", check)
}

// lasts is how long something goes on: its time, or until the chaos is given up.
func lasts(ctx context.Context, length time.Duration) {
	over, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	<-over.Done()
}

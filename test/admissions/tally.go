package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"
)

// tally is what happened in one life, or in all together.
type tally struct {
	Offered, Admitted, Refused, Containers, ContainerRestarts int

	KubeletRestarts, KilledInAdmission, CheckpointsLost         int
	AgentKills, AgentTerms, AgentStops, DeviceFaults, EFAFaults int
	Settled, Looks                                              int

	// The kubelet's own doing.
	KubeletTwice   int // one id of one resource in two containers
	Forgotten      int // containers that a kubelet no longer knows after its restart
	RefusedRunning int // admitted pods refused at a kubelet's restart
	OfferedAnother int // of these: refused for one unit though another was offered that was nobody's
	WithoutDevices int // containers started without what they asked for, after a lost checkpoint
	KubeletDied    int // of its own unlocked maps
	Split          int // containers with other silicon through each name, admitted by two kubelets
	Consequences   int // silicon shared with a container of the three kinds above

	StartFailures map[string]int
	RefusedFor    map[string]int // by reason
	WouldHaveFit  map[string]int // refused though there was room, by what explains it
	Back          map[string]*times
	Violations    []string
	Seconds       float64
	AgentLeast    footprint // when the first agent of the life had settled
	AgentMost     footprint // of any agent at any settled moment
}

// times are durations, of which the greatest count.
type times struct {
	Count int
	Sum   time.Duration
	Most  time.Duration
	All   []time.Duration
}

func newTally() *tally {
	return &tally{StartFailures: map[string]int{}, RefusedFor: map[string]int{}, WouldHaveFit: map[string]int{}, Back: map[string]*times{}}
}

func (t *tally) back(kind string, d time.Duration) {
	if t.Back[kind] == nil {
		t.Back[kind] = &times{}
	}
	b := t.Back[kind]
	b.Count++
	b.Sum += d
	b.Most = max(b.Most, d)
	b.All = append(b.All, d)
}

func (t *tally) add(o *tally) {
	for _, pair := range []struct{ to, from *int }{
		{&t.Offered, &o.Offered}, {&t.Admitted, &o.Admitted}, {&t.Refused, &o.Refused}, {&t.Containers, &o.Containers},
		{&t.ContainerRestarts, &o.ContainerRestarts}, {&t.KubeletRestarts, &o.KubeletRestarts},
		{&t.KilledInAdmission, &o.KilledInAdmission}, {&t.CheckpointsLost, &o.CheckpointsLost}, {&t.AgentKills, &o.AgentKills},
		{&t.AgentTerms, &o.AgentTerms}, {&t.AgentStops, &o.AgentStops}, {&t.DeviceFaults, &o.DeviceFaults},
		{&t.EFAFaults, &o.EFAFaults}, {&t.Settled, &o.Settled}, {&t.Looks, &o.Looks}, {&t.KubeletTwice, &o.KubeletTwice},
		{&t.Forgotten, &o.Forgotten}, {&t.RefusedRunning, &o.RefusedRunning}, {&t.Consequences, &o.Consequences}, {&t.Split, &o.Split}, {&t.WithoutDevices, &o.WithoutDevices}, {&t.KubeletDied, &o.KubeletDied}, {&t.OfferedAnother, &o.OfferedAnother},
	} {
		*pair.to += *pair.from
	}
	for _, pair := range []struct{ to, from map[string]int }{
		{t.StartFailures, o.StartFailures}, {t.RefusedFor, o.RefusedFor}, {t.WouldHaveFit, o.WouldHaveFit},
	} {
		for key, count := range pair.from {
			pair.to[key] += count
		}
	}
	for kind, b := range o.Back {
		for _, d := range b.All {
			t.back(kind, d)
		}
	}
	t.Violations = append(t.Violations, o.Violations...)
}

// print writes the counts for people; docs/reliability.md has them from here.
func (t *tally) print(w io.Writer) {
	fmt.Fprintf(w, "pods offered %d, admitted %d, refused %d; containers started %d, of them restarts %d\n",
		t.Offered, t.Admitted, t.Refused, t.Containers, t.ContainerRestarts)
	fmt.Fprintf(w, "kubelet restarts %d (in mid-admission %d, with its checkpoint lost or corrupt %d); agent killed %d, terminated %d, stopped %d; device faults %d, EFA faults %d\n",
		t.KubeletRestarts, t.KilledInAdmission, t.CheckpointsLost, t.AgentKills, t.AgentTerms, t.AgentStops, t.DeviceFaults, t.EFAFaults)
	fmt.Fprintf(w, "the kubelet by itself: one id given twice %d, containers forgotten %d, admitted pods refused at its restart %d, containers given half before its death and half after %d, containers started without a device %d, crashes %d; sharing that followed from these %d\n",
		t.KubeletTwice, t.Forgotten, t.RefusedRunning, t.Split, t.WithoutDevices, t.KubeletDied, t.Consequences)
	printCounts(w, "refused for", t.RefusedFor)
	printCounts(w, "refused though there was room", t.WouldHaveFit)
	fmt.Fprintf(w, "of these, one unit wanted and another one offered that was nobody's: %d\n", t.OfferedAnother)
	printCounts(w, "containers that did not start at once", t.StartFailures)
	for _, kind := range slices.Sorted(maps.Keys(t.Back)) {
		b := t.Back[kind]
		slices.Sort(b.All)
		fmt.Fprintf(w, "everything back after %s: %d times, median %v, 99th percentile %v, longest %v\n", kind, b.Count,
			b.All[len(b.All)/2].Round(time.Millisecond), b.All[len(b.All)*99/100].Round(time.Millisecond), b.Most.Round(time.Millisecond))
	}
	fmt.Fprintf(w, "violations %d\n", len(t.Violations))
}

func printCounts(w io.Writer, what string, counts map[string]int) {
	keys := slices.Collect(maps.Keys(counts))
	sort.Slice(keys, func(i, j int) bool {
		return counts[keys[i]] > counts[keys[j]] || counts[keys[i]] == counts[keys[j]] && keys[i] < keys[j]
	})
	var parts []string
	for _, key := range keys {
		parts = append(parts, fmt.Sprintf("%s %d", key, counts[key]))
	}
	if len(parts) > 0 {
		fmt.Fprintf(w, "%s: %s\n", what, strings.Join(parts, "; "))
	}
}

func slicesSortedKeys[V any](m map[uint64]V) []uint64 { return slices.Sorted(maps.Keys(m)) }

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"neuron-agent.test/cluster/judge"
)

// progress says after each storm how far it is.
func (r *run) progress(round uint64, done, whole time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Logf("chaos: storm %d over, %v of %v, %v since the start: %d faults, %d pods, %d containers", round, done.Round(time.Second),
		whole.Round(time.Second), time.Since(r.begin).Round(time.Second), len(r.history.Faults), r.counts["pods"], r.counts["containers"])
}

// around is how much of the story is told about a violation, before and after it.
const around = 20 * time.Second

func (r *run) report(v *judge.Verdict, o Options, schedule []string) {
	for _, what := range slices.Sorted(maps.Keys(r.counts)) {
		r.t.Logf("chaos: %d %s", r.counts[what], what)
	}
	admitted := map[string]bool{}
	for _, c := range r.history.Containers {
		admitted[c.UID] = true
	}
	r.t.Logf("chaos: %d pods admitted and started", len(admitted))
	r.t.Logf("chaos: judged %d containers by their ids and %d by their counts, %d without a report; %d pairs on the same silicon",
		v.Exact, v.ByCount, v.Unreported, v.Pairs)
	for _, kind := range slices.Sorted(maps.Keys(v.Back)) {
		times := slices.Sorted(slices.Values(v.Back[kind]))
		at := func(part float64) time.Duration {
			return times[int(part*float64(len(times)-1))].Round(time.Millisecond)
		}
		r.t.Logf("chaos: back after %s: %d units, median %v, 99 %% %v, most %v", kind, len(times), at(0.5), at(0.99), at(1))
	}
	for _, kind := range slices.Sorted(maps.Keys(v.Kubelet)) {
		r.t.Logf("chaos: THE KUBELET: %d times %s", len(v.Kubelet[kind]), kind)
		for _, text := range v.Kubelet[kind] {
			r.t.Logf("chaos:   %s", text)
		}
	}
	if len(v.Violations) == 0 {
		r.t.Logf("chaos: seed %d: no violation", o.Seed)
		return
	}
	r.t.Logf("chaos: seed %d, schedule:\n%s", o.Seed, strings.Join(schedule, "\n"))
	const most = 20
	for i, violation := range v.Violations {
		if i == most {
			r.t.Errorf("chaos: and %d more violations", len(v.Violations)-most)
			break
		}
		r.t.Errorf("chaos: VIOLATION at %s on %s (CHAOS_SEED=%d): %s\n%s", violation.At.Format(judge.Clock), violation.Node, o.Seed,
			violation.What, r.story(violation))
	}
}

// story is what happened around a violation: faults, refusals and the containers of that node.
func (r *run) story(v judge.Violation) string {
	lines := slices.Clone(r.lines)
	for _, c := range r.history.Containers {
		if c.Node == v.Node {
			lines = append(lines, line{c.Begin, fmt.Sprintf("%s ran to %s with %v", c, c.End.Format(judge.Clock), c.Held)})
		}
	}
	for _, life := range r.history.Lives {
		if life.Node == v.Node {
			lines = append(lines, line{life.Begin, fmt.Sprintf("agent %d on %s ran to %s", life.Pid, life.Node, life.End.Format(judge.Clock))})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var text strings.Builder
	for _, l := range lines {
		if l.at.After(v.At.Add(-around)) && l.at.Before(v.At.Add(around)) {
			fmt.Fprintf(&text, "    %s %s\n", l.at.Format(judge.Clock), l.text)
		}
	}
	return text.String()
}

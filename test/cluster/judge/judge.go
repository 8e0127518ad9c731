package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"neuron-agent.test/suite/cores"
)

// Violation is one broken rule.
type Violation struct {
	At   time.Time
	Node string
	Unit string // what the sentence begins with, if it is about units
	What string
}

// Times are how long something took, each time.
type Times []time.Duration

// Verdict is what a history amounts to.
type Verdict struct {
	Violations []Violation
	// The kubelet's own doing, by kind: counted and told, not held against the agent.
	Kubelet map[string][]string
	// From the end of a fault until everything that depended on it alone was offered again; "release" for pods that ended.
	Back map[string]Times
	// Containers judged, by whether the kubelet's record of them was seen.
	Exact, ByCount, Unreported int
	Pairs                      int // containers on the same silicon one after the other

	strict bool // nobody else is to blame
}

func (v *Verdict) violate(at time.Time, node, format string, values ...any) {
	v.Violations = append(v.Violations, Violation{at, node, "", fmt.Sprintf(format, values...)})
}

func (v *Verdict) kubelet(kind, format string, values ...any) {
	v.Kubelet[kind] = append(v.Kubelet[kind], fmt.Sprintf(format, values...))
}

// Kinds of what the kubelet does by itself.
const (
	StoppedRunning = "a pod refused after its containers had run"
	GaveTwice      = "one id of one resource given twice"
	ReleasedForced = "devices of a pod deleted with grace 0 given away while its containers ended"
	RefusedRunning = "devices of a running pod given away, which the kubelet refused"
)

// Judge looks at the whole history.
func Judge(h *History, b Bounds) *Verdict {
	v := &Verdict{Kubelet: map[string][]string{}, Back: map[string]Times{}}
	uses := map[*Container]use{}
	for _, c := range h.Containers {
		v.given(h, c, uses)
	}
	v.unseen(h)
	v.stopped(h)
	v.shared(h, uses)
	v.offered(h, b)
	v.withheld(h, b)
	v.lives(h)
	v.leaks(h)
	v.Violations = merged(v.Violations)
	slices.SortStableFunc(v.Violations, func(a, b Violation) int { return a.At.Compare(b.At) })
	return v
}

// JudgeClaims is for pods that were given their devices by claims, Held being what the scheduler chose for them: everybody has exactly
// that, and nothing is in two running containers. Nothing excuses it: the driver is the last guard, whatever scheduler and kubelet do.
func JudgeClaims(h *History) *Verdict {
	v := &Verdict{Kubelet: map[string][]string{}, Back: map[string]Times{}, strict: true}
	uses := map[*Container]use{}
	for _, c := range h.Containers {
		v.given(h, c, uses)
	}
	v.unseen(h)
	v.shared(h, uses)
	v.Violations = merged(v.Violations)
	slices.SortStableFunc(v.Violations, func(a, b Violation) int { return a.At.Compare(b.At) })
	return v
}

// merged makes one violation of those that differ in the unit alone.
func merged(all []Violation) []Violation {
	type key struct {
		at   time.Time
		node string
		what string
	}
	units := map[key][]string{}
	var order []key
	for _, v := range all {
		k := key{v.At, v.Node, v.What}
		if units[k] == nil {
			order = append(order, k)
		}
		units[k] = append(units[k], v.Unit)
	}
	var few []Violation
	for _, k := range order {
		names := strings.Join(units[k], ", ")
		few = append(few, Violation{k.at, k.node, names, strings.TrimSpace(names + " " + k.what)})
	}
	return few
}

// patience is how long a container may run without having written what it sees.
const patience = 20 * time.Second

func (v *Verdict) given(h *History, c *Container, uses map[*Container]use) {
	m := h.Machines[c.Node]
	if !c.Reported {
		v.Unreported++
		if c.length() > patience {
			v.violate(c.Begin, c.Node, "%s ran %v without a report", c, c.length())
		}
		return
	}
	if c.Held == nil {
		v.ByCount++
	} else {
		v.Exact++
	}
	if wrong := m.wrong(c); wrong != "" {
		v.violate(c.Begin, c.Node, "%s: %s", c, wrong)
	}
	if len(c.Refused) > 0 && !h.broken(c.Node, c.Begin) {
		v.violate(c.Begin, c.Node, "%s: device nodes do not open: %v", c, c.Refused)
	}
	all, _ := m.seen(c)
	held, _ := m.held(c.Held)
	uses[c] = use{}
	for _, some := range []use{all, held} {
		for name := range some {
			uses[c][name] = true
		}
	}
}

// broken: some device of the node was.
func (h *History) broken(node string, at time.Time) bool {
	return slices.ContainsFunc(h.Faults, func(f Fault) bool {
		return f.Node == node && len(f.Targets) > 0 && !f.Begin.After(at) && f.End.After(at.Add(-time.Second))
	})
}

// unseen: a pod that ran to its end unwatched would make this judge blind.
func (v *Verdict) unseen(h *History) {
	seen := map[string]bool{}
	for _, c := range h.Containers {
		seen[c.UID] = true
	}
	for uid, pod := range h.Pods {
		if pod.Succeeded && !seen[uid] {
			v.violate(pod.Ended, pod.Node, "%s succeeded, and nobody saw it run", pod.Name)
		}
	}
}

// stopped: a kubelet that starts admits the pods that run once more, and refuses those for which something is missing just then.
func (v *Verdict) stopped(h *History) {
	told := map[string]bool{}
	for _, c := range h.Containers {
		if pod := h.Pods[c.UID]; pod != nil && pod.Refused != "" && !told[c.UID] {
			told[c.UID] = true
			v.kubelet(StoppedRunning, "%s: %s %s", c, pod.Refused, pod.Message)
		}
	}
}

// shared is the rule: nothing in two containers that run at the same time. The containers of one pod are judged like
// strangers; an init container and those after it do not run at the same time.
func (v *Verdict) shared(h *History, uses map[*Container]use) {
	users := map[string][]*Container{}
	for _, c := range h.Containers {
		for name := range uses[c] {
			users[c.Node+" "+name] = append(users[c.Node+" "+name], c)
		}
	}
	told := map[[2]*Container]bool{}
	for what, all := range users {
		slices.SortFunc(all, func(a, b *Container) int { return a.Begin.Compare(b.Begin) })
		for i, first := range all {
			for _, second := range all[i+1:] {
				pair := [2]*Container{first, second}
				if told[pair] {
					continue
				}
				told[pair] = true
				v.Pairs++
				if both := first.overlap(second.Span); both.length() > 0 {
					v.twice(h, what, first, second, both)
				}
			}
		}
	}
}

// twice tells the kubelet's own doing from the agent's.
func (v *Verdict) twice(h *History, what string, first, second *Container, both Span) {
	text := fmt.Sprintf("%s in two running containers for %v (%s): %s, which holds %v, and %s, which holds %v", what,
		both.length(), both, first, first.Held, second, second.Held)
	pod := h.Pods[first.UID]
	switch id := cores.SameID(first.Held, second.Held); {
	case v.strict:
		v.violate(both.Begin, first.Node, "%s", text)
	case pod != nil && !pod.Forced.IsZero() && pod.Forced.Before(second.Begin):
		v.kubelet(ReleasedForced, "%s", text)
	case pod != nil && pod.Refused != "":
		v.kubelet(RefusedRunning, "%s: %s", text, pod.Message)
	case id != "":
		v.kubelet(GaveTwice, "%s: %s", id, text)
	default:
		v.violate(both.Begin, first.Node, "%s", text)
	}
}

// endedWithPod: the agent's pod was deleted before it ended.
func (h *History) endedWithPod(life Life) bool {
	deleted, is := h.Deleted[life.Pod]
	return is && !deleted.After(life.End.Add(2*time.Second))
}

// lives: an agent ends only when a fault ends it, or when its pod was deleted: by a rollout that goes on after its fault.
func (v *Verdict) lives(h *History) {
	for _, life := range h.Lives {
		ended := Span{life.End.Add(-2 * time.Second), life.End.Add(2 * time.Second)}
		excused := life.Last || slices.ContainsFunc(h.Faults, func(f Fault) bool {
			return f.Serving && (f.Node == "" || f.Node == life.Node) && f.overlap(ended).length() > 0
		})
		if !excused && !h.endedWithPod(life) {
			v.violate(life.End, life.Node, "the agent (pid %d) ended at %s, and no fault ended it", life.Pid, life.End.Format(Clock))
		}
	}
}

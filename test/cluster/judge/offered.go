package judge

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// reason is a time in which a unit need not be offered, up to the end of what caused it plus a bound.
type reason struct {
	kind string
	Span // of the cause itself
	upTo time.Time
}

type unit struct{ resource, id string }

func (v *Verdict) violateUnit(at time.Time, node string, u unit, format string, values ...any) {
	v.Violations = append(v.Violations, Violation{at, node, u.resource + " " + u.id, fmt.Sprintf(format, values...)})
}

// offered compares, unit by unit, what the kubelet offered with what was broken, held and served.
func (v *Verdict) offered(h *History, b Bounds) {
	for node, m := range h.Machines {
		looks := h.looksAt(node)
		if len(looks) == 0 {
			v.violate(time.Time{}, node, "nobody looked at what %s offers", node)
			continue
		}
		serving := h.serving(node, b)
		for _, u := range m.units() {
			v.offeredUnit(h, b, node, u, looks, serving)
		}
	}
}

func (m Machine) units() []unit {
	var all []unit
	for device := range m.Devices {
		all = append(all, unit{Neuron, strconv.Itoa(device)})
	}
	for core := range m.Devices * m.CoresPerDevice {
		all = append(all, unit{NeuronCore, strconv.Itoa(core)})
	}
	for name := range m.Verbs {
		all = append(all, unit{EFA, name})
	}
	return all
}

func (h *History) looksAt(node string) []Look {
	var looks []Look
	for _, look := range h.Looks {
		if look.Node == node {
			looks = append(looks, look)
		}
	}
	return looks
}

func (h *History) serving(node string, b Bounds) []reason {
	var all []reason
	for _, f := range h.Faults {
		if f.Serving && (f.Node == "" || f.Node == node) {
			all = append(all, reason{f.Kind, f.Span, f.End.Add(b.Serve)})
		}
	}
	for _, life := range h.Lives {
		deleted, is := h.Deleted[life.Pod]
		if life.Node != node || life.Last || !is {
			continue
		}
		// Its pod may outlive it, in the kubelet's back-off.
		if absent := h.withoutAgent(life); absent.length() > 0 && !deleted.After(absent.End) {
			all = append(all, reason{"agent pod deleted", absent, absent.End.Add(b.Serve)})
		}
	}
	return all
}

// withoutAgent is the time until the node's next agent begins: nothing if that ran already.
func (h *History) withoutAgent(ended Life) Span {
	absent := Span{ended.End, ended.End}
	for _, next := range h.Lives {
		if next.Node != ended.Node || !next.End.After(ended.End) {
			continue
		}
		if absent.length() == 0 || next.Begin.Before(absent.End) {
			absent.End = next.Begin
		}
		if !next.Begin.After(ended.End) {
			return Span{ended.End, ended.End}
		}
	}
	return absent
}

// hardware lists the times in which the unit itself was broken.
func (h *History) hardware(node string, u unit, b Bounds) []reason {
	m := h.Machines[node]
	target := u.id
	if u.resource != EFA {
		index, _ := strconv.Atoi(u.id)
		if u.resource == NeuronCore {
			index /= m.CoresPerDevice
		}
		target = "neuron" + strconv.Itoa(index)
	}
	var all []reason
	for _, f := range h.Faults {
		if f.Node == node && slices.Contains(f.Targets, target) {
			all = append(all, reason{f.Kind, f.Span, f.End.Add(b.Hardware)})
		}
	}
	return all
}

// otherName lists the times in which pods held the unit's silicon through the other name.
func (h *History) otherName(node string, u unit, b Bounds) []reason {
	m := h.Machines[node]
	mine, err := m.useOf(u.resource, []string{u.id})
	if u.resource == EFA || err != nil {
		return nil
	}
	other := map[string]string{Neuron: NeuronCore, NeuronCore: Neuron}[u.resource]
	var all []reason
	for _, hold := range h.Holds {
		if hold.Node != node || len(hold.Units[other]) == 0 {
			continue
		}
		theirs, _ := m.useOf(other, hold.Units[other])
		touched := slices.ContainsFunc(mine.names(), func(name string) bool { return theirs[name] })
		if !touched {
			continue
		}
		span := hold.Span
		if pod := h.Pods[hold.UID]; pod != nil {
			span.Begin = pod.Created
			span.End = h.ended(pod, hold)
		}
		all = append(all, reason{"release", span, span.End.Add(b.Release)})
	}
	return all
}

// ended is when the kubelet may give away what a pod had: its containers have ended and the API knows. The record itself does
// not count: it is swept when somebody asks.
func (h *History) ended(pod *Pod, hold Hold) time.Time {
	end := pod.Ended
	if end.IsZero() {
		return hold.End
	}
	for _, c := range h.Containers {
		if c.UID == pod.UID && c.End.After(end) {
			end = c.End
		}
	}
	return end
}

func (v *Verdict) offeredUnit(h *History, b Bounds, node string, u unit, looks []Look, serving []reason) {
	broken, held := h.hardware(node, u, b), h.otherName(node, u, b)
	reasons := slices.Concat(serving, broken, held)
	var blocked []Span
	for _, r := range reasons {
		blocked = append(blocked, Span{r.Begin, r.upTo})
	}
	for i, look := range looks {
		if slices.Contains(look.Offered[u.resource], u.id) {
			v.mayOffer(b, node, u, look, serving, broken)
			continue
		}
		// Absent until it was seen again; looks that follow with the same absence are one.
		if i > 0 && !slices.Contains(looks[i-1].Offered[u.resource], u.id) {
			continue
		}
		away, back := Span{look.Begin, look.End}, false
		for _, next := range looks[i+1:] {
			if slices.Contains(next.Offered[u.resource], u.id) {
				back = true
				away.End = next.Begin
				break
			}
			away.End = next.End
		}
		if back {
			v.timeBack(away, reasons)
		}
		for _, left := range away.without(blocked) {
			// A pod refused half-way is on no record; what it was given comes back within the same bound.
			if left.length() > b.Release {
				v.violateUnit(left.Begin, node, u, "sound and free, and not offered for %v (%s)", left.length(), left)
			}
		}
	}
}

// timeBack notes how long a unit took to come back, if a single cause kept it away at the end.
func (v *Verdict) timeBack(away Span, reasons []reason) {
	var last reason
	for _, r := range reasons {
		if r.Begin.Before(away.End) && r.End.After(last.End) {
			last = r
		}
	}
	if last.End.IsZero() || last.End.Before(away.Begin) {
		return
	}
	v.Back[last.kind] = append(v.Back[last.kind], max(0, away.End.Sub(last.End)))
}

// mayOffer: what is broken is not offered once the bound has passed, unless nobody could say so.
func (v *Verdict) mayOffer(b Bounds, node string, u unit, look Look, serving, broken []reason) {
	var nobody []Span
	for _, r := range serving {
		nobody = append(nobody, Span{r.Begin, r.upTo})
	}
	for _, r := range broken {
		wrong := look.Span.overlap(Span{r.Begin.Add(b.Hardware), r.End})
		if wrong.length() <= 0 {
			continue
		}
		for _, left := range wrong.without(nobody) {
			if left.length() > 0 {
				v.violateUnit(left.Begin, node, u, "offered though %s since %s (%s)", r.kind, r.Begin.Format(Clock), left)
			}
		}
	}
}

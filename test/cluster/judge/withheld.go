package judge

import "slices"

// withheld: silicon of a running container is not offered through the other name, once the list had time to say so. The kubelet forgets
// a pod deleted with grace 0 while its containers end (ReleasedForced).
func (v *Verdict) withheld(h *History, b Bounds) {
	for _, c := range h.Containers {
		if c.Held == nil {
			continue
		}
		m := h.Machines[c.Node]
		for _, pair := range [][2]string{{Neuron, NeuronCore}, {NeuronCore, Neuron}} {
			mine, err := m.useOf(pair[0], c.Held[pair[0]])
			if err != nil || len(mine) == 0 {
				continue
			}
			ran := Span{c.Begin.Add(b.Withhold), c.End}
			if pod := h.Pods[c.UID]; pod != nil && !pod.Forced.IsZero() && pod.Forced.Before(ran.End) {
				ran.End = pod.Forced
			}
			for _, look := range h.looksAt(c.Node) {
				both := ran.overlap(look.Span)
				if both.length() <= 0 {
					continue
				}
				v.offeredTwice(h, b, c, pair[1], mine, both, look.Offered[pair[1]])
			}
		}
	}
}

func (v *Verdict) offeredTwice(h *History, b Bounds, c *Container, other string, mine use, both Span, offered []string) {
	m := h.Machines[c.Node]
	for _, id := range offered {
		theirs, err := m.useOf(other, []string{id})
		if err != nil || slices.Contains(c.Held[other], id) || !slices.ContainsFunc(theirs.names(), func(n string) bool { return mine[n] }) {
			continue
		}
		var nobody []Span
		for _, r := range h.serving(c.Node, b) {
			nobody = append(nobody, Span{r.Begin, r.upTo})
		}
		for _, left := range both.without(nobody) {
			if left.length() > 0 {
				v.violate(left.Begin, c.Node, "%s %s is offered while %s runs on it with %v (%s)", other, id, c, c.Held, left)
			}
		}
	}
}

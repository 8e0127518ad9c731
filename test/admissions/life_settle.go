package main

import (
	"fmt"
	"slices"
	"time"
)

// comesBackWithin is the bound of docs/reliability.md for everything that is looked at here, with a second for a busy
// machine; how late the machine runs timers is added ten times.
const comesBackWithin = 4 * time.Second

// whenCalm lets nothing new begin, waits until nothing is under way, and goes on.
func (l *life) whenCalm(next func()) {
	l.quiet = true
	begin := time.Now()
	var look func()
	look = func() {
		why := l.underWay()
		if why == "" {
			next()
			return
		}
		if time.Since(begin) > time.Minute {
			l.violate("the node does not come to rest: " + why)
			l.end()
			return
		}
		l.after(10*time.Millisecond, look)
	}
	look()
}

// underWay names something that is not finished.
func (l *life) underWay() string {
	switch {
	case l.kubelet == nil || !l.ready:
		return "the kubelet is not ready"
	case l.agent == nil || l.stopped:
		return "the agent is away"
	case l.admitting > 0:
		return "an admission"
	}
	for _, p := range l.pods {
		if p.state == pending || p.state == ending || p.cut {
			return p.name + " comes or goes"
		}
		for _, c := range p.containers {
			if c.state == starting && c.failures == 0 {
				return p.name + " starts"
			}
		}
	}
	return ""
}

// settle stops the world and waits until the kubelet offers exactly what is whole and nobody's.
func (l *life) settle(kind string, next func()) {
	if l.quiet && !l.closing {
		return // somebody is at it
	}
	l.whenCalm(func() {
		l.takeLate()
		begin := l.lastChange()
		l.lookUntilRight(kind, begin, 1, func() {
			l.tally.Settled++
			l.notePrint()
			l.quiet = false
			next()
		})
	})
}

// lastChange is when something that the lists depend on was last done.
func (l *life) lastChange() time.Time {
	last := l.lastTrouble
	for _, one := range l.lastFreed {
		if one.at.After(last) {
			last = one.at
		}
	}
	return last
}

func (l *life) lookUntilRight(kind string, begin time.Time, look int, next func()) {
	l.tally.Looks++
	l.kubelet.ask(question{Op: "look"}, func(r reply, answered bool) {
		if !answered {
			l.violate("the kubelet died in a quiet moment")
			l.end()
			return
		}
		l.posted = r.Posted
		wrong := l.wrong(r)
		took := time.Since(begin)
		if wrong == "" {
			if look > 1 || took < time.Second {
				l.tally.back(kind, took)
			}
			next()
			return
		}
		if took > comesBackWithin+10*l.late {
			l.violate(fmt.Sprintf("%v after %s: %s", took.Round(time.Millisecond), kind, wrong))
			next()
			return
		}
		l.after(10*time.Millisecond, func() { l.lookUntilRight(kind, begin, look+1, next) })
	})
}

// wrong compares the kubelet's lists with what they must be: all units but those on something broken and those whose
// silicon is held through the other name. Of units that are held through their own name nothing is expected.
func (l *life) wrong(r reply) string {
	h := l.hardware
	for _, resource := range resources {
		own, other := newUse(), newUse()
		for _, held := range r.Held {
			part, err := h.useOf(held.Resource, held.IDs)
			if err != nil {
				return err.Error()
			}
			if held.Resource == resource {
				own.add(part)
			} else {
				other.add(part)
			}
		}
		if what := l.wrongStatus(r, resource, other); what != "" {
			return what
		}
		for _, id := range h.allIDs(resource) {
			part, _ := h.useOf(resource, []string{id})
			if own.shared(part) != "" {
				continue
			}
			want := h.well(resource, id) && part.shared(other) == ""
			if offered := slices.Contains(r.Healthy[resource], id); offered != want {
				return fmt.Sprintf("%s %s: offered %v, sound %v, held through another name %q", resource, id, offered,
					h.well(resource, id), part.shared(other))
			}
		}
	}
	return ""
}

// wrongStatus compares what pods' statuses say of the units that they hold, through one name only, with what is broken.
func (l *life) wrongStatus(r reply, resource string, other use) string {
	for _, told := range r.Status {
		for _, held := range r.Held {
			if held.UID != told.UID || held.Container != told.Container || held.Resource != told.Resource || held.Resource != resource {
				continue
			}
			for _, id := range held.IDs {
				part, _ := l.hardware.useOf(resource, []string{id})
				if sick := slices.Contains(told.IDs, id); sick == l.hardware.well(resource, id) && part.shared(other) == "" {
					return fmt.Sprintf("the status of pod %s calls %s %s unhealthy: %v", told.UID, resource, id, sick)
				}
			}
		}
	}
	return ""
}

func (l *life) rememberFootprint() {
	f, err := footprintOf(l.agent.Pid)
	if err != nil {
		l.violate(err.Error())
	}
	l.tally.AgentLeast, l.tally.AgentMost = f, f
}

func (l *life) notePrint() {
	f, err := footprintOf(l.agent.Pid)
	if err != nil {
		l.violate(err.Error())
		return
	}
	m := &l.tally.AgentMost
	m.Descriptors, m.Threads = max(m.Descriptors, f.Descriptors), max(m.Threads, f.Threads)
	m.ResidentKiB, m.Sockets = max(m.ResidentKiB, f.ResidentKiB), max(m.Sockets, f.Sockets)
}

// expectNoLeaks compares the agent at the end with the first one at its start.
func (l *life) expectNoLeaks() {
	f, err := footprintOf(l.agent.Pid)
	if err != nil {
		l.violate(err.Error())
		return
	}
	first := l.tally.AgentLeast
	l.say("footprint %+v, at first %+v", f, first)
	const descriptors, threads, residentKiB = 6, 40, 24 << 10 // one thread for each of 16 devices, and those of gRPC
	if f.Descriptors > first.Descriptors+descriptors || f.Threads > first.Threads+threads || f.Sockets != first.Sockets ||
		f.ResidentKiB > first.ResidentKiB+residentKiB {
		l.violate(fmt.Sprintf("the agent grew from %+v to %+v", first, f))
	}
}

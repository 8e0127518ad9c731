package main

import (
	"fmt"
	"strings"
	"time"
)

// arrive lets the scheduler place a pod that fits by the node's status, and most of the time also by what is really free:
// a scheduler that counts two names for one silicon sends more.
func (l *life) arrive() {
	for range 4 {
		p := l.randomPod()
		if !l.schedulerAgrees(p) {
			continue
		}
		if !l.chance(6) && !l.fits(p, 1500*time.Millisecond) {
			continue
		}
		l.pods[p.uid] = p
		l.tally.Offered++
		var asks []string
		for _, c := range p.containers {
			asks = append(asks, fmt.Sprintf("%s %v", c.name, c.wants))
		}
		l.say("%s created: %s", p.name, strings.Join(asks, ", "))
		if l.kubelet != nil && l.ready {
			l.admit(p)
		}
		return
	}
}

// schedulerAgrees counts as the scheduler does: the last node status less what the pods on the node ask for.
func (l *life) schedulerAgrees(p *podRun) bool {
	for _, resource := range resources {
		free := l.posted[resource]
		for _, other := range l.pods {
			free -= other.total(resource)
		}
		if wanted := p.total(resource); wanted > 0 && wanted > free {
			return false
		}
	}
	return true
}

func (l *life) admit(p *podRun) {
	l.admitting++
	l.kubelet.ask(question{Op: "admit", Pod: p.spec}, func(r reply, answered bool) {
		l.admitting--
		if !answered {
			l.say("%s: the kubelet died before it answered", p.name)
			return // still pending: the next kubelet finds it in the API
		}
		l.posted = r.Posted
		l.judgeVerdict(p, r.Verdicts[0], r.Held)
	})
	if l.killSoon {
		l.killSoon = false
		l.after(l.between(0, 4*time.Millisecond), l.killKubelet)
	}
}

// judgeVerdict takes the kubelet's yes or no about a pod that had none before.
func (l *life) judgeVerdict(p *podRun, v verdict, held []heldIDs) {
	if !v.Admitted {
		l.tally.Refused++
		l.refused(p, v)
		l.forget(p)
		return
	}
	p.state, p.admittedAt = admitted, time.Now()
	l.tally.Admitted++
	for _, h := range held {
		if h.UID == p.uid {
			p.given[h.Container] = append(p.given[h.Container], h)
		}
	}
	p.bare = l.lost && len(p.given) == 0
	l.say("%s admitted: %v", p.name, p.given)
	l.advance(p)
}

// forget: the kubelet does not know the pod any more; what it had is free from now on.
func (l *life) forget(p *podRun) {
	p.state = gone
	delete(l.pods, p.uid)
	l.free(p)
}

// advance starts what can start: init containers one after the other, then all others.
func (l *life) advance(p *podRun) {
	if p.state != admitted || p.cut || l.kubelet == nil || !l.ready {
		return
	}
	working := false
	for _, c := range p.containers {
		if c.kind == application {
			continue
		}
		if c.state == waiting {
			l.start(p, c)
		}
		if c.state == starting || c.kind == plainInit && c.state != over {
			return
		}
	}
	for _, c := range p.containers {
		if c.kind != application {
			continue
		}
		if c.state == waiting {
			l.start(p, c)
		}
		working = working || c.state != over
	}
	if !working {
		l.cutShort(p)
	}
}

func (l *life) start(p *podRun, c *containerRun) {
	c.state = starting
	l.kubelet.ask(question{Op: "options", UID: p.uid, Container: c.name}, func(r reply, answered bool) {
		if c.state != starting {
			return
		}
		c.state = waiting
		switch {
		case !answered || p.cut || p.state != admitted:
			if p.cut {
				l.advanceEnding(p)
			}
		case r.Error != "":
			l.startFailed(p, c, r.Error)
		default:
			l.started(p, c, r)
		}
	})
}

// startFailed: the kubelet tries again after a while, and in the end somebody deletes the pod.
func (l *life) startFailed(p *podRun, c *containerRun, why string) {
	c.failures++
	l.tally.StartFailures[shorten(why)]++
	l.say("%s.%s does not start: %s", p.name, c.name, why)
	if c.failures >= 5 {
		l.cutShort(p)
		return
	}
	c.state = starting // nobody else starts it meanwhile
	l.after(300*time.Millisecond, func() {
		if c.state == starting {
			c.state = waiting
		}
		l.advance(p)
	})
}

func (l *life) started(p *podRun, c *containerRun, r reply) {
	l.containerID++
	c.id = fmt.Sprintf("c%d", l.containerID)
	c.state = running
	c.runs++
	if c.runs > 1 {
		l.tally.ContainerRestarts++
	}
	c.stay = &stay{pod: p.name, uid: p.uid, container: c.name, twice: p.twice, bare: p.bare}
	p.given[c.name] = r.Held
	l.say("%s.%s starts: %v %v", p.name, c.name, r.Held, r.Env)
	l.judge.begin(c.stay, c.wants, r.Held, r.Env, r.Nodes)
	switch {
	case c.kind == plainInit:
		l.after(l.between(time.Millisecond, 60*time.Millisecond), func() { l.exits(p, c) })
	case c.kind == application:
		l.after(l.between(20*time.Millisecond, 900*time.Millisecond), func() { l.exits(p, c) })
	case l.chance(20): // a sidecar crashes
		l.after(l.between(20*time.Millisecond, 500*time.Millisecond), func() { l.exits(p, c) })
	}
	l.advance(p)
}

// exits ends a run of a container, which may be followed by another.
func (l *life) exits(p *podRun, c *containerRun) {
	if c.state != running {
		return
	}
	if l.quiet && !l.closing {
		l.after(20*time.Millisecond, func() { l.exits(p, c) })
		return
	}
	l.stops(p, c)
	if c.kind == sidecar || c.kind == application && c.runs < 3 && l.chance(8) {
		c.state = waiting
		l.after(l.between(time.Millisecond, 100*time.Millisecond), func() { l.advance(p) })
		return
	}
	l.advance(p)
}

// stops is the moment after which the container uses nothing.
func (l *life) stops(p *podRun, c *containerRun) {
	l.judge.end(c.stay)
	c.state, c.stay = over, nil
	l.say("%s.%s ends", p.name, c.name)
}

// cutShort deletes a pod, or ends it when its work is done: containers stop one by one within their grace period, and only
// then is the pod inactive for the kubelet.
func (l *life) cutShort(p *podRun) {
	if p.cut || p.state != admitted {
		return
	}
	p.cut = true
	l.say("%s is being deleted", p.name)
	for _, c := range p.containers {
		if c.state == running {
			l.after(l.between(0, 80*time.Millisecond), func() {
				if c.state == running {
					l.stops(p, c)
				}
				l.advanceEnding(p)
			})
		}
	}
	l.after(0, func() { l.advanceEnding(p) })
}

func (l *life) advanceEnding(p *podRun) {
	if p.state != admitted {
		return
	}
	for _, c := range p.containers {
		if c.state == running || c.state == starting && c.failures == 0 {
			return
		}
	}
	p.state = ending
	l.after(l.between(0, 50*time.Millisecond), func() { l.tellInactive(p) })
}

// tellInactive: the kubelet sees that all containers are over.
func (l *life) tellInactive(p *podRun) {
	if p.state != ending || l.kubelet == nil || !l.ready {
		return // the next kubelet is told
	}
	l.kubelet.ask(question{Op: "inactive", UID: p.uid}, func(_ reply, answered bool) {
		if answered && p.state == ending {
			l.say("%s is inactive", p.name)
			l.forget(p)
		}
	})
}

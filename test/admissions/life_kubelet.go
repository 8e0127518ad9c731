package main

import (
	"bytes"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
)

const checkpoint = kubeletDir + "/device-plugins/kubelet_internal_checkpoint"

// trouble ended, or something else changed, just now.
func (l *life) troubled() { l.lastTrouble = time.Now() }

// startKubelet starts a new process, which finds the pods and containers of the old one.
func (l *life) startKubelet() {
	for len(l.calls) > 0 { // answers of the last one
		(<-l.calls)()
	}
	c, err := startClient(l.loop, l.kubeletLog, l.kubeletDied)
	if err != nil {
		l.violate("cannot start the kubelet: " + err.Error())
		return
	}
	b := &beginning{Allocatable: l.posted, Policy: l.hardware.policy, Scope: l.hardware.scope, NumaNodes: l.hardware.numa,
		PostMillis: int(nodeStatusEvery.Milliseconds())}
	text, _ := os.ReadFile(checkpoint)
	l.lost = !bytes.Contains(text, []byte(`"RegisteredDevices":{"`)) // whenever it was lost: none has been written since
	var pods []*v1.Pod
	listed := l.between(0, 300*time.Millisecond) // how long the API server takes to answer
	for _, p := range l.sortedPods() {
		p.twice = p.twice || p.state == pending
		pods = append(pods, p.spec)
		for _, one := range p.containers {
			if one.id != "" {
				b.Containers = append(b.Containers, knownContainer{p.uid, one.name, one.id, one.state == running})
			}
		}
	}
	l.kubelet, l.kubeletBegun = c, time.Now()
	l.say("the kubelet starts with %d pods", len(pods))
	c.ask(question{Op: "start", Start: b}, func(r reply, answered bool) {
		if c != l.kubelet || !answered {
			return
		}
		if r.Error != "" {
			l.violate("the kubelet does not start: " + r.Error)
			return
		}
		l.after(listed, func() {
			c.ask(question{Op: "pods", Pods: pods}, func(r reply, answered bool) {
				if c == l.kubelet && answered {
					l.takenOver(r)
				}
			})
		})
	})
}

// takenOver: the new kubelet has looked at all pods.
func (l *life) takenOver(r reply) {
	l.ready, l.posted = true, r.Posted
	l.troubled()
	l.say("the kubelet is ready")
	l.lookAfterwards("a kubelet restart")
	for _, v := range r.Verdicts {
		p := l.pods[v.UID]
		switch {
		case p == nil: // its end had been told to the last kubelet
			l.kubelet.ask(question{Op: "inactive", UID: v.UID}, func(reply, bool) {})
		case p.state == pending:
			l.judgeVerdict(p, v, r.Held)
		case !v.Admitted:
			l.refusedAtRestart(p, v)
		default:
			l.compareRecords(p, r.Held)
		}
	}
	for _, p := range l.sortedPods() {
		switch p.state {
		case pending:
			if !asked(r.Verdicts, p.uid) { // it came to the API while the kubelet started
				l.admit(p)
			}
		case ending:
			l.tellInactive(p)
		default:
			l.advance(p)
		}
	}
}

func asked(verdicts []verdict, uid string) bool {
	for _, v := range verdicts {
		if v.UID == uid {
			return true
		}
	}
	return false
}

// compareRecords finds containers of which the kubelet lost the record, with its checkpoint or because a device was gone.
func (l *life) compareRecords(p *podRun, held []heldIDs) {
	p.given = map[string][]heldIDs{}
	for _, h := range held {
		if h.UID == p.uid {
			p.given[h.Container] = append(p.given[h.Container], h)
		}
	}
	p.bare = p.bare || l.lost && len(p.given) == 0
	for _, c := range p.containers {
		if c.state != running {
			continue
		}
		known := newUse()
		for _, h := range p.given[c.name] {
			part, _ := l.hardware.useOf(h.Resource, h.IDs)
			known.add(part)
		}
		for core := range c.stay.use.cores {
			if !known.cores[core] {
				l.forgotten(c.stay)
			}
		}
		for name := range c.stay.use.efas {
			if !known.efas[name] {
				l.forgotten(c.stay)
			}
		}
	}
}

func (l *life) forgotten(s *stay) {
	if s.excuse == "" {
		l.tally.Forgotten++
		l.say("the kubelet has forgotten %s", s)
		l.judge.excused(s, "the kubelet has forgotten "+s.String())
	}
}

// refusedAtRestart: the kubelet calls a running pod failed, gives its devices away and ends its containers a little later.
func (l *life) refusedAtRestart(p *podRun, v verdict) {
	l.tally.RefusedRunning++
	l.tally.RefusedFor["at a kubelet restart: "+shorten(v.Message)]++
	l.say("%s refused at the restart: %s", p.name, v.Message)
	for _, c := range p.containers {
		if c.state == running {
			l.judge.excused(c.stay, "the kubelet refused "+p.name+" while it ran")
			l.after(l.between(0, 100*time.Millisecond), func() {
				if c.state == running {
					l.stops(p, c)
				}
			})
		}
	}
	p.cut = true
	l.forget(p)
}

func (l *life) killKubelet() {
	if l.kubelet == nil || l.closing {
		return
	}
	if l.admitting > 0 {
		l.tally.KilledInAdmission++
	}
	l.tally.KubeletRestarts++
	l.say("the kubelet is killed, %d admissions under way", l.admitting)
	l.kubelet.kill()
	l.kubelet, l.ready = nil, false
	l.troubled()
	l.after(l.between(time.Millisecond, 400*time.Millisecond), func() {
		if l.chance(4) {
			l.loseCheckpoint()
		}
		l.startKubelet()
		if l.chance(8) { // killed again in mid-start
			l.after(l.between(time.Millisecond, 400*time.Millisecond), func() {
				if !l.quiet {
					l.killKubelet()
				}
			})
		}
	})
}

// kubeletDied: the device manager's maps have no lock where a container start allocates once more after a lost checkpoint,
// so that a real kubelet dies there, too, and its service manager starts it again. Anything else is a mistake of this test.
func (l *life) kubeletDied(c *client) {
	if c != l.kubelet {
		return
	}
	text, _ := os.ReadFile(l.kubeletLog.Name())
	text = text[min(c.logged, int64(len(text))):]
	if !bytes.Contains(text, []byte("(*ManagerImpl).Allocate(")) {
		l.violate(fmt.Sprintf("the kubelet ended by itself: %v, see %s", c.command.ProcessState, l.kubeletLog.Name()))
		l.end()
		return
	}
	l.tally.KubeletDied++
	l.tally.KubeletRestarts++
	l.say("the kubelet dies of a fault of its own")
	l.kubelet, l.ready = nil, false
	l.troubled()
	l.after(l.between(time.Millisecond, 400*time.Millisecond), l.startKubelet)
}

func (l *life) loseCheckpoint() {
	l.tally.CheckpointsLost++
	l.say("the checkpoint is lost")
	switch l.random.IntN(3) {
	case 0:
		_ = os.Remove(checkpoint)
	case 1:
		_ = os.WriteFile(checkpoint, []byte(`{"Data":{"PodDeviceEntries":[{"PodUID":`), 0o600)
	default:
		_ = os.WriteFile(checkpoint, []byte(`{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1}`), 0o600)
	}
}

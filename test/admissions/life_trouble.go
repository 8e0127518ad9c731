package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

const checkpoint = kubeletDir + "/device-plugins/kubelet_internal_checkpoint"

// trouble ended, or something else changed, just now.
func (l *life) troubled() { l.lastTrouble = time.Now() }

func (l *life) startAgent() {
	a, err := startAgent(l.Bin+"/neuron-agent", l.hardware.root, l.agentLog)
	if err != nil {
		l.violate("cannot start the agent: " + err.Error())
		return
	}
	l.agent = a
	l.say("the agent starts")
	l.troubled()
}

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
		ListMillis: int(l.between(0, 300*time.Millisecond).Milliseconds()), PostMillis: int(nodeStatusEvery.Milliseconds())}
	pods := l.sortedPods()
	for _, p := range pods {
		p.twice = p.twice || p.state == pending
		b.Pods = append(b.Pods, p.spec)
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
		l.takenOver(r)
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
		if l.lost = false; l.chance(4) {
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
	l.lost = true
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

// nextTrouble lets faults happen at a rate that follows the admissions.
func (l *life) nextTrouble() {
	nextFault, lastAdmitted, lastProgress := 20, 0, time.Now()
	var tick func()
	tick = func() {
		if l.agent != nil && !l.agent.alive() {
			l.violate(fmt.Sprintf("the agent ended by itself: %v", l.agent.command.ProcessState))
			l.end()
			return
		}
		if n := l.tally.Admitted; n > lastAdmitted {
			lastAdmitted, lastProgress = n, time.Now()
		}
		if time.Since(lastProgress) > 90*time.Second {
			l.violate("no pod was admitted for 90 s")
			l.end()
			return
		}
		if l.closing {
			return
		}
		if !l.quiet {
			if l.Admissions > 0 && l.tally.Admitted*l.Restarts > l.tally.KubeletRestarts*l.Admissions && l.ready && !l.killSoon {
				if l.killSoon = l.chance(60); !l.killSoon { // else in the next admission
					l.killKubelet()
				}
			}
			if l.tally.Admitted >= nextFault {
				nextFault = l.tally.Admitted + 5 + l.random.IntN(50)
				l.fault()
			}
		}
		l.after(l.between(15*time.Millisecond, 60*time.Millisecond), tick)
	}
	tick()
}

// lookAfterwards stops the world now and then, to see that everything comes back.
func (l *life) lookAfterwards(kind string) {
	if l.chance(25) {
		l.after(15*time.Millisecond, func() { l.settle(kind, func() {}) })
	}
}

// faults by name, each as often as it stands here.
var faults = []string{"kill", "kill", "terminate", "terminate", "stop", "stop", "stop", "device", "device", "device", "device",
	"device", "efa", "efa", "efa", "none", "none", "none", "none", "none"}

func (l *life) fault() {
	kind := l.Fault
	if kind == "" {
		kind = faults[l.random.IntN(len(faults))]
	}
	switch kind {
	case "kill":
		l.endAgent(syscall.SIGKILL)
	case "terminate":
		l.endAgent(syscall.SIGTERM)
	case "stop":
		l.stopAgent()
	case "device":
		l.breakDevice()
	case "efa":
		l.breakEFA()
	default:
		l.settle("ends of pods", func() {})
	}
}

func (l *life) endAgent(signal syscall.Signal) {
	if l.agent == nil || l.stopped || l.Steady {
		return
	}
	a := l.agent
	l.agent = nil
	l.say("the agent gets %v", signal)
	a.signal(signal)
	kind := "the agent was killed"
	if signal == syscall.SIGTERM {
		kind = "the agent was terminated"
		l.tally.AgentTerms++
	} else {
		l.tally.AgentKills++
	}
	l.troubled()
	go func() {
		state, err := a.wait(10 * time.Second)
		l.post(func() {
			if err != nil || signal == syscall.SIGTERM && state.ExitCode() != 0 {
				l.violate(fmt.Sprintf("%s: %v %v", kind, state, err))
			}
			l.after(l.between(time.Millisecond, 500*time.Millisecond), func() {
				l.startAgent()
				l.lookAfterwards(kind)
			})
		})
	}()
}

func (l *life) stopAgent() {
	if l.agent == nil || l.stopped {
		return
	}
	l.tally.AgentStops++
	l.say("the agent is stopped")
	l.agent.signal(syscall.SIGSTOP)
	l.stopped = true
	l.after(l.between(20*time.Millisecond, 2*time.Second), func() {
		l.agent.signal(syscall.SIGCONT)
		l.stopped = false
		l.say("the agent goes on")
		l.troubled()
		l.lookAfterwards("the agent was stopped")
	})
}

func (l *life) breakDevice() {
	if l.hardware.devices < 2 || len(l.hardware.broken) > 2 {
		return
	}
	device := l.random.IntN(l.hardware.devices)
	if l.hardware.broken[device] {
		return
	}
	change := [][]string{{"mem_ecc_uncorrected=3"}, {"sram_ecc_uncorrected=1"}, {"vanish"}}[l.random.IntN(3)]
	l.tally.DeviceFaults++
	l.breakPart("neuron"+strconv.Itoa(device), change, func(is bool) {
		if is {
			l.hardware.broken[device] = true
		} else {
			delete(l.hardware.broken, device)
		}
	})
}

func (l *life) breakEFA() {
	if l.hardware.efas == 0 || len(l.hardware.brokenEFA) > 2 {
		return
	}
	name := l.hardware.efaNames()[l.random.IntN(l.hardware.efas)]
	if l.hardware.brokenEFA[name] {
		return
	}
	l.tally.EFAFaults++
	l.breakPart(name, [][]string{{"unbind"}, {"drop-node"}}[l.random.IntN(2)], func(is bool) {
		if is {
			l.hardware.brokenEFA[name] = true
		} else {
			delete(l.hardware.brokenEFA, name)
		}
	})
}

// breakPart breaks something for a while.
func (l *life) breakPart(target string, change []string, broken func(bool)) {
	l.set(target, change...)
	broken(true)
	l.lookAfterwards("a fault of the hardware")
	l.repairs[target] = true
	l.after(l.between(200*time.Millisecond, 8*time.Second), func() { l.heal(target, broken) })
}

func (l *life) heal(target string, broken func(bool)) {
	if !l.repairs[target] {
		return
	}
	if l.quiet && !l.closing {
		l.after(50*time.Millisecond, func() { l.heal(target, broken) })
		return
	}
	delete(l.repairs, target)
	l.set(target, "heal")
	broken(false)
	l.lookAfterwards("hardware was healed")
}

func (l *life) set(target string, change ...string) {
	l.say("%s %v", target, change)
	if err := l.hardware.set(target, change...); err != nil {
		l.violate(err.Error())
	}
	l.troubled()
}

func (l *life) healAll() {
	l.repairs = map[string]bool{}
	clear(l.hardware.broken)
	clear(l.hardware.brokenEFA)
	l.set("host", "heal")
}

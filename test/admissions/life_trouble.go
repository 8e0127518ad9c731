package main

import (
	"fmt"
	"strconv"
	"syscall"
	"time"
)

func (l *life) startAgent() {
	a, err := startAgent(l.Bin+"/neuron-agent", l.hardware.root, fmt.Sprintf("%s/%s-agent.log", l.Logs, l.hardware.name))
	if err != nil {
		l.violate("cannot start the agent: " + err.Error())
		return
	}
	l.agent = a
	l.say("the agent starts")
	l.troubled()
}

// nextTrouble lets faults happen at a rate that follows the admissions.
func (l *life) nextTrouble() {
	nextFault, lastAdmitted, lastProgress := 20, 0, time.Now()
	var tick func()
	tick = func() {
		if l.agent != nil {
			if err := l.agent.Running(); err != nil {
				l.violate("the agent ended by itself: " + err.Error())
				l.end()
				return
			}
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
	_ = a.Signal(signal)
	kind := "the agent was killed"
	if signal == syscall.SIGTERM {
		kind = "the agent was terminated"
		l.tally.AgentTerms++
	} else {
		l.tally.AgentKills++
	}
	l.troubled()
	go func() {
		err := a.Await(10 * time.Second)
		if err == nil && signal == syscall.SIGTERM {
			err = a.Exit()
		}
		l.post(func() {
			if err != nil {
				l.violate(fmt.Sprintf("%s: %v", kind, err))
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
	_ = l.agent.Pause()
	l.stopped = true
	l.after(l.between(20*time.Millisecond, 2*time.Second), func() {
		_ = l.agent.Resume()
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

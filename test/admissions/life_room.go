package main

import (
	"regexp"
	"strings"
	"time"
)

// held is everything that some pod has, or a container uses.
func (l *life) held() use {
	all := newUse()
	for _, p := range l.pods {
		all.add(l.given(p))
	}
	for _, s := range l.judge.running {
		all.add(s.use)
	}
	return all
}

func (l *life) given(p *podRun) use {
	all := newUse()
	for _, entries := range p.given {
		for _, h := range entries {
			part, err := l.hardware.useOf(h.Resource, h.IDs)
			if err != nil {
				l.violate(err.Error(), p.name)
			}
			all.add(part)
		}
	}
	return all
}

// past is the last owner of a core or an interface.
type past struct {
	at       time.Time
	resource string // the name it was had through; empty: both
}

// free notes when and through which name silicon and interfaces were last somebody's.
func (l *life) free(p *podRun) {
	now := time.Now()
	names := map[string]string{}
	for _, entries := range p.given {
		for _, h := range entries {
			part, _ := l.hardware.useOf(h.Resource, h.IDs)
			for _, key := range part.keys() {
				if before, twice := names[key]; twice && before != h.Resource {
					names[key] = ""
				} else {
					names[key] = h.Resource
				}
			}
		}
	}
	for key, resource := range names {
		l.lastFreed[key] = past{now, resource}
	}
}

// room is what is whole and nobody's. Through the name that it was had through last a unit can be given at once; through
// the other one only when it has been nobody's for `lag`.
type room struct {
	devices, deviceCores int // whole devices, and how many of their cores could be given as cores
	both                 int // whole devices that could be given through both names
	cores, efas          int
}

func (l *life) room(lag time.Duration) room {
	var found room
	h, taken, now := l.hardware, l.held(), time.Now()
	free := func(key, resource string) bool {
		last := l.lastFreed[key]
		return now.Sub(last.at) >= lag || last.resource == resource
	}
	for device := range h.devices {
		asDevice, asCores := 0, 0
		for i := range h.coresPerDevice {
			core := device*h.coresPerDevice + i
			key := coreKey(core)
			if h.broken[device] || taken.cores[core] {
				continue
			}
			if free(key, neuron) {
				asDevice++
			}
			if free(key, neuronCore) {
				asCores++
			}
		}
		found.cores += asCores
		if asDevice == h.coresPerDevice {
			found.devices++
			found.deviceCores += asCores
			if asCores == h.coresPerDevice {
				found.both++
			}
		}
	}
	for name := range h.verbs {
		if !h.brokenEFA[name] && !taken.efas[name] {
			found.efas++
		}
	}
	return found
}

// fits tells whether a pod could be given all it asks for. Whole devices and cores are counted: never too good an answer.
func (l *life) fits(p *podRun, lag time.Duration) bool {
	found := l.room(lag)
	devices, both, cores, efas := 0, 0, 0, 0
	for _, c := range p.containers {
		devices += c.wants[neuron]
		if c.wants[neuron] == 0 {
			cores += c.wants[neuronCore] // else both are the same silicon
		} else if c.wants[neuronCore] > 0 {
			both += c.wants[neuron]
		}
		efas += c.wants[efa]
	}
	if devices > found.devices || both > found.both || efas > found.efas {
		return false
	}
	return cores+devices*l.hardware.coresPerDevice <= found.cores || cores == 0 || cores <= found.cores-found.deviceCores
}

// refused counts a refusal by its reason, and asks whether there was room.
func (l *life) refused(p *podRun, v verdict) {
	reason := shorten(v.Reason + ": " + v.Message)
	l.tally.RefusedFor[reason]++
	l.say("%s refused: %s: %s", p.name, v.Reason, v.Message)
	if !l.fits(p, 0) {
		return
	}
	explanation := ""
	switch {
	case l.agent == nil || l.stopped:
		explanation = "the agent is away"
	case time.Since(l.lastTrouble) < 2*time.Second:
		explanation = "less than 2 s after a fault or restart"
	case l.hardware.policy != "none":
		explanation = "the Topology Manager offered one NUMA node only"
	case strings.HasPrefix(v.Reason, "OutOf"):
		explanation = "the node status was older than that"
	case !l.fits(p, 2*time.Second):
		explanation = "freed less than 2 s before"
	default:
		explanation = "nothing"
		l.say("UNEXPLAINED %s: held %v, posted %v", p.name, l.held(), l.posted)
	}
	l.tally.WouldHaveFit[explanation]++
}

var (
	numbers = regexp.MustCompile(`[0-9]+`)
	quoted  = regexp.MustCompile(`"[^"]*"|by .* through`)
)

// shorten makes one kind out of all messages that differ in names and numbers only.
func shorten(message string) string {
	message = strings.ReplaceAll(message, "Allocate failed due to ", "")
	message = strings.ReplaceAll(message, ", which is unexpected", "")
	message = strings.ReplaceAll(message, "rpc error: code = ", "")
	message = numbers.ReplaceAllString(quoted.ReplaceAllString(message, "X through"), "N")
	if len(message) > 150 {
		message = message[:150]
	}
	return message
}

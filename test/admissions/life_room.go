package main

import (
	"fmt"
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

// free notes when silicon and interfaces were last somebody's.
func (l *life) free(p *podRun) {
	given, now := l.given(p), time.Now()
	for core := range given.cores {
		l.lastFreed[fmt.Sprint(core)] = now
	}
	for name := range given.efas {
		l.lastFreed[name] = now
	}
}

// fits tells whether a pod could be given all it asks for out of what is whole and was nobody's for so long. Whole devices
// and cores are counted, so that the answer is exact for devices, and never too good for cores.
func (l *life) fits(p *podRun, nobodysFor time.Duration) bool {
	h, taken, now := l.hardware, l.held(), time.Now()
	free := func(key string) bool { return now.Sub(l.lastFreed[key]) >= nobodysFor }
	devices, cores, efas := 0, 0, 0
	for device := range h.devices {
		count := 0
		for i := range h.coresPerDevice {
			core := device*h.coresPerDevice + i
			if !h.broken[device] && !taken.cores[core] && free(fmt.Sprint(core)) {
				count++
			}
		}
		cores += count
		if count == h.coresPerDevice {
			devices++
		}
	}
	for name := range h.verbs {
		if !h.brokenEFA[name] && !taken.efas[name] && free(name) {
			efas++
		}
	}
	wantDevices, wantCores, wantEFAs := 0, 0, 0
	for _, c := range p.containers {
		wantDevices += c.wants[neuron]
		if c.wants[neuron] == 0 {
			wantCores += c.wants[neuronCore] // else both are the same silicon
		}
		wantEFAs += c.wants[efa]
	}
	return wantDevices <= devices && wantDevices*h.coresPerDevice+wantCores <= cores && wantEFAs <= efas
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
	case strings.HasPrefix(v.Reason, "TopologyAffinityError") || l.hardware.policy == "restricted" || l.hardware.policy == "single-numa-node":
		explanation = "the Topology Manager's policy"
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
	quoted  = regexp.MustCompile(`"[^"]*"|by [a-z0-9-]+/\S+`)
)

// shorten makes one kind out of all messages that differ in names and numbers only.
func shorten(message string) string {
	message = strings.ReplaceAll(message, "Allocate failed due to ", "")
	message = strings.ReplaceAll(message, ", which is unexpected", "")
	message = strings.ReplaceAll(message, "rpc error: code = ", "")
	message = numbers.ReplaceAllString(quoted.ReplaceAllString(message, "X"), "N")
	if len(message) > 150 {
		message = message[:150]
	}
	return message
}

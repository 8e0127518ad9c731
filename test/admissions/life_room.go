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
	explanation := l.explain(p, v)
	l.say("%s would have fitted: %s", p.name, explanation)
	l.tally.WouldHaveFit[explanation]++
}

var holder = regexp.MustCompile(`is held by (?:pod )?([^ /]+)/`)

// listLag is the longest time for which the agent keeps a list back while admissions follow each other without a pause.
const listLag = 4 * time.Second

// explain tells why a pod was refused for which there was room.
func (l *life) explain(p *podRun, v verdict) string {
	sinceTrouble := time.Since(l.lastTrouble)
	found := holder.FindStringSubmatch(v.Message)
	switch {
	case l.agent == nil || l.stopped:
		return "the agent is away"
	case strings.Contains(v.Message, "no healthy devices") && sinceTrouble < 2*time.Second:
		return "nothing was registered yet after a restart"
	case strings.HasPrefix(v.Reason, "OutOf"):
		return "the node status was older than that"
	case v.Reason == "TopologyAffinityError":
		return "the Topology Manager's policy"
	case found != nil:
		l.offeredAnother(p)
		for _, other := range l.pods {
			if other.uid != found[1] && other.name != found[1] && "default" != found[1] {
				continue
			}
			if time.Since(other.admittedAt) < listLag {
				return "given to another through the other name moments ago, the list still on its way"
			}
			return "held by another through the other name for longer"
		}
		return "the holder has just ended"
	case !l.fits(p, 2*time.Second):
		return "freed less than 2 s before"
	case sinceTrouble < 2*time.Second:
		return "less than 2 s after a fault or restart"
	case strings.Contains(v.Message, "just given"):
		return "both names, and none of the offered devices was to be had through both"
	}
	l.say("UNEXPLAINED %s: held %v, posted %v", p.name, l.held(), l.posted)
	return "nothing"
}

// offeredAnother looks whether the kubelet had offered another unit that was nobody's, to a pod that wanted just one.
func (l *life) offeredAnother(p *podRun) {
	wanted := ""
	for _, resource := range []string{neuron, neuronCore} {
		if n := p.total(resource); n > 1 || n == 1 && wanted != "" {
			return
		} else if n == 1 {
			wanted = resource
		}
	}
	if wanted == "" || l.hardware.policy != "none" || l.kubelet == nil {
		return
	}
	taken := l.held()
	l.kubelet.ask(question{Op: "look"}, func(r reply, answered bool) {
		if !answered {
			return
		}
		for _, id := range r.Healthy[wanted] {
			unit, err := l.hardware.useOf(wanted, []string{id})
			if err == nil && unit.shared(taken) == "" && l.hardware.well(wanted, id) {
				l.tally.OfferedAnother++
				l.say("UNEXPLAINED %s: %s %s was offered and nobody's", p.name, wanted, id)
				return
			}
		}
	})
}

var (
	numbers = regexp.MustCompile(`\b[0-9a-fx-]*[0-9][0-9a-fx-]*|N+`)
	address = regexp.MustCompile(`endpoint &\S+ \S+ (\S+) [^>]*>\}?|unix \S+|(connection error|error reading from server|connection closed).*`)
	quoted  = regexp.MustCompile(`"[^"]*"|by .* through`)
)

// shorten makes one kind out of all messages that differ in names and numbers only.
func shorten(message string) string {
	message = strings.ReplaceAll(message, "Allocate failed due to ", "")
	message = strings.ReplaceAll(message, ", which is unexpected", "")
	message = strings.ReplaceAll(message, "rpc error: code = ", "")
	message = address.ReplaceAllString(message, "the connection to the agent")
	message = numbers.ReplaceAllString(quoted.ReplaceAllString(message, "X through"), "N")
	message = strings.ReplaceAll(message, "X through is unhealthy", "X is unhealthy")
	if len(message) > 120 {
		message = message[:120]
	}
	return message
}

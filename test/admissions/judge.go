package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"neuron-agent.test/suite/cores"
)

// ask is how much of each resource a container wants.
type ask map[string]int

// stay is one run of one container.
type stay struct {
	pod, uid, container string
	begin               time.Time
	use                 use
	ids                 map[string][]string // by resource, as the kubelet has it on record
	bare                bool                // the pod was admitted without devices: see life_pods.go
	twice               bool                // a kubelet died while it admitted the pod
	excuse              string              // the kubelet's own doing took the ground from under it; empty: judged
}

func (s *stay) String() string { return s.pod + "." + s.container }

// judge looks at every container as it starts, with code of its own: what it was given and who else has that.
type judge struct {
	hardware *hardware
	running  []*stay
	tally    *tally
	violate  func(what string, pods ...string)
	say      func(format string, values ...any)
}

// begin decodes what a container was started with and compares it with what it asked for, with what the kubelet has on
// record, and with all containers that run now.
func (j *judge) begin(s *stay, wanted ask, held []heldIDs, env []variable, nodes []deviceNode) {
	s.begin, s.ids, s.use = time.Now(), map[string][]string{}, newUse()
	for _, h := range held {
		s.ids[h.Resource] = h.IDs
	}
	for _, resource := range resources {
		got := len(s.ids[resource])
		if got == 0 && wanted[resource] > 0 && s.bare {
			j.tally.WithoutDevices++
			continue
		}
		if got != wanted[resource] {
			j.violate(fmt.Sprintf("%s asked for %d %s and has %d (%v)", s, wanted[resource], resource, got, s.ids[resource]), s.pod)
		}
	}
	if j.split(s) {
		j.tally.Split++
		j.excused(s, s.String()+" has two silicons")
	}
	seen, err := j.seen(env, nodes)
	if err != nil && s.excuse == "" {
		j.violate(fmt.Sprintf("%s: %v", s, err), s.pod)
	}
	recorded := newUse()
	for resource, ids := range s.ids {
		part, err := j.hardware.useOf(resource, ids)
		if err != nil {
			j.violate(fmt.Sprintf("%s: %v", s, err), s.pod)
		}
		recorded.add(part)
	}
	if err == nil && s.excuse == "" && (!maps.Equal(seen.cores, recorded.cores) || !maps.Equal(seen.efas, recorded.efas)) {
		j.violate(fmt.Sprintf("%s sees cores %v, interfaces %v; its ids %v are cores %v, interfaces %v", s, sorted(seen.cores),
			sorted(seen.efas), s.ids, sorted(recorded.cores), sorted(recorded.efas)), s.pod)
	}
	s.use.add(seen)
	s.use.add(recorded)
	j.compare(s)
	j.running = append(j.running, s)
	j.tally.Containers++
}

// split finds a container with other silicon through each name, after a kubelet died while it admitted the pod: the new one
// finds half of the container's devices in the checkpoint and asks for the rest alone, without saying for whom.
func (j *judge) split(s *stay) bool {
	if !s.twice || len(s.ids[neuron]) == 0 || len(s.ids[neuronCore]) == 0 {
		return false
	}
	devices, _ := j.hardware.useOf(neuron, s.ids[neuron])
	cores, _ := j.hardware.useOf(neuronCore, s.ids[neuronCore])
	return !maps.Equal(devices.cores, cores.cores)
}

// compare is the rule: no core and no interface in two containers that run at the same time.
func (j *judge) compare(s *stay) {
	for _, other := range j.running {
		what := s.use.shared(other.use)
		if what == "" {
			continue
		}
		if twice := cores.SameID(s.ids, other.ids); twice != "" && other.excuse == "" && s.excuse == "" {
			j.tally.KubeletTwice++
			j.say("THE KUBELET GAVE %s TWICE: to %s at %s and now to %s", twice, other, other.begin.Format(clock), s)
			other.excuse, s.excuse = "the kubelet gave "+twice+" twice", "the kubelet gave "+twice+" twice"
			continue
		}
		if excuse := other.excuse + s.excuse; excuse != "" {
			j.tally.Consequences++
			continue
		}
		j.violate(fmt.Sprintf("%s in two running containers: %s (%v, since %s) and %s (%v)", what, other, other.ids,
			other.begin.Format(clock), s, s.ids), s.pod, other.pod)
	}
}

func (j *judge) end(s *stay) {
	j.running = slices.DeleteFunc(j.running, func(r *stay) bool { return r == s })
}

// excused takes a container out of the rule, for something that the kubelet did and that is counted by the caller.
func (j *judge) excused(s *stay, why string) {
	if s.excuse == "" {
		s.excuse = why
	}
}

// seen is what a container can use by its device nodes and its environment alone.
func (j *judge) seen(env []variable, nodes []deviceNode) (use, error) {
	h, u := j.hardware, newUse()
	var devices []int
	for _, node := range nodes {
		if node.Host != h.root+node.Container {
			return u, fmt.Errorf("device node %s comes from %s", node.Container, node.Host)
		}
		if name, isVerbs := strings.CutPrefix(node.Container, "/dev/infiniband/"); isVerbs {
			found := false
			for rdma, verbs := range h.verbs {
				if verbs == name {
					u.efas[rdma], found = true, true
				}
			}
			if !found {
				return u, fmt.Errorf("unknown verbs node %s", name)
			}
			continue
		}
		index, err := strconv.Atoi(strings.TrimPrefix(node.Container, "/dev/neuron"))
		if err != nil || index < 0 || index >= h.devices {
			return u, fmt.Errorf("unknown device node %s", node.Container)
		}
		devices = append(devices, index)
	}
	slices.Sort(devices)
	text, set := "", false
	for _, v := range env {
		if v.Name == cores.Variable {
			text, set = v.Value, true
		}
	}
	if set != (len(devices) > 0) {
		return u, fmt.Errorf("visible cores set: %v, with %d device nodes", set, len(devices))
	}
	return u, j.visible(u, text, devices)
}

// visible adds the cores of NEURON_RT_VISIBLE_CORES. Every device must have one.
func (j *judge) visible(u use, text string, devices []int) error {
	list, err := cores.OfNode(text, devices, j.hardware.coresPerDevice)
	for _, core := range list {
		u.cores[core] = true
	}
	if err == nil && len(cores.Devices(sorted(u.cores), j.hardware.coresPerDevice)) != len(devices) {
		err = fmt.Errorf("%s=%q names no core of some of the devices %v", cores.Variable, text, devices)
	}
	return err
}

func sorted[K int | string](set map[K]bool) []K { return slices.Sorted(maps.Keys(set)) }

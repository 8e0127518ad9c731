package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"neuron-agent.test/suite"
)

// Resource names.
const (
	neuronCore = suite.NeuronCore
	neuron     = suite.Neuron
	efa        = suite.EFA
)

var resources = []string{neuronCore, neuron, efa}

// machine is one kind of node. Cores are logical ones, as the agent numbers them: with a given LNC each is fixed silicon.
type machine struct {
	name           string
	instanceType   string
	simulation     []string // more arguments of neuron-sim node
	devices        int
	coresPerDevice int
	efas           int
	policy, scope  string // of the Topology Manager
}

var machines = []machine{
	{"trn1.32xlarge", "trn1.32xlarge", nil, 16, 2, 8, "none", "container"},
	{"trn2.48xlarge-lnc1", "trn2.48xlarge", []string{"--lnc", "1"}, 16, 8, 16, "best-effort", "pod"},
	{"trn2.48xlarge-lnc2", "trn2.48xlarge", []string{"--lnc", "2"}, 16, 4, 16, "none", "container"},
	{"inf2.48xlarge", "inf2.48xlarge", nil, 12, 2, 0, "none", "container"},
	{"trn1.2xlarge", "trn1.2xlarge", nil, 1, 2, 0, "restricted", "container"},
	{"p5.48xlarge", "p5.48xlarge", nil, 0, 0, 32, "best-effort", "container"},
	{"trn1.32xlarge-restricted", "trn1.32xlarge", nil, 16, 2, 8, "restricted", "container"},
	{"trn1.32xlarge-single", "trn1.32xlarge", nil, 16, 2, 8, "single-numa-node", "pod"},
}

// hardware is one simulated host: what there is, and what is broken at the moment.
type hardware struct {
	machine
	root      string
	sim       string
	numa      []int
	verbs     map[string]string // RDMA name to verbs node: rdmap16s25 to uverbs0
	broken    map[int]bool      // devices
	brokenEFA map[string]bool
}

func newHardware(m machine, sim, root string) (*hardware, error) {
	h := &hardware{machine: m, root: root, sim: sim, broken: map[int]bool{}, brokenEFA: map[string]bool{}}
	if err := h.call(append([]string{"node", root, "--instance-type", m.instanceType}, m.simulation...)...); err != nil {
		return nil, err
	}
	nodes, _ := filepath.Glob(filepath.Join(root, "sys/devices/system/node/node[0-9]*"))
	for _, node := range nodes {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(node), "node"))
		if err != nil {
			return nil, err
		}
		h.numa = append(h.numa, id)
	}
	slices.Sort(h.numa)
	h.verbs = suite.VerbsNodes(root)
	if len(h.verbs) != m.efas {
		return nil, fmt.Errorf("%s has %d interfaces instead of %d", m.name, len(h.verbs), m.efas)
	}
	return h, nil
}

func (h *hardware) call(arguments ...string) error {
	output, err := exec.Command(h.sim, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", h.sim, strings.Join(arguments, " "), err, output)
	}
	return nil
}

func (h *hardware) set(target string, change ...string) error {
	return h.call(append([]string{"set", h.root, target}, change...)...)
}

// efaNames lists the interfaces in a fixed order.
func (h *hardware) efaNames() []string {
	var names []string
	for name := range h.verbs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// total is how many units of a resource there are.
func (h *hardware) total(resource string) int {
	switch resource {
	case neuron:
		return h.devices
	case neuronCore:
		return h.devices * h.coresPerDevice
	default:
		return h.efas
	}
}

// use is silicon and interfaces: what two containers must not share.
type use struct {
	cores map[int]bool
	efas  map[string]bool
}

func newUse() use { return use{map[int]bool{}, map[string]bool{}} }

func (u use) add(other use) {
	for core := range other.cores {
		u.cores[core] = true
	}
	for name := range other.efas {
		u.efas[name] = true
	}
}

func coreKey(core int) string { return fmt.Sprintf("core %d", core) }

// keys names everything in it.
func (u use) keys() []string {
	var all []string
	for core := range u.cores {
		all = append(all, coreKey(core))
	}
	for name := range u.efas {
		all = append(all, name)
	}
	return all
}

// shared names one thing that is in both; empty when there is none.
func (u use) shared(other use) string {
	for core := range u.cores {
		if other.cores[core] {
			return coreKey(core)
		}
	}
	for name := range u.efas {
		if other.efas[name] {
			return name
		}
	}
	return ""
}

// useOf is the silicon behind ids of a resource.
func (h *hardware) useOf(resource string, ids []string) (use, error) {
	u := newUse()
	for _, id := range ids {
		if resource == efa {
			if _, known := h.verbs[id]; !known {
				return u, fmt.Errorf("there is no interface %q", id)
			}
			u.efas[id] = true
			continue
		}
		number, err := strconv.Atoi(id)
		if err != nil || number < 0 || number >= h.total(resource) {
			return u, fmt.Errorf("there is no %s %q", resource, id)
		}
		if resource == neuronCore {
			u.cores[number] = true
			continue
		}
		for i := range h.coresPerDevice {
			u.cores[number*h.coresPerDevice+i] = true
		}
	}
	return u, nil
}

// well tells whether a unit is on nothing broken.
func (h *hardware) well(resource, id string) bool {
	if resource == efa {
		return !h.brokenEFA[id]
	}
	number, _ := strconv.Atoi(id)
	if resource == neuronCore {
		number /= h.coresPerDevice
	}
	return !h.broken[number]
}

// allIDs lists the ids of a resource.
func (h *hardware) allIDs(resource string) []string {
	if resource == efa {
		return h.efaNames()
	}
	var ids []string
	for i := range h.total(resource) {
		ids = append(ids, strconv.Itoa(i))
	}
	return ids
}

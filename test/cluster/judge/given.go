package judge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"neuron-agent.test/suite/cores"
)

// use is what a container can reach: "core 17", "efa rdmap16s25".
type use map[string]bool

func (m Machine) useOf(resource string, ids []string) (use, error) {
	u := use{}
	for _, id := range ids {
		if resource == EFA {
			if m.Verbs[id] == "" {
				return nil, fmt.Errorf("no interface %q", id)
			}
			u["efa "+id] = true
			continue
		}
		index, err := strconv.Atoi(id)
		first, count := index, 1
		if resource == Neuron {
			first, count = index*m.CoresPerDevice, m.CoresPerDevice
		}
		if err != nil || first < 0 || first+count > m.Devices*m.CoresPerDevice {
			return nil, fmt.Errorf("no %s %q", resource, id)
		}
		for core := first; core < first+count; core++ {
			u["core "+strconv.Itoa(core)] = true
		}
	}
	return u, nil
}

// held is the use behind all that the kubelet has on record for a container.
func (m Machine) held(ids map[string][]string) (use, error) {
	all := use{}
	for resource, some := range ids {
		u, err := m.useOf(resource, some)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, u)
	}
	return all, nil
}

// seen is what a container found: device nodes and the cores it was told to use, counted from 0 over its devices.
func (m Machine) seen(c *Container) (use, error) {
	u := use{}
	var devices []int
	for _, path := range c.Open {
		if verbs, is := strings.CutPrefix(path, "/dev/infiniband/"); is {
			name := m.interfaceOf(verbs)
			if name == "" {
				return u, fmt.Errorf("unknown verbs node %s", path)
			}
			u["efa "+name] = true
			continue
		}
		device, err := strconv.Atoi(strings.TrimPrefix(path, "/dev/neuron"))
		if err != nil || device < 0 || device >= m.Devices {
			return u, fmt.Errorf("unknown device node %s", path)
		}
		devices = append(devices, device)
	}
	slices.Sort(devices)
	if c.Set != (len(devices) > 0) {
		return u, fmt.Errorf("NEURON_RT_VISIBLE_CORES is set: %v, with devices %v", c.Set, devices)
	}
	list, err := cores.OfNode(c.Visible, devices, m.CoresPerDevice)
	for _, core := range list {
		u["core "+strconv.Itoa(core)] = true
	}
	return u, err
}

func (m Machine) interfaceOf(verbs string) string {
	for name, node := range m.Verbs {
		if node == verbs {
			return name
		}
	}
	return ""
}

// wrong says what a container has that it must not have or lacks; nothing if it has exactly what it asked for.
func (m Machine) wrong(c *Container) string {
	u, err := m.seen(c)
	if err != nil {
		return err.Error()
	}
	if c.Held == nil {
		return m.wrongCounts(c, u)
	}
	for _, resource := range []string{NeuronCore, Neuron, EFA} {
		if len(c.Held[resource]) != c.Ask[resource] {
			return fmt.Sprintf("asked for %d %s and holds %v", c.Ask[resource], resource, c.Held[resource])
		}
	}
	held, err := m.held(c.Held)
	if err != nil {
		return err.Error()
	}
	if !maps.Equal(u, held) {
		return fmt.Sprintf("sees %v; its ids %v are %v", u.names(), c.Held, held.names())
	}
	return ""
}

// wrongCounts is for a container that went before anybody looked at the kubelet's record.
func (m Machine) wrongCounts(c *Container, u use) string {
	cores, efas := 0, 0
	for name := range u {
		if strings.HasPrefix(name, "core ") {
			cores++
		} else {
			efas++
		}
	}
	ofDevices := c.Ask[Neuron] * m.CoresPerDevice
	least, most := max(ofDevices, c.Ask[NeuronCore]), ofDevices+c.Ask[NeuronCore]
	if cores < least || cores > most || efas != c.Ask[EFA] {
		return fmt.Sprintf("asked for %v and sees %v", c.Ask, u.names())
	}
	return ""
}

func (u use) names() []string { return slices.Sorted(maps.Keys(u)) }

package extender

import (
	"fmt"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
)

// Node is what pods leave of a node. Cores of a device are the quotient of the node's capacities.
type Node struct {
	ring  bool // any run of devices, else only 1, 4, 8 and 16 aligned ones
	taken [][]bool
}

// NodeOf is a node without pods.
func NodeOf(node *core.Node) (*Node, error) {
	devices, cores := node.Status.Capacity[Devices], node.Status.Capacity[Cores]
	if devices.Value() < 1 || cores.Value() < devices.Value() {
		return nil, fmt.Errorf("%d devices and %d cores", devices.Value(), cores.Value())
	}
	one := &Node{ring: strings.HasPrefix(node.Labels[core.LabelInstanceTypeStable], "inf")}
	for range devices.Value() {
		one.taken = append(one.taken, make([]bool, cores.Value()/devices.Value()))
	}
	return one, nil
}

// request is what one container asks for, in its unit.
type request struct {
	count int
	cores bool
}

func requestsOf(pod *core.Pod) []request {
	var all []request
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		devices, cores := container.Resources.Limits[Devices], container.Resources.Limits[Cores]
		switch {
		case devices.Value() > 0:
			all = append(all, request{int(devices.Value()), false})
		case cores.Value() > 0:
			all = append(all, request{int(cores.Value()), true})
		}
	}
	return all
}

// Take marks what is written on a pod that has not ended.
func (n *Node) Take(pod *core.Pod) error {
	ids, err := Parse(pod)
	if err != nil || pod.Status.Phase == core.PodSucceeded || pod.Status.Phase == core.PodFailed {
		return err
	}
	each := len(n.taken[0])
	for _, one := range requestsOf(pod) {
		for range min(one.count, len(ids)) {
			device, id := ids[0], ids[0]
			if one.cores {
				device = id / each
			}
			ids = ids[1:]
			if device >= len(n.taken) {
				return fmt.Errorf("pod %s/%s: no device %d", pod.Namespace, pod.Name, device)
			}
			for core := range n.taken[device] {
				n.taken[device][core] = n.taken[device][core] || !one.cores || core == id%each
			}
		}
	}
	return nil
}

// Place chooses for each container. As HAMi does, one device, or the cores of one, from the end of the node; several devices are an
// aligned group or, on a ring, a run. It takes the last that is free, which the agent's own choice is not.
func (n *Node) Place(pod *core.Pod) (Placement, error) {
	var placed Placement
	each := len(n.taken[0])
	for _, one := range requestsOf(pod) {
		devices := one.count
		if one.cores {
			if devices = 1; one.count > each {
				if devices = one.count / each; one.count%each != 0 {
					return Placement{}, fmt.Errorf("%s must be below %d or a multiple of it, not %d", Cores, each, one.count)
				}
			}
		}
		first, err := n.run(devices, one.cores, min(one.count, each))
		if err != nil {
			return Placement{}, err
		}
		for device := first; device < first+devices; device++ {
			if !one.cores {
				placed.IDs = append(placed.IDs, device)
			}
			missing := min(one.count, each)
			for core := range each {
				if n.taken[device][core] || (one.cores && missing == 0) {
					continue
				}
				n.taken[device][core] = true
				if missing--; one.cores {
					placed.IDs, placed.Cores = append(placed.IDs, device*each+core), true
				}
			}
		}
	}
	return placed, nil
}

// run finds the first of so many devices, the last of those that fit. Of one device so many cores have to be free, else all.
func (n *Node) run(devices int, cores bool, free int) (int, error) {
	step := 1
	if !n.ring && devices > 1 {
		if step = devices; !slices.Contains([]int{4, 8, 16}, devices) {
			return 0, fmt.Errorf("this type does not support requests for device: %d", devices)
		}
	}
	if !cores || devices > 1 {
		free = len(n.taken[0])
	}
	fits := func(taken []bool) bool {
		count := 0
		for _, one := range taken {
			if !one {
				count++
			}
		}
		return count >= free
	}
	for first := (len(n.taken) - devices) / step * step; first >= 0; first -= step {
		if !slices.ContainsFunc(n.taken[first:first+devices], func(taken []bool) bool { return !fits(taken) }) {
			return first, nil
		}
	}
	return 0, fmt.Errorf("no %d devices are free", devices)
}

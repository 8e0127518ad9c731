// Package cores reads and writes NEURON_RT_VISIBLE_CORES, which counts logical cores from 0 over the devices in a container.
package cores

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Variable is the environment variable.
const Variable = "NEURON_RT_VISIBLE_CORES"

// Devices lists the devices that cores of a node are on, each once, in the order of the cores.
func Devices(cores []int, perDevice int) []int {
	var devices []int
	for _, core := range cores {
		if device := core / perDevice; !slices.Contains(devices, device) {
			devices = append(devices, device)
		}
	}
	return devices
}

// Visible numbers cores of a node over the devices that they are on and writes them as ranges: "0-3,6".
func Visible(cores []int, perDevice int) string {
	devices := Devices(cores, perDevice)
	local := func(k int) int {
		return slices.Index(devices, cores[k]/perDevice)*perDevice + cores[k]%perDevice
	}
	var ranges []string
	for i := 0; i < len(cores); {
		last := i
		for last+1 < len(cores) && local(last+1) == local(last)+1 {
			last++
		}
		text := strconv.Itoa(local(i))
		if last > i {
			text += "-" + strconv.Itoa(local(last))
		}
		ranges = append(ranges, text)
		i = last + 1
	}
	return strings.Join(ranges, ",")
}

// OfNode reads what Visible wrote: cores of the node, where these devices are in the container, ascending. Empty names none.
func OfNode(text string, devices []int, perDevice int) ([]int, error) {
	var cores []int
	if text == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, errFrom := strconv.Atoi(first)
		to, errTo := strconv.Atoi(last)
		if errFrom != nil || errTo != nil || from < 0 || to < from || to >= perDevice*len(devices) {
			return nil, fmt.Errorf("%s=%q over devices %v", Variable, text, devices)
		}
		for local := from; local <= to; local++ {
			cores = append(cores, devices[local/perDevice]*perDevice+local%perDevice)
		}
	}
	return cores, nil
}

// SameID names a unit that two containers both have by the same resource. Only the kubelet chooses ids of a resource and knows
// whether one is free; a plugin cannot tell its mistake from the next start of a container.
func SameID(a, b map[string][]string) string {
	for resource, ids := range a {
		for _, id := range ids {
			if slices.Contains(b[resource], id) {
				return resource + " " + id
			}
		}
	}
	return ""
}

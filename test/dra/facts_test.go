package dra

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"neuron-agent.test/dra/node"
	"neuron-agent.test/dra/pool"
)

// facts are the attributes that the machine tells and not its type, as text; "" where a device has none.
type facts struct{ family, serial, numa, pcieRoot string }

func factsOf(device resourceapi.Device) facts {
	of := func(name resourceapi.QualifiedName) string {
		if attribute, has := device.Attributes[name]; has {
			return value(attribute)
		}
		return ""
	}
	return facts{of("family"), of("serial"), of("numaNode"), of("resource.kubernetes.io/pcieRoot")}
}

// placeOf reads the link of a PCI function, or of what is below one: its NUMA node and its root.
func placeOf(t *testing.T, link string) (numa, pcieRoot string) {
	t.Helper()
	path, err := filepath.EvalSymlinks(link)
	if err != nil {
		t.Fatal(err)
	}
	_, below, _ := strings.Cut(path, "/sys/devices/")
	pcieRoot, _, _ = strings.Cut(below, "/")
	for path != filepath.Dir(path) {
		if text, err := os.ReadFile(filepath.Join(path, "numa_node")); err == nil {
			return strings.TrimSpace(string(text)), pcieRoot
		}
		path = filepath.Dir(path)
	}
	t.Fatalf("%s has no NUMA node", link)
	return "", ""
}

// compareFacts holds what the slices say of each piece of silicon against the sysfs below root. Which PCI function is which device
// sysfs does not tell, so their places are compared all together.
func compareFacts(t *testing.T, root string, kind node.Type, all []*resourceapi.ResourceSlice) {
	t.Helper()
	family := map[string]string{"inf1": "Inferentia", "inf2": "Inferentia2", "trn1": "Trainium1", "trn2": "Trainium2", "trn3": "Trainium3"}[kind.Name[:4]]
	devices := make([]facts, kind.Devices)
	var places, rest []string
	var others []resourceapi.Device
	for _, slice := range all {
		for _, device := range slice.Spec.Devices {
			expectStandardNames(t, device)
			if *device.Attributes["resourceType"].StringValue == pool.Device {
				is := factsOf(device)
				devices[*device.Attributes["deviceId"].IntValue] = is
				places = append(places, is.numa+" "+is.pcieRoot)
			} else {
				others = append(others, device)
			}
		}
	}
	functions, _ := filepath.Glob(filepath.Join(root, "sys/bus/pci/drivers/neuron-driver/*:*"))
	for _, function := range functions {
		numa, pcieRoot := placeOf(t, function)
		rest = append(rest, numa+" "+pcieRoot)
	}
	slices.Sort(places)
	slices.Sort(rest)
	if !slices.Equal(places, rest) {
		t.Errorf("devices are at %v, sysfs has %v", places, rest)
	}
	for i, is := range devices {
		serial, _ := os.ReadFile(filepath.Join(root, fmt.Sprintf("sys/class/neuron_device/neuron%d/info/serial_number", i)))
		if want := strings.TrimSpace(string(serial)); is.family != family || is.serial != want {
			t.Errorf("device %d: %+v, want %s and serial %q", i, is, family, want)
		}
	}
	for _, device := range others {
		if got, want := factsOf(device), factsFrom(t, root, device, devices); got != want {
			t.Errorf("%s: %+v, want %+v", device.Name, got, want)
		}
	}
}

// expectStandardNames: NUMA node and PCI address are under the names of Kubernetes as well, but for what is unknown.
func expectStandardNames(t *testing.T, device resourceapi.Device) {
	t.Helper()
	for _, name := range []resourceapi.QualifiedName{"numaNode", "pciAddress"} {
		own, has := device.Attributes[name]
		standard := resourceapi.QualifiedName("resource.kubernetes.io/" + strings.Replace(string(name), "pciAddress", "pciBusID", 1))
		other, hasOther := device.Attributes[standard]
		if !hasOther && isFull(device) {
			continue
		}
		if known := has && value(own) != "-1"; hasOther != known && name == "numaNode" || known && value(other) != value(own) {
			t.Errorf("%s: %s is %v, %s is %v", device.Name, name, own, standard, other)
		}
	}
}

// isFull: the device has as many attributes and capacities as a server takes, and went without others.
func isFull(device resourceapi.Device) bool {
	return len(device.Attributes)+len(device.Capacity) == resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice
}

// factsFrom is what a core, a group or an interface has to say: that of its device, what its devices agree on, what sysfs says.
func factsFrom(t *testing.T, root string, device resourceapi.Device, devices []facts) facts {
	t.Helper()
	switch *device.Attributes["resourceType"].StringValue {
	case pool.Core:
		return devices[*device.Attributes["deviceId"].IntValue]
	case pool.EFA:
		numa, pcieRoot := placeOf(t, filepath.Join(root, "sys/class/infiniband", *device.Attributes["rdmaDevice"].StringValue))
		return facts{family: devices[0].family, numa: numa, pcieRoot: pcieRoot}
	}
	first, size := int(*device.Attributes["first"].IntValue), int(*device.Attributes["size"].IntValue)
	want := facts{family: devices[first].family, numa: devices[first].numa, pcieRoot: devices[first].pcieRoot}
	for i := range size {
		member := devices[(first+i)%len(devices)]
		if member.numa != want.numa {
			want.numa = "-1"
		}
		if member.pcieRoot != want.pcieRoot {
			want.pcieRoot = ""
		}
	}
	return want
}

package kubelettest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"neuron-agent.test/suite/cores"
)

// machine is what the tests know of an instance type by AWS's published tables, independent of the agent.
type machine struct {
	instanceType   string
	coresPerDevice int
	whole          counts
	nearest        []string // PCI address of the nearest EFA interface, by device index
}

// From aws-neuron/connected-device-maps-over-efa-for-neuron (lookup/neuron).
var machines = []machine{
	{"trn1.32xlarge", 2, counts{32, 16, 8}, []string{
		"0000:10:1a.0", "0000:10:1a.0", "0000:a0:1a.0", "0000:a0:1a.0", "0000:20:19.0", "0000:20:19.0",
		"0000:90:19.0", "0000:90:19.0", "0000:20:1a.0", "0000:20:1a.0", "0000:90:1a.0", "0000:90:1a.0",
		"0000:10:19.0", "0000:10:19.0", "0000:a0:19.0", "0000:a0:19.0"}},
	{"trn2.48xlarge", 4, counts{64, 16, 16}, []string{
		"0000:c9:00.0", "0000:b4:00.0", "0000:b3:00.0", "0000:ca:00.0", "0000:6c:00.0", "0000:57:00.0",
		"0000:56:00.0", "0000:6d:00.0", "0000:98:00.0", "0000:83:00.0", "0000:82:00.0", "0000:99:00.0",
		"0000:f5:00.0", "0000:e0:00.0", "0000:df:00.0", "0000:f6:00.0"}},
}

// pciOf maps RDMA names to PCI addresses by the simulated host's sysfs.
func (n *node) pciOf(t *testing.T, names []string) []string {
	t.Helper()
	var addresses []string
	for _, name := range names {
		target, err := os.Readlink(filepath.Join(n.root, "sys/class/infiniband", name))
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, filepath.Base(filepath.Dir(filepath.Dir(target))))
	}
	slices.Sort(addresses)
	return addresses
}

// nearestOf lists the interfaces nearest to what a container holds, sorted, each once.
func (m machine) nearestOf(t *testing.T, h held) []string {
	t.Helper()
	var near []string
	for _, device := range cores.Devices(coresOf(t, h, m.coresPerDevice), m.coresPerDevice) {
		near = append(near, m.nearest[device])
	}
	slices.Sort(near)
	return slices.Compact(near)
}

// isAligned: every interface is nearest to one of the devices or, where more were asked for than are
// nearest, all of the nearest are among them.
func isAligned(near, given []string) bool {
	return subset(given, near) || subset(near, given)
}

func subset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}

func TestAlignedMeansNearest(t *testing.T) {
	n := &node{}
	if len(n.pciOf(t, nil)) != 0 {
		t.Error("names out of nothing")
	}
	m := machines[0]
	near := m.nearestOf(t, held{neuron: {"0", "1", "2"}, neuronCore: {"5"}})
	if !slices.Equal(near, []string{"0000:10:1a.0", "0000:a0:1a.0"}) {
		t.Errorf("nearest: %v", near)
	}
	for _, c := range []struct {
		given []string
		want  bool
	}{
		{[]string{"0000:10:1a.0"}, true},
		{[]string{"0000:10:1a.0", "0000:10:19.0", "0000:a0:1a.0"}, true},
		{[]string{"0000:10:1a.0", "0000:10:19.0"}, false},
	} {
		if isAligned(near, c.given) != c.want {
			t.Errorf("isAligned(%v, %v) is not %v", near, c.given, c.want)
		}
	}
}

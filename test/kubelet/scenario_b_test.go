package kubelettest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const trn1CoresPerDevice = 2

var trn1Whole = counts{cores: 32, devices: 16, efas: 8}

// withinASecond is the promise about allocatable after a change, with room for a slow machine: the agent
// scans every 200 ms here and asks PodResources sparingly.
const withinASecond = 5 * time.Second

// Scenario b (and a for trn1.32xlarge): pods of every kind on one node, one after the other.
func TestTrn1(t *testing.T) {
	n := startNode(t, "trn1.32xlarge")
	begin := time.Now()
	n.expectAllocatable(t, patience, trn1Whole)
	since(t, "node start to all resources", begin)
	for _, c := range []struct {
		name string
		test func(*testing.T, *node)
	}{
		{"numa", testNuma},
		{"single container", testSingleContainer},
		{"two containers", testTwoContainers},
		{"init container", testInitContainer},
		{"zero", testZero},
		{"two resources of one pod", testTwoResourcesOfOnePod},
		{"devices leave cores", testDevicesLeaveCores},
		{"cores leave devices", testCoresLeaveDevices},
		{"refused conflict", testRefusedConflict},
		{"race for the node", testRaceForTheNode},
		{"many pods", testManyPods},
		{"refused by name", testRefusals},
		{"eks tester", testEksTester},
	} {
		t.Run(c.name, func(t *testing.T) {
			n.expectAllocatable(t, patience, trn1Whole) // the pods before have left no trace
			c.test(t, n)
		})
	}
}

// The kubelet's topology manager needs the NUMA node of every device; trn1.32xlarge has two, half and half.
func testNuma(t *testing.T, _ *node) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := podResources(t).GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	devices := map[string]map[int64]int{neuron: {}, neuronCore: {}, efa: {}}
	for _, device := range answer.Devices {
		if nodes := device.Topology.GetNodes(); len(nodes) == 1 {
			devices[device.ResourceName][nodes[0].ID] += len(device.DeviceIds)
		}
	}
	want := map[string]map[int64]int{neuron: {0: 8, 1: 8}, neuronCore: {0: 16, 1: 16}, efa: {0: 4, 1: 4}}
	if !reflect.DeepEqual(devices, want) {
		t.Errorf("devices by NUMA node: %v, want %v", devices, want)
	}
}

func testSingleContainer(t *testing.T, n *node) {
	for _, c := range []struct {
		name                 string
		ask                  ask
		cores, devices, efas int
		env                  string // "" where it depends on which cores were chosen
	}{
		{"four-cores", ask{neuronCore: "4"}, 4, 0, 0, "0-3"},
		{"one-core", ask{neuronCore: "1"}, 1, 0, 0, ""},
		{"all-cores", ask{neuronCore: "32"}, 32, 0, 0, "0-31"},
		{"four-devices", ask{neuron: "4"}, 0, 4, 0, "0-7"},
		{"bert", ask{neuron: "16", efa: "8"}, 0, 16, 8, "0-31"}, // the BERT training pod: limits only
		{"one-efa", ask{efa: "1"}, 0, 0, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			n.expectAllocatable(t, patience, trn1Whole)
			s := onePod(c.name, c.ask)
			begin := time.Now()
			found := n.expectRunning(t, s)["main"]
			since(t, "pod file to report from inside", begin)
			h := holdings(t, s.name)["main"]
			expectHeld(t, h, c.cores, c.devices, c.efas)
			n.expectGiven(t, found, h, trn1CoresPerDevice)
			if c.env != "" && found.Env[visibleCores] != c.env {
				t.Errorf("%s=%q, want %q", visibleCores, found.Env[visibleCores], c.env)
			}
		})
	}
}

// The EKS conformance test asks for everything twice in one container, as uid 1000.
func testEksTester(t *testing.T, n *node) {
	s := onePod("eks-tester", ask{neuron: "16", neuronCore: "32", efa: "8"})
	s.user = 1000
	found := n.expectRunning(t, s)["main"]
	h := holdings(t, s.name)["main"]
	expectHeld(t, h, 32, 16, 8)
	n.expectGiven(t, found, h, trn1CoresPerDevice)
	if found.Env[visibleCores] != "0-31" || found.UID != "1000" {
		t.Errorf("uid %s, %s=%q", found.UID, visibleCores, found.Env[visibleCores])
	}
	// Its units are in use but stay healthy in both lists. The next pod comes before the agent can have heard
	// that this one is gone: it must not be refused for a holder that the kubelet has already forgotten.
	n.remove(t, s)
	n.expectRunning(t, onePod("after-eks-tester", ask{neuronCore: "32"}))
}

func testTwoContainers(t *testing.T, n *node) {
	s := podSpec{name: "sidecar", containers: []container{{"worker", ask{neuronCore: "2"}}, {"plain", nil}}}
	found, h := n.expectRunning(t, s), holdings(t, s.name)
	expectHeld(t, h["worker"], 2, 0, 0)
	n.expectGiven(t, found["worker"], h["worker"], trn1CoresPerDevice)
	expectHeld(t, h["plain"], 0, 0, 0)
	expectNothing(t, found["plain"])
}

// The kubelet hands an init container's devices on to the containers of the same pod.
func testInitContainer(t *testing.T, n *node) {
	s := podSpec{
		name:       "compile-first",
		init:       []container{{"compile", ask{neuronCore: "4"}}},
		containers: []container{{"serve", ask{neuronCore: "2"}}, {"second", ask{neuronCore: "2"}}},
	}
	found, h := n.expectRunning(t, s), holdings(t, s.name)
	if found["compile"].Env[visibleCores] == "" || len(found["compile"].Open) != 2 {
		t.Errorf("init container: %s=%q, devices %v", visibleCores,
			found["compile"].Env[visibleCores], found["compile"].Open)
	}
	for _, name := range []string{"serve", "second"} {
		expectHeld(t, h[name], 2, 0, 0)
		n.expectGiven(t, found[name], h[name], trn1CoresPerDevice)
	}
	if slices.ContainsFunc(h["serve"][neuronCore], func(id string) bool {
		return slices.Contains(h["second"][neuronCore], id)
	}) {
		t.Errorf("one core in two running containers: %v", h)
	}
}

func testZero(t *testing.T, n *node) {
	s := onePod("zero", ask{neuronCore: "0", neuron: "0", efa: "0"})
	found := n.expectRunning(t, s)["main"]
	expectHeld(t, holdings(t, s.name)["main"], 0, 0, 0)
	expectNothing(t, found)
}

// Different containers of one pod may use different resources, on different silicon.
func testTwoResourcesOfOnePod(t *testing.T, n *node) {
	s := podSpec{name: "mixed", containers: []container{
		{"devices", ask{neuron: "2", efa: "2"}}, {"cores", ask{neuronCore: "3"}}}}
	found, h := n.expectRunning(t, s), holdings(t, s.name)
	expectHeld(t, h["devices"], 0, 2, 2)
	expectHeld(t, h["cores"], 3, 0, 0)
	for name := range h {
		n.expectGiven(t, found[name], h[name], trn1CoresPerDevice)
	}
	expectDisjoint(t, h["devices"], h["cores"])
}

func expectDisjoint(t *testing.T, a, b held) {
	t.Helper()
	taken := coresOf(t, a, trn1CoresPerDevice)
	for _, used := range coresOf(t, b, trn1CoresPerDevice) {
		if slices.Contains(taken, used) {
			t.Errorf("core %d is usable from two containers: %v and %v", used, a, b)
		}
	}
}

func testDevicesLeaveCores(t *testing.T, n *node) {
	s := onePod("devices", ask{neuron: "4"})
	n.expectRunning(t, s)
	begin := time.Now()
	n.expectAllocatable(t, withinASecond, counts{cores: 24, devices: 16, efas: 8})
	since(t, "devices held to their cores withdrawn", begin)
	n.remove(t, s)
	begin = time.Now()
	n.expectAllocatable(t, withinASecond, trn1Whole)
	since(t, "pod gone to cores back", begin)
}

func testCoresLeaveDevices(t *testing.T, n *node) {
	s := onePod("cores", ask{neuronCore: "1"})
	n.expectRunning(t, s)
	n.expectAllocatable(t, withinASecond, counts{cores: 32, devices: 15, efas: 8})
	other := onePod("others", ask{neuron: "15"})
	n.expectRunning(t, other)
	expectDisjoint(t, holdings(t, s.name)["main"], holdings(t, other.name)["main"])
}

func testRefusedConflict(t *testing.T, n *node) {
	s := onePod("whole-node", ask{neuron: "16"})
	n.expectRunning(t, s)
	second := onePod("one-more", ask{neuronCore: "1"})
	message := n.expectRefused(t, second) // by the kubelet or by the agent, whichever is first
	if !strings.Contains(message, neuronCore) && !strings.Contains(message, s.name) {
		t.Errorf("the message says neither the resource nor the holder: %q", message)
	}
	n.remove(t, second)
	n.remove(t, s)
	n.expectAllocatable(t, patience, trn1Whole)
	n.expectRunning(t, onePod("now-it-fits", ask{neuronCore: "1"}))
}

// Two pods ask for the whole node through different resources at the same moment: the second one comes before
// the kubelet can know that nothing is left, so it is the agent that must refuse.
func testRaceForTheNode(t *testing.T, n *node) {
	pods := []podSpec{onePod("race-devices", ask{neuron: "16"}), onePod("race-cores", ask{neuronCore: "32"})}
	for _, s := range pods {
		n.submit(t, s)
	}
	phases, message := map[core.PodPhase]int{}, ""
	eventually(t, patience, "one runs, one is refused", func() error {
		clear(phases)
		for _, s := range pods {
			pod, err := n.status(s.name)
			if err != nil || pod == nil {
				return fmt.Errorf("%s not known (%v)", s.name, err)
			}
			phases[pod.Status.Phase]++
			if pod.Status.Phase == core.PodFailed {
				message = pod.Status.Message
			}
		}
		if phases[core.PodRunning] != 1 || phases[core.PodFailed] != 1 {
			return fmt.Errorf("phases %v", phases)
		}
		return nil
	})
	t.Log(message)
	if !strings.Contains(message, neuron) && !strings.Contains(message, "held") {
		t.Errorf("the message does not say why: %q", message)
	}
}

// Pods come in one burst, cores and devices mixed: no core twice, nobody refused.
func testManyPods(t *testing.T, n *node) {
	pods := []podSpec{
		onePod("burst-a", ask{neuronCore: "2"}), onePod("burst-b", ask{neuron: "2", efa: "1"}),
		onePod("burst-c", ask{neuronCore: "5"}), onePod("burst-d", ask{neuron: "1"}),
		onePod("burst-e", ask{neuronCore: "4", efa: "2"}),
	}
	for _, s := range pods {
		n.submit(t, s)
	}
	var all []held
	for _, s := range pods {
		reports := n.awaitReports(t, s)
		h := holdings(t, s.name)["main"]
		n.expectGiven(t, reports["main"], h, trn1CoresPerDevice)
		for _, earlier := range all {
			expectDisjoint(t, earlier, h)
		}
		all = append(all, h)
	}
}

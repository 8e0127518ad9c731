package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/dra/node"
)

// The claims of manifests/examples, and what each must be given.

var exampleClaims = []string{"examples/claims-whole-devices.yaml", "examples/claims-parts.yaml"}

// shape is what a claim of one of the templates is given on a node of a type: how much, and which devices go together. Interfaces beside
// devices are the nearest of these: every template with both asks for that.
type shape struct {
	template string
	counts   cluster.Counts // cores: those that are claimed as such
	within   int            // all devices are within one aligned group of that size; 0: anywhere
	linked   bool           // the devices are a set that the fabric has as a whole
	lnc      string         // the container's NEURON_LOGICAL_NC_CONFIG; empty: any
	none     string         // instead: it is not to be had, and the scheduler says so
	apart    bool           // interfaces need not be the nearest ones
}

var shapesOfTrn1 = []shape{
	{template: "neuron-1", counts: cluster.Counts{Devices: 1}},
	{template: "neuron-2", counts: cluster.Counts{Devices: 2}, within: 4},
	{template: "neuron-4", counts: cluster.Counts{Devices: 4}, within: 4},
	{template: "neuron-8", counts: cluster.Counts{Devices: 8}, within: 8},
	{template: "neuron-16", counts: cluster.Counts{Devices: 16}, within: 16},
	{template: "neuron-all", counts: cluster.Counts{Devices: 16}, within: 16},
	{template: "neuron-driver-version", counts: cluster.Counts{Devices: 1}},
	{template: "neuron-16-efa-8", counts: cluster.Counts{Devices: 16, EFAs: 8}, within: 16},
	{template: "neuron-8-efa-8", none: "cannot allocate all claims"}, // eight devices there have four interfaces
	{template: "neuron-ultraserver-node", none: "cannot allocate all claims"},
	{template: "inferentia-2", none: "cannot allocate all claims"},
	{template: "core-1", counts: cluster.Counts{Cores: 1}},
	{template: "cores-3", counts: cluster.Counts{Cores: 3}},
	{template: "cores-2-together", counts: cluster.Counts{Cores: 2}, within: 1},
	{template: "group-of-4", counts: cluster.Counts{Devices: 4}, within: 4},
	{template: "group-or-device", counts: cluster.Counts{Devices: 4}, within: 4},
	{template: "group-of-4-efa-1", counts: cluster.Counts{Devices: 4, EFAs: 1}, within: 4},
	{template: "efa-1", counts: cluster.Counts{EFAs: 1}},
}

// shapesOfInferentia are those of inf2.48xlarge; on Inferentia 1 all but the last.
var shapesOfInferentia = []shape{
	{template: "neuron-1", counts: cluster.Counts{Devices: 1}},
	{template: "cores-3", counts: cluster.Counts{Cores: 3}},
	{template: "cores-2-together", counts: cluster.Counts{Cores: 2}, within: 1},
	{template: "group-of-4", counts: cluster.Counts{Devices: 4}, linked: true},
	{template: "group-or-device", counts: cluster.Counts{Devices: 4}, linked: true},
	{template: "inferentia-2", counts: cluster.Counts{Devices: 2}},
}

// shapesServed are those that the driver is asked for, by node of TestClaimShapes.
var shapesServed = []struct {
	name   string
	shapes []shape
}{
	{"trn1", shapesOfTrn1},
	{"trn2", []shape{
		{template: "neuron-4", counts: cluster.Counts{Devices: 4}, within: 4},
		{template: "neuron-8-efa-8", counts: cluster.Counts{Devices: 8, EFAs: 8}, within: 8},
		{template: "neuron-16", counts: cluster.Counts{Devices: 16}, within: 16},
		{template: "cores-3", counts: cluster.Counts{Cores: 3}},
		{template: "group-of-4-efa-1", counts: cluster.Counts{Devices: 4, EFAs: 1}, within: 4},
		{template: "neuron-lnc-2", counts: cluster.Counts{Devices: 1}, lnc: "2"},
	}},
	{"inf2", []shape{
		{template: "inferentia-2", counts: cluster.Counts{Devices: 2}},
		{template: "cores-3", counts: cluster.Counts{Cores: 3}},
		{template: "group-of-4", counts: cluster.Counts{Devices: 4}, linked: true},
	}},
}

// check compares what is held on a node of that type with the shape.
func (s shape) check(held cluster.Held, instanceType string, coresPerDevice int) error {
	if got := cluster.CountsOf(held); got != s.counts {
		return fmt.Errorf("%s: holds %+v (%v), want %+v", s.template, got, held, s.counts)
	}
	groups := map[int]bool{}
	for name, each := range map[core.ResourceName]int{cluster.Neuron: 1, cluster.NeuronCore: coresPerDevice} {
		for _, id := range held[name] {
			number, err := strconv.Atoi(id)
			if err != nil {
				return err
			}
			groups[number/each/max(1, s.within)] = true
		}
	}
	if s.within > 0 && len(groups) != 1 {
		return fmt.Errorf("%s: %v are not within one group of %d", s.template, held, s.within)
	}
	if s.apart {
		return nil
	}
	return s.checkFabric(held, instanceType, coresPerDevice)
}

// checkFabric is the part that goes by AWS's tables: which devices are linked, and which interface is the nearest of which device.
// As many interfaces as devices have nearest ones are then all of these.
func (s shape) checkFabric(held cluster.Held, instanceType string, coresPerDevice int) error {
	kind, known := node.Find(instanceType)
	cores, err := held.CoresOf(coresPerDevice)
	if err != nil || !known {
		return fmt.Errorf("%s: type %q (known: %v): %w", s.template, instanceType, known, err)
	}
	kind.LNC = kind.Physical / coresPerDevice
	fabric := node.NewFabric(kind)
	devices := fabric.DevicesOf(cores)
	if s.linked && !fabric.Valid(devices) {
		return fmt.Errorf("%s: devices %v are not linked", s.template, devices)
	}
	near := map[string]bool{}
	for _, device := range devices {
		if at := kind.Near(device); at >= 0 {
			near[kind.EFAs[at].Name] = true
		}
	}
	for _, name := range held[cluster.EFA] {
		if len(devices) > 0 && !near[name] {
			return fmt.Errorf("%s: interface %s is the nearest of none of the devices %v, which are nearest to %v", s.template, name, devices, near)
		}
	}
	return nil
}

// applyExamples makes the templates and the shared claim; the sample Job among them is not for nodes of the tests.
func applyExamples(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	for _, file := range exampleClaims {
		c.Apply(t, cluster.Manifest(file))
	}
	c.Kubectl(t, "delete", "job", "neuron-claim-sample", "--wait")
}

// onGhost is a node of which there is the object only: the scheduler places pods on it, and nobody starts them. offers is what a device
// plugin would; a node without is one for claims.
func onGhost(t *testing.T, c *cluster.Cluster, name string, offers cluster.Ask) *cluster.Node {
	t.Helper()
	ready := core.NodeCondition{Type: core.NodeReady, Status: core.ConditionTrue}
	room := core.ResourceList{core.ResourceCPU: quantity("100"), core.ResourceMemory: quantity("100Gi"), core.ResourcePods: quantity("1000")}
	labels := map[string]string{core.LabelHostname: name}
	if offers == nil {
		labels["neuron-agent/mode"] = "dra"
	}
	for name, count := range offers {
		room[name] = quantity(count)
	}
	node := &core.Node{ObjectMeta: meta.ObjectMeta{Name: name, Labels: labels},
		Status: core.NodeStatus{Conditions: []core.NodeCondition{ready}, Capacity: room, Allocatable: room}}
	if _, err := c.Client.CoreV1().Nodes().Create(context.Background(), node, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Kubectl(t, "delete", "node", name) })
	return &cluster.Node{Spec: cluster.Spec{Name: name, InstanceType: cluster.Trn1.InstanceType}}
}

// awaitChosen waits until the scheduler has given the workload's pod what it claims, or, with words, says that it cannot.
func awaitChosen(t *testing.T, c *cluster.Cluster, w cluster.Workload, devices, coresPerDevice int, none string) cluster.Held {
	t.Helper()
	held := cluster.Held{}
	cluster.Eventually(t, cluster.Patience, w.Name+": the scheduler has decided", func() error {
		pods, err := c.Pods("default", "workload="+w.Name)
		if err != nil || len(pods) != 1 {
			return fmt.Errorf("%d pods: %v", len(pods), err)
		}
		if none != "" {
			return expectUnschedulable(&pods[0], none)
		}
		if pods[0].Spec.NodeName == "" {
			return fmt.Errorf("not placed: %v", pods[0].Status.Conditions)
		}
		all, err := c.ClaimedBy(&pods[0], devices, coresPerDevice)
		held = all["main"]
		return err
	})
	return held
}

func expectUnschedulable(pod *core.Pod, words string) error {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == core.PodScheduled && strings.Contains(condition.Message, words) {
			return nil
		}
	}
	return fmt.Errorf("on %q, conditions %v", pod.Spec.NodeName, pod.Status.Conditions)
}

// TestClaimsAreAllocated: the real scheduler serves every example from slices written by hand, one after the other, and then does not
// oversell what all kinds of claims ask for at once.
func TestClaimsAreAllocated(t *testing.T) {
	c := cluster.Get(t)
	c.Nodes(t)
	ghost := onGhost(t, c, "ghost", nil)
	c.Apply(t, cluster.Manifest(draManifest))
	applyExamples(t, c)
	writeByHand(t, c, ghost)
	for _, s := range shapesOfTrn1 {
		t.Run(s.template, func(t *testing.T) {
			w := cluster.One("shape-"+s.template, nil).WithClaims(map[string]string{"devices": s.template})
			startOnGhost(t, c, w)
			held := awaitChosen(t, c, w, 16, 2, s.none)
			if s.none != "" {
				return
			}
			if err := s.check(held, ghost.InstanceType, 2); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("NotOversold", func(t *testing.T) { expectNotOversold(t, c) })
}

// TestUnmodifiedAreAllocated: pods that ask for extended resources get claims without knowing it, up to 32 units each.
func TestUnmodifiedAreAllocated(t *testing.T) {
	c := cluster.Get(t)
	c.Nodes(t)
	ghost := onGhost(t, c, "ghost", nil)
	applyDRA(t, c, unmodified)
	writeByHand(t, c, ghost)
	for _, each := range []struct {
		name string
		ask  cluster.Ask
		want cluster.Counts
		none string
	}{
		{"two", cluster.Ask{cluster.Neuron: "2"}, cluster.Counts{Devices: 2}, ""},
		{"three-cores", cluster.Ask{cluster.NeuronCore: "3"}, cluster.Counts{Cores: 3}, ""},
		{"both", cluster.Ask{cluster.Neuron: "4", cluster.EFA: "2"}, cluster.Counts{Devices: 4, EFAs: 2}, ""},
		{"all", cluster.Ask{cluster.Neuron: "16", cluster.EFA: "8"}, cluster.Counts{Devices: 16, EFAs: 8}, ""},
		{"most", cluster.Ask{cluster.NeuronCore: "32"}, cluster.Counts{Cores: 32}, ""},
		{"too-many", cluster.Ask{cluster.NeuronCore: "33"}, cluster.Counts{}, "exceeds the claim limit"},
	} {
		t.Run(each.name, func(t *testing.T) {
			w := cluster.One("unmodified-"+each.name, each.ask)
			startOnGhost(t, c, w)
			held := awaitChosen(t, c, w, 16, 2, each.none)
			if got := cluster.CountsOf(held); got != each.want {
				t.Errorf("asked for %v, was given %v", each.ask, held)
			}
		})
	}
	t.Run("TooManyBesideAPlugin", func(t *testing.T) { expectTooManyBesideAPlugin(t, c) })
}

// expectTooManyBesideAPlugin: the scheduler gives up on all nodes, those of the device plugin too, over more units than a claim may
// have, unless the pod itself keeps off the nodes for claims.
func expectTooManyBesideAPlugin(t *testing.T, c *cluster.Cluster) {
	onGhost(t, c, "ghost-plugin", cluster.Ask{cluster.NeuronCore: "64"})
	forty := cluster.One("unmodified-forty", cluster.Ask{cluster.NeuronCore: "40"})
	startOnGhost(t, c, forty)
	awaitChosen(t, c, forty, 16, 2, "exceeds the claim limit")
	forty.Name = "unmodified-forty-elsewhere"
	forty.Adjust = func(pod *core.PodSpec) {
		pod.Affinity = &core.Affinity{NodeAffinity: &core.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &core.NodeSelector{
			NodeSelectorTerms: []core.NodeSelectorTerm{{MatchExpressions: []core.NodeSelectorRequirement{
				{Key: "neuron-agent/mode", Operator: core.NodeSelectorOpNotIn, Values: []string{"dra"}}}}}}}}
	}
	startOnGhost(t, c, forty)
	if pod := awaitPlacedGhost(t, c, forty); pod.Spec.NodeName != "ghost-plugin" {
		t.Errorf("placed on %q", pod.Spec.NodeName)
	}
}

func awaitPlacedGhost(t *testing.T, c *cluster.Cluster, w cluster.Workload) *core.Pod {
	t.Helper()
	awaitPlaced(t, c, w)
	pods, err := c.Pods("default", "workload="+w.Name)
	if err != nil || len(pods) != 1 {
		t.Fatal(len(pods), err)
	}
	return &pods[0]
}

// startOnGhost makes the workload's pod and removes it by force after the test: no kubelet ends it.
func startOnGhost(t *testing.T, c *cluster.Cluster, w cluster.Workload) {
	t.Helper()
	template := w.PodTemplate()
	pod := &core.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = w.Name
	pod.Spec.Tolerations = []core.Toleration{{Operator: core.TolerationOpExists}} // the ghost's kubelet is silent
	if _, err := c.Client.CoreV1().Pods("default").Create(context.Background(), pod, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kubectl(t, "delete", "pod", w.Name, "--force", "--grace-period=0", "--ignore-not-found")
		cluster.Eventually(t, cluster.Patience, "its claim is gone", func() error {
			all, err := c.Client.ResourceV1().ResourceClaims("default").List(context.Background(), meta.ListOptions{})
			if err == nil && slices.ContainsFunc(all.Items, func(r resource.ResourceClaim) bool { return strings.HasPrefix(r.Name, w.Name+"-") }) {
				err = errors.New("it is there")
			}
			return err
		})
	})
}

// expectNotOversold: more is asked for than there is, in all kinds; nothing is given twice, and what is left over waits.
func expectNotOversold(t *testing.T, c *cluster.Cluster) {
	taken, waiting := map[string]string{}, 0
	for i := range 4 {
		for _, template := range []string{"cores-3", "neuron-4", "group-of-4", "neuron-2", "cores-2-together", "neuron-1"} {
			w := cluster.One(fmt.Sprintf("crowd-%s-%d", template, i), nil).WithClaims(map[string]string{"devices": template})
			startOnGhost(t, c, w)
			held, err := tryChosen(t, c, w)
			if err != nil {
				waiting++
				continue
			}
			cores, err := held.CoresOf(2)
			if err != nil {
				t.Error(err)
			}
			for _, core := range cores {
				if other := taken[strconv.Itoa(core)]; other != "" {
					t.Errorf("core %d is of %s and of %s", core, other, w.Name)
				}
				taken[strconv.Itoa(core)] = w.Name
			}
		}
	}
	figure(t, "claims of all kinds on one trn1.32xlarge, slices by hand: %d of 32 cores given, %d of 24 pods wait", len(taken), waiting)
	if waiting == 0 || len(taken) < 24 {
		t.Errorf("%d cores given, %d pods wait", len(taken), waiting)
	}
}

// tryChosen is awaitChosen for what may be refused.
func tryChosen(t *testing.T, c *cluster.Cluster, w cluster.Workload) (cluster.Held, error) {
	t.Helper()
	var held cluster.Held
	var refused error
	cluster.Eventually(t, cluster.Patience, w.Name+": the scheduler has decided", func() error {
		pods, err := c.Pods("default", "workload="+w.Name)
		if err != nil || len(pods) != 1 {
			return fmt.Errorf("%d pods: %v", len(pods), err)
		}
		if expectUnschedulable(&pods[0], "allocate all claims") == nil {
			refused = errors.New("not to be had")
			return nil
		}
		if pods[0].Spec.NodeName == "" {
			return errors.New("not placed")
		}
		all, err := c.ClaimedBy(&pods[0], 16, 2)
		held = all["main"]
		return err
	})
	return held, refused
}

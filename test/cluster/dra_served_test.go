package scenarios

import (
	"context"
	"fmt"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"neuron-agent.test/cluster/cluster"
	types "neuron-agent.test/dra/node"
)

// size is how many devices and logical cores per device a node has, for reading what claims were given.
func size(n *cluster.Node) (devices, perDevice int) {
	kind, _ := types.Find(n.InstanceType)
	return kind.Devices, int(coresPerDevice(n))
}

// expectShape runs a pod with one of the examples on the node, and looks into the container.
func expectShape(t *testing.T, c *cluster.Cluster, n *cluster.Node, s shape) cluster.Report {
	t.Helper()
	devices, perDevice := size(n)
	w := cluster.One(n.Name+"-"+s.template, nil).WithClaims(map[string]string{"devices": s.template})
	w.Node = n.Name
	c.StartJob(t, w)
	defer c.DeleteJob(t, w)
	if s.none != "" {
		awaitChosen(t, c, w, devices, perDevice, s.none)
		return cluster.Report{}
	}
	report := c.AwaitClaimReports(t, w, devices, perDevice)[0]
	if err := s.check(report.Held, n.InstanceType, perDevice); err != nil {
		t.Error(err)
	}
	report.ExpectSeen(t, perDevice)
	if lnc := report.Env["NEURON_LOGICAL_NC_CONFIG"]; s.lnc != "" && lnc != s.lnc {
		t.Errorf("NEURON_LOGICAL_NC_CONFIG is %q", lnc)
	}
	return report
}

// TestClaimShapes: every example and every form of a claim, on the types that they are for, by the real driver.
func TestClaimShapes(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, trn1DRA, trn2DRA, inf2DRA, trn2uDRA)
	startDriver(t, c, nodes, partitioned, "dra-dranet-class")
	applyExamples(t, c)
	for i, each := range shapesServed {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel() // with the other nodes', once all below have ended
			for _, s := range each.shapes {
				t.Run(s.template, func(t *testing.T) { expectShape(t, c, nodes[i], s) })
			}
		})
	}
	t.Run("Forms", func(t *testing.T) { expectForms(t, c, nodes[0], nodes[1]) })
	t.Run("UltraServer", func(t *testing.T) { expectUltraServerNode(t, c, nodes[3]) })
	t.Run("DranetClass", func(t *testing.T) { expectDranetClass(t, c, nodes[1]) })
	t.Run("Refused", func(t *testing.T) { expectRefusedConfigs(t, c, nodes) })
	t.Run("Shared", func(t *testing.T) { expectShared(t, c, nodes[0]) })
	t.Run("PartsOfOneClaim", func(t *testing.T) { expectParts(t, c, nodes[0]) })
	// Of a device that fails: itself, two cores, and the groups of 4, 8 and 16 that it is in.
	t.Run("Health", func(t *testing.T) { expectTaintedWhileUnhealthy(t, nodes[0], 6) })
}

// template creates a template for claims and deletes it after the test.
func template(t *testing.T, c *cluster.Cluster, name string, devices resource.DeviceClaim) {
	t.Helper()
	all := c.Client.ResourceV1().ResourceClaimTemplates("default")
	_, err := all.Create(context.Background(), &resource.ResourceClaimTemplate{ObjectMeta: meta.ObjectMeta{Name: name},
		Spec: resource.ResourceClaimTemplateSpec{Spec: resource.ResourceClaimSpec{Devices: devices}}}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = all.Delete(context.Background(), name, meta.DeleteOptions{}) })
}

func exactly(name, class string, count int64) resource.DeviceRequest {
	return resource.DeviceRequest{Name: name, Exactly: &resource.ExactDeviceRequest{DeviceClassName: class,
		AllocationMode: resource.DeviceAllocationModeExactCount, Count: count}}
}

// expectDranetClass: a claim as AWS's samples have it for their driver and DRANET runs unchanged.
func expectDranetClass(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	aligned := resource.FullyQualifiedName("resource.aws.com/devicegroup8_id")
	template(t, c, "as-in-samples", resource.DeviceClaim{
		Requests: []resource.DeviceRequest{exactly("neurons", "neuron.aws.com", 8), exactly("efas", "efa.networking.k8s.aws", 8)},
		Constraints: []resource.DeviceConstraint{
			{Requests: []string{"neurons", "efas"}, MatchAttribute: &aligned}}})
	expectShape(t, c, n, shape{template: "as-in-samples", counts: cluster.Counts{Devices: 8, EFAs: 8}, within: 8})
}

// expectRefusedConfigs: what nobody can understand or grant is said in the pod's event.
func expectRefusedConfigs(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node) {
	for name, each := range map[string]struct {
		node       *cluster.Node
		parameters string
		words      string
	}{
		"lnc-on-trn1":   {nodes[0], `{"apiVersion":"neuron.aws.com/v1","kind":"NeuronConfig","logicalNeuronCore":1}`, "trn1.32xlarge"},
		"unknown-field": {nodes[1], `{"apiVersion":"neuron.aws.com/v1","kind":"NeuronConfig","logicalNeuronCoreCount":1}`, "strict decoding error: unknown field"},
		"unknown-kind":  {nodes[1], `{"apiVersion":"neuron.aws.com/v1","kind":"GpuConfig","sharing":1}`, "NeuronConfig or UltraServerConfig"},
		"wrong-value":   {nodes[1], `{"apiVersion":"neuron.aws.com/v1","kind":"NeuronConfig","logicalNeuronCore":3}`, "1 or 2"},
		"not-linked":    {nodes[1], `{"apiVersion":"neuron.aws.com/v1","kind":"UltraServerConfig","ultraserverMode":4}`, "ultraserverMode 4 is not possible on this node"},
		"wrong-version": {nodes[1], `{"apiVersion":"neuron.aws.com/v2","kind":"NeuronConfig","logicalNeuronCore":2}`, "neuron.aws.com/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template(t, c, "bad-"+name, resource.DeviceClaim{
				Requests: []resource.DeviceRequest{exactly("neurons", "neuron.aws.com", 1)},
				Config: []resource.DeviceClaimConfiguration{{DeviceConfiguration: resource.DeviceConfiguration{
					Opaque: &resource.OpaqueDeviceConfiguration{Driver: cluster.Driver,
						Parameters: runtime.RawExtension{Raw: []byte(each.parameters)}}}}}})
			w := cluster.One("bad-"+name, nil).WithClaims(map[string]string{"devices": "bad-" + name})
			w.Node = each.node.Name
			c.StartPod(t, w)
			t.Logf("the event says: %s", awaitPrepareEvent(t, c, w.Name, each.words))
		})
	}
}

// awaitPrepareEvent waits for the kubelet's event that a claim could not be prepared, with these words, and returns its message.
func awaitPrepareEvent(t *testing.T, c *cluster.Cluster, pod, words string) string {
	t.Helper()
	var message string
	cluster.Eventually(t, cluster.Patience, pod+" has an event with "+words, func() error {
		events, err := c.Client.CoreV1().Events("default").List(context.Background(),
			meta.ListOptions{FieldSelector: "involvedObject.name=" + pod + ",reason=FailedPrepareDynamicResources"})
		if err != nil {
			return err
		}
		var all []string
		for _, event := range events.Items {
			if message = event.Message; strings.Contains(message, words) {
				return nil
			}
			all = append(all, message)
		}
		return fmt.Errorf("%d events: %q", len(events.Items), all)
	})
	return message
}

// expectShared: two pods, one with two containers, hold one claim, and all see the same.
func expectShared(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	shared := "shared-2"
	devices, perDevice := size(n)
	var seen []string
	for i, containers := range [][]cluster.Container{{{Name: "main"}, {Name: "second"}}, {{Name: "main"}}} {
		w := cluster.Workload{Name: fmt.Sprintf("sharing-%d", i), Node: n.Name, Containers: containers}
		w.Adjust = func(pod *core.PodSpec) {
			pod.ResourceClaims = []core.PodResourceClaim{{Name: "devices", ResourceClaimName: &shared}}
			for i := range pod.Containers {
				pod.Containers[i].Resources.Claims = []core.ResourceClaim{{Name: "devices"}}
			}
		}
		c.StartJob(t, w)
		for _, report := range c.AwaitClaimReports(t, w, devices, perDevice) {
			report.ExpectSeen(t, perDevice)
			seen = append(seen, fmt.Sprint(report.Open))
		}
	}
	if len(seen) != 3 || seen[0] != seen[1] || seen[0] != seen[2] {
		t.Errorf("containers of one claim see %q", seen)
	}
}

// expectParts: containers of one pod each use a request of their own of one claim, and see that alone.
func expectParts(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	devices, perDevice := size(n)
	template(t, c, "two-requests", resource.DeviceClaim{Requests: []resource.DeviceRequest{
		exactly("big", "neuron.aws.com", 2), exactly("small", "core.neuron.aws.com", 1)}})
	w := cluster.Workload{Name: "parts", Node: n.Name, Containers: []cluster.Container{{Name: "big"}, {Name: "small"}}}
	w = w.WithClaims(map[string]string{"devices": "two-requests"})
	all := w.Adjust
	w.Adjust = func(pod *core.PodSpec) {
		all(pod)
		for i := range pod.Containers {
			pod.Containers[i].Resources.Claims[0].Request = pod.Containers[i].Name
		}
	}
	c.StartJob(t, w)
	for i, want := range []cluster.Counts{{Devices: 2}, {Cores: 1}} {
		report := c.AwaitClaimReports(t, w, devices, perDevice)[i]
		if got := cluster.CountsOf(report.Held); got != want {
			t.Errorf("%s holds %v", report.Container, report.Held)
		}
		report.ExpectSeen(t, perDevice)
	}
}

// TestUnmodifiedPods: pods that ask for extended resources are served by the driver as by the device plugin, on one node through
// claims and beside it on another through the plugin.
func TestUnmodifiedPods(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, trn1DRA, cluster.Trn1)
	startDriver(t, c, nodes[:1], partitioned, unmodified)
	c.StartAgent(t, cluster.DefaultAgent(t))
	expectOffered(t, nodes[1], wholeTrn1)
	asks := []cluster.Ask{{cluster.Neuron: "2"}, {cluster.NeuronCore: "3"}, {cluster.EFA: "1"}, {cluster.Neuron: "4", cluster.EFA: "2"},
		{cluster.NeuronCore: "4", cluster.EFA: "1"}}
	var all []cluster.Workload
	for i, ask := range asks {
		for _, n := range nodes {
			w := cluster.One(fmt.Sprintf("unmodified-%d-%s", i, n.Name), ask)
			w.Node = n.Name
			c.StartJob(t, w)
			all = append(all, w)
			if n == nodes[1] {
				c.AwaitReports(t, w)[0].ExpectGiven(t, ask, 2)
				continue
			}
			report := c.AwaitClaimReports(t, w, 16, 2)[0]
			expectAsked(t, report, ask)
			report.ExpectSeen(t, 2)
		}
	}
	c.DeleteJob(t, all...)
	t.Run("Fleet", func(t *testing.T) { expectFleetFilled(t, c, nodes) })
	t.Run("SeveralContainers", func(t *testing.T) { expectSeveralContainers(t, c, nodes[0]) })
}

func expectAsked(t *testing.T, r cluster.Report, ask cluster.Ask) {
	t.Helper()
	for _, name := range []core.ResourceName{cluster.Neuron, cluster.NeuronCore, cluster.EFA} {
		if got := fmt.Sprint(len(r.Held[name])); got != ask[name] && (ask[name] != "" || got != "0") {
			t.Errorf("%s/%s asked for %v and holds %v", r.Pod, r.Container, ask, r.Held)
		}
	}
}

// expectFleetFilled: as many pods as both nodes have room for, placed by the scheduler alone.
func expectFleetFilled(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node) {
	placed := map[string]int{}
	ask := cluster.Ask{cluster.Neuron: "4", cluster.EFA: "2"}
	var all []cluster.Workload
	for i := range 8 {
		w := cluster.One(fmt.Sprintf("fleet-%d", i), ask)
		c.StartJob(t, w)
		all = append(all, w)
	}
	t.Cleanup(func() { c.DeleteJob(t, all...) })
	for _, w := range all {
		report := c.AwaitReports(t, w)[0]
		placed[report.Node.Name]++
		if len(report.Open) != 6 || len(report.Refused) != 0 || report.Env["NEURON_RT_VISIBLE_CORES"] != "0-7" {
			t.Errorf("%s on %s: open %v, %v", w.Name, report.Node.Name, report.Open, report.Env["NEURON_RT_VISIBLE_CORES"])
		}
	}
	if placed[nodes[0].Name] != 4 || placed[nodes[1].Name] != 4 {
		t.Errorf("placed %v", placed)
	}
}

// expectSeveralContainers: each container of an unmodified pod sees its own alone.
func expectSeveralContainers(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	w := cluster.Workload{Name: "several", Node: n.Name, Containers: []cluster.Container{
		{Name: "devices", Ask: cluster.Ask{cluster.Neuron: "1", cluster.EFA: "1"}}, {Name: "cores", Ask: cluster.Ask{cluster.NeuronCore: "3"}}, {Name: "plain"}}}
	c.StartJob(t, w)
	for i, report := range c.AwaitClaimReports(t, w, 16, 2) {
		expectAsked(t, report, w.Containers[i].Ask)
		report.ExpectSeen(t, 2)
	}
}

package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"neuron-agent.test/cluster/cluster"
)

const (
	statusManifest = "static/neuron-agent-node-status.yaml"
	statusManager  = "neuron-agent"
	statusAccount  = "neuron-agent-node-status"
	hardwareReady  = core.NodeConditionType("AcceleratedHardwareReady")
	neuronHealth   = core.NodeConditionType("NeuronHealth")
	// Where nothing is wrong an agent that starts waits for up to a minute.
	statusPatience = time.Minute + cluster.Patience
)

var statusLabels = map[string]string{"neuron-agent/family": "trn1", "neuron-agent/devices": "16", "neuron-agent/cores": "32",
	"neuron.amazonaws.com/present": "true", "neuron-agent/lnc": "1", "neuron-agent/efas": "8", "neuron-agent/health": "healthy"}

// TestNodeStatus: a chip that fails is seen in the condition, the label, an event and allocatable, and so is its end; with one of
// sixteen that a reload cures the node as a whole stays well. What others write is left to them, and what docs/node-status.md says
// takes everything away.
func TestNodeStatus(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Trn1, cluster.Bare)
	trn1, bare := nodes[0], nodes[1]
	before := inventoryBefore(t, c, nodes...)
	labels := nodeOf(t, c, trn1).Labels
	manifest := cluster.ScanningOften(t, statusManifest)
	c.Apply(t, manifest)
	trn1.ExpectAllocatable(t, wholeTrn1)
	awaitNode(t, c, trn1, "labels and conditions", func(node *core.Node) error {
		for key, want := range statusLabels {
			if node.Labels[key] != want {
				return fmt.Errorf("label %s is %q, want %q", key, node.Labels[key], want)
			}
		}
		return wantCondition(node, neuronHealth, core.ConditionFalse, "NeuronHasNoError")
	})
	for key, value := range labels {
		if got := nodeOf(t, c, trn1).Labels[key]; got != value {
			t.Errorf("label %s was %q and is %q", key, value, got)
		}
	}
	t.Run("Fault", func(t *testing.T) { expectFaultReported(t, c, trn1) })
	t.Run("OneOfSixteen", func(t *testing.T) { expectOneOfSixteen(t, c, trn1) })
	t.Run("Restart", func(t *testing.T) { expectNothingMoved(t, c, trn1) })
	t.Run("Others", func(t *testing.T) { expectOthersKept(t, c, trn1) })
	t.Run("NothingOnABareNode", func(t *testing.T) {
		if got := ownParts(nodeOf(t, c, bare)); got != "" {
			t.Errorf("%s says %s", bare.Name, got)
		}
	})
	byAgent, byHand, _ := strings.Cut(strings.Join(cluster.CodeLines(t, "docs/node-status.md", "Taking it away"), "\n"), "for node in")
	t.Run("Withdrawn", func(t *testing.T) {
		c.Shell(t, byAgent)
		c.ExpectNoPods(t, system, agentPod)
		expectWithdrawn(t, c, nodes, before)
	})
	t.Run("WithdrawnByHand", func(t *testing.T) {
		trn1.Inject(t, "neuron3", "sram_ecc_uncorrected=1") // so that it does not wait at the start
		c.Kubectl(t, "apply", "-f", manifest)
		awaitCondition(t, c, trn1, neuronHealth, core.ConditionTrue, "SramEccUncorrected")
		c.Kubectl(t, "delete", "-f", manifest)
		c.ExpectNoPods(t, system, agentPod)
		trn1.Inject(t, "neuron3", "heal")
		if ownParts(nodeOf(t, c, trn1)) == "" {
			t.Error("an agent that ends takes its words along, even for an update")
		}
		c.Shell(t, "for node in"+byHand)
		expectWithdrawn(t, c, nodes, before)
	})
}

// expectFaultReported: what only another instance cures is the node's, at once.
func expectFaultReported(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	since := conditionOf(nodeOf(t, c, n), neuronHealth).LastTransitionTime
	time.Sleep(time.Until(since.Add(time.Second))) // it counts in seconds
	broken := time.Now()
	n.Inject(t, "neuron3", "sram_ecc_uncorrected=1")
	awaitCondition(t, c, n, neuronHealth, core.ConditionTrue, "SramEccUncorrected")
	cluster.Figure(t, "fault written, condition seen", time.Since(broken))
	node := nodeOf(t, c, n)
	if said := conditionOf(node, neuronHealth); said.LastTransitionTime == since || !strings.Contains(said.Message, "neuron3") ||
		!strings.Contains(said.Message, "replace the instance") {
		t.Errorf("%+v", said)
	}
	awaitNode(t, c, n, "the label", func(node *core.Node) error { return wantLabel(node, "neuron-agent/health", "unhealthy") })
	n.ExpectAllocatable(t, cluster.Counts{Cores: 30, Devices: 15, EFAs: 8})
	awaitEvent(t, c, n, "Warning", "SramEccUncorrected", 1)
	said := c.AwaitSaid(t, []string{"SramEccUncorrected", "neuron-agent"}, "describe", "node", n.Name)
	t.Logf("SAID describe node\n%s", eventsIn(said))
	n.Inject(t, "neuron3", "heal")
	awaitCondition(t, c, n, neuronHealth, core.ConditionFalse, "NeuronHasNoError")
	awaitNode(t, c, n, "the label", func(node *core.Node) error { return wantLabel(node, "neuron-agent/health", "healthy") })
	n.ExpectAllocatable(t, wholeTrn1)
	awaitEvent(t, c, n, "Normal", "Healthy", 1)
}

func expectOneOfSixteen(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	n.Inject(t, "neuron5", "vanish")
	awaitCondition(t, c, n, neuronHealth, core.ConditionFalse, "BelowThreshold")
	awaitNode(t, c, n, "the label", func(node *core.Node) error { return wantLabel(node, "neuron-agent/devices", "15") })
	awaitEvent(t, c, n, "Warning", "DeviceVanished", 1)
	n.ExpectAllocatable(t, cluster.Counts{Cores: 30, Devices: 15, EFAs: 8})
	n.Inject(t, "neuron5", "heal")
	awaitCondition(t, c, n, neuronHealth, core.ConditionFalse, "NeuronHasNoError")
	n.ExpectAllocatable(t, wholeTrn1)
}

// expectNothingMoved: an agent that starts anew finds its words and writes none; a heartbeat moves no transition.
func expectNothingMoved(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	n.Inject(t, "neuron6", "sram_ecc_uncorrected=1") // of neuron3 an event waits for a minute after the last
	awaitCondition(t, c, n, neuronHealth, core.ConditionTrue, "SramEccUncorrected")
	awaitEvent(t, c, n, "Warning", "SramEccUncorrected", 2)
	before := conditionOf(nodeOf(t, c, n), neuronHealth)
	freshAgentPod(t, c, n)
	// It has said all it has to say once it tells of another fault.
	n.Inject(t, "neuron4", "sram_ecc_uncorrected=1")
	awaitNode(t, c, n, "another fault", func(node *core.Node) error {
		if said := conditionOf(node, neuronHealth); !strings.Contains(said.Message, "neuron4") {
			return fmt.Errorf("%+v", said)
		}
		return nil
	})
	after := conditionOf(nodeOf(t, c, n), neuronHealth)
	if after.LastTransitionTime != before.LastTransitionTime || after.LastHeartbeatTime == before.LastHeartbeatTime {
		t.Errorf("was %+v, is %+v", before, after)
	}
	awaitEvent(t, c, n, "Warning", "SramEccUncorrected", 3) // one of neuron4, no second of neuron6
	n.Inject(t, "neuron6", "heal")
	n.Inject(t, "neuron4", "heal")
	awaitCondition(t, c, n, neuronHealth, core.ConditionFalse, "NeuronHasNoError")
}

// expectOthersKept: AWS's node monitoring agent comes after ours and writes the same condition.
func expectOthersKept(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	c.Kubectl(t, "-n", system, "set", "env", "daemonset/neuron-agent", "NEURON_AGENT_ACCELERATED_HARDWARE_READY=true")
	c.Kubectl(t, "-n", system, "rollout", "status", "daemonset/neuron-agent", "--timeout=90s")
	awaitCondition(t, c, n, hardwareReady, core.ConditionTrue, "NeuronAcceleratedHardwareIsReady")
	patchStatus := func(conditions string) {
		t.Helper()
		_, err := c.Client.CoreV1().Nodes().Patch(context.Background(), n.Name, types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[`+conditions+`]}}`), meta.PatchOptions{FieldManager: "eks-node-monitoring-agent"}, "status")
		if err != nil {
			t.Fatal(err)
		}
	}
	patchStatus(`{"type":"AcceleratedHardwareReady","status":"False","reason":"NeuronDMAError","message":"theirs"}`)
	theirs := conditionOf(nodeOf(t, c, n), hardwareReady)
	n.Inject(t, "neuron3", "sram_ecc_uncorrected=1")
	awaitCondition(t, c, n, neuronHealth, core.ConditionTrue, "SramEccUncorrected")
	n.Inject(t, "neuron3", "heal")
	awaitCondition(t, c, n, neuronHealth, core.ConditionFalse, "NeuronHasNoError")
	if said := conditionOf(nodeOf(t, c, n), hardwareReady); said != theirs || said.Reason != "NeuronDMAError" {
		t.Errorf("was %+v, is %+v", theirs, said)
	}
	said := c.AwaitSaid(t, []string{"left to eks-node-monitoring-agent"}, "-n", system, "logs", "-l", agentPod, "--tail=-1")
	t.Logf("SAID logs\n%s", linesWith(said, "node status"))
	patchStatus(`{"$patch":"delete","type":"AcceleratedHardwareReady"}`)
}

func expectWithdrawn(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node, before cluster.Inventory) {
	t.Helper()
	for _, n := range nodes {
		if got := ownParts(nodeOf(t, c, n)); got != "" {
			t.Errorf("%s still says %s", n.Name, got)
		}
	}
	c.Kubectl(t, "delete", "events", "-n", "default", "--field-selector", "reportingComponent=neuron-agent")
	if left := eventsOf(t, c); len(left) != 0 {
		t.Errorf("events %v", left)
	}
	c.ExpectInventory(t, before, nodes...)
}

// TestNodeStatusPolicy: with the agent's token, that of a pod on a node, only the agent's labels and conditions of that node are
// changed, and only events about it are written.
func TestNodeStatusPolicy(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Trn1, cluster.Bare)
	own, other := nodes[0].Name, nodes[1].Name
	c.Apply(t, cluster.Manifest(statusManifest))
	token := statusTokenOn(t, c, own)
	try := func(token, node, subresource, patch string) error {
		parts := strings.Fields(subresource)
		_, err := c.As(t, token).CoreV1().Nodes().Patch(context.Background(), node, types.StrategicMergePatchType, []byte(patch),
			meta.PatchOptions{DryRun: []string{meta.DryRunAll}}, parts...)
		return err
	}
	const ownLabel, ownCondition = `{"metadata":{"labels":{"neuron-agent/health":"x"}}}`,
		`{"status":{"conditions":[{"type":"NeuronHealth","status":"True"}]}}`
	cluster.Eventually(t, cluster.Patience, "the policy is in force", func() error {
		if err := try(token, other, "", ownLabel); err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return fmt.Errorf("another node: %v", err)
		}
		return nil
	})
	for name, each := range map[string]struct{ subresource, patch string }{
		"a label of its own": {"", ownLabel}, "a label of AWS's": {"", `{"metadata":{"labels":{"neuron.amazonaws.com/ultraserver-mode":"1"}}}`},
		"a condition": {"status", ownCondition},
	} {
		if err := try(token, own, each.subresource, each.patch); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, each := range map[string]struct{ subresource, patch, words string }{
		"a foreign label":        {"", `{"metadata":{"labels":{"x":"y"}}}`, "of the labels only"},
		"the label of the mode":  {"", `{"metadata":{"labels":{"neuron-agent/mode":"dra"}}}`, "of the labels only"},
		"a label taken away":     {"", `{"metadata":{"labels":{"kubernetes.io/hostname":null}}}`, "of the labels only"},
		"a label by the status":  {"status", `{"metadata":{"labels":{"x":"y"}}}`, "of the labels only"},
		"an annotation":          {"", `{"metadata":{"annotations":{"x":"y"}}}`, "labels, conditions and startup taints only"},
		"a taint":                {"", `{"spec":{"taints":[{"key":"x","effect":"NoExecute"}]}}`, "of the spec only"},
		"a cordon":               {"", `{"spec":{"unschedulable":true}}`, "of the spec only"},
		"capacity":               {"status", `{"status":{"capacity":{"example.com/x":"1"}}}`, "of the status only conditions"},
		"allocatable":            {"status", `{"status":{"allocatable":{"aws.amazon.com/neuron":"99"}}}`, "of the status only conditions"},
		"the kubelet's":          {"status", `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, "of the conditions only"},
		"the kubelet's gone":     {"status", `{"status":{"conditions":[{"$patch":"delete","type":"Ready"}]}}`, "of the conditions only"},
		"a condition of no name": {"status", `{"status":{"conditions":[{"type":"Other","status":"True"}]}}`, "of the conditions only"},
	} {
		expectRefused(t, name, try(token, own, each.subresource, each.patch), each.words)
	}
	expectRefused(t, "another node", try(token, other, "", ownLabel), "this is another")
	expectRefused(t, "another node's condition", try(token, other, "status", ownCondition), "this is another")
	expectRefused(t, "a token of no pod", try(tokenFor(t, c, statusAccount, nil), own, "", ownLabel), "token of a pod on a node only")
	t.Run("Events", func(t *testing.T) { expectOwnEventsOnly(t, c, token, own, other) })
	t.Run("NothingElse", func(t *testing.T) {
		ctx, agent := context.Background(), c.As(t, token)
		_, listed := agent.CoreV1().Nodes().List(ctx, meta.ListOptions{})
		_, made := agent.CoreV1().Nodes().Create(ctx, &core.Node{ObjectMeta: meta.ObjectMeta{Name: "x"}}, meta.CreateOptions{})
		_, events := agent.CoreV1().Events("default").List(ctx, meta.ListOptions{})
		_, pods := agent.CoreV1().Pods(system).List(ctx, meta.ListOptions{})
		// Server-side apply makes what is not there, if one may.
		_, applied := agent.CoreV1().Nodes().Patch(ctx, "x", types.ApplyPatchType,
			[]byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"x"}}`), meta.PatchOptions{FieldManager: statusManager})
		for what, err := range map[string]error{"nodes": listed, "a new node": made, "a new node by apply": applied, "events": events,
			"pods": pods, "a node's end": agent.CoreV1().Nodes().Delete(ctx, other, meta.DeleteOptions{})} {
			if err == nil || !strings.Contains(err.Error(), "forbidden") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func expectOwnEventsOnly(t *testing.T, c *cluster.Cluster, token, own, other string) {
	create := func(namespace string, change func(*core.Event)) error {
		event := &core.Event{ObjectMeta: meta.ObjectMeta{Name: own + ".0123456789abcdef", Namespace: namespace}, Reason: "Test", Type: "Normal",
			InvolvedObject: core.ObjectReference{APIVersion: "v1", Kind: "Node", Name: own}, Source: core.EventSource{Component: statusManager}}
		change(event)
		_, err := c.As(t, token).CoreV1().Events(namespace).Create(context.Background(), event, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		return err
	}
	if err := create("default", func(*core.Event) {}); err != nil {
		t.Error("about its node: ", err)
	}
	expectRefused(t, "with a name of another node's", create("default", func(e *core.Event) { e.Name = other + ".0123456789abcdef" }), "metadata.name is another")
	expectRefused(t, "about another node", create("default", func(e *core.Event) { e.InvolvedObject.Name = other }), "about something else")
	expectRefused(t, "about a pod", create(system, func(e *core.Event) {
		e.InvolvedObject = core.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: system, Name: own}
	}), "about something else")
	expectRefused(t, "as another", create("default", func(e *core.Event) { e.Source.Component = "kubelet" }), "names another")
}

// ---- What the tests above look at

func expectRefused(t *testing.T, what string, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'neuron-agent-node-") || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %v, want a refusal with %q", what, err, words)
	}
}

func nodeOf(t *testing.T, c *cluster.Cluster, n *cluster.Node) *core.Node {
	t.Helper()
	node, err := c.Client.CoreV1().Nodes().Get(context.Background(), n.Name, meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func conditionOf(node *core.Node, kind core.NodeConditionType) core.NodeCondition {
	for _, one := range node.Status.Conditions {
		if one.Type == kind {
			return one
		}
	}
	return core.NodeCondition{}
}

func wantCondition(node *core.Node, kind core.NodeConditionType, status core.ConditionStatus, reason string) error {
	if is := conditionOf(node, kind); is.Status != status || is.Reason != reason {
		return fmt.Errorf("%s: %+v, want %s, %s", kind, is, status, reason)
	}
	return nil
}

func wantLabel(node *core.Node, key, value string) error {
	if is := node.Labels[key]; is != value {
		return fmt.Errorf("label %s is %q, want %q", key, is, value)
	}
	return nil
}

func awaitNode(t *testing.T, c *cluster.Cluster, n *cluster.Node, what string, check func(*core.Node) error) {
	t.Helper()
	cluster.Eventually(t, statusPatience, what, func() error { return check(nodeOf(t, c, n)) })
}

func awaitCondition(t *testing.T, c *cluster.Cluster, n *cluster.Node, kind core.NodeConditionType, status core.ConditionStatus, reason string) {
	t.Helper()
	awaitNode(t, c, n, string(kind)+" "+reason, func(node *core.Node) error { return wantCondition(node, kind, status, reason) })
}

// ownParts is what a Node has of the agent's labels and conditions, and of fields whose manager it is.
func ownParts(node *core.Node) string {
	var parts []string
	for key := range maps.Keys(node.Labels) {
		if strings.HasPrefix(key, "neuron-agent/") {
			parts = append(parts, key)
		}
	}
	for _, kind := range []core.NodeConditionType{neuronHealth, hardwareReady} {
		if conditionOf(node, kind).Type != "" {
			parts = append(parts, string(kind))
		}
	}
	for _, entry := range node.ManagedFields {
		if entry.Manager == statusManager {
			text, _ := json.Marshal(entry)
			parts = append(parts, string(text))
		}
	}
	return strings.Join(parts, " ")
}

func eventsOf(t *testing.T, c *cluster.Cluster) []core.Event {
	t.Helper()
	list, err := c.Client.CoreV1().Events("default").List(context.Background(), meta.ListOptions{FieldSelector: "reportingComponent=neuron-agent"})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// awaitEvent waits until events of that reason about the node have been told that often, all together, and not more.
func awaitEvent(t *testing.T, c *cluster.Cluster, n *cluster.Node, kind, reason string, times int32) {
	t.Helper()
	cluster.Eventually(t, statusPatience, reason+" is told", func() error {
		var count int32
		for _, event := range eventsOf(t, c) {
			if event.InvolvedObject.Name == n.Name && event.Reason == reason && event.Type == kind {
				count += event.Count
			}
		}
		if count != times {
			return fmt.Errorf("told %d times, want %d", count, times)
		}
		return nil
	})
}

// freshAgentPod replaces the agent's pod and waits for its successor.
func freshAgentPod(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	t.Helper()
	before := agentPodOn(t, c, n)
	c.Kubectl(t, "-n", system, "delete", "pod", before.Name)
	awaitAnotherAgent(t, c, n, before.UID)
}

func statusTokenOn(t *testing.T, c *cluster.Cluster, node string) string {
	t.Helper()
	w := cluster.One("status-token-"+node, nil)
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: w.Name}, Spec: w.PodTemplate().Spec}
	pod.Spec.NodeName, pod.Spec.ServiceAccountName = node, statusAccount
	c.CreatePod(t, system, pod)
	made, err := c.Client.CoreV1().Pods(system).Get(context.Background(), pod.Name, meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return tokenFor(t, c, statusAccount, made)
}

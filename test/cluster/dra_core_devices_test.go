package scenarios

import (
	"fmt"
	"maps"
	"math/rand"
	"strconv"
	"testing"
	"time"

	"neuron-agent.test/cluster/cluster"
)

// coreDevices publishes the cores of four devices as devices of their own, and the others whole (docs/dra-partitions.md).
const coreDevices = `
patches:
  - target: {kind: DaemonSet, name: neuron-agent-dra}
    patch: |-
      - {op: add, path: /spec/template/spec/containers/0/args/-, value: --core-devices=0-3}
`

// TestUnmodifiedCores: with --core-devices pods that know nothing of claims get aws.amazon.com/neuroncore through claims, without a
// counter, and are served as by a device plugin that splits its node the same way.
func TestUnmodifiedCores(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, trn1DRA, cluster.Trn1)
	n := nodes[0]
	t.Cleanup(func() { c.ExpectNoPods(t, system, draPod) })
	applyDRAWith(t, c, coreDevices, unmodified)
	split := maps.Clone(unpartitioned(n))
	split["neuron_device"], split["neuron_core"] = 12, 8
	awaitKinds(t, n, split)
	devices, err := n.Offered()
	if err != nil {
		t.Fatal(err)
	}
	for _, device := range devices {
		if len(device.ConsumesCounters) > 0 {
			t.Errorf("%s uses counters", device.Name)
		}
	}
	set := cluster.DefaultAgent(t)
	set.Spec.Template.Spec.Containers[0].Args = splitArguments
	c.StartAgent(t, set)
	expectOffered(t, nodes[1], expectSplit(wholeTrn1))

	for i, asks := range [][]cluster.Ask{
		{{cluster.NeuronCore: "1"}, {cluster.NeuronCore: "3", cluster.EFA: "1"}, {cluster.Neuron: "2", cluster.EFA: "1"}},
		{{cluster.NeuronCore: "8"}, {cluster.Neuron: "12"}},
	} {
		expectBothServe(t, c, nodes, fmt.Sprintf("core-devices-%d", i), asks)
	}
	expectOneCore(t, c, n)
	w := cluster.One("one-core-too-many", cluster.Ask{cluster.NeuronCore: "9"})
	w.Node = n.Name
	c.StartJob(t, w)
	awaitChosen(t, c, w, 16, 2, "cannot allocate all claims")
	c.DeleteJob(t, w)
	t.Run("Queue", func(t *testing.T) { expectCoreDevicesQueue(t, c, n) })
}

// expectBothServe runs these pods on both nodes at once: the first serves them through claims, the second as a device plugin.
func expectBothServe(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node, name string, asks []cluster.Ask) {
	t.Helper()
	var all []cluster.Workload
	for i, ask := range asks {
		for _, n := range nodes {
			w := cluster.One(fmt.Sprintf("%s-%d-%s", name, i, n.Name), ask)
			w.Node = n.Name
			c.StartJob(t, w)
			all = append(all, w)
		}
	}
	defer c.DeleteJob(t, all...)
	for i, w := range all {
		ask := asks[i/len(nodes)]
		if w.Node != nodes[0].Name {
			c.AwaitReports(t, w)[0].ExpectGiven(t, ask, 2)
			continue
		}
		report := c.AwaitClaimReports(t, w, 16, 2)[0]
		expectAsked(t, report, ask)
		report.ExpectSeen(t, 2)
		expectCoresBelow(t, report, 8)
	}
}

// expectOneCore: the words of a claim for a share get a core, whether that is a device of its own or, from 1.37, a share of another device.
func expectOneCore(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	t.Helper()
	template(t, c, "one-core", shareOf("1"))
	w := cluster.One("one-core", nil).WithClaims(map[string]string{"devices": "one-core"})
	w.Node = n.Name
	c.StartJob(t, w)
	defer c.DeleteJob(t, w)
	report := c.AwaitReports(t, w)[0]
	if count, err := coresIn(report.Env["NEURON_RT_VISIBLE_CORES"]); err != nil || count != 1 || len(report.Open) != 1 {
		t.Errorf("a claim for one core: NEURON_RT_VISIBLE_CORES is %q (%v), open are %v", report.Env["NEURON_RT_VISIBLE_CORES"], err, report.Open)
	}
}

// expectCoresBelow: all cores are of devices that are published as cores.
func expectCoresBelow(t *testing.T, r cluster.Report, limit int) {
	t.Helper()
	for _, id := range r.Held[cluster.NeuronCore] {
		if core, err := strconv.Atoi(id); err != nil || core >= limit {
			t.Errorf("%s has the core %s", r.Pod, id)
		}
	}
}

// expectCoreDevicesQueue: unmodified pods of both names at once, none refused, no core twice.
func expectCoreDevicesQueue(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	count, random := shortOrDeep(30, 120), rand.New(rand.NewSource(21))
	asks := withEFA(append(asksFor(cluster.Neuron, 1, 1, 2, 4), asksFor(cluster.NeuronCore, 1, 1, 2, 3, 5)...))
	l := &claimLoad{t: t, c: c, name: "core-devices"}
	for i := range count {
		l.pods = append(l.pods, claimPod{name: fmt.Sprintf("core-devices-queue-%d", i), node: n, ask: asks[random.Intn(len(asks))],
			life: 1 + random.Intn(3)})
	}
	l.expectUsed(l.run(10*time.Minute, nil), "unmodified pods for cores and devices, --core-devices 0-3")
}

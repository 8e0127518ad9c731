package scenarios

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"neuron-agent.test/cluster/cluster"
)

// TestKubectlNeuronSession makes the fleet that docs/kubectl-neuron.md shows: three kinds of nodes, pods that hold some of their devices, a
// device that fails and a pod that waits. Its dump, session.tar.gz beside the logs, is what was copied to
// test/fixtures/kubectl-neuron/three-kinds.tar.gz; test/unit/kubectl_neuron/session_test.cpp compares page and picture with that.
func TestKubectlNeuronSession(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Trn1, cluster.Trn2, cluster.Inf2)
	c.Apply(t, cluster.ScanningOften(t, "static/neuron-agent.yaml"))
	for i, n := range nodes {
		n.ExpectAllocatable(t, everyKindsCounts[i])
	}
	expectReadyEverywhere(t, c, agentPod, 3)
	for _, w := range []cluster.Workload{
		onNode("train-0", nodes[0], cluster.Ask{cluster.Neuron: "4", cluster.EFA: "2"}),
		onNode("train-1", nodes[0], cluster.Ask{cluster.Neuron: "4", cluster.EFA: "2"}),
		onNode("notebook", nodes[1], cluster.Ask{cluster.NeuronCore: "2"}),
		onNode("llama-0", nodes[1], cluster.Ask{cluster.Neuron: "8", cluster.EFA: "8"}),
		onNode("serve-0", nodes[2], cluster.Ask{cluster.Neuron: "2"}),
		onNode("serve-1", nodes[2], cluster.Ask{cluster.Neuron: "2"}),
	} {
		c.StartPod(t, w)
		c.ReportsOf(t, "default", w.Name)
	}
	free := freeDevice(t, c, nodes[0])
	nodes[0].Inject(t, "neuron"+free, "sram_ecc_uncorrected=1")
	defer nodes[0].Inject(t, "neuron"+free, "heal")
	nodes[0].ExpectAllocatable(t, cluster.Counts{Cores: 14, Devices: 15, EFAs: 8}) // cores of held devices are withheld
	c.StartPod(t, cluster.One("waiting", cluster.Ask{cluster.Neuron: "16"}))
	c.AwaitSaid(t, []string{"Insufficient aws.amazon.com/neuron"}, "describe", "pod", "waiting")

	dump := filepath.Join(os.Getenv("CLUSTER_LOGS"), "session.tar.gz")
	_ = os.Remove(dump)
	for _, arguments := range [][]string{{"nodes"}, {"pods", "-A"}, {"why", "waiting"}, {"top", "--once", "--by", "pod"}, {"map", "-o", "svg", "-"}, {"dump", dump}} {
		live, status := kubectlNeuron(t, c, arguments...)
		if want := map[bool]int{true: 1}[arguments[0] == "why"]; status != want {
			t.Fatalf("%v: status %d, %s", arguments, status, live)
		}
		if arguments[0] != "map" {
			t.Logf("SAID kubectl neuron %v\n%s", arguments, live)
		}
	}
	if _, status := kubectlNeuron(t, c, "map", "-o", "html", "--from", dump, "-"); status != 0 {
		t.Errorf("map of the dump: status %d", status)
	}
}

// freeDevice names one that neither of the two pods has.
func freeDevice(t *testing.T, c *cluster.Cluster, n *cluster.Node) string {
	held := map[string]bool{}
	for _, pod := range []string{"train-0", "train-1"} {
		for _, id := range c.ReportsOf(t, "default", pod)[0].Held[cluster.Neuron] {
			held[id] = true
		}
	}
	all := strings.Fields("0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15")
	return all[slices.IndexFunc(all, func(id string) bool { return !held[id] })]
}

// TestKubectlNeuronLNC: a pod asks for more cores than LNC 2 leaves; why names LNC 1, which is then written on the node, and the pod runs.
func TestKubectlNeuronLNC(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, cluster.Spec{Name: "trn2-lnc2", InstanceType: "trn2.48xlarge", Simulation: []string{"--lnc", "2"}})[0]
	t.Cleanup(func() { c.ExpectNoPods(t, system, agentPod) }) // before the node goes
	c.Apply(t, cluster.Manifest("static/neuron-agent.yaml"))
	showLNCFile(t, c)
	n.ExpectAllocatable(t, everyKindsCounts[1])
	expectReadyEverywhere(t, c, agentPod, 1)
	c.StartPod(t, onNode("all-cores", n, cluster.Ask{cluster.NeuronCore: "128"}))
	c.AwaitSaid(t, []string{"Insufficient aws.amazon.com/neuroncore"}, "describe", "pod", "all-cores")
	why, status := askWhy(t, c, "all-cores")
	at := slices.IndexFunc(why.Changes, func(change whyChange) bool { return change.Kind == "other_lnc" && change.Node == n.Name })
	if status != 1 || at < 0 {
		t.Fatalf("status %d, %+v", status, why)
	}
	file := filepath.Join(n.Host(), "opt/aws/neuron/logical_nc_config")
	if err := os.WriteFile(file, []byte("NEURON_LOGICAL_NC_CONFIG="+why.Changes[at].Value+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.ReportsOf(t, "default", "all-cores")
	if why, status = askWhy(t, c, "all-cores"); status != 0 {
		t.Errorf("after the change: status %d, %+v", status, why)
	}
}

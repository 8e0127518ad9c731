package scenarios

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"neuron-agent.test/cluster/cluster"
)

const devManifest = "static/neuron-agent-dev.yaml"

// plainDebian is a second machine, with Debian's containerd.
var plainDebian = cluster.Spec{Name: "plain-debian", Runtime: cluster.DebianContainerd}

// runningAgentOn returns the agent's running pod of a node, without those that are ending and those of nodes that are gone.
func runningAgentOn(t *testing.T, c *cluster.Cluster, node *cluster.Node) core.Pod {
	t.Helper()
	var found core.Pod
	cluster.Eventually(t, cluster.Patience, "a running agent on "+node.Name, func() error {
		pods, err := c.Pods(system, agentPod)
		for _, pod := range pods {
			if pod.Spec.NodeName == node.Name && pod.DeletionTimestamp == nil && pod.Status.Phase == core.PodRunning {
				found = pod
				return nil
			}
		}
		return errors.Join(err, errors.New("none among "+strconv.Itoa(len(pods))))
	})
	return found
}

// TestReadmeWithoutHardware types README's lines on three nodes that have nothing but the image, of three kinds and with both
// containerds, runs the sample on the second one too, and takes all of it away again.
func TestReadmeWithoutHardware(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Plain, plainDebian, cluster.Spec{Name: "plain-third"})
	before := inventoryBefore(t, c, nodes...)
	kinds := []string{"trn1.32xlarge", "inf2.24xlarge", "trn1.2xlarge"} // the first by default
	for i, n := range nodes[1:] {
		c.Kubectl(t, "label", "node", n.Name, "neuron-agent/simulate="+kinds[i+1])
	}
	t.Cleanup(func() {
		c.Kubectl(t, "delete", "--ignore-not-found", "--wait", "-f", cluster.Manifest(devManifest),
			"-f", cluster.Manifest("examples/sample-job.yaml"))
		c.ExpectNoPods(t, system, agentPod)
	})
	outputs := []string{}
	for _, line := range cluster.KubectlLines(t, "README.md", "In a cluster without the hardware") {
		outputs = append(outputs, c.Shell(t, line, "PATH="+cluster.Tools()+":"+os.Getenv("NEURON_BIN")+":"+os.Getenv("PATH")))
	}
	if len(outputs) != 4 {
		t.Fatalf("README.md has %d lines for kubectl", len(outputs))
	}
	expectSample(t, outputs[1])
	if !strings.Contains(outputs[2], "NEURON") {
		t.Errorf("neuron-ls prints\n%s", outputs[2])
	}
	for i, n := range nodes {
		if !regexp.MustCompile(`(?m)^` + n.Name + ` +` + regexp.QuoteMeta(kinds[i]) + ` `).MatchString(outputs[3]) {
			t.Errorf("kubectl neuron nodes does not show %s as %s:\n%s", n.Name, kinds[i], outputs[3])
		}
	}
	nodes[0].ExpectAllocatable(t, cluster.Counts{Cores: 32, Devices: 16, EFAs: 8})
	nodes[1].ExpectAllocatable(t, cluster.Counts{Cores: 12, Devices: 6})
	nodes[2].ExpectAllocatable(t, cluster.Counts{Cores: 2, Devices: 1})
	expectReadyEverywhere(t, c, agentPod, 3)

	ask := cluster.Ask{cluster.Neuron: "2"} // the sample asks for an EFA interface, so it went to the first
	second := cluster.One("without-cdi", ask)
	second.Node = nodes[1].Name
	c.StartJob(t, second)
	report := c.AwaitReports(t, second)[0]
	if len(report.Open) != 2 || len(report.Refused) != 0 || report.Env["NEURON_RT_VISIBLE_CORES"] != "0-3" {
		t.Errorf("on %s: open %v, refused %v, environment %v", report.Node.Name, report.Open, report.Refused, report.Env)
	}
	c.DeleteJob(t, second)
	expectDevRemoved(t, c, before, nodes)
}

func expectSample(t *testing.T, got string) {
	t.Helper()
	for _, words := range []string{"NEURON_RT_VISIBLE_CORES=0-3\n", "/dev/infiniband/uverbs", ", simulated, opens\n"} {
		if !strings.Contains(got, words) {
			t.Errorf("the sample job does not print %q:\n%s", words, got)
		}
	}
	if strings.Count(got, "/dev/neuron") != 2 || strings.Count(got, "/dev/infiniband/") != 1 {
		t.Errorf("the sample job got something else than it asked for:\n%s", got)
	}
}

// expectDevRemoved: nothing stays but the directory that docs/install.md names.
func expectDevRemoved(t *testing.T, c *cluster.Cluster, before cluster.Inventory, nodes []*cluster.Node) {
	t.Helper()
	c.Shell(t, "kubectl delete -f manifests/static/neuron-agent-dev.yaml -f manifests/examples/sample-job.yaml")
	for _, n := range nodes {
		c.Kubectl(t, "label", "node", n.Name, "neuron-agent/simulate-")
		n.ExpectAllocatable(t, cluster.Counts{})
		c.ExpectNoPods(t, system, agentPod)
		if _, err := n.Exec("rm", "-r", "/var/lib/neuron-sim"); err != nil {
			t.Error(err)
		}
	}
	c.ExpectInventory(t, before, nodes...)
}

// TestDevManifestKeepsAndChangesHosts: a fault survives the pod; another label makes another host; the log says why.
func TestDevManifestKeepsAndChangesHosts(t *testing.T) {
	c := cluster.Get(t)
	node := c.Nodes(t, cluster.Plain)[0]
	c.Apply(t, cluster.Manifest(devManifest))
	node.ExpectAllocatable(t, cluster.Counts{Cores: 32, Devices: 16, EFAs: 8})
	pod := func() string { return "pod/" + runningAgentOn(t, c, node).Name }
	agent := func(arguments ...string) string {
		return c.Kubectl(t, append([]string{"-n", system, "exec", pod(), "--"}, arguments...)...)
	}
	again := func() {
		c.Kubectl(t, "-n", system, "delete", pod())
		c.Kubectl(t, "-n", system, "rollout", "status", "daemonset/neuron-agent", "--timeout=60s")
	}
	hostLog := func() string {
		return c.Kubectl(t, "-n", system, "logs", pod(), "-c", "simulated-host")
	}
	agent("neuron-sim", "set", "/var/lib/neuron-sim", "neuron3", "vanish")
	node.ExpectAllocatable(t, cluster.Counts{Cores: 30, Devices: 15, EFAs: 8})
	again()
	node.ExpectAllocatable(t, cluster.Counts{Cores: 30, Devices: 15, EFAs: 8})
	if log := hostLog(); !strings.Contains(log, "kept trn1.32xlarge") {
		t.Errorf("the init container says %q", log)
	}
	agent("neuron-sim", "set", "/var/lib/neuron-sim", "host", "heal")
	node.ExpectAllocatable(t, cluster.Counts{Cores: 32, Devices: 16, EFAs: 8})

	c.Kubectl(t, "label", "node", node.Name, "neuron-agent/simulate=trn2.3xlarge")
	t.Cleanup(func() { c.Kubectl(t, "label", "node", node.Name, "neuron-agent/simulate-") })
	again()
	node.ExpectAllocatable(t, cluster.Counts{Cores: 4, Devices: 1, EFAs: 1})
	if out := agent("neuron-top", "--once"); !strings.Contains(out, "trn2.3xlarge") {
		t.Errorf("neuron-top shows\n%s", out)
	}

	c.Kubectl(t, "delete", "clusterrolebinding", "neuron-agent-dev")
	again()
	log := hostLog()
	if !strings.Contains(log, "cannot be read, so it is trn1.32xlarge") || !strings.Contains(log, "403") {
		t.Errorf("without the role the init container says %q", log)
	}
	node.ExpectAllocatable(t, cluster.Counts{Cores: 32, Devices: 16, EFAs: 8})
}

// TestDevManifestFleet is the demo's cluster cousin: three nodes of different simulated types, a pod that holds devices and one that
// waits; the lines of docs/install.md with kubectl neuron show them.
func TestDevManifestFleet(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Plain, plainDebian, cluster.Spec{Name: "plain-third"})
	types := []string{"trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge"} // of everyKindsCounts
	for i, n := range nodes {
		c.Kubectl(t, "label", "node", n.Name, "neuron-agent/simulate="+types[i])
		t.Cleanup(func() { c.Kubectl(t, "label", "node", n.Name, "neuron-agent/simulate-") })
	}
	t.Cleanup(func() { c.ExpectNoPods(t, system, agentPod) })
	c.Apply(t, cluster.Manifest(devManifest))
	for i, n := range nodes {
		n.ExpectAllocatable(t, everyKindsCounts[i])
	}
	expectReadyEverywhere(t, c, agentPod, 3)
	c.StartPod(t, onNode("holds", nodes[0], cluster.Ask{cluster.Neuron: "4", cluster.EFA: "2"}))
	c.ReportsOf(t, "default", "holds")
	c.StartPod(t, onNode("waits", nodes[0], cluster.Ask{cluster.Neuron: "16"}))
	c.AwaitSaid(t, []string{"Insufficient aws.amazon.com/neuron"}, "describe", "pod", "waits")

	picture := filepath.Join(t.TempDir(), "fleet.svg")
	shown := ""
	for _, line := range cluster.KubectlLines(t, "docs/install.md", "Without the hardware") {
		if !strings.HasPrefix(line, "kubectl neuron ") {
			continue
		}
		line = strings.NewReplacer("fleet.svg", picture, "POD", "waits || [ $? = 1 ]").Replace(line)
		shown += c.Shell(t, line, "PATH="+cluster.Tools()+":"+os.Getenv("NEURON_BIN")+":"+os.Getenv("PATH"))
	}
	drawn, err := os.ReadFile(picture)
	if err != nil {
		t.Error(err)
	}
	shown += string(drawn)
	for i, n := range nodes {
		if strings.Count(shown, types[i]) < 2 || strings.Count(shown, n.Name) < 2 {
			t.Errorf("%s, %s, is not in the list and the picture", n.Name, types[i])
		}
	}
	for _, words := range []string{"3 nodes; 44 devices: 40 free, 4 held, 0 unhealthy", "<svg", "pod default/waits: it fits on no node now",
		"asks for 16 aws.amazon.com/neuron, 12 of 16 are free; held by default/holds (4)", "default/holds ends: it then fits on " + nodes[0].Name} {
		if !strings.Contains(shown, words) {
			t.Errorf("nothing shows %q", words)
		}
	}
}

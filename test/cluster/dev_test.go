package scenarios

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"neuron-agent.test/cluster/cluster"
)

const devManifest = "static/neuron-agent-dev.yaml"

// anotherPlain is a second machine, which its label makes another type.
func anotherPlain() cluster.Spec {
	spec := cluster.Plain
	spec.Name = "plain-2"
	spec.Labels = map[string]string{"neuron-agent/simulate": "inf2.24xlarge"}
	return spec
}

// needImage: neuron-sim is in an image of its own, for which there is no stand-in.
func needImage(t *testing.T) {
	t.Helper()
	if found, _ := filepath.Glob(os.Getenv("IMAGES") + "/neuron-agent-sim-*.tar"); len(found) > 0 {
		return
	}
	why := "no archive of neuron-agent-sim in IMAGES: tools/image.sh --output build/image makes one"
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// readmeLines returns the commands of README's section, as they stand there.
func readmeLines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(cluster.Manifest("")), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "### In a cluster without the hardware\n")
	if !found {
		t.Fatal("README.md has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var lines []string
	for _, line := range strings.Split(section, "\n") {
		if command, is := strings.CutPrefix(line, "    "); is {
			lines = append(lines, command)
		}
	}
	if len(lines) != 5 || !strings.HasPrefix(lines[0], "tools/image.sh ") {
		t.Fatalf("README.md shows %d lines: %q", len(lines), lines)
	}
	return lines
}

// agentOn returns the agent's running pod of a node, without those that are ending and those of nodes that are gone.
func agentOn(t *testing.T, c *cluster.Cluster, node *cluster.Node) core.Pod {
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

// TestReadmeWithoutHardware types README's lines on two nodes that have nothing but the image.
func TestReadmeWithoutHardware(t *testing.T) {
	needImage(t)
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Plain, anotherPlain())
	t.Cleanup(func() {
		c.Kubectl(t, "delete", "--ignore-not-found", "--wait", "-f", cluster.Manifest(devManifest),
			"-f", cluster.Manifest("examples/sample-job.yaml"))
		c.ExpectNoPods(t, system, agentPod)
	})
	outputs := []string{}
	for _, line := range readmeLines(t)[1:] { // the image is built and on the nodes
		outputs = append(outputs, shell(t, c, line))
	}
	got := outputs[2]
	for _, words := range []string{"NEURON_RT_VISIBLE_CORES=0-3\n", "/dev/infiniband/uverbs", ", simulated, opens\n"} {
		if !strings.Contains(got, words) {
			t.Errorf("the sample job does not print %q:\n%s", words, got)
		}
	}
	if strings.Count(got, "/dev/neuron") != 2 || strings.Count(got, "/dev/infiniband/") != 1 {
		t.Errorf("the sample job got something else than it asked for:\n%s", got)
	}
	if !strings.Contains(outputs[3], "NEURON") {
		t.Errorf("neuron-ls prints\n%s", outputs[3])
	}
	nodes[0].ExpectAllocatable(t, cluster.Counts{Cores: 32, Devices: 16, EFAs: 8})
	nodes[1].ExpectAllocatable(t, cluster.Counts{Cores: 12, Devices: 6})
	expectReadyEverywhere(t, c, agentPod, 2)
}

// TestDevManifestKeepsAndChangesHosts: a fault survives the pod; another label makes another host; the log says why.
func TestDevManifestKeepsAndChangesHosts(t *testing.T) {
	needImage(t)
	c := cluster.Get(t)
	node := c.Nodes(t, cluster.Plain)[0]
	c.Apply(t, cluster.Manifest(devManifest))
	node.ExpectAllocatable(t, cluster.Counts{Cores: 32, Devices: 16, EFAs: 8})
	pod := func() string { return "pod/" + agentOn(t, c, node).Name }
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

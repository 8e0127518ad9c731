package scenarios

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

// rooted is a node whose kubelet has another --root-dir.
var rooted = cluster.Spec{Name: "rooted", InstanceType: "inf2.xlarge", KubeletRoot: "/var/lib/kubelet/root"}

// TestTrouble provokes what docs/troubleshooting.md describes, and asserts the phrases by which its reader finds the place. What
// kubectl printed is in the output, after SAID.
func TestTrouble(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Trn1, inf24, rooted)
	trn1, inf2 := nodes[0], nodes[1]
	manifest := cluster.ScanningOften(t, "static/neuron-agent.yaml")
	c.Apply(t, manifest)
	trn1.ExpectAllocatable(t, wholeTrn1)
	inf2.ExpectAllocatable(t, cluster.Counts{Cores: 12, Devices: 6})

	t.Run("NotEnough", func(t *testing.T) {
		expectExplained(t, c, onNode("too-many", trn1, cluster.Ask{cluster.Neuron: "17"}),
			"no node has 17 aws.amazon.com/neuron, even when empty: the most is 16", "FailedScheduling", "Insufficient aws.amazon.com/neuron")
		expectExplained(t, c, onNode("no-efa", inf2, cluster.Ask{cluster.EFA: "1"}),
			inf2.Name+": does not fit\n      the node does not list vpc.amazonaws.com/efa", "FailedScheduling", "Insufficient vpc.amazonaws.com/efa")
		expectExplained(t, c, onNode("no-such-name", trn1, cluster.Ask{"aws.amazon.com/neurondevice": "1"}), "--neurondevice",
			"FailedScheduling", "Insufficient aws.amazon.com/neurondevice")
	})
	t.Run("BothNames", func(t *testing.T) {
		expectExplained(t, c, onNode("both-names", trn1, cluster.Ask{cluster.Neuron: "1", cluster.NeuronCore: "1"}),
			"ask for all cores of as many devices through both resources", "UnexpectedAdmissionError", "which are the same hardware; request all cores of the same devices through both")
	})
	t.Run("NoImage", func(t *testing.T) {
		w := onNode("no-image", trn1, nil)
		w.Adjust = func(pod *core.PodSpec) {
			pod.Containers[0].Image, pod.Containers[0].ImagePullPolicy = "localhost/neuron-agent:0.0.0", core.PullIfNotPresent
		}
		expectExplained(t, c, w, "an image cannot be pulled", "ErrImagePull", `Failed to pull image "localhost/neuron-agent:0.0.0"`)
	})
	t.Run("Waiting", func(t *testing.T) { expectWaiting(t, c, trn1) })
	t.Run("DeviceFails", func(t *testing.T) { expectDeviceFails(t, c, trn1) })
	t.Run("DeviceNodeGone", func(t *testing.T) { expectNodeGone(t, c, trn1) })
	t.Run("EFAUnbound", func(t *testing.T) { expectUnbound(t, c, trn1) })
	t.Run("TwoAgents", func(t *testing.T) { expectTwoAgents(t, c) })
	t.Run("OtherKubeletDirectory", func(t *testing.T) { expectOtherDirectory(t, c, trn1) })
	t.Run("RootDir", func(t *testing.T) { expectRootDir(t, c) })
	t.Run("AgentAway", func(t *testing.T) { expectAgentAway(t, c, trn1, manifest) })
}

func onNode(name string, n *cluster.Node, ask cluster.Ask) cluster.Workload {
	w := cluster.One(name, ask)
	w.Node = n.Name
	return w
}

// expectExplained starts a pod that comes to nothing, waits until kubectl describe says why and kubectl neuron why what that means, and
// deletes it.
func expectExplained(t *testing.T, c *cluster.Cluster, w cluster.Workload, meaning string, phrases ...string) {
	t.Helper()
	c.StartPod(t, w)
	said := c.AwaitSaid(t, phrases, "describe", "pod", w.Name)
	t.Logf("SAID %s\n%s", w.Name, saidOf(said))
	expectWhySays(t, c, w.Name, meaning)
	c.DeletePod(t, "default", w.Name)
}

// expectWhySays: events come after what they are about.
func expectWhySays(t *testing.T, c *cluster.Cluster, pod, meaning string) {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, "kubectl neuron why "+pod+" says "+meaning, func() error {
		text, status := kubectlNeuron(t, c, "why", pod)
		if status > 2 || !strings.Contains(string(text), meaning) {
			return fmt.Errorf("status %d: %s", status, text)
		}
		return nil
	})
}

// expectWaiting: the other rows about pods that stay Pending.
func expectWaiting(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	n.ExpectAllocatable(t, wholeTrn1)
	c.StartPod(t, onNode("holds-12", n, cluster.Ask{cluster.Neuron: "12"}))
	c.ReportsOf(t, "default", "holds-12")
	expectExplained(t, c, onNode("wants-8", n, cluster.Ask{cluster.Neuron: "8"}), "held by default/holds-12 (12)", "FailedScheduling")
	n.ExpectAllocatable(t, cluster.Counts{Cores: 8, Devices: 16, EFAs: 8})
	expectExplained(t, c, onNode("wants-cores", n, cluster.Ask{cluster.NeuronCore: "9"}),
		"since pods hold the hardware by aws.amazon.com/neuron; held by default/holds-12 (12)", "FailedScheduling")
	c.DeletePod(t, "default", "holds-12")
	n.ExpectAllocatable(t, wholeTrn1)

	c.Kubectl(t, "taint", "node", n.Name, "aws.amazon.com/neuron=true:NoSchedule")
	defer c.Kubectl(t, "taint", "node", n.Name, "aws.amazon.com/neuron-")
	expectExplained(t, c, onNode("no-toleration", n, cluster.Ask{cluster.Neuron: "1"}),
		"a toleration of aws.amazon.com/neuron=true:NoSchedule: it then fits on "+n.Name, "FailedScheduling", "untolerated taint")
	w := onNode("no-scheduler", n, cluster.Ask{cluster.Neuron: "1"})
	w.Adjust = func(pod *core.PodSpec) { pod.SchedulerName = "nobody" }
	c.StartPod(t, w)
	expectWhySays(t, c, w.Name, "its schedulerName (nobody) is not installed")
	c.DeletePod(t, "default", w.Name)
}

// saidOf shortens what kubectl describe says to what a reader looks for: status, state, and events.
func saidOf(described string) string {
	var lines []string
	for _, line := range strings.Split(described, "\n") {
		for _, key := range []string{"Status:", "Reason:", "Message:", "State:", "Exit Code:", "Last State:"} {
			if strings.HasPrefix(strings.TrimSpace(line), key) {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines, "\n") + "\n" + eventsIn(described)
}

func expectDeviceFails(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	w := onNode("on-failing", n, cluster.Ask{cluster.Neuron: "1"})
	c.StartPod(t, w)
	device := c.ReportsOf(t, "default", w.Name)[0].Held[cluster.Neuron][0]
	n.Inject(t, "neuron"+device, "mem_ecc_uncorrected=1")
	defer n.Inject(t, "neuron"+device, "heal")
	said := c.AwaitSaid(t, []string{`"health":"Unhealthy"`}, "get", "pod", w.Name, "-o",
		"jsonpath={.status.containerStatuses[0].allocatedResourcesStatus}")
	t.Logf("SAID allocatedResourcesStatus\n%s", said)
	n.ExpectAllocatable(t, cluster.Counts{Cores: 30, Devices: 15, EFAs: 8})
	said = c.AwaitSaid(t, []string{"aws.amazon.com/neuron:"}, "describe", "node", n.Name)
	t.Logf("SAID describe node\n%s", between(said, "Capacity:", "System Info:"))
	logs := c.AwaitSaid(t, []string{"mem_ecc_uncorrected"}, "-n", system, "logs", "-l", agentPod, "--tail=-1")
	t.Logf("SAID logs\n%s", linesWith(logs, "neuron"+device))
	c.DeletePod(t, "default", w.Name)
}

// expectNodeGone: the device node goes while its container runs; the container cannot be started again.
func expectNodeGone(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	n.ExpectAllocatable(t, wholeTrn1)
	r := startLodger(t, c, n, "node-gone", cluster.Ask{cluster.Neuron: "1"})
	n.Inject(t, "neuron"+r.held[cluster.Neuron][0], "drop-node")
	_, _ = c.TryKubectl("exec", r.name, "--", "/bin/busybox", "kill", "1")
	said := c.AwaitSaid(t, []string{"Error", "/dev/neuron" + r.held[cluster.Neuron][0], "no such file or directory"}, "describe", "pod", r.name)
	t.Logf("SAID %s\n%s", r.name, saidOf(said))
	expectWhySays(t, c, r.name, "restart udev or load the driver")
	n.Inject(t, "neuron"+r.held[cluster.Neuron][0], "heal")
	c.DeletePod(t, "default", r.name)
	n.ExpectAllocatable(t, wholeTrn1)
}

func expectUnbound(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	links, _ := filepath.Glob(filepath.Join(n.Host(), "sys/class/infiniband/*"))
	if len(links) != 8 {
		t.Fatalf("%d interfaces", len(links))
	}
	name := filepath.Base(links[0])
	n.Inject(t, name, "unbind")
	defer n.Inject(t, name, "heal")
	n.ExpectAllocatable(t, cluster.Counts{Cores: 32, Devices: 16, EFAs: 7})
	agent := agentPodOn(t, c, n).Name
	said, _ := c.TryKubectl("-n", system, "exec", agent, "--", "neuron-agent", "check", "--no-fabric")
	if !strings.Contains(said, "efa_driver_unbound") {
		t.Errorf("check does not say efa_driver_unbound:\n%s", said)
	}
	t.Logf("SAID check\n%s", said)
}

// expectTwoAgents applies a second manifest beside the first: its agents wait for the end of the first one's.
func expectTwoAgents(t *testing.T, c *cluster.Cluster) {
	second := cluster.Manifest("static/neuron-agent-aws-names.yaml")
	c.Kubectl(t, "apply", "-f", second)
	defer c.Kubectl(t, "delete", "--wait", "-f", second)
	said := c.AwaitSaid(t, []string{"waiting to take over:"}, "-n", system, "logs", "--prefix", "--tail=-1", "-l", agentPod)
	t.Logf("SAID two agents\n%s", said)
}

// expectOtherDirectory applies a manifest for a kubelet directory that is not there.
func expectOtherDirectory(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	text, err := os.ReadFile(cluster.Manifest("static/neuron-agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	moved := strings.NewReplacer("/var/lib/kubelet", "/var/lib/elsewhere", "name: neuron-agent\n", "name: elsewhere\n").Replace(string(text))
	path := filepath.Join(t.TempDir(), "elsewhere.yaml")
	if err := os.WriteFile(path, []byte(moved), 0o644); err != nil {
		t.Fatal(err)
	}
	c.Apply(t, path)
	// One pod by its name: of several, kubectl describe shows no events.
	var name string
	cluster.Eventually(t, cluster.Patience, "its pod on "+n.Name, func() error {
		pods, err := c.Pods(system, "app.kubernetes.io/name=elsewhere")
		for _, pod := range pods {
			if pod.Spec.NodeName == n.Name {
				name = pod.Name
				return nil
			}
		}
		return fmt.Errorf("none of %d (%w)", len(pods), err)
	})
	said := c.AwaitSaid(t, []string{"FailedMount", "hostPath type check failed", "/var/lib/elsewhere/"}, "-n", system, "describe", "pod", name)
	t.Logf("SAID elsewhere\n%s", saidOf(said))
}

// expectRootDir: the kubelet's --root-dir moves pod-resources and leaves device-plugins; the manifest with that one path changed
// serves such a node.
func expectRootDir(t *testing.T, c *cluster.Cluster) {
	n := c.Nodes(t, cluster.Trn1, inf24, rooted)[2]
	var waiting *core.Pod
	cluster.Eventually(t, cluster.Patience, "one agent on "+n.Name, func() (err error) {
		waiting, err = tryAgentPodOn(c, n)
		return err
	})
	said := c.AwaitSaid(t, []string{"FailedMount", "hostPath type check failed", "/var/lib/kubelet/pod-resources is not a directory"}, "-n", system,
		"describe", "pod", waiting.Name)
	t.Logf("SAID root-dir\n%s", saidOf(said))
	text, err := os.ReadFile(cluster.Manifest("static/neuron-agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer("path: /var/lib/kubelet/pod-resources", "path: "+n.KubeletRoot+"/pod-resources",
		"name: neuron-agent\n", "name: rooted\n", "priorityClassName:", "nodeSelector: {kubernetes.io/hostname: "+n.Name+
			"}\n      priorityClassName:").Replace(string(text))
	path := filepath.Join(t.TempDir(), "rooted.yaml")
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	c.Apply(t, path)
	n.ExpectAllocatable(t, cluster.Counts{Cores: 2, Devices: 1})
	ask := cluster.Ask{cluster.NeuronCore: "1"}
	w := onNode("in-another-root", n, ask)
	c.StartPod(t, w)
	c.ReportsOf(t, "default", w.Name)[0].ExpectGiven(t, ask, 2)
	n.ExpectAllocatable(t, cluster.Counts{Cores: 2, Devices: 0}) // so the agent saw who holds it
}

// expectAgentAway: nobody serves the resources, and a pod that passes by the scheduler is refused.
func expectAgentAway(t *testing.T, c *cluster.Cluster, n *cluster.Node, manifest string) {
	r := startLodger(t, c, n, "restarts-alone", cluster.Ask{cluster.Neuron: "1"})
	c.Kubectl(t, "delete", "--wait", "-f", manifest)
	n.ExpectAllocatable(t, cluster.Counts{})
	_, _ = c.TryKubectl("exec", r.name, "--", "/bin/busybox", "kill", "1")
	cluster.Eventually(t, cluster.Patience, r.name+" cannot be started again", func() error {
		status := r.pod(t).Status.ContainerStatuses[0]
		if status.State.Waiting == nil || !strings.HasSuffix(status.State.Waiting.Reason, "Error") {
			return fmt.Errorf("%+v", status.State)
		}
		return nil
	})
	t.Logf("SAID %s\n%s", r.name, saidOf(c.Kubectl(t, "describe", "pod", r.name)))
	said := c.Kubectl(t, "describe", "node", n.Name)
	t.Logf("SAID describe node\n%s", between(said, "Capacity:", "System Info:"))
	w := cluster.One("straight-there", cluster.Ask{cluster.Neuron: "1"})
	w.Adjust = func(pod *core.PodSpec) { pod.NodeName = n.Name }
	c.StartPod(t, w)
	cluster.Eventually(t, cluster.Patience, w.Name+" is refused", func() error {
		pod, err := c.Client.CoreV1().Pods("default").Get(context.Background(), w.Name, meta.GetOptions{})
		if err == nil && pod.Status.Phase != core.PodFailed {
			err = fmt.Errorf("%s %s", pod.Status.Phase, pod.Status.Reason)
		}
		return err
	})
	t.Logf("SAID %s\n%s", w.Name, saidOf(c.Kubectl(t, "describe", "pod", w.Name)))
	text, status := kubectlNeuron(t, c, "why", w.Name)
	if status != 1 || !strings.Contains(string(text), "no plugin served the resource") ||
		!strings.Contains(string(text), "aws.amazon.com/neuron is not offered: no plugin serves it") {
		t.Errorf("kubectl neuron why %s: status %d, %s", w.Name, status, text)
	}
	t.Logf("SAID kubectl neuron why %s\n%s", w.Name, text)
}

// between returns the lines of a text from one that begins with first until one that begins with last.
func between(text, first, last string) string {
	_, rest, _ := strings.Cut(text, "\n"+first)
	rest, _, _ = strings.Cut(rest, "\n"+last)
	return first + rest
}

func linesWith(text, word string) string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, word) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

package scenarios

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

const (
	system   = "kube-system"
	agentPod = "app.kubernetes.io/name=neuron-agent"
)

// TestDefaultManifest is the road of a user: apply, resources in the API, a Job that gets them, delete.
func TestDefaultManifest(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Trn1, cluster.Inf2)
	manifest := cluster.Manifest("static/neuron-agent.yaml")
	begin := time.Now()
	c.Kubectl(t, "apply", "-f", manifest)
	t.Cleanup(func() { c.Kubectl(t, "delete", "--ignore-not-found", "-f", manifest) })
	for i, want := range []cluster.Counts{{Cores: 32, Devices: 16, EFAs: 8}, {Cores: 24, Devices: 12}} {
		nodes[i].ExpectAllocatable(t, want)
		cluster.Figure(t, "apply to allocatable in the API, "+nodes[i].Name, time.Since(begin))
	}
	c.Kubectl(t, "-n", system, "rollout", "status", "daemonset/neuron-agent", "--timeout=60s")
	expectReadyEverywhere(t, c, agentPod, len(nodes))
	const silicon = "aws.amazon.com/neuroncore: registered\naws.amazon.com/neuron: registered\n"
	expectReadyz(t, c, nodes[0], silicon+"vpc.amazonaws.com/efa: registered\n")
	expectReadyz(t, c, nodes[1], silicon)

	nodes[0].Inject(t, "neuron3", "vanish")
	nodes[0].ExpectAllocatable(t, cluster.Counts{Cores: 30, Devices: 15, EFAs: 8})
	nodes[0].Inject(t, "neuron3", "heal")
	nodes[0].ExpectAllocatable(t, cluster.Counts{Cores: 32, Devices: 16, EFAs: 8})

	ask := cluster.Ask{cluster.Neuron: "4", cluster.EFA: "2"}
	job := cluster.One("four-devices", ask)
	c.StartJob(t, job)
	report := c.AwaitReports(t, job)[0]
	if report.Node != nodes[0] {
		t.Errorf("placed on %s, which has no EFA", report.Node.Name)
	}
	report.ExpectGiven(t, ask, 2)
	c.DeleteJob(t, job)

	c.Kubectl(t, "delete", "-f", manifest)
	c.ExpectNoPods(t, system, agentPod)
	for _, n := range nodes {
		n.ExpectAllocatable(t, cluster.Counts{})
		expectNoSockets(t, n)
	}
}

// inventoryBefore is the inventory once the pods and namespaces that an earlier test took away are gone, which would else be missed
// afterwards.
func inventoryBefore(t *testing.T, c *cluster.Cluster, nodes ...*cluster.Node) cluster.Inventory {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, "no pod and no namespace is leaving", func() error {
		spaces, err := c.Client.CoreV1().Namespaces().List(context.Background(), meta.ListOptions{})
		if err != nil {
			return err
		}
		for _, space := range spaces.Items {
			if space.DeletionTimestamp != nil {
				return fmt.Errorf("%s is there", space.Name)
			}
		}
		pods, err := c.Pods("", "")
		for _, pod := range pods {
			if pod.DeletionTimestamp != nil || strings.HasPrefix(pod.Labels["app.kubernetes.io/name"], "neuron-agent") {
				return fmt.Errorf("%s is there", pod.Name)
			}
		}
		return err
	})
	all, err := c.Inventory(nodes...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// expectReadyEverywhere: one pod per node, Ready by the manifest's own probe, never restarted.
func expectReadyEverywhere(t *testing.T, c *cluster.Cluster, selector string, count int) {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, fmt.Sprintf("%d pods of %s are Ready", count, selector), func() error {
		pods, err := c.Pods(system, selector)
		if err != nil {
			return err
		}
		if len(pods) != count {
			return fmt.Errorf("there are %d", len(pods))
		}
		for i := range pods {
			if !isReady(&pods[i]) {
				return fmt.Errorf("%s on %s is %s, not Ready", pods[i].Name, pods[i].Spec.NodeName, pods[i].Status.Phase)
			}
		}
		return nil
	})
	pods, err := c.Pods(system, selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if probe := pod.Spec.Containers[0].ReadinessProbe; probe == nil || probe.HTTPGet == nil {
			t.Errorf("%s has no readiness probe: Ready says nothing", pod.Name)
		}
		for _, status := range pod.Status.ContainerStatuses {
			if status.RestartCount != 0 {
				t.Errorf("%s on %s: %d restarts", pod.Name, pod.Spec.NodeName, status.RestartCount)
			}
		}
	}
}

// expectReadyz: what docs/troubleshooting.md has people ask, through the API server.
func expectReadyz(t *testing.T, c *cluster.Cluster, n *cluster.Node, want string) {
	t.Helper()
	pod := agentPodOn(t, c, n)
	path := "/api/v1/namespaces/" + system + "/pods/" + pod.Name + ":8000/proxy/readyz"
	if got := c.Kubectl(t, "get", "--raw", path); got != want {
		t.Errorf("%s: /readyz says %q, want %q", n.Name, got, want)
	}
}

// expectNoSockets: the agent takes its sockets with it; the kubelet's own stays.
func expectNoSockets(t *testing.T, n *cluster.Node) {
	t.Helper()
	dir := n.Disk("/var/lib/kubelet/device-plugins")
	cluster.Eventually(t, cluster.Patience, n.Name+": no sockets of plugins", func() error {
		entries, err := os.ReadDir(dir)
		for _, entry := range entries {
			if entry.Type()&os.ModeSocket != 0 && entry.Name() != "kubelet.sock" {
				return fmt.Errorf("%s is there", filepath.Join(dir, entry.Name()))
			}
		}
		return err
	})
}

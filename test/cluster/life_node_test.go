package scenarios

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

// TestLifeOfTheNode: what happens to a node and to the cluster while pods run.
func TestLifeOfTheNode(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, cluster.Trn1)[0]
	c.StartAgent(t, cluster.DefaultAgent(t))
	expectOffered(t, n, wholeTrn1)
	pods := settleIn(t, c, n, "node-life")
	t.Run("Chip", func(t *testing.T) { expectChipFails(t, c, n, pods) })
	t.Run("Kubelet", func(t *testing.T) { expectKubeletRestarted(t, c, n, pods) })
	t.Run("Containerd", func(t *testing.T) { expectContainerdRestarted(t, c, n, pods) })
	t.Run("ControlPlane", func(t *testing.T) { expectControlPlaneAway(t, c, n, pods) })
	t.Run("Drain", func(t *testing.T) { expectDrained(t, c, n, pods) })
	t.Run("Reboot", func(t *testing.T) { expectLifeAfterReboot(t, c, n) })
}

// expectChipFails: a device fails under the pod that holds it. The pod runs on and its status says so; nobody else gets it.
func expectChipFails(t *testing.T, c *cluster.Cluster, n *cluster.Node, pods *residents) {
	whole := pods.before[0]
	if len(whole.held[cluster.Neuron]) == 0 {
		whole = pods.before[1]
	}
	device := whole.held[cluster.Neuron][0]
	without := cluster.Counts{Cores: besideResidents.Cores, Devices: besideResidents.Devices - 1, EFAs: besideResidents.EFAs}
	for _, step := range []struct {
		action, health string
		offered        cluster.Counts
	}{{"vanish", "Unhealthy", without}, {"heal", "Healthy", besideResidents}} {
		begin := time.Now()
		n.Inject(t, "neuron"+device, step.action)
		n.ExpectKubeletAllocatable(t, step.offered)
		kubelet := time.Since(begin)
		n.ExpectAllocatable(t, step.offered)
		api := time.Since(begin)
		cluster.Eventually(t, cluster.Patience, "the pod's status says that its device is "+step.health, func() error {
			return expectPodHealth(c, whole.pod, device, step.health)
		})
		figure(t, "device that a pod holds, %s: %v in the kubelet, %v in the API, %v in the pod's status", step.action,
			kubelet.Round(time.Millisecond), api.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
	}
	pods.expectUnnoticed(t)
}

// expectPodHealth looks for one device in the pod's allocatedResourcesStatus.
func expectPodHealth(c *cluster.Cluster, uid, device, want string) error {
	pods, err := c.Pods("default", "")
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if string(pod.UID) != uid || len(pod.Status.ContainerStatuses) == 0 {
			continue
		}
		for _, resource := range pod.Status.ContainerStatuses[0].AllocatedResourcesStatus {
			for _, unit := range resource.Resources {
				if resource.Name == cluster.Neuron && string(unit.ResourceID) == device {
					if string(unit.Health) == want {
						return nil
					}
					return fmt.Errorf("it says %s", unit.Health)
				}
			}
		}
		return fmt.Errorf("no such device in %+v", pod.Status.ContainerStatuses[0].AllocatedResourcesStatus)
	}
	return errors.New("the pod is gone")
}

// expectKubeletRestarted: killed and started; time is from its start.
func expectKubeletRestarted(t *testing.T, c *cluster.Cluster, n *cluster.Node, pods *residents) {
	agent := agentProcess(t, n)
	if err := n.Kubelet.End(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := n.StartKubelet(); err != nil {
		t.Fatal(err)
	}
	healthy := time.Since(begin)
	watch := watchOffer(t, n, besideResidents)
	n.ExpectKubeletAllocatable(t, besideResidents)
	figure(t, "kubelet restarted: healthy after %v, everything offered after %v", healthy.Round(time.Millisecond),
		time.Since(begin).Round(time.Millisecond))
	n.ExpectAllocatable(t, besideResidents)
	pods.expectUnnoticed(t)
	watch.End(t)
	expectServed(t, c, n, "after-kubelet")
	if now := agentProcess(t, n); now != agent {
		t.Errorf("the agent was restarted: process %d, was %d", now, agent)
	}
}

// expectContainerdRestarted: the agent does not speak to it; pods and agent run on.
func expectContainerdRestarted(t *testing.T, c *cluster.Cluster, n *cluster.Node, pods *residents) {
	agent := agentProcess(t, n)
	watch := watchOffer(t, n, besideResidents)
	if err := errors.Join(n.Containerd.End(syscall.SIGKILL), n.StartContainerd()); err != nil {
		t.Fatal(err)
	}
	expectServed(t, c, n, "after-containerd")
	n.ExpectKubeletAllocatable(t, besideResidents)
	watch.End(t)
	pods.expectUnnoticed(t)
	if now := agentProcess(t, n); now != agent {
		t.Errorf("the agent was restarted: process %d, was %d", now, agent)
	}
}

// expectControlPlaneAway: the agent never asks it. What fails meanwhile is known to the kubelet at once and to the API
// server as soon as it is back.
func expectControlPlaneAway(t *testing.T, c *cluster.Cluster, n *cluster.Node, pods *residents) {
	long := shortOrDeep(5*time.Second, 2*time.Minute) // deep: longer than a node may be silent before it counts as not ready
	agent, away := agentProcess(t, n), time.Now()
	if err := errors.Join(c.APIServer.End(syscall.SIGKILL), c.Etcd.End(syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	n.Inject(t, "neuron15", "vanish")
	without := besideResidents
	without.Cores, without.Devices = without.Cores-2, without.Devices-1
	n.ExpectKubeletAllocatable(t, without)
	cluster.Eventually(t, 2*long, "they were away for long enough", func() error {
		if left := long - time.Since(away); left > 0 {
			return fmt.Errorf("%v to go", left)
		}
		return nil
	})
	if err := errors.Join(c.StartEtcd(), c.StartAPIServer(), c.RestartClients()); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	n.ExpectAllocatable(t, without)
	figure(t, "API server and etcd away for %v: what failed meanwhile is in the API %v after they are back", long,
		time.Since(back).Round(time.Millisecond))
	n.Inject(t, "neuron15", "heal")
	n.ExpectAllocatable(t, besideResidents)
	pods.expectUnnoticed(t)
	expectServed(t, c, n, "after-control-plane")
	if now := agentProcess(t, n); now != agent {
		t.Errorf("the agent was restarted: process %d, was %d", now, agent)
	}
}

// expectDrained: what a drain evicts gives everything back, the agent stays, and after uncordon pods run again.
func expectDrained(t *testing.T, c *cluster.Cluster, n *cluster.Node, pods *residents) {
	agent, begin := agentProcess(t, n), time.Now()
	c.Kubectl(t, "drain", n.Name, "--ignore-daemonsets", "--force", "--timeout=60s")
	drained := time.Now()
	n.ExpectKubeletAllocatable(t, wholeTrn1)
	figure(t, "drain: %v, everything offered again %v later", drained.Sub(begin).Round(time.Millisecond),
		time.Since(drained).Round(time.Millisecond))
	c.DeleteJob(t, pods.jobs...)
	ask := cluster.Ask{cluster.Neuron: "16", cluster.EFA: "8"}
	all := cluster.One("all-after-drain", ask)
	all.Node = n.Name
	c.StartJob(t, all)
	cluster.Eventually(t, cluster.Patience, "the scheduler leaves it", func() error {
		waiting, err := c.Pods("default", "workload="+all.Name)
		if err != nil || len(waiting) != 1 || len(waiting[0].Status.Conditions) == 0 {
			return fmt.Errorf("%d pods, %w", len(waiting), err)
		}
		return nil
	})
	n.ExpectAllocatable(t, wholeTrn1)
	c.Kubectl(t, "uncordon", n.Name)
	c.AwaitReports(t, all)[0].ExpectGiven(t, ask, 2)
	c.DeleteJob(t, all)
	if now := agentProcess(t, n); now != agent {
		t.Errorf("the agent was restarted: process %d, was %d", now, agent)
	}
}

// expectLifeAfterReboot: the kubelet starts with its checkpoint, the agent with an empty host; the pod of a Deployment is back
// with as many devices, whether the old one could go on or another was made.
func expectLifeAfterReboot(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	ask := cluster.Ask{cluster.Neuron: "4", cluster.EFA: "2"}
	server := startServer(t, c, n, "server", ask)
	n.ExpectKubeletAllocatable(t, cluster.Counts{Cores: 24, Devices: 16, EFAs: 8})
	begin := time.Now()
	n.Reboot(t)
	ready := time.Since(begin)
	cluster.Eventually(t, cluster.Patience, "the agent is registered", func() error {
		now, err := n.KubeletAllocatable() // of cores there are as many as the pod leaves, if it is back already
		if err == nil && (now.Devices != 16 || now.EFAs != 8 || now.Cores < 24) {
			err = fmt.Errorf("it is %+v", now)
		}
		return err
	})
	offered := time.Since(begin)
	awaitServer(t, c, n, server, ask)
	pods, err := c.Pods("default", "workload=server")
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, pod := range pods {
		if pod.Status.Reason == "UnexpectedAdmissionError" {
			refused++
		}
	}
	figure(t, "node rebooted with a Deployment's pod on it: Ready after %v, everything offered after %v, the pod serves after %v, %d refused before",
		ready.Round(time.Millisecond), offered.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond), refused)
	expectServed(t, c, n, "after-reboot")
}

// startServer makes a Deployment of one pod and waits until it has what it asks for.
func startServer(t *testing.T, c *cluster.Cluster, n *cluster.Node, name string, ask cluster.Ask) *apps.Deployment {
	t.Helper()
	w, one := cluster.One(name, ask), int32(1)
	w.Node = n.Name
	w.Adjust = func(pod *core.PodSpec) { pod.RestartPolicy = core.RestartPolicyAlways }
	template := w.PodTemplate()
	deployment := &apps.Deployment{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default"}, Spec: apps.DeploymentSpec{
		Replicas: &one, Selector: &meta.LabelSelector{MatchLabels: template.Labels}, Template: template}}
	if _, err := c.Client.AppsV1().Deployments("default").Create(context.Background(), deployment, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kubectl(t, "delete", "deployment", name)
		c.ExpectNoPods(t, "default", "workload="+name)
	})
	awaitServer(t, c, n, deployment, ask)
	return deployment
}

// awaitServer waits until a container that the Deployment made runs since this boot and holds what it asks for.
func awaitServer(t *testing.T, c *cluster.Cluster, n *cluster.Node, deployment *apps.Deployment, ask cluster.Ask) {
	t.Helper()
	cluster.Eventually(t, 2*cluster.Patience, deployment.Name+" serves", func() error {
		pods, err := c.Pods("default", "workload="+deployment.Name)
		if err != nil {
			return err
		}
		held, err := n.Holdings()
		if err != nil {
			return err
		}
		var why error
		for _, pod := range pods {
			holds := held["default/"+pod.Name+"/main"]
			if pod.Status.Phase == core.PodRunning && isReady(&pod) && fmt.Sprint(len(holds[cluster.Neuron])) == ask[cluster.Neuron] &&
				len(n.ContainerProcesses("probe")) > 0 {
				return nil
			}
			why = errors.Join(why, fmt.Errorf("%s is %s %s %s, ready %v, holds %v", pod.Name, pod.Status.Phase, pod.Status.Reason,
				pod.Status.Message, isReady(&pod), holds))
		}
		return fmt.Errorf("%d pods: %w", len(pods), why)
	})
}

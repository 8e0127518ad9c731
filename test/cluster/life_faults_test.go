package scenarios

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"neuron-agent.test/cluster/cluster"
)

// freshAgent replaces the agent's pod, whose kubelet would wait longer with every restart of the same one.
func freshAgent(t *testing.T, c *cluster.Cluster, n *cluster.Node) *core.Pod {
	t.Helper()
	before := agentPodOn(t, c, n)
	c.Kubectl(t, "-n", system, "delete", "pod", before.Name)
	awaitAnotherAgent(t, c, n, before.UID)
	n.ExpectKubeletAllocatable(t, besideResidents)
	return agentPodOn(t, c, n)
}

// awaitRestarted waits until the agent's container has been started again and says how its predecessor ended.
func awaitRestarted(t *testing.T, c *cluster.Cluster, n *cluster.Node) *core.ContainerStateTerminated {
	t.Helper()
	var last *core.ContainerStateTerminated
	cluster.Eventually(t, cluster.Patience, "the agent on "+n.Name+" is restarted", func() error {
		pod, err := tryAgentPodOn(c, n)
		if err != nil {
			return err
		}
		if len(pod.Status.ContainerStatuses) != 1 {
			return fmt.Errorf("%s has no status", pod.Name)
		}
		status := pod.Status.ContainerStatuses[0]
		last = status.LastTerminationState.Terminated
		if status.RestartCount == 0 || last == nil || status.State.Running == nil {
			return fmt.Errorf("%s: %d restarts, %+v", pod.Name, status.RestartCount, status.State)
		}
		return nil
	})
	return last
}

// expectKilled: the kubelet starts the container again; nothing is known to it in between, and the holdings afterwards.
func expectKilled(t *testing.T, c *cluster.Cluster, n *cluster.Node, pods *residents) {
	freshAgent(t, c, n)
	watch := watchOffer(t, n, besideResidents)
	if err := syscall.Kill(agentProcess(t, n), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if last := awaitRestarted(t, c, n); last.ExitCode != 137 {
		t.Errorf("the agent ended with %+v", last)
	}
	n.ExpectKubeletAllocatable(t, besideResidents)
	watch.End(t)
	figure(t, "agent killed, resources unavailable: %v in the kubelet, of which the agent's %v", watch.Kubelet.Round(time.Millisecond),
		watch.ours(t, n))
	pods.expectUnnoticed(t)
	expectServed(t, c, n, "after-kill")
}

// expectOutOfMemory: the kernel ends the agent because its cgroup is full. A guest in the group fills it, and the agent is the
// one whom the kernel chooses.
func expectOutOfMemory(t *testing.T, c *cluster.Cluster, n *cluster.Node, pods *residents) {
	freshAgent(t, c, n)
	pid := agentProcess(t, n)
	group, err := cluster.MemoryGroup(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0o644); err != nil {
		t.Fatal(err)
	}
	watch := watchOffer(t, n, besideResidents)
	fill := exec.Command("sh", "-c", `echo $$ >"$1" && exec tail /dev/zero`, "fill", filepath.Join(group, "cgroup.procs"))
	if err := fill.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- fill.Wait() }()
	cluster.Eventually(t, cluster.Patience, "the kernel ends the agent", func() error {
		if text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm"); err == nil && string(text) == agentProgram+"\n" {
			return fmt.Errorf("process %d lives", pid)
		}
		return nil
	})
	_ = fill.Process.Kill()
	<-ended
	if last := awaitRestarted(t, c, n); last.Reason != "OOMKilled" {
		t.Errorf("the agent ended with %+v, want OOMKilled", last)
	}
	n.ExpectKubeletAllocatable(t, besideResidents)
	watch.End(t)
	figure(t, "agent out of memory, resources unavailable: %v in the kubelet, of which the agent's %v", watch.Kubelet.Round(time.Millisecond),
		watch.ours(t, n))
	pods.expectUnnoticed(t)
	expectServed(t, c, n, "after-oom")
}

// expectStopped: an agent that stands still holds up the admission of pods, and none is refused or given anything wrong.
func expectStopped(t *testing.T, c *cluster.Cluster, n *cluster.Node, pods *residents) {
	pid, long := agentProcess(t, n), shortOrDeep(5*time.Second, time.Minute)
	n.ExpectKubeletAllocatable(t, besideResidents) // what an earlier scenario's pod held is offered again
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	ask := cluster.Ask{cluster.NeuronCore: "2"}
	waits := cluster.One("waits", ask)
	waits.Node = n.Name
	c.StartJob(t, waits)
	awaitPlaced(t, c, waits)
	stopped := time.Now()
	cluster.Eventually(t, 2*long, "the agent has stood still for long enough", func() error {
		if left := long - time.Since(stopped); left > 0 {
			return fmt.Errorf("%v to go", left)
		}
		return nil
	})
	if now, err := n.KubeletAllocatable(); err != nil || now != besideResidents {
		t.Errorf("while the agent stood still the kubelet said %+v, %v", now, err)
	}
	if placed, err := c.Pods("default", "workload=waits"); err != nil || len(placed) != 1 || placed[0].Status.Phase != core.PodPending {
		t.Errorf("the pod that has to wait: %v, %v", placed, err)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	goesOn := time.Now()
	c.AwaitReports(t, waits)[0].ExpectGiven(t, ask, 2)
	figure(t, "agent stopped for %v: the pod that waited runs %v after it goes on", long, time.Since(goesOn).Round(time.Millisecond))
	c.DeleteJob(t, waits)
	if restarts := agentPodOn(t, c, n).Status.ContainerStatuses[0].RestartCount; agentProcess(t, n) != pid {
		t.Errorf("the agent was restarted: %d", restarts)
	}
	n.ExpectKubeletAllocatable(t, besideResidents)
	pods.expectUnnoticed(t)
	expectServed(t, c, n, "after-stop")
}

// awaitPlaced waits until the scheduler has placed the workload's pod.
func awaitPlaced(t *testing.T, c *cluster.Cluster, w cluster.Workload) {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, w.Name+" is placed", func() error {
		pods, err := c.Pods("default", "workload="+w.Name)
		if err == nil && (len(pods) != 1 || pods[0].Spec.NodeName == "") {
			err = fmt.Errorf("%d pods", len(pods))
		}
		return err
	})
}

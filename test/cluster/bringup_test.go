package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

const notFound = "NotFound"

// TestBringUp: the cluster is what it says it is, or nothing else here proves anything.
func TestBringUp(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Trn1, cluster.Inf2)
	version := "v1.36.3"
	if versions := cluster.Versions(); len(versions) > 0 {
		version = "v" + versions[0] + "."
	}
	runtimes := map[string]string{"": "containerd://2.4.2", "containerd1.7": "containerd://1.7.35", "crio": "cri-o://1.34.0"}
	for i, runtime := range []string{runtimes[os.Getenv("CLUSTER_RUNTIME")], "containerd://1.6"} {
		info := getNode(t, c, nodes[i]).Status.NodeInfo
		if !strings.HasPrefix(info.KubeletVersion, version) || !strings.HasPrefix(info.ContainerRuntimeVersion, runtime) {
			t.Errorf("%s: kubelet %s, runtime %s", nodes[i].Name, info.KubeletVersion, info.ContainerRuntimeVersion)
		}
	}
	first, second := cluster.One("first", nil), cluster.One("second", nil)
	first.Adjust = addTools
	first.Node, second.Node = nodes[0].Name, nodes[1].Name
	for _, w := range []cluster.Workload{first, second} {
		c.StartJob(t, w)
		c.AwaitReports(t, w)
	}
	t.Run("LogsAndExec", func(t *testing.T) {
		if log := c.Kubectl(t, "logs", "job/first"); !strings.Contains(log, "uid 0\n") {
			t.Errorf("kubectl logs: %q", log)
		}
		if out := c.Kubectl(t, "exec", "job/second", "--", "/bin/busybox", "echo", "here"); out != "here\n" {
			t.Errorf("kubectl exec: %q", out)
		}
	})
	t.Run("PodReachesAPIServerAndOtherNode", func(t *testing.T) {
		pods, err := c.Pods("default", "workload=second")
		if err != nil || len(pods) != 1 || pods[0].Status.PodIP == "" {
			t.Fatalf("pods %v, %v", pods, err)
		}
		c.Kubectl(t, "exec", "job/second", "--", "/bin/busybox", "sh", "-c", "/bin/busybox httpd -p 8000 -h /out")
		c.Kubectl(t, "exec", "job/first", "--", "/bin/busybox", "wget", "-q", "-O", "-",
			fmt.Sprintf("http://%s:8000/%s.main", pods[0].Status.PodIP, pods[0].Name))
		// Discovery is for whoever is authenticated: address, certificate and token are those that any pod finds.
		c.Kubectl(t, "exec", "job/first", "--", "/tools/kubectl", "--cache-dir=/tmp", "get", "--raw", "/apis")
	})
	t.Run("Admission", func(t *testing.T) { expectAdmission(t, c, nodes) })
	t.Run("Programs", func(t *testing.T) { expectProgramsReplaced(t, c, nodes[0]) })
	t.Run("Reboot", func(t *testing.T) { expectReboot(t, c, nodes[1]) })
	t.Run("RemoveNode", func(t *testing.T) {
		c.RemoveNode(t, nodes[1])
		if left := nodes[1].Leftovers(); len(left) > 0 {
			t.Errorf("left of the node: %v", left)
		}
		if out, err := c.TryKubectl("get", "node", nodes[1].Name); err == nil || !strings.Contains(out, notFound) {
			t.Errorf("the API still has it: %s", out)
		}
	})
}

// addTools puts kubectl into the first container.
func addTools(pod *core.PodSpec) {
	pod.Volumes = append(pod.Volumes, core.Volume{Name: "tools", VolumeSource: core.VolumeSource{
		HostPath: &core.HostPathVolumeSource{Path: cluster.Tools()}}})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts,
		core.VolumeMount{Name: "tools", MountPath: "/tools", ReadOnly: true})
}

func getNode(t *testing.T, c *cluster.Cluster, n *cluster.Node) *core.Node {
	t.Helper()
	node, err := c.Client.CoreV1().Nodes().Get(context.Background(), n.Name, meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// expectAdmission: a kubelet may not touch another node, and a restricted namespace refuses a pod with a hostPath.
func expectAdmission(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node) {
	own := nodes[0].Disk("/etc/kubernetes/kubelet.kubeconfig")
	for _, forbidden := range []struct{ node, label, why string }{
		{nodes[1].Name, "a=b", "only its own Node object"},
		{nodes[0].Name, "node-restriction.kubernetes.io/a=b", "is not allowed to modify labels"},
	} {
		output, err := c.TryKubectl("--kubeconfig", own, "label", "node", forbidden.node, forbidden.label)
		if err == nil || !strings.Contains(output, forbidden.why) {
			t.Errorf("the kubelet of %s labels %s: %v, %s", nodes[0].Name, forbidden.node, err, output)
		}
	}
	c.Kubectl(t, "create", "namespace", "strict")
	t.Cleanup(func() { c.Kubectl(t, "delete", "namespace", "strict", "--wait=false") })
	c.Kubectl(t, "label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted")
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "loose"}, Spec: cluster.One("loose", nil).PodTemplate().Spec}
	_, err := c.Client.CoreV1().Pods("strict").Create(context.Background(), pod, meta.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
		t.Errorf("a pod with hostPath in a restricted namespace: %v", err)
	}
}

// expectProgramsReplaced: each program can be stopped, killed and started again while a pod runs on.
func expectProgramsReplaced(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	for _, program := range []struct {
		process **cluster.Process
		start   func() error
	}{{&n.Kubelet, n.StartKubelet}, {&n.Containerd, n.StartContainerd}, {&c.Scheduler, c.StartScheduler},
		{&c.ControllerManager, c.StartControllerManager}, {&c.APIServer, c.StartAPIServer}, {&c.Etcd, c.StartEtcd}} {
		process := *program.process
		err := errors.Join(process.Pause(), process.Resume(), process.Running(), process.Pause(),
			process.End(syscall.SIGKILL), program.start())
		if err != nil {
			t.Fatal(err)
		}
	}
	later := cluster.One("later", nil)
	later.Node = n.Name
	c.StartJob(t, later)
	c.AwaitReports(t, later)
	pods, err := c.Pods("default", "workload=first")
	if err != nil || len(pods) != 1 || pods[0].Status.Phase != core.PodRunning {
		t.Errorf("the pod that ran all the time: %v, %v", pods, err)
	}
}

// expectReboot: another boot id, the same disk and address, and pods run on it again.
func expectReboot(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	before := getNode(t, c, n).Status
	begin := time.Now()
	n.Freeze(t) // power may be cut at any moment
	n.Reboot(t)
	cluster.Figure(t, "node rebooted and Ready", time.Since(begin))
	after := getNode(t, c, n).Status
	if after.NodeInfo.BootID == before.NodeInfo.BootID || !slices.Equal(after.Addresses, before.Addresses) {
		t.Errorf("after the reboot boot id %s (was %s), addresses %v (were %v)", after.NodeInfo.BootID, before.NodeInfo.BootID,
			after.Addresses, before.Addresses)
	}
	again := cluster.One("again", nil)
	again.Node = n.Name
	c.StartJob(t, again)
	c.AwaitReports(t, again)
}

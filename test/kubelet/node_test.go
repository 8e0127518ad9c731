package kubelettest

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"neuron-agent.test/suite"
)

// node is one simulated host with its own containerd, kubelet and agent. Only one exists at a time.
type node struct {
	name       string // of the test, begins the names of the logs
	root       string // simulated host (--root of the agent)
	pods       string // static pod files
	reports    string // what the probes write; /out of every container
	readOnly   int    // the kubelet's read-only port
	containerd *suite.Process
	kubelet    *suite.Process
	agent      *suite.Process
	starts     int // numbers the logs of restarted programs
	setup      nodeSetup

	instanceType string
}

// nodeSetup is what differs from an ordinary node.
type nodeSetup struct {
	simulation []string // more arguments for neuron-sim node, for example --lnc 1
	policy     string   // the kubelet's Topology Manager policy; the kubelet then sees the simulated NUMA nodes
	agent      []string // more arguments for the agent
}

// startNode makes a simulated host, for example startNode(t, "trn2.48xlarge", "--lnc", "1"), and starts
// everything on it. Resources are not waited for: see expectAllocatable.
func startNode(t *testing.T, instanceType string, simulation ...string) *node {
	t.Helper()
	return startNodeWith(t, instanceType, nodeSetup{simulation: simulation})
}

func startNodeWith(t *testing.T, instanceType string, setup nodeSetup) *node {
	t.Helper()
	base := filepath.Join(env.work, "n")
	n := &node{
		name:    strings.ReplaceAll(t.Name(), "/", "-"),
		root:    filepath.Join(base, "host"),
		pods:    filepath.Join(base, "pods"),
		reports: filepath.Join(base, "reports"),
		setup:   setup,

		instanceType: instanceType,
	}
	t.Cleanup(func() { n.stop(t, base) })
	for _, dir := range []string{n.pods, n.reports, filepath.Join(base, "logs")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(n.reports, 0o777); err != nil { // probes may run as any user
		t.Fatal(err)
	}
	run(t, env.sim, append([]string{"node", n.root, "--instance-type", instanceType}, setup.simulation...)...)
	if setup.policy != "" {
		n.showNuma(t, filepath.Join(base, "numa"))
	}
	socket := n.startContainerd(t, base)
	n.writeKubeletConfig(t, base, socket)
	n.startKubelet(t)
	n.startAgent(t)
	return n
}

// stop ends every process, so that the next node starts from nothing.
func (n *node) stop(t *testing.T, base string) {
	if err := killOthers(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{env.work, kubeletDir, "/run/containerd"} {
		if err := unmountBelow(dir); err != nil {
			t.Error(err)
		}
	}
	for _, dir := range []string{base, kubeletDir, "/run/containerd", "/var/log"} {
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
				t.Error(err)
			}
		}
	}
}

func (n *node) startContainerd(t *testing.T, base string) string {
	t.Helper()
	socket, config := filepath.Join(env.work, "c.sock"), filepath.Join(base, "containerd.toml")
	text := fmt.Sprintf(`version = 2
root = %q
state = %q
[grpc]
  address = %q
[plugins."io.containerd.internal.v1.opt"]
  path = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`, filepath.Join(base, "c"), filepath.Join(base, "s"), socket, filepath.Join(base, "opt"), suite.ProbeImage,
		filepath.Join(base, "cni"), filepath.Join(base, "cni"))
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	n.containerd = start(t, n.name+"-containerd", "containerd", "--config", config)
	eventually(t, patience, "containerd serves", func() error {
		if err := n.containerd.Running(); err != nil {
			t.Fatal(err)
		}
		connection, err := net.Dial("unix", socket)
		if err == nil {
			connection.Close()
		}
		return err
	})
	run(t, "ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", env.image)
	return socket
}

func (n *node) kubeletConfigPath() string { return filepath.Join(env.work, "n", "kubelet.json") }

func (n *node) writeKubeletConfig(t *testing.T, base, containerdSocket string) {
	t.Helper()
	ports := freePorts(t, 2)
	n.readOnly = ports[1]
	off := map[string]any{"enabled": false}
	policy := n.setup.policy
	if policy == "" {
		policy = "none"
	}
	config, err := json.Marshal(map[string]any{
		"apiVersion":   "kubelet.config.k8s.io/v1beta1",
		"kind":         "KubeletConfiguration",
		"registerNode": false, "enableControllerAttachDetach": false,
		"failSwapOn": false, "failCgroupV1": false,
		"cgroupDriver": "cgroupfs", "cgroupRoot": env.cgroupRoot, "enforceNodeAllocatable": []string{},
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"topologyManagerPolicy":    policy,
		"staticPodPath":            n.pods, "fileCheckFrequency": "500ms",
		"podLogsDir": filepath.Join(base, "logs"),
		"address":    "127.0.0.1", "port": ports[0], "readOnlyPort": n.readOnly, "healthzPort": 0,
		"authentication":                map[string]any{"anonymous": map[string]any{"enabled": true}, "webhook": off},
		"authorization":                 map[string]any{"mode": "AlwaysAllow"},
		"localStorageCapacityIsolation": false, "makeIPTablesUtilChains": false,
		"imageGCHighThresholdPercent": 100,
		"evictionHard":                map[string]any{"memory.available": "0%", "nodefs.available": "0%"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.kubeletConfigPath(), config, 0o644); err != nil {
		t.Fatal(err)
	}
}

func freePorts(t *testing.T, count int) []int {
	t.Helper()
	var ports []int
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func (n *node) logName(program string) string {
	n.starts++
	return fmt.Sprintf("%s-%d-%s", n.name, n.starts, program)
}

func (n *node) startKubelet(t *testing.T) {
	t.Helper()
	n.kubelet = start(t, n.logName("kubelet"), env.kubelet,
		"--config", n.kubeletConfigPath(), "--hostname-override", "localhost", "-v", "4")
}

func (n *node) startAgent(t *testing.T) {
	t.Helper()
	arguments := []string{env.agent, "run", "--root", n.root, "--kubelet-dir", kubeletDir,
		"--scan-interval", "200ms", "--log-level", "info"}
	n.agent = start(t, n.logName("agent"), append(arguments, n.setup.agent...)...)
}

// killKubelet and killAgent end a program without any chance to tidy up.
func (n *node) killKubelet(t *testing.T) {
	t.Helper()
	kill(t, n.kubelet)
}

func (n *node) killAgent(t *testing.T) {
	t.Helper()
	kill(t, n.agent)
}

// inject changes the simulated host, for example inject(t, "neuron3", "heal").
func (n *node) inject(t *testing.T, device string, changes ...string) {
	t.Helper()
	run(t, env.sim, append([]string{"set", n.root, device}, changes...)...)
}

// alive fails the test if a program of the node has ended by itself.
func (n *node) alive(t *testing.T) {
	t.Helper()
	for _, p := range []*suite.Process{n.containerd, n.kubelet, n.agent} {
		if err := p.Running(); err != nil {
			t.Fatal(err)
		}
	}
}

// since prints how long something took; the suite's figures come from these lines.
func since(t *testing.T, what string, begin time.Time) {
	t.Helper()
	t.Logf("FIGURE %s: %v", what, time.Since(begin).Round(time.Millisecond))
}

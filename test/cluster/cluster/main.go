// Package cluster starts a real Kubernetes control plane with several simulated nodes for tests: etcd, API server, controller
// manager, scheduler and kubectl, and per node a kubelet and a containerd, or CRI-O, over a host that neuron-sim wrote.
//
// A test package calls Main from its TestMain. The test binary then starts itself again in mount, PID and network namespaces of
// its own, and once more for each node, so that nothing of the machine is touched, every process ends with the first one of
// its namespace, and no packet leaves. Tests call Get for the one cluster that they share, and Cluster.Nodes for the nodes that
// they need. Needs root. Environment, set by run.sh: see settings.
//
// Tests that share the cluster do not run in parallel; parts of one test may where none starts or removes a node.
package cluster

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"neuron-agent.test/suite"
)

// Process is a program of the cluster, with its output in a log file that outlives the run.
type Process = suite.Process

// Patience is how long something may take on a slow machine before a test gives up.
const Patience = suite.Patience

// Eventually waits until check returns nil and fails the test with its last error at the deadline.
func Eventually(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	suite.Eventually(t, limit, what, check)
}

// Figure prints a measured value; run.sh shows these lines.
func Figure(t testing.TB, what string, value time.Duration) {
	t.Helper()
	t.Logf("FIGURE %s: %v", what, value.Round(time.Millisecond))
}

// settings are the programs under test and the places for what comes out.
type settings struct {
	bin   string // NEURON_BIN: has neuron-agent and neuron-sim; ../libexec/neuron-node-agent/neuron-topology beside it
	tools string // CLUSTER_TOOLS: kube-apiserver, ... kubelet, kubectl, etcd, runtime, and containerd2/ with containerd's three programs
	// CLUSTER_KUBERNETES: minor versions, "1.37 1.36"; that of the control plane and of nodes that name none first. Empty: the one that the
	// tests are built with. Each has its programs in a directory of its name in tools, that one in tools itself.
	kubernetes []string
	runtime    string // CLUSTER_RUNTIME: containerd1.7 or crio instead of containerd2; its programs are in tools/ in a directory of its name
	images     string // IMAGES: directory of archives neuron-agent-<version>-<architecture>.tar; empty: a stand-in
	tree       string // CLUSTER_TREE: the repository, for its manifests
	logs       string // CLUSTER_LOGS: outlives the run
	work       string // private tmpfs; short, since sockets live below it
	group      string // absolute cgroup path of the suite, present in every hierarchy
}

var env settings

// Main runs the tests of a package inside the suite's namespaces and ends the program.
func Main(m *testing.M) {
	if os.Getenv(nodeVariable) != "" {
		nodeMain()
	}
	if flag.Parse(); flag.Lookup("test.list").Value.String() != "" {
		os.Exit(m.Run())
	}
	if suite.Work() == "" {
		code, err := suite.Again(syscall.CLONE_NEWNET)
		if err != nil {
			fmt.Fprintln(os.Stderr, "cluster suite:", err)
		}
		os.Exit(code)
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "cluster suite: cannot prepare:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := shared.shutDown(); err != nil {
		fmt.Fprintln(os.Stderr, "cluster suite: taking down:", err)
		code = 1
	}
	os.Exit(code)
}

func prepare() error {
	env = settings{
		bin:        os.Getenv("NEURON_BIN"),
		tools:      os.Getenv("CLUSTER_TOOLS"),
		kubernetes: Versions(),
		runtime:    os.Getenv("CLUSTER_RUNTIME"),
		images:     os.Getenv("IMAGES"),
		tree:       os.Getenv("CLUSTER_TREE"),
		logs:       os.Getenv("CLUSTER_LOGS"),
		work:       suite.Work(),
		group:      suite.Group(),
	}
	for _, path := range []string{
		env.simulator(), env.kube("", "kube-apiserver"), env.tool("runtime"), env.tool("containerd2/containerd"), env.tree} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%w (see run.sh for NEURON_BIN, CLUSTER_TOOLS and CLUSTER_TREE)", err)
		}
	}
	if err := os.MkdirAll(env.logs, 0o755); err != nil {
		return err
	}
	if err := suite.Private(env.work); err != nil {
		return err
	}
	return suiteNetwork()
}

func (s settings) simulator() string       { return filepath.Join(s.bin, "neuron-sim") }
func (s settings) tool(name string) string { return filepath.Join(s.tools, name) }

// kube is a program of Kubernetes of a minor version; "": the first of the run.
func (s settings) kube(version, name string) string {
	return filepath.Join(s.tools, cmp.Or(version, append(s.kubernetes, "")[0]), name)
}

func (s settings) log(name string) string    { return filepath.Join(s.logs, name+".log") }
func (s settings) inWork(name string) string { return filepath.Join(s.work, name) }

// Manifest returns the path of a file below manifests/ in the tree.
func Manifest(name string) string { return filepath.Join(env.tree, "manifests", name) }

// Tools returns the directory of kubectl and Kubernetes' other programs, which every node has at the same path.
func Tools() string { return filepath.Dir(env.kube("", "kubectl")) }

// Tool is a program that the suite has once for all versions of Kubernetes: helm, awsplugin. Every node has it at the same path.
func Tool(name string) string { return env.tool(name) }

// Versions are the minor versions of Kubernetes that the run was given, that of the cluster first; none: it runs the usual one.
func Versions() []string { return strings.Fields(os.Getenv("CLUSTER_KUBERNETES")) }

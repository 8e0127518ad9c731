package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/suite"
)

// Spec describes a node. The zero values of all but Name are good.
type Spec struct {
	Name          string
	InstanceType  string            // as neuron-sim node --list says; empty: no simulated host, containers see the machine's /sys
	Simulation    []string          // more arguments for neuron-sim node, for example "--lnc", "1"
	Labels        map[string]string // besides node.kubernetes.io/instance-type
	Runtime       Runtime
	StartupTaints string        // that the kubelet registers the node with
	Kubernetes    string        // minor version of the kubelet; empty: the first of the run
	StatusEvery   time.Duration // the kubelet's nodeStatusUpdateFrequency; 0: 2 s (a kubelet's own default is 10 s)
	KubeletRoot   string        // the kubelet's --root-dir, below /var/lib/kubelet; empty: that itself
}

// Runtime is what runs the containers of a node.
type Runtime int

const (
	FromModule       Runtime = iota // containerd 2 from its Go module, or what CLUSTER_RUNTIME names; hands out CDI devices, as on EKS
	DebianContainerd                // Debian 12's 1.6, without CDI
)

// The usual nodes.
var (
	Trn1 = Spec{Name: "trn1", InstanceType: "trn1.32xlarge"}
	Trn2 = Spec{Name: "trn2", InstanceType: "trn2.48xlarge"}
	Inf2 = Spec{Name: "inf2", InstanceType: "inf2.48xlarge", Runtime: DebianContainerd}
	P5   = Spec{Name: "p5", InstanceType: "p5.48xlarge", Labels: map[string]string{"nvidia.com/gpu.present": "true"}}
	Bare = Spec{Name: "bare", InstanceType: "c5n.18xlarge", Simulation: []string{"--without", "efa"}}
	// Plain has no simulated host at all: a machine in anybody's cluster, for the dev manifest.
	Plain = Spec{Name: "plain"}
)

// Node is a running node.
type Node struct {
	Spec
	Containerd, Kubelet *Process // Containerd: or CRI-O

	cluster *Cluster
	number  int // decides its addresses; never used twice
	dir     string
	first   *exec.Cmd // first process of its namespaces; nil: powered off
	ended   chan struct{}
}

// Disk returns where a path of the node is seen by the test: one of privateDirs or below.
func (n *Node) Disk(path string) string { return filepath.Join(n.dir, "disk", path) }

// Host is the simulated host of the node, for neuron-sim and for reading.
func (n *Node) Host() string { return n.Disk(hostDir) }

func (n *Node) Address() string { return nodeAddress(n.number) }

// Nodes makes exactly these nodes run: those that run already stay, others are removed, missing ones are started at the same
// time. It returns them in the order of the specs, all Ready.
func (c *Cluster) Nodes(t testing.TB, specs ...Spec) []*Node {
	t.Helper()
	for name, n := range c.nodes {
		wanted := slices.ContainsFunc(specs, func(s Spec) bool { return reflect.DeepEqual(s, n.Spec) })
		if !wanted || n.Running() != nil {
			c.RemoveNode(t, c.nodes[name])
		}
	}
	var starting sync.WaitGroup
	failures := make([]error, len(specs))
	nodes := make([]*Node, len(specs))
	begin, started := time.Now(), 0
	for i, spec := range specs {
		if nodes[i] = c.nodes[spec.Name]; nodes[i] != nil {
			continue
		}
		c.numbers++
		started++
		nodes[i] = &Node{Spec: spec, cluster: c, number: c.numbers, dir: env.inWork("n/" + spec.Name)}
		c.nodes[spec.Name] = nodes[i]
		starting.Go(func() { failures[i] = errors.Join(nodes[i].install(), nodes[i].PowerOn()) })
	}
	starting.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	if started > 0 {
		Figure(t, fmt.Sprintf("%d nodes started and Ready", started), time.Since(begin))
	}
	return nodes
}

// RemoveNode ends a node and deletes it and its pods from the API; the controller manager deletes pods 40 s after their node.
func (c *Cluster) RemoveNode(t testing.TB, n *Node) {
	t.Helper()
	delete(c.nodes, n.Name)
	if err := n.powerOff(); err != nil {
		t.Error(err)
	}
	err := c.Client.CoreV1().Nodes().Delete(context.Background(), n.Name, meta.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	c.Kubectl(t, "delete", "pods", "--all-namespaces", "--field-selector=spec.nodeName="+n.Name, "--force", "--grace-period=0")
	if err := os.RemoveAll(n.dir); err != nil {
		t.Error(err)
	}
}

// install writes the disk of a new node.
func (n *Node) install() error {
	if err := os.RemoveAll(n.dir); err != nil {
		return err
	}
	var err error
	for _, dir := range []string{"root", "upper", "scratch", "disk/var/lib/probe", "disk/etc/kubernetes", "disk/etc/containerd",
		"disk/etc/crio", "disk/etc/cni/net.d", "disk" + hostDir} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(n.dir, dir), 0o755))
	}
	err = errors.Join(err, os.Chmod(n.Disk("/var/lib/probe"), 0o777)) // probes may run as any user
	if err != nil {
		return err
	}
	if n.InstanceType != "" {
		arguments := append([]string{"node", n.Host(), "--instance-type", n.InstanceType}, n.Simulation...)
		if _, err := suite.Run(env.simulator(), arguments...); err != nil {
			return err
		}
		if err := os.MkdirAll(n.Host()+"/sys/fs/cgroup", 0o755); err != nil { // runc mounts there
			return err
		}
	}
	return errors.Join(n.writeEngineConfig(), n.writeNetworkConfig(), n.writeKubeletConfig())
}

// PowerOn starts an installed node that is off, and waits until the API server says that it is Ready.
func (n *Node) PowerOn() error {
	if err := suite.MakeCgroups(n.group()); err != nil {
		return err
	}
	if err := n.startFirst(); err != nil {
		return err
	}
	if err := connectNode(n.number, n.first.Process.Pid); err != nil {
		return err
	}
	if err := n.StartContainerd(); err != nil {
		return err
	}
	if err := n.importImages(n.cluster.images...); err != nil {
		return err
	}
	since := time.Now().Add(-time.Second)
	if err := n.StartKubelet(); err != nil {
		return err
	}
	return suite.Wait(Patience, n.Name+" is Ready", func() error {
		if err := n.Running(); err != nil {
			return suite.Permanent(err)
		}
		return n.ready(since)
	})
}

// ready: what the kubelet of an earlier boot reported does not count.
func (n *Node) ready(since time.Time) error {
	node, err := n.cluster.Client.CoreV1().Nodes().Get(context.Background(), n.Name, meta.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == core.NodeReady && condition.LastHeartbeatTime.After(since.Truncate(time.Second)) {
			if condition.Status == core.ConditionTrue {
				return nil
			}
			return errors.New(condition.Message)
		}
	}
	return errors.New("no news of its kubelet")
}

// startFirst starts the process that the node lives and dies with.
func (n *Node) startFirst() error {
	setup, err := json.Marshal(nodeSetup{Name: n.Name, Dir: n.dir, Boot: newUUID(), Simulated: n.InstanceType != "",
		Programs: []string{env.tools, env.bin}})
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	n.first = exec.Command("/proc/self/exe")
	n.first.Env = append(os.Environ(), nodeVariable+"="+string(setup))
	n.first.Stderr = os.Stderr
	n.first.ExtraFiles = []*os.File{write}
	n.first.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC}
	err = n.first.Start()
	_ = write.Close()
	if err != nil {
		n.first = nil
		return fmt.Errorf("namespaces of %s: %w", n.Name, err)
	}
	n.ended = make(chan struct{})
	go func(first *exec.Cmd, ended chan struct{}) {
		_ = first.Wait()
		close(ended)
	}(n.first, n.ended)
	answer, err := io.ReadAll(read)
	if err == nil && string(answer) != "ready" {
		err = errors.New(string(answer))
	}
	return err
}

func newUUID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// group is the node's cgroup, in which are those of all its pods.
func (n *Node) group() string { return env.group + "/" + n.Name }

// powerOff ends every process of the node at once and removes what they had outside its disk.
func (n *Node) powerOff() error {
	if n.first == nil {
		return nil
	}
	_ = n.first.Process.Kill()
	for n.first != nil {
		suite.Thaw(n.group())
		select {
		case <-n.ended:
			n.first = nil
		case <-time.After(100 * time.Millisecond):
		}
	}
	var err error
	for _, p := range []*Process{n.Kubelet, n.Containerd} {
		if p != nil {
			err = errors.Join(err, p.End(syscall.SIGKILL))
		}
	}
	return errors.Join(err, suite.RemoveCgroups(n.group()), disconnectNode(n.number))
}

// Reboot cuts the node's power and starts it again over the same disk; it returns once the node is Ready.
func (n *Node) Reboot(t testing.TB) {
	t.Helper()
	if err := n.PowerCycle(); err != nil {
		t.Fatal(err)
	}
}

// Freeze freezes the containers, as runc does for a moment when it starts one; cgroup version 1 only.
func (n *Node) Freeze(t testing.TB) {
	t.Helper()
	mounts, err := suite.CgroupMounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, mount := range mounts {
		state := mount + n.group() + "/kubepods/freezer.state"
		if _, err := os.Stat(state); err != nil {
			continue
		}
		if err := os.WriteFile(state, []byte("FROZEN"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// PowerOff cuts the node's power; it stays in the API. PowerOn starts it again.
func (n *Node) PowerOff(t testing.TB) {
	t.Helper()
	if err := n.powerOff(); err != nil {
		t.Fatal(err)
	}
}

// Running returns nil if the node is on and its programs run.
func (n *Node) Running() error {
	if n.first == nil {
		return fmt.Errorf("%s is off", n.Name)
	}
	select {
	case <-n.ended:
		return fmt.Errorf("the first process of %s ended", n.Name)
	default:
	}
	for _, p := range []*Process{n.Containerd, n.Kubelet} {
		if p == nil {
			return fmt.Errorf("%s has not started everything", n.Name)
		}
		if err := p.Running(); err != nil {
			return err
		}
	}
	return nil
}

// Leftovers lists what of the node exists outside its disk; nothing, once it is off.
func (n *Node) Leftovers() []string {
	var left []string
	for _, p := range suite.Processes() {
		if strings.Contains(p.Group, n.group()+"/") {
			left = append(left, fmt.Sprintf("process %d %s", p.Pid, p.Name))
		}
	}
	mounts, _ := suite.MountPoints(func(point, _ string) bool { return strings.HasPrefix(point, n.dir+"/") })
	left = append(left, mounts...)
	groups, _ := suite.CgroupMounts()
	for _, path := range groups {
		if _, err := os.Stat(path + n.group()); err == nil {
			left = append(left, path+n.group())
		}
	}
	if _, err := suite.Run("ip", "link", "show", nodePort(n.number)); err == nil {
		left = append(left, "network interface "+nodePort(n.number))
	}
	return left
}

// start runs a program of the node inside its namespaces.
func (n *Node) start(name string, environment []string, argv ...string) (*Process, error) {
	p, err := suite.Start(env.log(n.Name+"-"+name), environment, append(n.enter(), argv...)...)
	if err != nil {
		return nil, err
	}
	p.Parent = p.Pid
	return p, suite.Wait(Patience, argv[0]+" is started", func() error {
		if err := p.Running(); err != nil {
			return suite.Permanent(err)
		}
		for _, other := range suite.Processes() {
			if other.Parent == p.Parent && other.Name != "nsenter" {
				p.Pid = other.Pid
				return nil
			}
		}
		return errors.New("nsenter has not started it")
	})
}

func (n *Node) enter() []string {
	return []string{"nsenter", "--target", fmt.Sprint(n.first.Process.Pid), "--mount", "--pid", "--net", "--uts", "--ipc", "--"}
}

// Exec runs a command inside the node's namespaces, not in a container, and returns its output.
func (n *Node) Exec(argv ...string) (string, error) {
	all := append(n.enter(), argv...)
	return suite.Run(all[0], all[1:]...)
}

// Inject changes the simulated host as neuron-sim set does, for example Inject(t, "neuron3", "vanish").
func (n *Node) Inject(t testing.TB, target string, actions ...string) {
	t.Helper()
	if err := n.Set(target, actions...); err != nil {
		t.Fatal(err)
	}
}

// ContainerProcesses lists the processes of this name that run in the node's containers, for example "neuron-agent".
func (n *Node) ContainerProcesses(name string) []int {
	var pids []int
	for _, p := range suite.Processes() {
		if p.Name == name && strings.Contains(p.Group, n.group()+"/") {
			pids = append(pids, p.Pid)
		}
	}
	return pids
}

// labels are all labels that the kubelet registers the node with, as its flag wants them.
func (n *Node) labels() string {
	all := []string{}
	if n.InstanceType != "" {
		all = append(all, "node.kubernetes.io/instance-type="+n.InstanceType)
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		all = append(all, key+"="+n.Labels[key])
	}
	return strings.Join(all, ",")
}

package scenarios

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/suite"
)

const (
	fleetType  = "trn2.48xlarge"
	fleetLabel = "fleet-test/mode"
	fleetPort  = 20000 // first of the agents' metrics ports
	fleetUser  = 20000 // first of their users
	fleetFail  = 4     // nodes of each mode whose device fails
)

// fleet is many agents against one API server. Each has a Node object, kubelet directories and the kubelet stand-in; no container runs. The
// agents of a mode read one of two simulated hosts: that whose device fails, or one that stays healthy.
type fleet struct {
	t     *testing.T
	c     *cluster.Cluster
	dir   string
	modes []*fleetMode
}

// fleetMode is one mode with its agents.
type fleetMode struct {
	*door
	name, account, manifest string
	arguments               []string
	nodes                   []*fleetNode
	failing                 string // host of the first nodes
	healthy                 string // host of the others
}

func pluginFleet() *fleetMode {
	return &fleetMode{name: "plugin", account: statusAccount, manifest: statusManifest, arguments: []string{"--node-status=on"}}
}

func claimsFleet() *fleetMode {
	return &fleetMode{name: "dra", account: draAccount, manifest: draManifest, arguments: []string{"--mode=dra"}}
}

// fleetNode is a node of a fleet.
type fleetNode struct {
	mode           *fleetMode
	name, dir      string
	number         int
	kubelet, agent *cluster.Process
	started        int // agents

	mutex    sync.Mutex
	sockets  map[string]bool // of drivers, that are registered
	endpoint string          // of the driver that was registered last
}

// newFleet makes the nodes, `size` of each mode, and removes them after the test; their agents are started by start.
func newFleet(t *testing.T, c *cluster.Cluster, size int, modes ...*fleetMode) *fleet {
	t.Helper()
	f := &fleet{t: t, c: c, dir: filepath.Join(suite.Work(), "f"), modes: modes}
	if err := os.MkdirAll(filepath.Join(os.Getenv("CLUSTER_LOGS"), "fleet"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, m := range modes {
		c.Apply(t, withoutDaemonSet(t, m.manifest))
	}
	t.Cleanup(f.remove)
	for _, m := range modes {
		m.door, m.failing, m.healthy = openDoor(t, c), filepath.Join(f.dir, m.name), filepath.Join(f.dir, m.name+"-healthy")
		for _, host := range []string{m.failing, m.healthy} {
			if _, err := suite.Run(fleetProgram("neuron-sim"), "node", host, "--instance-type", fleetType); err != nil {
				t.Fatal(err)
			}
		}
		for range size {
			number := len(f.nodes())
			n := &fleetNode{mode: m, name: fmt.Sprintf("fleet-%s-%d", m.name, number), dir: filepath.Join(f.dir, strconv.Itoa(number)), number: number}
			m.nodes = append(m.nodes, n)
		}
	}
	if err := syscall.Mkfifo(f.input(), 0o666); err != nil {
		t.Fatal(err)
	}
	input, err := os.OpenFile(f.input(), os.O_RDWR, 0) // held open: the stand-ins read commands until its end
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = input.Close() })
	version, err := c.Client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	f.each(8, func(n *fleetNode) error { return errors.Join(n.makeDirectories(), n.makeObject(c, version.GitVersion)) })
	for _, m := range modes {
		f.awaitPermission(m)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go f.registerDrivers(stop, stopped)
	t.Cleanup(func() { close(stop); <-stopped })
	return f
}

func fleetProgram(name string) string { return filepath.Join(os.Getenv("NEURON_BIN"), name) }

// withoutDaemonSet is a copy of a manifest with its accounts, rights and classes alone.
func withoutDaemonSet(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(cluster.Manifest(name))
	if err != nil {
		t.Fatal(err)
	}
	var rest []string
	for _, part := range strings.Split(string(text), "\n---\n") {
		if !strings.Contains(part, "\nkind: DaemonSet\n") {
			rest = append(rest, part)
		}
	}
	path := filepath.Join(t.TempDir(), filepath.Base(name))
	if err := os.WriteFile(path, []byte(strings.Join(rest, "\n---\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func (f *fleet) input() string { return filepath.Join(f.dir, "input") }

func (f *fleet) nodes() []*fleetNode {
	var all []*fleetNode
	for _, m := range f.modes {
		all = append(all, m.nodes...)
	}
	return all
}

// each does something on all nodes, some at the same time.
func (f *fleet) each(atOnce int, do func(*fleetNode) error) {
	f.t.Helper()
	all := f.nodes()
	failures, places := make([]error, len(all)), make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i, n := range all {
		places <- struct{}{}
		running.Go(func() {
			failures[i] = do(n)
			<-places
		})
	}
	running.Wait()
	if err := errors.Join(failures...); err != nil {
		f.t.Fatal(err)
	}
}

// remove ends all programs and deletes the Node objects, and with them their slices.
func (f *fleet) remove() {
	for _, n := range f.nodes() {
		for _, p := range []*cluster.Process{n.agent, n.kubelet} {
			if p != nil {
				_ = p.End(syscall.SIGKILL)
			}
		}
	}
	f.c.Kubectl(f.t, "delete", "nodes", "--selector", fleetLabel, "--wait=false")
	f.c.Kubectl(f.t, "delete", "events", "--field-selector", "reportingComponent=neuron-agent", "--wait=false")
	f.c.Kubectl(f.t, "delete", "resourceslices", "--field-selector", "spec.driver="+cluster.Driver)
	if err := os.RemoveAll(f.dir); err != nil {
		f.t.Error(err)
	}
}

// failingNodes are those whose device fails.
func (m *fleetMode) failingNodes() []*fleetNode { return m.nodes[:min(fleetFail, len(m.nodes))] }

func (n *fleetNode) fails() bool { return slices.Contains(n.mode.failingNodes(), n) }

func (n *fleetNode) host() string {
	if n.fails() {
		return n.mode.failing
	}
	return n.mode.healthy
}

func (n *fleetNode) user() int           { return fleetUser + n.number }
func (n *fleetNode) kubeletDir() string  { return filepath.Join(n.dir, "k") }
func (n *fleetNode) registryDir() string { return filepath.Join(n.kubeletDir(), "plugins_registry") }
func (n *fleetNode) tokenFile() string   { return filepath.Join(n.dir, "token") }

// port is that of the agent that was started last; two overlap in an update.
func (n *fleetNode) port() int { return fleetPort + 2*n.number + n.started%2 }

func (n *fleetNode) makeDirectories() error {
	var all error
	for _, dir := range []string{n.dir, n.dir + "/cdi", n.kubeletDir(), n.registryDir(), n.kubeletDir() + "/plugins",
		n.kubeletDir() + "/device-plugins", n.kubeletDir() + "/pod-resources"} {
		all = errors.Join(all, os.MkdirAll(dir, 0o755), os.Chown(dir, n.user(), n.user()))
	}
	return all
}

// makeObject makes the Node and a token that is bound to it.
func (n *fleetNode) makeObject(c *cluster.Cluster, kubelet string) error {
	ctx := context.Background()
	room := core.ResourceList{core.ResourceCPU: quantity("100"), core.ResourceMemory: quantity("100Gi"), core.ResourcePods: quantity("1000")}
	object := &core.Node{ObjectMeta: meta.ObjectMeta{Name: n.name, Labels: map[string]string{core.LabelHostname: n.name, fleetLabel: n.mode.name}},
		Status: core.NodeStatus{Capacity: room, Allocatable: room, NodeInfo: core.NodeSystemInfo{KubeletVersion: kubelet},
			Conditions: []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue}}}}
	made, err := c.Client.CoreV1().Nodes().Create(ctx, object, meta.CreateOptions{})
	if err != nil {
		return err
	}
	bound := &authentication.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: made.Name, UID: made.UID}
	answer, err := c.Client.CoreV1().ServiceAccounts(system).CreateToken(ctx, n.mode.account,
		&authentication.TokenRequest{Spec: authentication.TokenRequestSpec{BoundObjectRef: bound}}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	n.mode.admit(answer.Status.Token, n.name)
	return os.WriteFile(n.tokenFile(), []byte(answer.Status.Token), 0o644)
}

// awaitPermission: the API server learns of a new role from its own watch.
func (f *fleet) awaitPermission(m *fleetMode) {
	token, err := os.ReadFile(m.nodes[0].tokenFile())
	if err != nil {
		f.t.Fatal(err)
	}
	client := f.c.As(f.t, string(token))
	cluster.Eventually(f.t, cluster.Patience, m.account+" may read its Node", func() error {
		_, err := client.CoreV1().Nodes().Get(context.Background(), m.nodes[0].name, meta.GetOptions{})
		return err
	})
}

// start starts a program of the node under a user of its own, since the kernel counts inotify instances by user. With the two capabilities
// it reads the programs and directories of any tree.
func (n *fleetNode) start(name string, argv ...string) (*cluster.Process, error) {
	user := strconv.Itoa(n.user())
	as := []string{"setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--inh-caps=+dac_override,+fowner",
		"--ambient-caps=+dac_override,+fowner", "--"}
	return suite.Start(filepath.Join(os.Getenv("CLUSTER_LOGS"), "fleet", n.name+"-"+name+".log"), nil, append(as, argv...)...)
}

// startKubelet starts the stand-in and waits until it serves.
func (n *fleetNode) startKubelet(input string) error {
	var err error
	if n.kubelet, err = n.start("kubelet", fleetProgram("neuron-sim"), "kubelet", "--kubelet-dir", n.kubeletDir(), input); err != nil {
		return err
	}
	return suite.Wait(cluster.Patience, n.name+": the kubelet stand-in serves", func() error {
		_, err := os.Stat(n.kubeletDir() + "/pod-resources/kubelet.sock")
		if ended := n.kubelet.Running(); ended != nil {
			return suite.Permanent(ended)
		}
		return err
	})
}

// startAgent starts an agent as the manifests do and waits until it is ready.
func (n *fleetNode) startAgent(c *cluster.Cluster) error {
	n.started++
	arguments := append([]string{fleetProgram("neuron-agent"), "run"}, n.mode.arguments...)
	var err error
	n.agent, err = n.start("agent", append(arguments, "--root", n.host(), "--kubelet-dir", n.kubeletDir(), "--cdi-dir", n.dir+"/cdi",
		"--node-name", n.name, "--pod-uid", fmt.Sprintf("uid-%d", n.started), "--metrics-address", fmt.Sprintf("127.0.0.1:%d", n.port()),
		"--api-server", n.mode.url, "--api-token-file", n.tokenFile(), "--api-ca-file", filepath.Dir(c.Kubeconfig)+"/ca.crt")...)
	if err != nil {
		return err
	}
	return suite.Wait(2*cluster.Patience, n.name+": the agent is ready", func() error {
		if err := n.agent.Running(); err != nil {
			return suite.Permanent(err)
		}
		return n.ready()
	})
}

func (n *fleetNode) ready() error {
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", n.port()))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// update replaces the agent as the DaemonSet of its mode does: that of claims starts the next one first.
func (n *fleetNode) update(c *cluster.Cluster) error {
	before := n.agent
	end := func() error {
		if err := before.End(syscall.SIGTERM); err != nil {
			return err
		}
		return before.Exit()
	}
	if n.mode.account == draAccount {
		if err := n.startAgent(c); err != nil {
			return err
		}
		return end()
	}
	if err := end(); err != nil {
		return err
	}
	return n.startAgent(c)
}

// registerDrivers does what kubelets do with the sockets of drivers.
func (f *fleet) registerDrivers(stop <-chan struct{}, stopped chan<- struct{}) {
	defer close(stopped)
	for {
		for _, n := range f.nodes() {
			if n.mode.account == draAccount {
				n.registerDriver()
			}
		}
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// registerDriver registers each new socket; one that does not answer is asked again later.
func (n *fleetNode) registerDriver() {
	entries, _ := os.ReadDir(n.registryDir())
	known := n.sockets
	n.sockets = map[string]bool{}
	for _, entry := range entries {
		if known[entry.Name()] {
			n.sockets[entry.Name()] = true
			continue
		}
		endpoint, err := askRegistration(filepath.Join(n.registryDir(), entry.Name()))
		if err != nil {
			continue
		}
		n.sockets[entry.Name()] = true
		n.mutex.Lock()
		n.endpoint = endpoint
		n.mutex.Unlock()
	}
}

// driverSocket is where the driver serves claims.
func (n *fleetNode) driverSocket() string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.endpoint
}

// askRegistration registers a driver and returns where it serves claims.
func askRegistration(socket string) (string, error) {
	connection, err := suite.Dial(socket)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	client := registration.NewRegistrationClient(connection)
	info, err := client.GetInfo(ctx, &registration.InfoRequest{})
	if err != nil {
		return "", err
	}
	_, err = client.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{PluginRegistered: true})
	return info.Endpoint, err
}

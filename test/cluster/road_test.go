package scenarios

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

const (
	efaPod = "app.kubernetes.io/name=neuron-agent-efa"
	image  = "localhost/neuron-agent:0.1.0"
	// What README's reader pushes to; here the nodes have the image under that name already.
	registry = "registry.example.com/team"
)

var everyKind = []cluster.Spec{cluster.Trn1, cluster.Trn2, cluster.Inf2, cluster.P5, cluster.Bare}

var everyKindsCounts = []cluster.Counts{{Cores: 32, Devices: 16, EFAs: 8}, {Cores: 64, Devices: 16, EFAs: 16},
	{Cores: 24, Devices: 12}, {EFAs: 32}, {}}

// TestInstall types README's section "Install" on a cluster with every kind of node, runs Jobs, and takes it away again.
func TestInstall(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, everyKind...)
	before := inventoryBefore(t, c, nodes...)
	for _, n := range nodes {
		n.TagImage(t, image, registry+"/neuron-agent:0.1.0")
	}
	lines := cluster.KubectlLines(t, "README.md", "Install")
	remove := lines[len(lines)-1]
	if !strings.HasPrefix(remove, "kubectl delete") {
		t.Fatalf("the last command of README's section is to remove everything, not %s", remove)
	}
	complete := make(chan map[string]time.Time, 1)
	go func() { complete <- watchAllocatable(c, nodes, everyKindsCounts) }()
	for _, line := range lines[:len(lines)-1] {
		c.Shell(t, line, "REGISTRY="+registry)
	}
	for i, n := range nodes {
		n.ExpectAllocatable(t, everyKindsCounts[i])
	}
	c.Kubectl(t, "-n", system, "rollout", "status", "daemonset/neuron-agent-efa", "--timeout=60s")
	expectReadyEverywhere(t, c, agentPod, 4)
	expectReadyEverywhere(t, c, efaPod, 1)
	reportStart(t, c, nodes, <-complete)
	t.Run("Jobs", func(t *testing.T) { expectJobsPlaced(t, c, nodes) })
	t.Run("OnlyTheProbesListen", func(t *testing.T) { expectOnlyProbesListen(t, nodes) })

	c.Shell(t, remove)
	t.Run("NothingLeftBehind", func(t *testing.T) {
		for _, n := range nodes {
			n.ExpectAllocatable(t, cluster.Counts{})
		}
		c.ExpectInventory(t, before, nodes...)
	})
}

// watchAllocatable notes when each node was first seen to be complete, by name.
func watchAllocatable(c *cluster.Cluster, nodes []*cluster.Node, want []cluster.Counts) map[string]time.Time {
	seen := map[string]time.Time{}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(cluster.Patience); len(seen) < len(nodes) && time.Now().Before(deadline); <-tick.C {
		for i, n := range nodes {
			if _, is := seen[n.Name]; is {
				continue
			}
			if now, err := n.Allocatable(); err == nil && now == want[i] {
				seen[n.Name] = time.Now()
			}
		}
	}
	return seen
}

var logged = regexp.MustCompile(`(?m)^(\S+) info (starting|node|registered) `)

// reportStart prints how long it took from the agent's process to the API, and of that from its first log line to its last
// registration.
func reportStart(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node, complete map[string]time.Time) {
	t.Helper()
	for i, n := range nodes {
		if everyKindsCounts[i] == (cluster.Counts{}) {
			continue
		}
		agents := n.ContainerProcesses("neuron-agent")
		if len(agents) != 1 {
			t.Fatalf("%s: %d agents", n.Name, len(agents))
		}
		started, err := cluster.StartedAt(agents[0])
		if err != nil {
			t.Fatal(err)
		}
		log := agentLog(t, c, n)
		var first, last time.Time
		for _, match := range logged.FindAllStringSubmatch(log, -1) {
			at, err := time.Parse("2006-01-02T15:04:05.000-07:00", match[1])
			if err != nil {
				t.Fatal(err)
			}
			if first.IsZero() {
				first = at
			}
			if match[2] == "registered" {
				last = at
			}
		}
		if last.IsZero() {
			t.Fatalf("%s: nothing registered:\n%s", n.Name, log)
		}
		cluster.Figure(t, n.Name+": agent's process to allocatable in the API", complete[n.Name].Sub(started))
		cluster.Figure(t, n.Name+": of that the agent, first log line to all registered", last.Sub(first))
	}
}

// agentLog is the log of the one agent on a node.
func agentLog(t *testing.T, c *cluster.Cluster, n *cluster.Node) string {
	t.Helper()
	list, err := c.Client.CoreV1().Pods(system).List(context.Background(), meta.ListOptions{
		LabelSelector: "app.kubernetes.io/component=device-plugin", FieldSelector: "spec.nodeName=" + n.Name})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%s: %d agents (%v)", n.Name, len(list.Items), err)
	}
	return c.Kubectl(t, "-n", system, "logs", list.Items[0].Name, "-c", "neuron-agent")
}

// expectJobsPlaced: each Job fits only where it must go, since those before it hold what else would do.
func expectJobsPlaced(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node) {
	trn1, trn2, inf2, p5 := nodes[0], nodes[1], nodes[2], nodes[3]
	for _, each := range []struct {
		name    string
		ask     cluster.Ask
		node    *cluster.Node
		perNode int // logical cores per device
		after   cluster.Counts
	}{
		{"all-cores", cluster.Ask{cluster.NeuronCore: "64"}, trn2, 4, cluster.Counts{Cores: 64, EFAs: 16}},
		{"all-interfaces", cluster.Ask{cluster.EFA: "32"}, p5, 2, cluster.Counts{EFAs: 32}},
		{"training", cluster.Ask{cluster.Neuron: "16", cluster.EFA: "8"}, trn1, 2, cluster.Counts{Devices: 16, EFAs: 8}},
		{"inference", cluster.Ask{cluster.Neuron: "12"}, inf2, 2, cluster.Counts{Devices: 12}},
	} {
		w := cluster.One(each.name, each.ask)
		c.StartJob(t, w)
		report := c.AwaitReports(t, w)[0]
		if report.Node != each.node {
			t.Errorf("%s is placed on %s, want %s", each.name, report.Node.Name, each.node.Name)
		}
		report.ExpectGiven(t, each.ask, each.perNode)
		each.node.ExpectAllocatable(t, each.after) // the other name of the same silicon is withdrawn before the next Job
	}
	expectWaits(t, c, cluster.One("one-too-many", cluster.Ask{cluster.Neuron: "1"}))
	c.DeleteJob(t, cluster.One("all-cores", nil), cluster.One("training", nil), cluster.One("inference", nil))
	for _, each := range []struct {
		name    string
		ask     cluster.Ask
		node    *cluster.Node
		perNode int
	}{
		{"some-cores", cluster.Ask{cluster.NeuronCore: "3"}, inf2, 2},
		{"pair", cluster.Ask{cluster.Neuron: "2", cluster.EFA: "2"}, trn2, 4},
		{"both-names", cluster.Ask{cluster.Neuron: "1", cluster.NeuronCore: "2", cluster.EFA: "1"}, trn1, 2},
		{"nothing", nil, nodes[4], 2},
	} {
		w := cluster.One(each.name, each.ask)
		w.Node = each.node.Name
		c.StartJob(t, w)
		c.AwaitReports(t, w)[0].ExpectGiven(t, each.ask, each.perNode)
	}
}

// expectWaits: the scheduler knows that there is none left, so the pod waits instead of being refused by a kubelet.
func expectWaits(t *testing.T, c *cluster.Cluster, w cluster.Workload) {
	t.Helper()
	c.StartJob(t, w)
	cluster.Eventually(t, cluster.Patience, w.Name+" waits", func() error {
		pods, err := c.Pods("default", "workload="+w.Name)
		if err != nil || len(pods) != 1 {
			return fmt.Errorf("%d pods, %v", len(pods), err)
		}
		for _, condition := range pods[0].Status.Conditions {
			if condition.Type == core.PodScheduled && strings.Contains(condition.Message, "Insufficient aws.amazon.com/neuron") {
				return nil
			}
		}
		return fmt.Errorf("it is %s: %+v", pods[0].Status.Phase, pods[0].Status.Conditions)
	})
	c.DeleteJob(t, w)
}

// expectOnlyProbesListen: the agent can be reached through the kubelet's directory, and at port 8000 of its pod, where readiness
// is told.
func expectOnlyProbesListen(t *testing.T, nodes []*cluster.Node) {
	port := fmt.Sprintf(":%04X", 8000) // as /proc/net/tcp writes it
	for _, n := range nodes {
		for _, pid := range n.ContainerProcesses("neuron-agent") {
			sockets, err := cluster.ListeningSockets(pid)
			if err != nil || len(sockets) != 1 || !strings.HasSuffix(sockets[0], port) {
				t.Errorf("%s: the agent's pod listens on %v (%v)", n.Name, sockets, err)
			}
		}
	}
}

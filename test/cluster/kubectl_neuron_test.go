package scenarios

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"neuron-agent.test/cluster/cluster"
)

// units are what kubectl neuron counts of one kind of hardware.
type units struct{ Total, Free, Held, Unhealthy int64 }

type shownNode struct {
	Name, Mode, Unknown, Driver string
	Devices, Cores              *units
	EFAs                        *units `json:"efa_interfaces"`
}

type whyChange struct {
	Kind, Sentence, Node, To, Resource, Value string
	RefusedOn                                 string `json:"refused_on"`
	Pods                                      []string
}

// whyNodes are nodes with the same obstacles.
type whyNodes struct {
	Nodes     []string
	Obstacles []whyObstacle
}

type whyObstacle struct{ Kind, Name, Detail, Sentence string }

func (w whyNodes) has(kinds ...string) bool {
	for _, one := range w.Obstacles {
		if slices.Contains(kinds, one.Kind) {
			return true
		}
	}
	return false
}

type whyAnswer struct {
	Answer  string
	Notes   []string
	Nodes   []whyNodes
	Changes []whyChange
}

// kubectlNeuron runs the program as kubectl does, and returns what it prints and its exit status.
func kubectlNeuron(t *testing.T, c *cluster.Cluster, arguments ...string) ([]byte, int) {
	t.Helper()
	output, errors, status := kubectlNeuronSays(t, c, arguments...)
	if errors != "" {
		t.Logf("kubectl neuron %v: %s", arguments, errors)
	}
	return output, status
}

// kubectlNeuronSays: as well what it prints on stderr.
func kubectlNeuronSays(t *testing.T, c *cluster.Cluster, arguments ...string) ([]byte, string, int) {
	t.Helper()
	command := exec.Command(filepath.Join(cluster.Tools(), "kubectl"), append([]string{"neuron"}, arguments...)...)
	command.Env = append(os.Environ(), "PATH="+cluster.Tools()+":"+os.Getenv("NEURON_BIN")+":"+os.Getenv("PATH"),
		"KUBECONFIG="+c.Kubeconfig, "HOME="+t.TempDir())
	var output, errors bytes.Buffer
	command.Stdout, command.Stderr = &output, &errors
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return output.Bytes(), errors.String(), command.ProcessState.ExitCode()
}

func askWhy(t *testing.T, c *cluster.Cluster, pod string) (why whyAnswer, status int) {
	t.Helper()
	text, status := kubectlNeuron(t, c, "why", pod, "-o", "json")
	if err := json.Unmarshal(text, &why); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return why, status
}

// askPlan gives what plan prints and its status: 0 the pod fits now, 1 it does not, 2 that is not known.
func askPlan(t *testing.T, c *cluster.Cluster, pod *core.Pod, options ...string) ([]byte, int) {
	t.Helper()
	manifest, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pod.json")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	text, status := kubectlNeuron(t, c, append([]string{"plan", "-f", file}, options...)...)
	if status > 2 || len(text) == 0 {
		t.Fatalf("status %d: %s", status, text)
	}
	return text, status
}

// TestKubectlNeuron asks about three kinds of nodes, compares the answers with what scheduler and agents do, and carries out the
// changes that it names.
func TestKubectlNeuron(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Trn1, cluster.Trn2, cluster.Inf2)
	c.Apply(t, cluster.Manifest("static/neuron-agent.yaml"))
	for i, n := range nodes {
		n.ExpectAllocatable(t, everyKindsCounts[i])
	}
	expectReadyEverywhere(t, c, agentPod, 3)
	listLicences(t, c, nodes)

	t.Run("Nodes", func(t *testing.T) { expectFleet(t, c, nodes) })
	t.Run("Rights", func(t *testing.T) { expectRights(t, c) })
	t.Run("Why", func(t *testing.T) { expectWhy(t, c, nodes[0]) })
	t.Run("Questions", func(t *testing.T) { newAsker(t, c, nodes, drawCounts(cluster.Neuron)).ask(6, 0.3) })
	t.Run("Cores", func(t *testing.T) {
		for i, n := range nodes {
			n.ExpectAllocatable(t, everyKindsCounts[i]) // nothing is held through the other name any more
		}
		newAsker(t, c, nodes, drawCounts(cluster.NeuronCore)).ask(3, 0.1)
	})
	t.Run("BothNames", func(t *testing.T) {
		needsQuestions(t)
		newAsker(t, c, nodes, drawCounts(cluster.Neuron, cluster.NeuronCore)).settled(nodes).ask(40, 0.03)
	})
}

// TestKubectlNeuronModes: the same questions about a node with a driver for claims, and one with each device under one name.
func TestKubectlNeuronModes(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, trn1DRA, cluster.Inf2)
	split := cluster.DefaultAgent(t)
	split.Spec.Template.Spec.Containers[0].Args = splitArguments
	c.StartAgent(t, split)
	startDriver(t, c, nodes[:1], partitioned, unmodified)
	expectOffered(t, nodes[1], expectSplit(everyKindsCounts[2]))
	expectReadyEverywhere(t, c, agentPod, 1)
	listLicences(t, c, nodes)
	t.Run("Split", func(t *testing.T) {
		newAsker(t, c, nodes[1:], drawCounts(cluster.Neuron, cluster.NeuronCore)).ask(3, 0.2)
	})
	t.Run("Claims", func(t *testing.T) { newAsker(t, c, nodes[:1], drawClaimed).ask(3, 0.2) })
	t.Run("BothModes", func(t *testing.T) {
		needsQuestions(t)
		newAsker(t, c, nodes, drawAny).ask(40, 0.07)
	})
}

// TestKubectlNeuronShares: the questions about devices that claims share.
func TestKubectlNeuronShares(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, trn1DRA)
	startDriver(t, c, nodes, sharing)
	awaitShared(t, nodes[0])
	listLicences(t, c, nodes)
	newAsker(t, c, nodes, drawShares).ask(6, 0.1)
}

func expectFleet(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node) {
	var fleet struct{ Nodes []shownNode }
	cluster.Eventually(t, cluster.Patience, "every agent's answer", func() error {
		text, status := kubectlNeuron(t, c, "nodes", "-o", "json")
		fleet.Nodes = nil
		if err := json.Unmarshal(text, &fleet); err != nil || status != 0 {
			return fmt.Errorf("status %d: %w in %s", status, err, text)
		}
		for _, n := range fleet.Nodes {
			if n.Unknown != "" {
				return fmt.Errorf("%s: %s", n.Name, n.Unknown)
			}
		}
		return nil
	})
	for i, n := range nodes {
		at := slices.IndexFunc(fleet.Nodes, func(one shownNode) bool { return one.Name == n.Name })
		if at < 0 {
			t.Fatalf("%s is not in the answer", n.Name)
		}
		one, want := fleet.Nodes[at], everyKindsCounts[i]
		if one.Mode != "plugin" || one.Driver == "" || one.Devices == nil || one.Cores == nil || one.EFAs == nil {
			t.Fatalf("%s: %+v", n.Name, one)
		}
		got := cluster.Counts{Cores: one.Cores.Free, Devices: one.Devices.Free, EFAs: one.EFAs.Free}
		if got != want {
			t.Errorf("%s: free are %+v, want %+v", n.Name, got, want)
		}
	}
	for _, arguments := range [][]string{{"nodes", "-o", "wide"}, {"pods", "-A"}, {"top", "--once"}, {"map", "-o", "svg", "-"}} {
		if text, status := kubectlNeuron(t, c, arguments...); status != 0 || len(text) == 0 {
			t.Errorf("%v: status %d, %s", arguments, status, text)
		} else if arguments[0] != "map" {
			t.Logf("SAID kubectl neuron %v\n%s", arguments, text)
		}
	}
}

// expectWhy: a pod waits for all devices of a node of which another holds some; the change that why names lets it in.
func expectWhy(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	c.StartPod(t, onNode("in-the-way", n, cluster.Ask{cluster.Neuron: "4"}))
	c.ReportsOf(t, "default", "in-the-way")
	c.StartPod(t, onNode("waits", n, cluster.Ask{cluster.Neuron: "16"}))
	c.AwaitSaid(t, []string{"Insufficient aws.amazon.com/neuron"}, "describe", "pod", "waits")
	why, status := askWhy(t, c, "waits")
	if status != 1 || why.Answer != "does_not_fit" {
		t.Fatalf("status %d, %+v", status, why)
	}
	named := slices.ContainsFunc(why.Changes, func(change whyChange) bool {
		return slices.Equal(change.Pods, []string{"default/in-the-way"}) && change.To == ""
	})
	if !named {
		t.Fatalf("no change names the pod that holds the devices: %+v", why.Changes)
	}
	text, _ := kubectlNeuron(t, c, "why", "waits")
	t.Logf("SAID kubectl neuron why waits\n%s", text)
	c.DeletePod(t, "default", "in-the-way")
	c.ReportsOf(t, "default", "waits")
	// The container runs before the pod's status says so.
	cluster.Eventually(t, cluster.Patience, "why says that it runs", func() error {
		if why, status = askWhy(t, c, "waits"); status != 0 {
			return fmt.Errorf("after the change: status %d, %+v", status, why)
		}
		return nil
	})
	c.DeletePod(t, "default", "waits")
}

// expectRights: with both roles of the manifests everything is known; what is missing without them is said.
func expectRights(t *testing.T, c *cluster.Cluster) {
	c.Apply(t, cluster.Manifest("components/kubectl-neuron-role/roles.yaml"))
	for _, binding := range [][]string{
		{"clusterrolebinding", "asked-all", "--clusterrole=neuron-agent-kubectl", "--user=reader", "--user=without-proxy"},
		{"rolebinding", "asked-proxy", "--role=neuron-agent-kubectl", "--user=reader", "-n", system},
		{"rolebinding", "asked-tenant", "--clusterrole=view", "--user=tenant", "-n", "default"},
	} {
		c.Kubectl(t, append([]string{"create"}, binding...)...)
		where := append([]string{"delete"}, binding[:2]...)
		if binding[0] == "rolebinding" {
			where = append(where, binding[len(binding)-2:]...)
		}
		t.Cleanup(func() { c.Kubectl(t, where...) })
	}
	for _, want := range []struct {
		user, command  string
		status         int
		shows, reports string // on stdout and stderr; "": nothing
	}{
		{"reader", "nodes", 0, "3 nodes; 44 devices: 44 free, 0 held", ""},
		{"without-proxy", "nodes", 0, "3 nodes without an answer of the agent (-o wide says why)", ""},
		{"without-proxy", "nodes -o wide", 0, `User "without-proxy" cannot get resource "pods/proxy"`, ""},
		{"tenant", "pods", 0, "", "nodes are not known"},
		{"eve", "nodes", 2, "", `User "eve" cannot list resource "nodes"`},
	} {
		cluster.Eventually(t, cluster.Patience, want.user+" sees what the roles allow", func() error {
			output, errors, status := kubectlNeuronSays(t, c, append(strings.Fields(want.command), "--as", want.user)...)
			if status != want.status || !strings.Contains(string(output), want.shows) || !strings.Contains(errors, want.reports) ||
				want.reports == "" && errors != "" {
				return fmt.Errorf("status %d: %s%s", status, output, errors)
			}
			return nil
		})
	}
}

package scenarios

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	Kind, Sentence, To string
	Pods               []string
}

type whyAnswer struct {
	Answer  string
	Changes []whyChange
}

// kubectlNeuron runs the program as kubectl does, and returns what it prints and its exit status.
func kubectlNeuron(t *testing.T, c *cluster.Cluster, arguments ...string) ([]byte, int) {
	t.Helper()
	command := exec.Command(filepath.Join(cluster.Tools(), "kubectl"), append([]string{"neuron"}, arguments...)...)
	command.Env = append(os.Environ(), "PATH="+cluster.Tools()+":"+os.Getenv("NEURON_BIN")+":"+os.Getenv("PATH"),
		"KUBECONFIG="+c.Kubeconfig, "HOME="+t.TempDir())
	var output, errors bytes.Buffer
	command.Stdout, command.Stderr = &output, &errors
	err := command.Run()
	if errors.Len() > 0 {
		t.Logf("kubectl neuron %v: %s", arguments, errors.String())
	}
	if err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return output.Bytes(), command.ProcessState.ExitCode()
}

func askWhy(t *testing.T, c *cluster.Cluster, pod string) (why whyAnswer, status int) {
	t.Helper()
	text, status := kubectlNeuron(t, c, "why", pod, "-o", "json")
	if err := json.Unmarshal(text, &why); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return why, status
}

// askPlan says whether the pod fits now.
func askPlan(t *testing.T, c *cluster.Cluster, pod *core.Pod) bool {
	t.Helper()
	manifest, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pod.json")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	text, status := kubectlNeuron(t, c, "plan", "-f", file)
	if status > 1 {
		t.Fatalf("status %d: %s", status, text)
	}
	return status == 0
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

	t.Run("Nodes", func(t *testing.T) { expectFleet(t, c, nodes) })
	t.Run("Why", func(t *testing.T) { expectWhy(t, c, nodes[0]) })
	t.Run("Questions", func(t *testing.T) { expectQuestions(t, c, nodes) })
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
	if why, status = askWhy(t, c, "waits"); status != 0 {
		t.Errorf("after the change: status %d, %+v", status, why)
	}
	c.DeletePod(t, "default", "waits")
}

// expectQuestions asks whether pods drawn at random fit, and lets the scheduler decide: CLUSTER_QUESTIONS of them, 12 without.
func expectQuestions(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node) {
	count, err := strconv.Atoi(os.Getenv("CLUSTER_QUESTIONS"))
	if err != nil {
		count = 12
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	var running []string
	defer func() {
		for _, name := range running {
			c.DeletePod(t, "default", name)
		}
	}()
	for i := range count {
		n := nodes[random.IntN(len(nodes))]
		ask := cluster.Ask{cluster.Neuron: strconv.Itoa(1 + random.IntN(18))}
		if random.IntN(2) == 0 {
			ask[cluster.EFA] = strconv.Itoa(1 + random.IntN(10))
		}
		name := fmt.Sprintf("question-%d", i)
		w := onNode(name, n, ask)
		template := w.PodTemplate()
		pod := &core.Pod{TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Name = name
		fits := askPlan(t, c, pod)
		c.CreatePod(t, "default", pod)
		var placed bool
		cluster.Eventually(t, cluster.Patience, name+" is placed or refused by the scheduler", func() error {
			state := c.Kubectl(t, "get", "pod", name, "-o", `jsonpath={.spec.nodeName}/{.status.conditions[?(@.type=="PodScheduled")].reason}`)
			placed = state != "/" && state[0] != '/'
			if !placed && state != "/Unschedulable" {
				return fmt.Errorf("state %q", state)
			}
			return nil
		})
		if placed != fits {
			t.Errorf("%s asks for %v on %s: kubectl neuron said %v, the scheduler %v", name, ask, n.Name, fits, placed)
		}
		if placed {
			running = append(running, name)
			c.ReportsOf(t, "default", name)
		} else {
			c.DeletePod(t, "default", name)
		}
		if len(running) > 4 {
			c.DeletePod(t, "default", running[0])
			running = running[1:]
		}
	}
}

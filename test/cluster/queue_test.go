package scenarios

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

// The scheduler counts `neuron` and `neuroncore` for themselves; that they are the same silicon it learns with the next node
// status. These scenarios show what that costs, and what it does not.

// deep: the long runs too (CLUSTER_DEEP=1).
func deep() bool { return os.Getenv("CLUSTER_DEEP") == "1" }

func shortOrDeep[T any](inShort, inDeep T) T {
	if deep() {
		return inDeep
	}
	return inShort
}

func needsDeep(t *testing.T) {
	t.Helper()
	if !deep() {
		t.Skip("a long one: CLUSTER_DEEP=1 runs it")
	}
}

var splitArguments = []string{"run", "--metrics-address=:8000", "--core-devices", "0-3"}

// expectSplit is what a node offers under splitArguments.
func expectSplit(whole cluster.Counts) cluster.Counts {
	perDevice := whole.Cores / whole.Devices
	return cluster.Counts{Cores: 4 * perDevice, Devices: whole.Devices - 4, EFAs: whole.EFAs}
}

func asksFor(name core.ResourceName, sizes ...int) []cluster.Ask {
	var asks []cluster.Ask
	for _, size := range sizes {
		asks = append(asks, cluster.Ask{name: strconv.Itoa(size)})
	}
	return asks
}

// withEFA adds to each ask for two devices or more an interface per two devices.
func withEFA(asks []cluster.Ask) []cluster.Ask {
	for _, ask := range asks {
		if devices, _ := strconv.Atoi(ask[cluster.Neuron]); devices > 1 {
			ask[cluster.EFA] = strconv.Itoa(devices / 2)
		}
	}
	return asks
}

// TestQueueOf60: 60 pods at once, sizes from 1 to 8, lives from 2 to 9 s, on one node of each kind, a node status every 2 s.
// The short run has 30 pods with shorter lives, and one node for each of two modes.
func TestQueueOf60(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Trn1, cluster.Inf2)
	whole := []cluster.Counts{{Cores: 32, Devices: 16, EFAs: 8}, {Cores: 24, Devices: 12}}
	for _, mode := range []struct {
		name         string
		resources    []core.ResourceName
		arguments    []string
		mayBeRefused []int // of 60, per node
		short        string
	}{
		{"devices", []core.ResourceName{cluster.Neuron}, nil, []int{0, 0}, ""},
		{"cores", []core.ResourceName{cluster.NeuronCore}, nil, []int{0, 0}, ""},
		{"mixed", []core.ResourceName{cluster.Neuron, cluster.NeuronCore}, nil, []int{50, 55}, cluster.Inf2.Name},
		{"split", []core.ResourceName{cluster.Neuron, cluster.NeuronCore}, splitArguments, []int{0, 0}, cluster.Trn1.Name},
	} {
		t.Run(mode.name, func(t *testing.T) {
			if mode.short == "" {
				needsDeep(t)
			}
			count, lives := shortOrDeep(30, 60), shortOrDeep([2]int{1, 3}, [2]int{2, 9})
			set := cluster.DefaultAgent(t)
			if mode.arguments != nil {
				set.Spec.Template.Spec.Containers[0].Args = mode.arguments
			}
			c.StartAgent(t, set)
			var queues []*queue
			for i, n := range nodes {
				want := whole[i]
				if mode.arguments != nil {
					want = expectSplit(want)
				}
				expectOffered(t, n, want)
				if !deep() && n.Name != mode.short {
					continue
				}
				q := &queue{name: mode.name, node: n, count: count, lives: lives, mayBeRefused: mode.mayBeRefused[i] * count / 60}
				for _, name := range mode.resources {
					q.asks = append(q.asks, asksFor(name, 1, 1, 2, 2, 4, 8)...)
				}
				if n.InstanceType == cluster.Trn1.InstanceType {
					q.asks = withEFA(q.asks)
				}
				queues = append(queues, q)
			}
			for i, o := range runQueues(t, c, 8*time.Minute, queues...) {
				expectOutcome(t, c, queues[i], o)
			}
		})
	}
}

// expectOutcome: no more refused than may be, each with words that help, and every pod that ran had what it asked for.
func expectOutcome(t *testing.T, c *cluster.Cluster, q *queue, o outcome) {
	t.Helper()
	by := expectRefusals(t, c, o.refused)
	figure(t, "queue of %d, %s, lives of %d to %d s, %s: %d refused (%s), %v", q.count, q.name, q.lives[0], q.lives[1], q.node.Name,
		len(o.refused), by, o.took.Round(100*time.Millisecond))
	if len(o.refused) > q.mayBeRefused {
		t.Errorf("%s: %d refused, at most %d may; the first: %s", q.node.Name, len(o.refused), q.mayBeRefused,
			o.refused[0].Status.Message)
	}
	expectGiven(t, q.node, o.ended)
	figureMemory(t, q.node, "after the queue, "+q.name)
}

// TestQueueOf200: Jobs of all sizes over three nodes, one of them split, until everything has run. A refused pod is made again
// by its Job.
func TestQueueOf200(t *testing.T) {
	needsDeep(t)
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Trn1, cluster.Trn2, cluster.Inf2)
	whole, split := cluster.DefaultAgent(t), cluster.DefaultAgent(t)
	onInstance := func(operator core.NodeSelectorOperator) core.NodeSelectorRequirement {
		return core.NodeSelectorRequirement{Key: core.LabelInstanceTypeStable, Operator: operator,
			Values: []string{cluster.Trn2.InstanceType}}
	}
	split.Name = "neuron-agent-split"
	split.Spec.Template.Spec.Containers[0].Args = splitArguments
	split.Spec.Selector.MatchLabels["group"], split.Spec.Template.Labels["group"] = "split", "split"
	whole.Spec.Selector.MatchLabels["group"], whole.Spec.Template.Labels["group"] = "whole", "whole"
	for set, operator := range map[*core.PodSpec]core.NodeSelectorOperator{
		&split.Spec.Template.Spec: core.NodeSelectorOpIn, &whole.Spec.Template.Spec: core.NodeSelectorOpNotIn} {
		terms := set.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		terms[0].MatchExpressions = append(terms[0].MatchExpressions, onInstance(operator))
	}
	c.StartAgent(t, whole)
	c.StartAgent(t, split)
	expectOffered(t, nodes[0], cluster.Counts{Cores: 32, Devices: 16, EFAs: 8})
	expectOffered(t, nodes[1], expectSplit(cluster.Counts{Cores: 64, Devices: 16, EFAs: 16}))
	expectOffered(t, nodes[2], cluster.Counts{Cores: 24, Devices: 12})

	asks := append(asksFor(cluster.Neuron, 1, 2, 4, 8), asksFor(cluster.NeuronCore, 1, 2, 4, 8)...)
	begin := time.Now()
	for i, ask := range asks {
		startDrainingJob(t, c, fmt.Sprintf("drain-%d", i), ask, strconv.Itoa(1+i%4), 25)
	}
	refused := map[string]*core.Pod{}
	ended := map[string]*core.Pod{}
	c.Follow(t, 15*time.Minute, "default", "queue=drain", func(pod *core.Pod) bool {
		switch pod.Status.Phase {
		case core.PodSucceeded:
			ended[pod.Name] = pod
		case core.PodFailed:
			refused[pod.Name] = pod
		}
		return len(ended) == 25*len(asks)
	})
	took := time.Since(begin)
	by := expectRefusals(t, c, slices.Collect(maps.Values(refused)))
	for _, pod := range refused {
		if pod.Spec.NodeName == nodes[1].Name {
			t.Errorf("%s was refused on the split node: %s", pod.Name, pod.Status.Message)
		}
	}
	figure(t, "queue of 200 over three nodes: drained in %v, %d pods refused and made again (%s)", took.Round(time.Second), len(refused), by)
	for _, n := range nodes {
		var here []*core.Pod
		for _, pod := range ended {
			if pod.Spec.NodeName == n.Name {
				here = append(here, pod)
			}
		}
		figure(t, "queue of 200 over three nodes: %d pods ran on %s", len(here), n.Name)
		expectGiven(t, n, here)
		figureMemory(t, n, "after the queue of 200")
	}
}

// startDrainingJob makes a Job that goes on until so many pods of it have succeeded.
func startDrainingJob(t *testing.T, c *cluster.Cluster, name string, ask cluster.Ask, life string, count int32) {
	t.Helper()
	w, failures := cluster.One(name, ask), int32(10000)
	w.Life = life
	template := w.PodTemplate()
	template.Labels["queue"] = "drain"
	job := &batch.Job{ObjectMeta: meta.ObjectMeta{Name: name},
		Spec: batch.JobSpec{BackoffLimit: &failures, Completions: &count, Parallelism: &count, Template: template}}
	if _, err := c.Client.BatchV1().Jobs("default").Create(context.Background(), job, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.DeleteJob(t, w) })
}

// TestAdmissionRate: pods that ask for a core get through the whole chain, from the API server to the container started, as
// fast as those that ask for nothing. Both take turns on one node.
func TestAdmissionRate(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, cluster.Trn1)[0]
	c.StartAgent(t, cluster.DefaultAgent(t))
	expectOffered(t, n, cluster.Counts{Cores: 32, Devices: 16, EFAs: 8})
	rounds, count := shortOrDeep(3, 9), shortOrDeep(8, 24)
	var plain, asking []float64
	rate := func(name string, ask cluster.Ask) float64 {
		q := &queue{name: name, node: n, asks: []cluster.Ask{ask}, count: count, lives: [2]int{0, 0}}
		o := runQueues(t, c, 5*time.Minute, q)[0]
		if len(o.refused) > 0 {
			t.Fatalf("refused: %s", o.refused[0].Status.Message)
		}
		c.Kubectl(t, "delete", "pods", "--selector", "queue="+name, "--wait=false")
		c.ExpectNoPods(t, "default", "queue="+name) // their end must not burden the next round
		return float64(count) / o.took.Seconds()
	}
	for round := range rounds {
		for turn := range 2 { // each goes first as often
			if (round+turn)%2 == 0 {
				plain = append(plain, rate(fmt.Sprintf("rate-plain-%d", round), nil))
			} else {
				asking = append(asking, rate(fmt.Sprintf("rate-asking-%d", round), cluster.Ask{cluster.NeuronCore: "1"}))
			}
		}
	}
	figure(t, "pods through the whole chain, median of %d rounds of %d: %.2f/s asking for a core, %.2f/s for nothing, ratio %.2f",
		rounds, count, median(asking), median(plain), median(asking)/median(plain))
	if median(asking) < 0.5*median(plain) {
		t.Errorf("pods that ask for a core: %v per s; for nothing: %v", asking, plain)
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

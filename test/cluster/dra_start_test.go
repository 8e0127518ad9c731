package scenarios

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

// start is one way to ask for a device.
type start struct {
	name     string
	node     *cluster.Node
	ask      cluster.Ask
	template string // of a claim
	took     []time.Duration
}

// measure makes the pod, waits until it has ended, and adds how long it was until its program ran.
func (s *start) measure(t *testing.T, c *cluster.Cluster, turn int) {
	t.Helper()
	w := cluster.One(fmt.Sprintf("start-%s-%d", s.name, turn), s.ask)
	if s.template != "" {
		w = w.WithClaims(map[string]string{"devices": s.template})
	}
	w.Life, w.Node = "0", s.node.Name
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: w.Name, Labels: map[string]string{"queue": "start"}}, Spec: w.PodTemplate().Spec}
	made := time.Now()
	if _, err := c.Client.CoreV1().Pods("default").Create(context.Background(), pod, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Follow(t, time.Minute, "default", "queue=start", func(seen *core.Pod) bool {
		if seen.Name == w.Name && seen.Status.Phase == core.PodFailed {
			t.Errorf("%s failed: %s %s", w.Name, seen.Status.Reason, seen.Status.Message)
		}
		return seen.Name == w.Name && (seen.Status.Phase == core.PodSucceeded || seen.Status.Phase == core.PodFailed)
	})
	began, _ := s.node.ReportTimes(w.Name, "main")
	if began.Before(made) {
		t.Fatalf("%s: its program began at %v, before the pod was made at %v", w.Name, began, made)
	}
	s.took = append(s.took, began.Sub(made))
}

// TestStartOfClaims: how long a pod takes from its creation until its program runs, by claim and through the device plugin, in
// turns; a pod that asks for nothing is the floor.
func TestStartOfClaims(t *testing.T) {
	needsDeep(t)
	c := cluster.Get(t)
	nodes := c.Nodes(t, trn1DRA, cluster.Trn1)
	startDriver(t, c, nodes[:1], unmodified)
	c.StartAgent(t, cluster.DefaultAgent(t))
	expectOffered(t, nodes[1], wholeTrn1)
	applyExamples(t, c)
	t.Cleanup(func() {
		c.Kubectl(t, "delete", "pods", "--selector", "queue=start", "--wait=false", "--grace-period=1")
		c.ExpectNoPods(t, "default", "queue=start")
	})
	ways := []*start{
		{name: "nothing", node: nodes[1]},
		{name: "plugin", node: nodes[1], ask: cluster.Ask{cluster.Neuron: "1"}},
		{name: "claim", node: nodes[0], template: "neuron-1"},
		{name: "unmodified", node: nodes[0], ask: cluster.Ask{cluster.Neuron: "1"}},
	}
	const turns = 50
	for turn := range turns {
		for _, way := range ways {
			way.measure(t, c, turn)
		}
	}
	medians := map[string]time.Duration{}
	for _, way := range ways {
		slices.Sort(way.took)
		medians[way.name] = way.took[turns/2]
		figure(t, "pod made until its program runs, %s: median %v, longest %v of %d", way.name, way.took[turns/2].Round(time.Millisecond),
			way.took[turns-1].Round(time.Millisecond), turns)
	}
	figure(t, "pod made until its program runs, over the floor: plugin %.2f, claim %.2f, unmodified %.2f",
		float64(medians["plugin"])/float64(medians["nothing"]), float64(medians["claim"])/float64(medians["nothing"]),
		float64(medians["unmodified"])/float64(medians["nothing"]))
	expectNothingPrepared(t, nodes[0])
}

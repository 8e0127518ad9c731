package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"neuron-agent.test/cluster/cluster"
)

const startupTaint = "neuron-agent/starting"

// TestStartupTaint: a node that joins is filled at once by pods that ask for nothing of its hardware. With the startup taint pods that
// tolerate nothing wait until the agent, which comes later, has registered all resources, or stored the slices.
func TestStartupTaint(t *testing.T) {
	c := cluster.Get(t)
	gated := cluster.Spec{Name: "gated", InstanceType: cluster.Trn1.InstanceType, StartupTaints: startupTaint + "=:NoSchedule"}
	early := cluster.Spec{Name: "early", InstanceType: cluster.Trn1.InstanceType}
	nodes := c.Nodes(t, early, gated, ofClaims(gated))
	removeSlices(t, c, nodes[2]) // of an earlier test
	for _, n := range nodes {
		ordinary := cluster.One("ordinary-on-"+n.Name, nil)
		ordinary.Node = n.Name
		c.StartPod(t, ordinary)
	}
	c.ReportsOf(t, "default", "ordinary-on-early")
	nodes[0].ExpectAllocatable(t, cluster.Counts{}) // too early
	for _, n := range nodes[1:] {
		c.AwaitSaid(t, []string{"untolerated taint"}, "describe", "pod", "ordinary-on-"+n.Name)
	}
	whole := cluster.One("whole-on-gated", wholeNode)
	whole.Node = nodes[1].Name
	c.StartPod(t, whole)

	opened := watchTaints(t, c, nodes[1:])
	begin := time.Now()
	t.Cleanup(func() {
		c.Shell(t, "helm -n "+system+" uninstall neuron-agent --wait --timeout 90s")
		c.ExpectNoPods(t, system, draPod)
		c.ExpectNoPods(t, system, agentPod)
	})
	c.Shell(t, "helm -n "+system+" install neuron-agent manifests/helm/neuron-agent --set "+
		"mode=both,nodeStatus.enabled=true,nodeStatus.startupTaint="+startupTaint+":NoSchedule --wait --timeout 90s")
	for _, n := range nodes[1:] {
		c.ReportsOf(t, "default", "ordinary-on-"+n.Name)
		if err := opened(n); err != nil {
			t.Errorf("%s: %v", n.Name, err)
		}
	}
	cluster.Figure(t, "startup taint: install to pods that run", time.Since(begin))
	c.ReportsOf(t, "default", whole.Name)[0].ExpectGiven(t, wholeNode, 2)
}

// watchTaints returns what was wrong with a node at the moment at which its startup taint went.
func watchTaints(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node) func(*cluster.Node) error {
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	gated, opened, done := map[string]bool{}, map[string]error{}, make(chan struct{})
	all := c.Client.CoreV1().Nodes()
	see := func(e watch.Event) {
		mu.Lock()
		defer mu.Unlock()
		for _, n := range nodes {
			node, is := e.Object.(*core.Node)
			if _, before := opened[n.Name]; !is || node.Name != n.Name || before {
				continue
			}
			if hasTaint(node, startupTaint) {
				gated[n.Name] = true
			} else if gated[n.Name] {
				opened[n.Name] = expectRegistered(node, n)
			}
		}
	}
	go func() {
		defer close(done)
		cluster.Watched(ctx, func(ctx context.Context) (watch.Interface, error) { return all.Watch(ctx, meta.ListOptions{}) }, see)
	}()
	t.Cleanup(func() { cancel(); <-done })
	cluster.Eventually(t, cluster.Patience, "the taints are seen", func() error {
		mu.Lock()
		defer mu.Unlock()
		if len(gated) != len(nodes) {
			return fmt.Errorf("of %v", gated)
		}
		return nil
	})
	return func(n *cluster.Node) error {
		mu.Lock()
		defer mu.Unlock()
		err, seen := opened[n.Name]
		if !seen {
			err = errors.New("the taint is there still")
		}
		return err
	}
}

func hasTaint(node *core.Node, key string) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == key {
			return true
		}
	}
	return false
}

// expectRegistered: this version of a Node shows all resources; with claims, its slices are older.
func expectRegistered(node *core.Node, n *cluster.Node) error {
	if n.Labels["neuron-agent/mode"] != "dra" {
		for name, want := range map[core.ResourceName]int64{cluster.Neuron: 16, cluster.NeuronCore: 32, cluster.EFA: 8} {
			if has := node.Status.Allocatable[name]; has.Value() != want {
				return fmt.Errorf("without the taint, %s: %d", name, has.Value())
			}
		}
		return nil
	}
	slices, err := n.Slices()
	if err != nil || len(slices) == 0 {
		return fmt.Errorf("without the taint, %d slices: %v", len(slices), err)
	}
	for _, slice := range slices {
		if version(slice.ResourceVersion) > version(node.ResourceVersion) {
			return fmt.Errorf("slice %s is newer than the node without the taint", slice.Name)
		}
	}
	return nil
}

func version(text string) int64 {
	number, _ := strconv.ParseInt(text, 10, 64)
	return number
}

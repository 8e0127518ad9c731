package scenarios

import (
	"fmt"
	"slices"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"neuron-agent.test/cluster/cluster"
)

// TestMoveToClaims: a node goes from the device plugin to claims and back, with pods on it that hold devices and run on. What they hold
// is given to nobody else, whoever serves.
func TestMoveToClaims(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, cluster.Trn1)[0]
	t.Cleanup(func() { // after the manifests have gone
		_, _ = c.TryKubectl("label", "node", n.Name, "neuron-agent/mode-")
		c.ExpectNoPods(t, system, draPod)
	})
	c.Apply(t, cluster.Manifest("static/neuron-agent.yaml"))
	n.ExpectAllocatable(t, wholeTrn1)
	lodger := startLodger(t, c, n, "through-the-plugin", cluster.Ask{cluster.Neuron: "4", cluster.EFA: "2"})
	applyDRA(t, c, partitioned)
	applyExamples(t, c)
	if pods, err := c.Pods(system, draPod); err != nil || len(pods) != 0 {
		t.Fatalf("the driver runs on a node without the label: %d pods, %v", len(pods), err)
	}
	begin := time.Now()
	c.Kubectl(t, "label", "node", n.Name, "neuron-agent/mode=dra")
	awaitPool(t, n)
	cluster.Figure(t, "claims: label to a whole pool, the device plugin ends and the driver starts", time.Since(begin))
	c.ExpectNoPods(t, system, agentPod)
	lodger.expectUnmoved(t)
	claimed := expectRestClaimed(t, c, n, lodger)
	t.Run("Back", func(t *testing.T) { expectBackFromClaims(t, c, n, lodger, claimed) })
}

// expectRestClaimed starts as many pods with a claim for one device as there are devices, and returns which devices they see. Those
// of the lodger are not among them.
func expectRestClaimed(t *testing.T, c *cluster.Cluster, n *cluster.Node, old *lodger) map[string]string {
	t.Helper()
	free := 16 - len(old.held[cluster.Neuron])
	var all []cluster.Workload
	for i := range 16 {
		w := cluster.One(fmt.Sprintf("claims-one-%d", i), nil).WithClaims(map[string]string{"devices": "neuron-1"})
		w.Node = n.Name
		c.StartJob(t, w)
		all = append(all, w)
	}
	t.Cleanup(func() { c.DeleteJob(t, all...) })
	seen := map[string]string{}
	cluster.Eventually(t, 2*cluster.Patience, "what is free is claimed", func() error {
		pods, err := c.Pods("default", "")
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if pod.Status.Phase != core.PodRunning || len(pod.Spec.ResourceClaims) == 0 {
				continue
			}
			report, err := n.Report(pod.Name, "main")
			if err != nil {
				return err
			}
			for _, node := range report.Open {
				if other := seen[node]; other != "" && other != pod.Name {
					t.Errorf("%s is open to %s and %s", node, other, pod.Name)
				}
				seen[node] = pod.Name
			}
		}
		if len(seen) < free {
			return fmt.Errorf("%d of %d devices are claimed", len(seen), free)
		}
		return nil
	})
	for _, id := range old.held[cluster.Neuron] {
		if other := seen["/dev/neuron"+id]; other != "" {
			t.Errorf("/dev/neuron%s is of a pod that the device plugin served, and is given to %s", id, other)
		}
	}
	t.Log("events of the pods that wait:\n" + c.Kubectl(t, "get", "events", "--field-selector=reason=FailedPrepareDynamicResources",
		"-o", "custom-columns=POD:.involvedObject.name,MESSAGE:.message"))
	return seen
}

// expectBackFromClaims: the device plugin takes over again, and offers nothing that a claim still holds.
func expectBackFromClaims(t *testing.T, c *cluster.Cluster, n *cluster.Node, old *lodger, claimed map[string]string) {
	c.Kubectl(t, "label", "node", n.Name, "neuron-agent/mode-")
	c.ExpectNoPods(t, system, draPod)
	cluster.Eventually(t, cluster.Patience, "the device plugin offers again", func() error {
		now, err := n.KubeletAllocatable()
		if err == nil && now.EFAs != 8 {
			err = fmt.Errorf("%+v", now)
		}
		return err
	})
	old.expectUnmoved(t)
	observer, err := n.Observe()
	if err != nil {
		t.Fatal(err)
	}
	defer observer.Close()
	offered, err := observer.Allocatable(5 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var twice []string
	for node, pod := range claimed {
		if id := node[len("/dev/neuron"):]; slices.Contains(offered[cluster.Neuron], id) {
			twice = append(twice, node+" of "+pod)
		}
	}
	if len(twice) > 0 {
		t.Errorf("the device plugin offers what claims hold: %v", twice)
	}
	c.Kubectl(t, "label", "node", n.Name, "neuron-agent/mode=dra") // pods with claims end only with their driver
	awaitPool(t, n)
}

package scenarios

import (
	"fmt"
	"slices"
	"testing"
	"time"

	resource "k8s.io/api/resource/v1"
	"neuron-agent.test/cluster/cluster"
)

// TestRoadToClaims is docs/dra.md, section "Moving over", from AWS's device plugins: a pod that they served runs on, what it holds is
// given to nobody, and they serve the node again once the label is gone.
func TestRoadToClaims(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, cluster.Trn1)[0]
	theirs := theirManifests(t)
	t.Cleanup(func() {
		_, _ = c.TryKubectl("label", "node", n.Name, "neuron-agent/mode-")
		c.ExpectNoPods(t, system, draPod)
	})
	c.Apply(t, theirs[0], theirs[1])
	n.ExpectAllocatable(t, wholeTrn1)
	lodger := startLodger(t, c, n, "of-theirs", cluster.Ask{cluster.Neuron: "4", cluster.EFA: "2"})
	applyDRA(t, c)
	c.Kubectl(t, "label", "node", n.Name, "neuron-agent/mode=dra")
	said := c.AwaitSaid(t, []string{"FailedScheduling", "anti-affinity"}, "-n", system, "describe", "pod", "-l", draPod)
	t.Logf("SAID\n%s", eventsIn(said))

	begin := time.Now()
	for _, set := range []string{theirEFA, theirNeuron} {
		c.Kubectl(t, "-n", system, "patch", "daemonset", set, "--type=json", "-p", `[{"op": "add", "path": "/spec/template/spec/affinity/nodeAffinity`+
			`/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/-", `+
			`"value": {"key": "neuron-agent/mode", "operator": "NotIn", "values": ["dra"]}}]`)
	}
	awaitKinds(t, n, map[string]int{"neuron_device": 16, "efa": 8})
	cluster.Figure(t, "claims: AWS's plugins kept off the node to a whole pool", time.Since(begin))
	expectHeldByTheirs(t, n, lodger)
	template(t, c, "the-rest", resource.DeviceClaim{Requests: []resource.DeviceRequest{
		exactly("neurons", "neuron.aws.com", 12), exactly("efas", "efa.neuron.aws.com", 6)}})
	rest := cluster.One("the-rest", nil).WithClaims(map[string]string{"devices": "the-rest"})
	rest.Node = n.Name
	c.StartJob(t, rest)
	report := c.AwaitClaimReports(t, rest, 16, 2)[0]
	report.ExpectSeen(t, 2)
	for _, node := range lodger.report(t).Open {
		if slices.Contains(report.Open, node) {
			t.Errorf("%s is held through AWS's plugin and was given to a claim", node)
		}
	}
	c.DeleteJob(t, rest)
	lodger.expectUnmoved(t)

	c.Kubectl(t, "label", "node", n.Name, "neuron-agent/mode-")
	c.ExpectNoPods(t, system, draPod)
	n.ExpectAllocatable(t, wholeTrn1)
	lodger.expectUnmoved(t)
}

// expectHeldByTheirs: what the pod holds, and nothing else, is tainted as held through a device plugin.
func expectHeldByTheirs(t *testing.T, n *cluster.Node, lodger *lodger) {
	t.Helper()
	var want []string
	for _, id := range lodger.held[cluster.Neuron] {
		want = append(want, "neuron-device-"+id)
	}
	for _, id := range lodger.held[cluster.EFA] {
		want = append(want, "efa-"+id)
	}
	slices.Sort(want)
	cluster.Eventually(t, cluster.Patience, "what the pod holds is tainted", func() error {
		devices, err := n.Offered()
		var tainted []string
		for _, device := range devices {
			for _, taint := range device.Taints {
				if taint.Key == cluster.Driver+"/held" && taint.Value == "device-plugin" {
					tainted = append(tainted, device.Name)
				}
			}
		}
		slices.Sort(tainted)
		if err == nil && !slices.Equal(tainted, want) {
			err = fmt.Errorf("tainted are %v, want %v", tainted, want)
		}
		return err
	})
}

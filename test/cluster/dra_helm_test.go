package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"neuron-agent.test/cluster/cluster"
)

// TestHelmClaims: the chart in mode both on a node of either kind: installed, tried, upgraded without a gap, uninstalled.
func TestHelmClaims(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, trn1DRA, cluster.Trn1)
	helm := func(line string, values ...any) string {
		return c.Shell(t, "helm -n "+system+" "+fmt.Sprintf(line, values...))
	}
	removeSlices(t, c, nodes[0]) // of an earlier test
	before := inventoryBefore(t, c)
	const chart = "neuron-agent manifests/helm/neuron-agent --set mode=both --set dra.extendedResources=true"
	t.Cleanup(func() {
		_, _ = c.TryKubectl("-n", system, "delete", "daemonset,pod,clusterrole,clusterrolebinding,serviceaccount,deviceclass,"+
			"validatingadmissionpolicy,validatingadmissionpolicybinding", "-l", "app.kubernetes.io/instance=neuron-agent")
	})
	notes := helm("install %s --wait --timeout 90s", chart)
	if !strings.Contains(notes, "DaemonSet neuron-agent-dra, which serves claims on nodes labelled") {
		t.Errorf("notes:\n%s", notes)
	}
	awaitKinds(t, nodes[0], unpartitioned(nodes[0]))
	nodes[1].ExpectAllocatable(t, wholeTrn1)
	holder := cluster.One("through-helm", cluster.Ask{cluster.Neuron: "2", cluster.EFA: "1"})
	holder.Node = nodes[0].Name
	c.StartJob(t, holder)
	c.AwaitClaimReports(t, holder, 16, 2)[0].ExpectSeen(t, 2)
	helm("upgrade %s --wait --timeout 90s --set logLevel=debug", chart)
	awaitKinds(t, nodes[0], unpartitioned(nodes[0]))
	if args := strings.Join(driverPodOn(t, c, nodes[0]).Spec.Containers[0].Args, " "); args != "run --mode=dra --metrics-address=:8000 --log-level=debug" {
		t.Errorf("after the upgrade it runs with %q", args)
	}
	expectClaimOfClass(t, c, nodes[0])
	c.DeleteJob(t, holder)
	helm("uninstall neuron-agent --wait --timeout 90s")
	c.ExpectNoPods(t, system, draPod)
	c.ExpectNoPods(t, system, agentPod)
	removeSlices(t, c, nodes[0])
	c.ExpectInventory(t, before)

	// With claims alone the chart's own test claims a device.
	helm("install neuron-agent manifests/helm/neuron-agent --set mode=dra --wait --timeout 90s")
	awaitKinds(t, nodes[0], unpartitioned(nodes[0]))
	if out := helm("test neuron-agent --timeout 60s"); !strings.Contains(out, "Succeeded") {
		t.Errorf("helm test says\n%s", out)
	}
	helm("uninstall neuron-agent --wait --timeout 90s")
	c.ExpectNoPods(t, system, draPod)
}

// expectClaimOfClass: a claim for one device by the chart's class.
func expectClaimOfClass(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	t.Helper()
	applyExamples(t, c)
	expectClaimServed(t, c, n, "after-upgrade")
	for _, file := range exampleClaims {
		c.Kubectl(t, "delete", "--ignore-not-found", "-f", cluster.Manifest(file))
	}
}

// TestClaimsWithoutHardware: on a machine with nothing but the image the driver serves a simulated host, and the sample of
// manifests/examples prints what it got.
func TestClaimsWithoutHardware(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, ofClaims(cluster.Plain))[0]
	n.InstanceType = cluster.Trn1.InstanceType // what the manifest makes of it
	defer func() { n.InstanceType = "" }()
	t.Cleanup(func() { c.ExpectNoPods(t, system, draPod) })
	c.Apply(t, cluster.Manifest("static/neuron-agent-dra-dev.yaml"))
	awaitPool(t, n)
	c.Apply(t, cluster.Manifest(exampleClaims[0]))
	c.Kubectl(t, "wait", "--for=condition=complete", "--timeout=120s", "job/neuron-claim-sample")
	t.Log(c.Kubectl(t, "get", "events"))
	got := c.Kubectl(t, "logs", "job/neuron-claim-sample")
	if !strings.Contains(got, "NEURON_RT_VISIBLE_CORES=0-7\n") || strings.Count(got, "/dev/neuron") != 4 {
		t.Errorf("the sample prints\n%s", got)
	}
	if _, err := n.Exec("rm", "-r", "/var/lib/neuron-sim"); err != nil {
		t.Error(err)
	}
}

package scenarios

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

// ofDefaults is a node whose driver has no options, beside nodes whose driver offers partitions.
var ofDefaults = cluster.Spec{Name: "trn1-defaults", InstanceType: cluster.Trn1.InstanceType,
	Labels: map[string]string{"neuron-agent/mode": "dra", "driver-options": "none"}}

// TestVersionUpgrade: control plane, then kubelets are replaced by those of a newer version of the run while pods hold devices and claims.
func TestVersionUpgrade(t *testing.T) {
	versions := needsVersions(t, 2)
	next := slices.IndexFunc(versions, func(version string) bool { return minorOf(t, version) == minorOf(t, versions[0])+1 })
	if next < 0 {
		t.Skip("the next version is not named in CLUSTER_KUBERNETES")
	}
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Trn1, trn1DRA, ofDefaults)
	plugin, driver, defaults := nodes[0], nodes[1], nodes[2]
	c.StartAgent(t, cluster.DefaultAgent(t))
	expectOffered(t, plugin, wholeTrn1)
	startDrivers(t, c, driver, defaults)
	applyExamples(t, c)
	pods, claims := settleIn(t, c, plugin, "upgrade"), holdClaims(t, c, driver, "upgrade", heldShapes...)
	sharedFrom37 := minorOf(t, versions[next]) == 37
	expectNoneShared(t, defaults)
	whole := holdClaims(t, c, defaults, "upgrade-defaults", "neuron-4")
	expectGoesOn := func(t *testing.T, name string) {
		t.Helper()
		pods.expectUnnoticed(t)
		claims.expectUnnoticed(t)
		whole.expectUnnoticed(t)
		plugin.ExpectKubeletAllocatable(t, besideResidents)
		awaitPool(t, driver)
		expectServed(t, c, plugin, "plugin-after-"+name)
		expectClaimServed(t, c, driver, "claim-after-"+name)
		expectClaimServed(t, c, defaults, "claim-of-defaults-after-"+name)
	}
	var upgraded time.Time
	t.Run("ControlPlane", func(t *testing.T) {
		expectSurvived(t, c, driver, "control-plane", func(t *testing.T) {
			c.Kubernetes = versions[next] // to stay: what the new one has stored the old one may not read
			if err := errors.Join(c.APIServer.End(syscall.SIGKILL), c.StartAPIServer(), c.RestartClients()); err != nil {
				t.Fatal(err)
			}
			upgraded = time.Now()
		})
		expectGoesOn(t, "control-plane")
		figureVersions(t, c, nodes)
	})
	t.Run("Kubelets", func(t *testing.T) {
		expectSurvived(t, c, driver, "kubelets", func(t *testing.T) {
			for _, n := range nodes {
				n.Kubernetes = versions[next]
				if err := errors.Join(n.Kubelet.End(syscall.SIGKILL), n.StartKubelet()); err != nil {
					t.Fatal(err)
				}
			}
		})
		expectGoesOn(t, "kubelets")
		figureVersions(t, c, nodes)
	})
	if sharedFrom37 {
		t.Run("Defaults", func(t *testing.T) { expectSharedAfterUpgrade(t, c, defaults, whole, upgraded) })
	}
}

// startDrivers applies the overlay with partitions, and beside it the same DaemonSet without options for one node.
func startDrivers(t *testing.T, c *cluster.Cluster, driver, defaults *cluster.Node) {
	t.Helper()
	t.Cleanup(func() { c.ExpectNoPods(t, system, draPod) })
	applyDRAWith(t, c, "patches:\n  - target: {kind: DaemonSet}\n    patch: |-\n      - op: add\n"+
		"        path: /spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/-\n"+
		"        value: {key: driver-options, operator: DoesNotExist}\n", partitioned, unmodified)
	sets := c.Client.AppsV1().DaemonSets(system)
	set, err := sets.Get(context.Background(), "neuron-agent-dra", meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set.ObjectMeta = meta.ObjectMeta{Name: set.Name + "-defaults", Namespace: system}
	pod := &set.Spec.Template
	set.Spec.Selector.MatchLabels["driver-options"], pod.Labels["driver-options"] = "none", "none"
	pod.Spec.Affinity, pod.Spec.NodeSelector = nil, map[string]string{"driver-options": "none"}
	arguments := &pod.Spec.Containers[0].Args
	*arguments = slices.DeleteFunc(*arguments, func(a string) bool { return strings.HasPrefix(a, "--dra-partitions") })
	if _, err := sets.Create(context.Background(), set, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Kubectl(t, "-n", system, "delete", "daemonset", set.Name) })
	awaitPool(t, driver)
	awaitKinds(t, defaults, unpartitioned(defaults))
	expectReadyEverywhere(t, c, draPod, 2)
}

func expectNoneShared(t *testing.T, n *cluster.Node) {
	t.Helper()
	if devices, err := n.Offered(); err != nil || countShared(devices) > 0 {
		t.Errorf("%s: %d devices are shared, %v", n.Name, countShared(devices), err)
	}
}

// expectSharedAfterUpgrade: once the driver counts on the new version, claims share all devices but those that a claim from before holds,
// and nothing is given twice. These follow when the claim has ended.
func expectSharedAfterUpgrade(t *testing.T, c *cluster.Cluster, n *cluster.Node, whole *holders, upgraded time.Time) {
	held := strings.Fields(whole.before[0].devices)
	// The driver reads the version every 4 to 6 minutes, and counts on three equal answers over 10 (SteadyAnswer): 22 minutes at most.
	cluster.Eventually(t, 24*time.Minute, "all devices that no claim holds may be shared", func() error { return onlySharedBeside(n, held) })
	figure(t, "versions: devices shared %v after the update of the control plane, beside %d held by a claim from before",
		time.Since(upgraded).Round(time.Second), len(held))
	workloads := map[string]cluster.Workload{}
	for _, template := range []string{"core-1", "neuron-1"} {
		w := cluster.One("upgraded-"+template, nil).WithClaims(map[string]string{"devices": template})
		w.Node = n.Name
		c.StartPod(t, w)
		workloads[w.Name] = w
	}
	expectShares(t, c, n, workloads)
	open := map[string]string{}
	for _, w := range append(slices.Collect(maps.Values(workloads)), whole.workloads...) {
		for _, device := range c.AwaitReports(t, w)[0].Open {
			if other := open[device]; other != "" {
				t.Errorf("%s is open to %s and %s", device, other, w.Name)
			}
			open[device] = w.Name
		}
	}
	if len(open) != len(held)+len(workloads) {
		t.Errorf("open are %v", open)
	}
	// One more than is idle: the held devices are given to no claim, for a device or for cores.
	devices, perDevice := size(n)
	cores := shareOf("1")
	cores.Requests[0].Exactly.Count = int64(devices - len(held)) // the whole device beside them has none left
	for name, claim := range map[string]resource.DeviceClaim{"cores": cores, "devices": {Requests: []resource.DeviceRequest{
		exactly("neurons", "neuron.aws.com", int64(devices-len(held)-len(workloads)+1))}}} {
		template(t, c, "too-many-"+name, claim)
		w := cluster.One("upgraded-too-many-"+name, nil).WithClaims(map[string]string{"devices": "too-many-" + name})
		w.Node = n.Name
		c.StartPod(t, w)
		awaitChosen(t, c, w, devices, perDevice, "cannot allocate all claims")
		c.DeletePod(t, "default", w.Name)
	}
	whole.expectUnnoticed(t)
	c.DeletePod(t, "default", whole.workloads[0].Name)
	awaitShared(t, n)
}

// onlySharedBeside is an error unless exactly the held devices are not shared.
func onlySharedBeside(n *cluster.Node, held []string) error {
	devices, err := n.Offered()
	if err != nil {
		return err
	}
	for _, device := range devices {
		if *device.Attributes["resourceType"].StringValue != "neuron_device" {
			continue
		}
		if shared := device.AllowMultipleAllocations != nil; shared == slices.Contains(held, device.Name) {
			return fmt.Errorf("%s: shared %v, a claim holds %v", device.Name, shared, held)
		}
	}
	return nil
}

package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"neuron-agent.test/cluster/cluster"
)

// What newer versions bring (docs/dra.md): parts of TestVersion.

// claimStatus is the component that writes to the status of prepared claims.
const claimStatus = "dra-claim-status"

// expectNewer runs the parts that the server's version has, on one node for claims and beside it one of the device plugin.
func expectNewer(t *testing.T, c *cluster.Cluster, n, other *cluster.Node) {
	minor := serverMinor(t, c)
	if minor < 36 {
		t.Skip("nothing of this is in ", minor)
	}
	startDriver(t, c, []*cluster.Node{n}, claimStatus)
	applyExamples(t, c)
	t.Run("ClaimStatus", func(t *testing.T) { expectClaimStatus(t, c, n, other, minor >= 37) })
	t.Run("Health", func(t *testing.T) {
		holder, _ := claimHolder(t, c, n, "new-health")
		if said := holder.expectFollows(t); said.Message == nil || !strings.Contains(*said.Message, "uncorrected SRAM") {
			t.Errorf("the message of the unhealthy unit is %v", said.Message)
		}
	})
	t.Run("AcrossDrivers", func(t *testing.T) { expectMatchAcrossDrivers(t, c, n) })
	if minor < 37 {
		return
	}
	t.Run("TaintRule", func(t *testing.T) { expectTaintRule(t, c, n) })
	t.Run("PodGroup", func(t *testing.T) { expectPodGroup(t, c, n) })
}

// applied applies a text and deletes what it made after the test.
func applied(t *testing.T, c *cluster.Cluster, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c.Apply(t, file)
}

// claimHolder is a pod with one whole device, by the name that it has in the pool.
func claimHolder(t *testing.T, c *cluster.Cluster, n *cluster.Node, name string) (*statusHolder, string) {
	t.Helper()
	w := cluster.One(name, nil).WithClaims(map[string]string{"devices": "neuron-1"})
	w.Node = n.Name
	c.StartPod(t, w)
	devices, perDevice := size(n)
	c.AwaitClaimReports(t, w, devices, perDevice)[0].ExpectSeen(t, perDevice)
	h := &statusHolder{c: c, n: n, pod: name, entry: "claim:devices"}
	pod, err := h.get()
	if err != nil {
		t.Fatal(err)
	}
	claims, err := c.ClaimsOf(pod)
	if err != nil {
		t.Fatal(err)
	}
	device := claims["devices"].Status.Allocation.Devices.Results[0].Device
	h.device = strings.Replace(device, "neuron-device-", "neuron", 1)
	return h, device
}

// expectClaimStatus: status.devices of a pod's claims names what its container has, and the role allows nothing else.
func expectClaimStatus(t *testing.T, c *cluster.Cluster, n, other *cluster.Node, shared bool) {
	templates := map[string]string{"devices": "neuron-1", "interface": "efa-1"}
	if shared {
		templates["cores"] = "core-1"
	}
	w := cluster.One("new-status", nil).WithClaims(templates)
	w.Node = n.Name
	c.StartPod(t, w)
	report := c.AwaitReports(t, w)[0]
	var claims map[string]*resource.ResourceClaim
	begin := time.Now()
	cluster.Eventually(t, cluster.Patience, "status.devices of each claim names its devices", func() error {
		pods, err := c.Pods("default", "workload="+w.Name)
		if err != nil || len(pods) != 1 {
			return fmt.Errorf("%d pods: %v", len(pods), err)
		}
		if claims, err = c.ClaimsOf(&pods[0]); err != nil {
			return err
		}
		for name, claim := range claims {
			if shown, held := len(claim.Status.Devices), len(claim.Status.Allocation.Devices.Results); shown != held {
				return fmt.Errorf("%s has %d devices, %d of them in status.devices", name, held, shown)
			}
		}
		return nil
	})
	figure(t, "claims: status.devices of %d claims at most %v after the container's start", len(claims), time.Since(begin).Round(time.Millisecond))
	var nodes []string
	for name, claim := range claims {
		for _, device := range claim.Status.Devices {
			if !meta.IsStatusConditionTrue(device.Conditions, "Ready") || device.Driver != cluster.Driver || device.Data == nil {
				t.Fatalf("%s: %+v", name, device)
			}
			var data struct{ DeviceNodes []string }
			if err := json.Unmarshal(device.Data.Raw, &data); err != nil {
				t.Fatal(err)
			}
			nodes = append(nodes, data.DeviceNodes...)
		}
	}
	slices.Sort(nodes)
	if nodes = slices.Compact(nodes); !slices.Equal(nodes, report.Open) {
		t.Errorf("the claims name %v, the container has %v", nodes, report.Open)
	}
	claim := claims["devices"]
	claim.Status.Devices[0].Conditions[0].Status = metav1.ConditionFalse
	conditions, err := json.Marshal(map[string]any{"status": map[string]any{"devices": claim.Status.Devices}})
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range []struct {
		node        *cluster.Node
		patch, want string
	}{{n, `{"status":{"reservedFor":null}}`, "resourceclaims/binding"}, {other, string(conditions), "resourceclaims/driver"}} {
		_, err := c.As(t, tokenOn(t, c, each.node.Name)).ResourceV1().ResourceClaims(claim.Namespace).Patch(context.Background(), claim.Name,
			types.MergePatchType, []byte(each.patch), metav1.PatchOptions{}, "status")
		if err == nil || !strings.Contains(err.Error(), each.want) {
			t.Errorf("with the driver's token on %s: %v, want a refusal that names %s", each.node.Name, err, each.want)
		}
	}
}

// expectTaintRule: an administrator's rule takes one device out of use: its pod is evicted, and claims get others until the rule goes.
func expectTaintRule(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	holder, device := claimHolder(t, c, n, "new-evicted")
	holder.remember(t)
	rule := fmt.Sprintf("apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: repair}\nspec:\n"+
		"  deviceSelector: {driver: %s, pool: %s, device: %s}\n  taint: {key: example.com/repair, effect: NoExecute}\n", cluster.Driver, n.Name, device)
	begin := time.Now()
	whole := cluster.One("new-all-devices", nil).WithClaims(map[string]string{"devices": "neuron-16-efa-8"})
	whole.Node = n.Name
	t.Run("Tainted", func(t *testing.T) {
		applied(t, c, rule)
		c.ExpectNoPods(t, "default", "workload="+holder.pod)
		figure(t, "claims: pod of a device that a DeviceTaintRule names is gone after %v", time.Since(begin).Round(time.Millisecond))
		if _, next := claimHolder(t, c, n, "new-elsewhere"); next == device {
			t.Errorf("%s is given again", device)
		}
		c.DeletePod(t, "default", "new-elsewhere")
		c.StartPod(t, whole)
		devices, perDevice := size(n)
		awaitChosen(t, c, whole, devices, perDevice, "cannot allocate all claims")
	})
	expectShape(t, c, n, shape{template: "neuron-16-efa-8", counts: cluster.Counts{Devices: 16, EFAs: 8}, within: 16})
}

// expectPodGroup: two pods of a PodGroup use its one claim (KEP-5729), which goes with the group.
func expectPodGroup(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	restart := func(gates, apis string) error {
		c.Gates, c.APIs = gates, apis
		return errors.Join(n.Kubelet.End(syscall.SIGKILL), c.APIServer.End(syscall.SIGKILL), c.StartAPIServer(), c.RestartClients(), n.StartKubelet())
	}
	t.Cleanup(func() {
		if err := restart("", ""); err != nil {
			t.Error(err)
		}
	})
	if err := restart("GenericWorkload=true,DRAWorkloadResourceClaims=true", "scheduling.k8s.io/v1beta1=true"); err != nil {
		t.Fatal(err)
	}
	awaitKinds(t, n, unpartitioned(n))
	group := "new-group"
	applied(t, c, "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: "+group+", namespace: default}\n"+
		"spec: {schedulingPolicy: {basic: {}}, resourceClaims: [{name: devices, resourceClaimTemplateName: neuron-2}]}\n")
	var all []cluster.Workload
	for _, name := range []string{"new-member-1", "new-member-2"} {
		w := cluster.One(name, nil).WithClaims(map[string]string{"devices": "neuron-2"})
		w.Node = n.Name
		with := w.Adjust
		w.Adjust = func(pod *core.PodSpec) {
			with(pod)
			pod.SchedulingGroup = &core.PodSchedulingGroup{PodGroupName: &group}
		}
		c.StartPod(t, w)
		all = append(all, w)
	}
	devices, perDevice := size(n)
	var open []string
	for _, w := range all {
		report := c.AwaitClaimReports(t, w, devices, perDevice)[0]
		report.ExpectSeen(t, perDevice)
		open = append(open, strings.Join(report.Open, " "))
	}
	if open[0] != open[1] {
		t.Errorf("the pods of one group have %q", open)
	}
	pods, err := c.Pods("default", "workload="+all[0].Name)
	if err != nil || len(pods) != 1 {
		t.Fatalf("%d pods: %v", len(pods), err)
	}
	claims, err := c.ClaimsOf(&pods[0])
	if err != nil {
		t.Fatal(err)
	}
	if users := claims["devices"].Status.ReservedFor; len(users) != 1 || users[0].Resource != "podgroups" || users[0].Name != group {
		t.Errorf("the claim is reserved for %+v", users)
	}
	for _, w := range all {
		c.DeletePod(t, "default", w.Name)
	}
	expectNothingPrepared(t, n)
}

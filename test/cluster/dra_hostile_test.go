package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

// Conditions that the driver for claims does not control: objects of other drivers, taints, a changed driver name.

// TestForeignSliceNames: slices of another driver that have the names of the node's own do not keep its pool unpublished.
func TestForeignSliceNames(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, trn1DRA)[0]
	ctx, all := context.Background(), c.Client.ResourceV1().ResourceSlices()
	t.Cleanup(func() { c.ExpectNoPods(t, system, draPod) })
	c.Apply(t, cluster.Manifest(draManifest))
	awaitKinds(t, n, unpartitioned(n))
	published, err := n.Slices()
	if err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, "delete", "-f", cluster.Manifest(draManifest))
	c.ExpectNoPods(t, system, draPod)
	removeSlices(t, c, n)
	for _, slice := range published {
		foreign := &resource.ResourceSlice{ObjectMeta: meta.ObjectMeta{Name: slice.Name}, Spec: resource.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: &n.Name, Pool: resource.ResourcePool{Name: "foreign-" + slice.Name, ResourceSliceCount: 1},
			Devices: []resource.Device{{Name: "device"}}}}
		if _, err := all.Create(ctx, foreign, meta.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = all.Delete(ctx, slice.Name, meta.DeleteOptions{}) })
	}
	c.Apply(t, cluster.Manifest(draManifest))
	awaitKinds(t, n, unpartitioned(n))
	for _, slice := range published {
		kept, err := all.Get(ctx, slice.Name, meta.GetOptions{})
		if err != nil || kept.Spec.Driver != "gpu.example.com" {
			t.Errorf("the other driver's slice %s: %v %v", slice.Name, kept.Spec.Driver, err)
		}
	}
}

// TestNodeTaintedNoExecute: pods with claims leave a node that is tainted with NoExecute, and the driver that has to release their
// claims stays.
func TestNodeTaintedNoExecute(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, trn1DRA)[0]
	startDriver(t, c, []*cluster.Node{n}, partitioned, unmodified)
	applyExamples(t, c)
	driver := driverPodOn(t, c, n)
	holdClaims(t, c, n, "evicted", heldShapes...)
	c.Kubectl(t, "taint", "node", n.Name, "maintenance=now:NoExecute")
	untaint := func() { _, _ = c.TryKubectl("taint", "node", n.Name, "maintenance-") }
	t.Cleanup(untaint)
	begin := time.Now()
	for _, template := range heldShapes {
		w := cluster.One("evicted-"+template, nil)
		c.ExpectNoPods(t, "default", "workload="+w.Name)
	}
	expectNothingPrepared(t, n)
	figure(t, "claims: NoExecute taint to pods gone and claims released: %v", time.Since(begin).Round(time.Millisecond))
	if now := driverPodOn(t, c, n); now.UID != driver.UID {
		t.Errorf("the driver was replaced: %s, was %s", now.UID, driver.UID)
	}
	untaint()
	expectClaimServed(t, c, n, "after-taint")
}

// TestDriverRenamed: after the driver's name was changed without a drain, devices that pods hold through the old name are tainted in the
// new pool, and a claim for them is not prepared. Once the old name is back the pods end as ever.
func TestDriverRenamed(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, trn1DRA)[0]
	const renamed = "second.neuron.aws.com"
	helm := func(line string) string { return c.Shell(t, "helm -n "+system+" "+line) }
	t.Cleanup(func() { c.ExpectNoPods(t, system, draPod) })
	t.Cleanup(func() {
		_, _ = c.TryKubectl("-n", system, "delete", "daemonset,pod", "-l", "app.kubernetes.io/instance=neuron-agent")
	})
	helm("install neuron-agent manifests/helm/neuron-agent --set mode=dra --wait --timeout 90s")
	awaitKinds(t, n, unpartitioned(n))
	template(t, c, "two-by-first-name", resource.DeviceClaim{Requests: []resource.DeviceRequest{exactly("neurons", cluster.Driver, 2)}})
	holder := cluster.One("by-first-name", nil).WithClaims(map[string]string{"devices": "two-by-first-name"})
	holder.Node = n.Name
	c.StartPod(t, holder)
	devices, perDevice := size(n)
	held := c.AwaitClaimReports(t, holder, devices, perDevice)[0].Held[cluster.Neuron]

	helm("upgrade neuron-agent manifests/helm/neuron-agent --set mode=dra,dra.driverName=" + renamed + " --wait --timeout 90s")
	cluster.Eventually(t, cluster.Patience, fmt.Sprintf("devices %v are tainted under the new name, and no other", held), func() error {
		tainted, err := taintedOf(c, n, renamed)
		for device, is := range tainted {
			if holds := slices.Contains(held, strings.TrimPrefix(device, "neuron-device-")); err == nil && holds != is {
				err = fmt.Errorf("%s: tainted %v, held %v", device, is, holds)
			}
		}
		return err
	})
	t.Run("Refused", func(t *testing.T) { expectRefusedUnder(t, c, n, renamed, devices) })

	helm("rollback neuron-agent 1 --wait --timeout 90s")
	awaitKinds(t, n, unpartitioned(n))
	c.Kubectl(t, "delete", "pod", "-l", "workload="+holder.Name)
	c.ExpectNoPods(t, "default", "workload="+holder.Name)
	expectNothingPrepared(t, n)
	expectClaimOfClass(t, c, n)
	helm("uninstall neuron-agent --wait --timeout 90s")
}

// taintedOf returns the devices of the pool that a driver of this name publishes for the node, and whether each has a taint.
func taintedOf(c *cluster.Cluster, n *cluster.Node, driver string) (map[string]bool, error) {
	list, err := c.Client.ResourceV1().ResourceSlices().List(context.Background(),
		meta.ListOptions{FieldSelector: "spec.driver=" + driver + ",spec.nodeName=" + n.Name})
	if err == nil && len(list.Items) == 0 {
		err = errors.New("no slices of " + driver)
	}
	if err != nil {
		return nil, err
	}
	tainted := map[string]bool{}
	for _, slice := range list.Items {
		for _, device := range slice.Spec.Devices {
			tainted[device.Name] = len(device.Taints) > 0
		}
	}
	return tainted, nil
}

// expectRefusedUnder: a claim that tolerates taints and is given every device, held ones too, is refused by the driver.
func expectRefusedUnder(t *testing.T, c *cluster.Cluster, n *cluster.Node, class string, devices int) {
	request := exactly("neurons", class, int64(devices))
	request.Exactly.Tolerations = []resource.DeviceToleration{{Operator: resource.DeviceTolerationOpExists}}
	template(t, c, "all-by-second-name", resource.DeviceClaim{Requests: []resource.DeviceRequest{request}})
	w := cluster.One("by-second-name", nil).WithClaims(map[string]string{"devices": "all-by-second-name"})
	w.Node = n.Name
	c.StartJob(t, w)
	cluster.Eventually(t, cluster.Patience, "the pod is refused its devices", func() error {
		pods, err := c.Pods("default", "workload="+w.Name)
		if err == nil && len(pods) == 1 && pods[0].Status.Phase != core.PodPending {
			t.Fatalf("the pod is %s with devices that another pod holds", pods[0].Status.Phase)
		}
		events, err := c.Client.CoreV1().Events("default").List(context.Background(), meta.ListOptions{FieldSelector: "reason=FailedPrepareDynamicResources"})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if strings.HasPrefix(event.InvolvedObject.Name, w.Name) {
				t.Logf("refused: %s", event.Message)
				return nil
			}
		}
		return errors.New("no event of a failed preparation")
	})
	c.DeleteJob(t, w)
}

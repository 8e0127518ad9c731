package scenarios

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"testing"

	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

// otherDriver is a driver that has nothing but a class and slices.
const otherDriver = "nic.example.com"

// standardAttributes of Kubernetes, each with a class of ours whose devices have it; simulated hosts have no pcieRoot.
var standardAttributes = []struct {
	name        resource.QualifiedName
	kind, class string
}{
	{"resource.kubernetes.io/numaNode", "neuron_device", "neuron.aws.com"},
	{"resource.kubernetes.io/pciBusID", "efa", "efa.neuron.aws.com"},
}

// expectMatchAcrossDrivers: a claim over devices of this driver and of another gets two with the same value of a standard attribute. The
// kubelet is away meanwhile: it could not prepare the other driver's device, and deletes slices of drivers that do not register.
func expectMatchAcrossDrivers(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	offered, err := n.Offered()
	if err != nil {
		t.Fatal(err)
	}
	far := attributes{standardAttributes[0].name: whole(9), standardAttributes[1].name: text("0000:ff:00.0")}
	near := attributes{}
	byName := map[string]resource.Device{}
	for _, device := range offered {
		byName[device.Name] = device
		for _, standard := range standardAttributes {
			if *device.Attributes["resourceType"].StringValue == standard.kind {
				near[standard.name] = device.Attributes[standard.name] // of the last one, which an unmatched claim does not get
			}
		}
	}
	if err := n.Kubelet.End(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.StartKubelet(); err != nil {
			t.Error(err)
		}
		awaitKinds(t, n, unpartitioned(n))
	})
	applied(t, c, "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "+otherDriver+"}\n"+
		"spec: {selectors: [{cel: {expression: \"device.driver == '"+otherDriver+"'\"}}]}\n")
	slice := &resource.ResourceSlice{ObjectMeta: meta.ObjectMeta{Name: "nics-of-" + n.Name}, Spec: resource.ResourceSliceSpec{
		Driver: otherDriver, NodeName: &n.Name, Pool: resource.ResourcePool{Name: n.Name, Generation: 1, ResourceSliceCount: 1},
		Devices: []resource.Device{{Name: "far", Attributes: far}, {Name: "near", Attributes: near}}}}
	if _, err := c.Client.ResourceV1().ResourceSlices().Create(context.Background(), slice, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Kubectl(t, "delete", "resourceslice", slice.Name) })
	for _, standard := range standardAttributes {
		_, short, _ := strings.Cut(string(standard.name), "/")
		t.Run(short, func(t *testing.T) {
			name := "across-" + strings.ToLower(short)
			claim := resource.DeviceClaim{Requests: []resource.DeviceRequest{exactly("ours", standard.class, 1), exactly("nic", otherDriver, 1)}}
			ours, nic := allocatedPair(t, c, n, name+"-any", claim)
			if nic != "far" || reflect.DeepEqual(byName[ours].Attributes[standard.name], near[standard.name]) {
				t.Errorf("without a constraint the claim has %s and %s, which proves nothing", ours, nic)
			}
			attribute := resource.FullyQualifiedName(standard.name)
			claim.Constraints = []resource.DeviceConstraint{{MatchAttribute: &attribute}}
			ours, nic = allocatedPair(t, c, n, name, claim)
			if nic != "near" || !reflect.DeepEqual(byName[ours].Attributes[standard.name], near[standard.name]) {
				t.Errorf("the claim has %s with %+v, and %s, want %+v", ours, byName[ours].Attributes[standard.name], nic, near[standard.name])
			}
			claim.Requests[1].Exactly.Count = 2
			template(t, c, name+"-none", claim)
			w := cluster.One(name+"-none", nil).WithClaims(map[string]string{"devices": name + "-none"})
			w.Node = n.Name
			startOnGhost(t, c, w)
			awaitChosen(t, c, w, 0, 0, "cannot allocate all claims")
		})
	}
}

// allocatedPair is what the scheduler gives a claim for a device of each driver; it is freed after that.
func allocatedPair(t *testing.T, c *cluster.Cluster, n *cluster.Node, name string, claim resource.DeviceClaim) (ours, nic string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		template(t, c, name, claim)
		w := cluster.One(name, nil).WithClaims(map[string]string{"devices": name})
		w.Node = n.Name
		startOnGhost(t, c, w)
		cluster.Eventually(t, cluster.Patience, name+": the claim is allocated", func() error {
			pods, err := c.Pods("default", "workload="+name)
			if err != nil || len(pods) != 1 {
				return fmt.Errorf("%d pods: %v", len(pods), err)
			}
			claims, err := c.ClaimsOf(&pods[0])
			if err != nil {
				return err
			}
			if claims["devices"] == nil {
				return fmt.Errorf("the pod has no claim yet: %v", pods[0].Status.Conditions)
			}
			for _, result := range claims["devices"].Status.Allocation.Devices.Results {
				if result.Driver == otherDriver {
					nic = result.Device
				} else {
					ours = result.Device
				}
			}
			return nil
		})
	})
	return ours, nic
}

package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	resource "k8s.io/api/resource/v1"
	beta "k8s.io/api/resource/v1beta1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"neuron-agent.test/cluster/cluster"
)

// The forms of claims that the examples do not have.

func expectForms(t *testing.T, c *cluster.Cluster, trn1, trn2 *cluster.Node) {
	t.Run("WithItsInterface", func(t *testing.T) {
		aligned := resource.FullyQualifiedName("resource.aws.com/devicegroup1_id")
		template(t, c, "with-its-interface", resource.DeviceClaim{
			Requests:    []resource.DeviceRequest{exactly("neurons", "neuron.aws.com", 1), exactly("efas", "efa.neuron.aws.com", 1)},
			Constraints: []resource.DeviceConstraint{{Requests: []string{"neurons", "efas"}, MatchAttribute: &aligned}}})
		expectShape(t, c, trn2, shape{template: "with-its-interface", counts: cluster.Counts{Devices: 1, EFAs: 1}})
	})
	t.Run("LNC1", func(t *testing.T) { expectLNC1(t, c, trn2) })
	t.Run("SeveralClaims", func(t *testing.T) { expectSeveralClaims(t, c, trn1) })
	t.Run("OlderAPI", func(t *testing.T) { expectOlderAPI(t, c, trn1) })
}

// expectLNC1: all eight cores of a device, on a node whose own setting joins them in pairs.
func expectLNC1(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	template(t, c, "lnc-1", resource.DeviceClaim{
		Requests: []resource.DeviceRequest{exactly("neurons", "neuron.aws.com", 1)},
		Config: []resource.DeviceClaimConfiguration{{DeviceConfiguration: resource.DeviceConfiguration{
			Opaque: &resource.OpaqueDeviceConfiguration{Driver: cluster.Driver, Parameters: runtime.RawExtension{
				Raw: []byte(`{"apiVersion":"neuron.aws.com/v1","kind":"NeuronConfig","logicalNeuronCore":1}`)}}}}}})
	w := cluster.One("lnc-1", nil).WithClaims(map[string]string{"devices": "lnc-1"})
	w.Node = n.Name
	c.StartJob(t, w)
	defer c.DeleteJob(t, w)
	devices, _ := size(n)
	report := c.AwaitClaimReports(t, w, devices, 8)[0]
	report.ExpectSeen(t, 8)
	if lnc := report.Env["NEURON_LOGICAL_NC_CONFIG"]; lnc != "1" || len(report.Open) != 1 {
		t.Errorf("NEURON_LOGICAL_NC_CONFIG is %q, open are %v", lnc, report.Open)
	}
}

// expectSeveralClaims: one container of a pod with three claims sees the union of all.
func expectSeveralClaims(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	w := cluster.One("several-claims", nil).WithClaims(map[string]string{"one": "neuron-1", "two": "cores-3", "three": "efa-1"})
	w.Node = n.Name
	c.StartJob(t, w)
	defer c.DeleteJob(t, w)
	devices, perDevice := size(n)
	report := c.AwaitClaimReports(t, w, devices, perDevice)[0]
	if got := cluster.CountsOf(report.Held); got != (cluster.Counts{Cores: 3, Devices: 1, EFAs: 1}) {
		t.Errorf("holds %v", report.Held)
	}
	report.ExpectSeen(t, perDevice)
}

// expectOlderAPI: a claim that was made through v1beta1, for one version of the Neuron driver alone.
func expectOlderAPI(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	offered, err := n.Offered()
	if err != nil {
		t.Fatal(err)
	}
	version := *offered[0].Attributes["neuronDriverVersion"].StringValue
	all := c.Client.ResourceV1beta1().ResourceClaimTemplates("default")
	make := func(name, version string) {
		selector := beta.DeviceSelector{CEL: &beta.CELDeviceSelector{
			Expression: fmt.Sprintf("device.attributes['%s'].neuronDriverVersion == '%s'", cluster.Driver, version)}}
		_, err := all.Create(context.Background(), &beta.ResourceClaimTemplate{ObjectMeta: meta.ObjectMeta{Name: name},
			Spec: beta.ResourceClaimTemplateSpec{Spec: beta.ResourceClaimSpec{Devices: beta.DeviceClaim{Requests: []beta.DeviceRequest{
				{Name: "neurons", DeviceClassName: "neuron.aws.com", AllocationMode: beta.DeviceAllocationModeExactCount, Count: 2,
					Selectors: []beta.DeviceSelector{selector}}}}}}}, meta.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = all.Delete(context.Background(), name, meta.DeleteOptions{}) })
	}
	make("of-this-version", version)
	make("of-another-version", version+"1")
	expectShape(t, c, n, shape{template: "of-this-version", counts: cluster.Counts{Devices: 2}})
	expectShape(t, c, n, shape{template: "of-another-version", none: "cannot allocate all claims"})
}

// expectUltraServerNode: the node of an UltraServer is one device, and the container is told what it is part of.
func expectUltraServerNode(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	report := expectShape(t, c, n, shape{template: "neuron-ultraserver-node", counts: cluster.Counts{Devices: 16}})
	offered, err := n.Offered()
	if err != nil {
		t.Fatal(err)
	}
	for _, device := range offered {
		if device.Name != "neuron-node" {
			continue
		}
		for variable, want := range map[string]string{
			"NEURON_RT_ULTRASERVER_MODE":      "1", // the driver's name for four nodes
			"NEURON_RT_ULTRASERVER_SERVER_ID": *device.Attributes["ultraserverServerId4"].StringValue,
			"NEURON_RT_ULTRASERVER_NODE_ID":   fmt.Sprint(*device.Attributes["ultraserverNodeId4"].IntValue),
		} {
			if got := report.Env[variable]; got != want {
				t.Errorf("%s is %q, want %q", variable, got, want)
			}
		}
		return
	}
	t.Errorf("no neuron-node among %d devices", len(offered))
}

// expectAdminAccess: in a namespace that is labelled for it a pod looks on at a device, although all are held, and is not told to use
// its cores; elsewhere the server refuses such a claim. Of devices that claims share the scheduler wants cores for it, so it asks for
// none. Where cores or groups are offered it wants counters, too.
func expectAdminAccess(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	const namespace, label = "onlookers", "resource.kubernetes.io/admin-access=true"
	request, yes := exactly("neurons", "neuron.aws.com", 1), true
	request.Exactly.AdminAccess = &yes
	request.Exactly.Capacity = &resource.CapacityRequirements{Requests: map[resource.QualifiedName]apiresource.Quantity{"cores": quantity("0")}}
	made := &resource.ResourceClaimTemplate{ObjectMeta: meta.ObjectMeta{Name: "look-on"}, Spec: resource.ResourceClaimTemplateSpec{
		Spec: resource.ResourceClaimSpec{Devices: resource.DeviceClaim{Requests: []resource.DeviceRequest{request}}}}}
	c.Kubectl(t, "create", "namespace", namespace)
	t.Cleanup(func() { c.Kubectl(t, "delete", "namespace", namespace, "--wait") })
	templates := c.Client.ResourceV1().ResourceClaimTemplates(namespace)
	if _, err := templates.Create(context.Background(), made, meta.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "admin-access") {
		t.Errorf("without the label: %v", err)
	}
	c.Kubectl(t, "label", "namespace", namespace, label)
	if _, err := templates.Create(context.Background(), made, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, cluster.Patience, namespace+" has a service account", func() error {
		_, err := c.Client.CoreV1().ServiceAccounts(namespace).Get(context.Background(), "default", meta.GetOptions{})
		return err
	})
	template(t, c, "all-sixteen", resource.DeviceClaim{Requests: []resource.DeviceRequest{exactly("neurons", "neuron.aws.com", 16)}})
	holder := cluster.One("holds-all", nil).WithClaims(map[string]string{"devices": "all-sixteen"})
	looker := cluster.One("looks-on", nil).WithClaims(map[string]string{"devices": "look-on"})
	looker.Namespace = namespace
	devices, perDevice := size(n)
	restore := guardDeviceNodes(t, n)
	defer restore()
	await := func(w cluster.Workload) cluster.Report {
		w.Node = n.Name
		c.StartJob(t, w)
		return c.AwaitClaimReports(t, w, devices, perDevice)[0]
	}
	await(holder).ExpectSeen(t, perDevice)
	report := await(looker)
	// The driver attaches every process that opens a node for reading; admin access may only open it for writing, which attaches nothing.
	want := neuronNodes(report.Held[cluster.Neuron])
	if len(want) != 1 || fmt.Sprint(report.Refused) != fmt.Sprint(want) || len(report.Open) > 0 || len(report.Reads) > 0 ||
		fmt.Sprint(report.Writes) != fmt.Sprint(want) {
		t.Errorf("holds %v; opens for reading and writing %v, for reading %v, for writing %v; refused %v", report.Held, report.Open,
			report.Reads, report.Writes, report.Refused)
	}
	if value, set := report.Env["NEURON_RT_VISIBLE_CORES"]; set {
		t.Errorf("NEURON_RT_VISIBLE_CORES is %q", value)
	}
	c.DeleteJob(t, looker, holder)
}

// guardDeviceNodes gives the node's Neuron device nodes a number that containers may not open by default. Simulated ones have that
// of /dev/null, which runc allows every container. 10:237 is the loop driver's control node: opening it changes nothing.
func guardDeviceNodes(t *testing.T, n *cluster.Node) (restore func()) {
	t.Helper()
	paths, err := filepath.Glob(n.Host() + "/dev/neuron*")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no device nodes in %s: %v", n.Host(), err)
	}
	number := func(major, minor uint32) {
		for _, path := range paths {
			if err := errors.Join(os.Remove(path), syscall.Mknod(path, syscall.S_IFCHR|0o666, int(major<<8|minor)), os.Chmod(path, 0o666)); err != nil {
				t.Fatal(err)
			}
		}
	}
	number(10, 237)
	return func() { number(1, 3) }
}

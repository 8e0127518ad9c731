package scenarios

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/suite"
)

// footprint is what an agent and its node take.
type footprint struct {
	resident           int64 // KiB
	descriptors, files int
	generation         int64 // of its pool
}

// TestFleetClaims: pods with claims on one node, one after another, leave nothing behind: no memory, descriptors, files, writes of slices.
// The scheduler chooses; the kubelet's calls are the test's.
func TestFleetClaims(t *testing.T) {
	c := cluster.Get(t)
	f := newFleet(t, c, 1, claimsFleet())
	driver, n := f.modes[0], f.modes[0].nodes[0]
	applyExamples(t, c)
	if err := n.startKubelet(f.input()); err != nil {
		t.Fatal(err)
	}
	if err := n.startAgent(c); err != nil {
		t.Fatal(err)
	}
	f.awaitTaints(driver, 0)
	connection, err := suite.Dial(n.driverSocket())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	calls := dra.NewDRAPluginClient(connection)
	warm, count := shortOrDeep(10, 100), shortOrDeep(40, 500)
	var before footprint
	begin := time.Now()
	for i := range count {
		if i == warm {
			before = f.footprint(n)
			driver.begin()
		}
		serveClaim(t, c, n, calls, fmt.Sprintf("fleet-claims-%d", i))
	}
	after := f.footprint(n)
	figure(t, "fleet: %d pods with claims in %v: memory %.1f, then %.1f MiB; descriptors %d, %d; files %d, %d", count,
		time.Since(begin).Round(time.Second), mebibytes(before.resident<<10), mebibytes(after.resident<<10),
		before.descriptors, after.descriptors, before.files, after.files)
	traffic := driver.traffic(driver.nodes)
	figure(t, "fleet: per pod with a claim %.1f calls, %d writes in all", float64(len(traffic.calls))/float64(count-warm), traffic.writes())
	if after.resident > before.resident+2048 || after.descriptors > before.descriptors+8 || after.files != before.files ||
		after.generation != before.generation {
		t.Errorf("it grew: %+v, then %+v", before, after)
	}
	if traffic.writes() != 0 {
		t.Errorf("writes: %s", traffic.kinds((*apiCall).isWrite))
	}
	if refused := traffic.kinds((*apiCall).isRefused); refused != "" {
		t.Errorf("refused: %s", refused)
	}
}

// footprint is taken when no claim is prepared.
func (f *fleet) footprint(n *fleetNode) footprint {
	f.t.Helper()
	resident, err := suite.Status(n.agent.Pid, "VmRSS")
	if err != nil {
		f.t.Fatal(err)
	}
	files := 0
	if err := filepath.WalkDir(n.dir, func(_ string, _ fs.DirEntry, err error) error { files++; return err }); err != nil {
		f.t.Fatal(err)
	}
	return footprint{resident, suite.Descriptors(n.agent.Pid), files, f.awaitTaints(n.mode, 0)[n.name]}
}

// serveClaim makes a pod with a claim of a device, waits for the scheduler, prepares and releases the claim as a kubelet does, and deletes
// the pod.
func serveClaim(t *testing.T, c *cluster.Cluster, n *fleetNode, calls dra.DRAPluginClient, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cluster.Patience)
	defer cancel()
	w := cluster.One(name, nil).WithClaims(map[string]string{"devices": "neuron-1"})
	w.Node = n.name
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{"workload": name}}, Spec: w.PodTemplate().Spec}
	pod.Spec.Tolerations = []core.Toleration{{Operator: core.TolerationOpExists}} // no kubelet keeps the Node ready
	pods := c.Client.CoreV1().Pods("default")
	if _, err := pods.Create(ctx, pod, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	request := &dra.Claim{Namespace: "default"}
	cluster.Eventually(t, cluster.Patience, name+" is scheduled", func() error {
		placed, err := pods.Get(ctx, name, meta.GetOptions{})
		if err != nil || placed.Spec.NodeName == "" {
			return fmt.Errorf("not placed: %v", err)
		}
		claims, err := c.ClaimsOf(placed)
		if err == nil {
			claim := claims["devices"]
			request.Name, request.Uid = claim.Name, string(claim.UID)
		}
		return err
	})
	prepared, err := calls.NodePrepareResources(ctx, &dra.NodePrepareResourcesRequest{Claims: []*dra.Claim{request}})
	if err != nil {
		t.Fatal(err)
	}
	if answer := prepared.Claims[request.Uid]; answer == nil || answer.Error != "" || len(answer.Devices) != 1 {
		t.Fatalf("%s: %v", name, answer)
	}
	released, err := calls.NodeUnprepareResources(ctx, &dra.NodeUnprepareResourcesRequest{Claims: []*dra.Claim{request}})
	if err != nil {
		t.Fatal(err)
	}
	if answer := released.Claims[request.Uid]; answer == nil || answer.Error != "" {
		t.Fatalf("%s: %v", name, answer)
	}
	now := int64(0)
	if err := pods.Delete(ctx, name, meta.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
}

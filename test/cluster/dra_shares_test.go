package scenarios

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"testing"

	resource "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"neuron-agent.test/cluster/cluster"
)

// sharing is the component that lets claims share devices by their cores.
const sharing = "dra-shares"

// shareOf asks for so many cores of one device that claims may share.
func shareOf(cores string) resource.DeviceClaim {
	request := exactly("cores", "core.neuron.aws.com", 1)
	request.Exactly.Capacity = &resource.CapacityRequirements{Requests: map[resource.QualifiedName]apiresource.Quantity{"cores": quantity(cores)}}
	return resource.DeviceClaim{Requests: []resource.DeviceRequest{request}}
}

// TestShares: claims for one core share devices, and never a core; a whole device beside them is alone. So it stays when pods come and
// go and the driver is started anew.
func TestShares(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, trn2DRA)[0]
	startDriver(t, c, []*cluster.Node{n}, sharing)
	awaitShared(t, n)
	template(t, c, "share-1", shareOf("1"))
	template(t, c, "share-3", shareOf("3"))
	template(t, c, "a-whole-one", resource.DeviceClaim{Requests: []resource.DeviceRequest{exactly("neurons", "neuron.aws.com", 1)}})
	workloads := map[string]cluster.Workload{}
	start := func(name, template string) {
		w := cluster.One(name, nil).WithClaims(map[string]string{"devices": template})
		w.Node = n.Name
		workloads[name] = w
		c.StartPod(t, w)
	}
	for i := range 6 {
		start("share-"+strconv.Itoa(i), "share-1")
	}
	start("share-of-3", "share-3")
	start("whole", "a-whole-one")
	before := expectShares(t, c, n, workloads)
	// A pod goes and another comes.
	c.DeletePod(t, "default", workloads["share-2"].Name)
	delete(workloads, "share-2")
	start("share-again", "share-3")
	expectShares(t, c, n, workloads)
	c.Kubectl(t, "-n", system, "delete", "pod", driverPodOn(t, c, n).Name)
	expectReadyEverywhere(t, c, draPod, 1)
	start("share-after", "share-1")
	after := expectShares(t, c, n, workloads)
	for pod, cores := range before {
		if now := after[pod]; pod != "share-2" && !reflect.DeepEqual(now, cores) {
			t.Errorf("%s has %v, had %v", pod, now, cores)
		}
	}
	for _, w := range workloads {
		c.DeletePod(t, "default", w.Name)
	}
	template(t, c, "all-16", resource.DeviceClaim{Requests: []resource.DeviceRequest{exactly("neurons", "neuron.aws.com", 16)}})
	expectShape(t, c, n, shape{template: "all-16", counts: cluster.Counts{Devices: 16}})
	t.Run("AdminAccess", func(t *testing.T) { expectAdminAccess(t, c, n) })
}

// expectShares waits until all pods run, and holds the scheduler's results against what the node gave: by pod the places that it has.
func expectShares(t *testing.T, c *cluster.Cluster, n *cluster.Node, workloads map[string]cluster.Workload) map[string]map[int][]int {
	t.Helper()
	_, perDevice := size(n)
	used := map[string]int{} // cores by device
	given := map[string]map[int][]int{}
	for name, w := range workloads {
		report := c.AwaitReports(t, w)[0]
		pods, err := c.Pods("default", "workload="+w.Name)
		if err != nil || len(pods) != 1 {
			t.Fatalf("%s: %d pods, %v", name, len(pods), err)
		}
		claims, err := c.ClaimsOf(&pods[0])
		if err != nil {
			t.Fatal(err)
		}
		claim := claims["devices"]
		result := claim.Status.Allocation.Devices.Results[0]
		consumed := result.ConsumedCapacity["cores"]
		cores := int(consumed.Value())
		used[result.Device] += cores
		if count, err := coresIn(report.Env["NEURON_RT_VISIBLE_CORES"]); err != nil || count != cores || len(report.Open) != 1 {
			t.Errorf("%s consumes %d cores of %s, NEURON_RT_VISIBLE_CORES is %q (%v), open are %v", name, cores, result.Device,
				report.Env["NEURON_RT_VISIBLE_CORES"], err, report.Open)
		}
		shares, err := n.SharesOf()
		if err != nil {
			t.Fatal(err)
		}
		places := shares[string(claim.UID)]
		if want := cores % perDevice * 2; countOf(places) != want { // two places a core; all of a device is no share
			t.Errorf("%s: %d cores of %s are the places %v", name, cores, result.Device, places)
		}
		given[name] = places
	}
	for device, cores := range used {
		if cores > perDevice {
			t.Errorf("%s: %d of %d cores are consumed", device, cores, perDevice)
		}
	}
	return given
}

func countOf(places map[int][]int) (count int) {
	for _, some := range places {
		count += len(some)
	}
	return count
}

// coresIn counts "0-3" as four.
func coresIn(visible string) (int, error) {
	first, last := 0, 0
	if _, err := fmt.Sscanf(visible, "%d-%d", &first, &last); err == nil {
		return last - first + 1, nil
	}
	if _, err := strconv.Atoi(visible); err != nil {
		return 0, errors.New("no range of cores")
	}
	return 1, nil
}

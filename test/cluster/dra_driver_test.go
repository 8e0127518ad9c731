package scenarios

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	"neuron-agent.test/cluster/cluster"
)

const draPod = "app.kubernetes.io/name=neuron-agent-dra"

var (
	trn1DRA = ofClaims(cluster.Trn1)
	trn2DRA = ofClaims(cluster.Trn2)
	// A node of an UltraServer, which is offered as one device.
	trn2uDRA = ofClaims(cluster.Spec{Name: "trn2u", InstanceType: "trn2u.48xlarge"})
	inf1DRA  = ofClaims(cluster.Spec{Name: "inf1", InstanceType: "inf1.6xlarge"})
	inf2DRA  = ofClaims(cluster.Spec{Name: "inf2", InstanceType: "inf2.48xlarge"}) // with containerd 2: 1.6 has no CDI
)

// pools is how many devices of each kind a node offers with the component partitioned; groups of rings are left to the unit tests.
var pools = map[string]map[string]int{
	"trn1.32xlarge":  {"neuron_device": 16, "neuron_core": 32, "neuron_group": 7, "efa": 8},
	"trn2.48xlarge":  {"neuron_device": 16, "neuron_core": 64, "neuron_group": 7, "efa": 16},
	"trn2u.48xlarge": {"neuron_node": 1, "efa": 16},
	"inf1.6xlarge":   {"neuron_device": 4, "neuron_core": 16},
	"inf2.48xlarge":  {"neuron_device": 12, "neuron_core": 24},
}

// countKinds counts devices by their resourceType.
func countKinds(devices []resource.Device) map[string]int {
	kinds := map[string]int{}
	for _, device := range devices {
		if kind := device.Attributes["resourceType"].StringValue; kind != nil {
			kinds[*kind]++
		} else {
			kinds["without a resourceType: "+device.Name]++
		}
	}
	return kinds
}

// unpartitioned is what a node offers without partitions.
func unpartitioned(n *cluster.Node) map[string]int {
	kinds := maps.Clone(pools[n.InstanceType])
	delete(kinds, "neuron_core")
	delete(kinds, "neuron_group")
	return kinds
}

// awaitPool waits until the node offers all that its type has, partitions too, and returns that.
func awaitPool(t *testing.T, n *cluster.Node) map[string]resource.Device {
	t.Helper()
	byName := map[string]resource.Device{}
	cluster.Eventually(t, cluster.Patience, n.Name+": the slices are there", func() error {
		devices, err := n.Offered()
		if err != nil {
			return err
		}
		kinds := countKinds(devices)
		if want := pools[n.InstanceType]; want["neuron_group"] == 0 && kinds["neuron_group"] > 0 {
			delete(kinds, "neuron_group")
		}
		if !maps.Equal(kinds, pools[n.InstanceType]) {
			return fmt.Errorf("they have %v, want %v", kinds, pools[n.InstanceType])
		}
		for _, device := range devices {
			byName[device.Name] = device
		}
		return nil
	})
	return byName
}

// startDriver applies the overlay with components and waits until each node offers all that it then does.
func startDriver(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node, components ...string) {
	t.Helper()
	t.Cleanup(func() { c.ExpectNoPods(t, system, draPod) })
	applyDRA(t, c, components...)
	for _, n := range nodes {
		if slices.Contains(components, partitioned) {
			awaitPool(t, n)
		} else {
			awaitKinds(t, n, unpartitioned(n))
		}
	}
	expectReadyEverywhere(t, c, draPod, len(nodes))
}

// driverPodOn returns the driver's only pod on a node that is not ending.
func driverPodOn(t *testing.T, c *cluster.Cluster, n *cluster.Node) *core.Pod {
	t.Helper()
	var found *core.Pod
	cluster.Eventually(t, cluster.Patience, "one driver on "+n.Name, func() error {
		pods, err := c.Pods(system, draPod)
		count := 0
		for i := range pods {
			if pods[i].Spec.NodeName == n.Name && pods[i].DeletionTimestamp == nil {
				found = &pods[i]
				count++
			}
		}
		if err == nil && count != 1 {
			err = fmt.Errorf("there are %d", count)
		}
		return err
	})
	return found
}

var writeRequests = regexp.MustCompile(`(?m)^apiserver_request_total\{[^}]*resource="resourceslices"[^}]*verb="(?:POST|PUT|PATCH|APPLY|DELETE)"[^}]*\} (\S+)$`)

// sliceWrites is how many writes of slices the API server has had since its start, whoever sent them; what was tried without being
// stored does not count.
func sliceWrites(t *testing.T, c *cluster.Cluster) int {
	t.Helper()
	sum := 0.0
	for _, line := range writeRequests.FindAllStringSubmatch(c.Kubectl(t, "get", "--raw", "/metrics"), -1) {
		if strings.Contains(line[0], `dry_run="All"`) {
			continue
		}
		value, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += value
	}
	return int(sum)
}

// TestClaimsDriver: the static manifest, from apply to delete. Nothing happens on a node without the label.
func TestClaimsDriver(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Bare, trn1DRA)
	n, before := nodes[1], time.Now()
	t.Cleanup(func() { c.ExpectNoPods(t, system, draPod) })
	c.Apply(t, cluster.Manifest(draManifest))
	awaitKinds(t, n, unpartitioned(n))
	cluster.Figure(t, "claims: apply to a whole pool in the API, trn1", time.Since(before))
	expectReadyEverywhere(t, c, draPod, 1)
	if classes := strings.Fields(c.Kubectl(t, "get", "deviceclasses", "-o", "name")); len(classes) != 4 {
		t.Errorf("classes %v", classes)
	}
	if now, err := n.Allocatable(); err != nil || now != (cluster.Counts{}) {
		t.Errorf("a device plugin serves the node: %+v, %v", now, err)
	}
	t.Run("Idle", func(t *testing.T) { expectNoWritesWhenIdle(t, c, n) })
	t.Run("AdminAccess", func(t *testing.T) { expectAdminAccess(t, c, n) })
	t.Run("Health", func(t *testing.T) { expectTaintedWhileUnhealthy(t, n, 1) })
	t.Run("Republished", func(t *testing.T) { expectRepublished(t, c, n) })
	pid := agentProcess(t, n)
	if memory, err := cluster.MemoryOf(pid); err == nil {
		figure(t, "memory of the driver on %s after these: %v", n.Name, memory)
	}
	begin := time.Now()
	c.Kubectl(t, "delete", "-f", cluster.Manifest(draManifest))
	c.ExpectNoPods(t, system, draPod)
	awaitNoSlices(t, n)
	cluster.Figure(t, "claims: manifest deleted to slices gone", time.Since(begin))
	entries, err := os.ReadDir(n.Disk("/var/lib/kubelet/plugins_registry"))
	if err != nil || len(entries) != 0 {
		t.Errorf("left in the registry: %v %v", entries, err)
	}
}

// awaitNoSlices: the kubelet deletes those of a driver that has gone.
func awaitNoSlices(t *testing.T, n *cluster.Node) {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, n.Name+" has no slices", func() error {
		left, err := n.Slices()
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d are there", len(left))
		}
		return err
	})
}

// removeSlices deletes a node's slices; a kubelet does it 30 s after the driver has gone.
func removeSlices(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	t.Helper()
	c.Kubectl(t, "delete", "resourceslices", "--field-selector", "spec.nodeName="+n.Name)
}

func expectNoWritesWhenIdle(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	long := shortOrDeep(20*time.Second, 5*time.Minute)
	before, begin := sliceWrites(t, c), time.Now()
	cluster.Eventually(t, 2*long, "a while passes", func() error {
		if left := long - time.Since(begin); left > 0 {
			return fmt.Errorf("%v to go", left)
		}
		return nil
	})
	writes := sliceWrites(t, c) - before
	figure(t, "claims: writes of slices in %v when nothing changes: %d", long, writes)
	if writes != 0 || before == 0 {
		t.Errorf("%d writes while idle, %d before", writes, before)
	}
}

// expectTaintedWhileUnhealthy: a device that fails is tainted with its reason, and so is all that it is a part of, `count` devices of the
// pool together; it heals.
func expectTaintedWhileUnhealthy(t *testing.T, n *cluster.Node, count int) {
	tainted := func() (map[string]string, error) {
		devices, err := n.Offered()
		reasons := map[string]string{}
		for _, device := range devices {
			for _, taint := range device.Taints {
				reasons[device.Name] = string(taint.Effect) + " " + taint.Value
			}
		}
		return reasons, err
	}
	await := func(what string, count int) time.Duration {
		begin := time.Now()
		cluster.Eventually(t, cluster.Patience, what, func() error {
			reasons, err := tainted()
			if err == nil && len(reasons) != count {
				err = fmt.Errorf("tainted: %v", reasons)
			}
			return err
		})
		return time.Since(begin)
	}
	n.Inject(t, "neuron3", "sram_ecc_uncorrected=1")
	unhealthy := await("device 3 is tainted, with all it is in", count)
	reasons, _ := tainted()
	if reason := reasons["neuron-device-3"]; reason != "NoSchedule sram_ecc_uncorrected" {
		t.Errorf("device 3 is tainted %q", reason)
	}
	n.Inject(t, "neuron3", "heal")
	healed := await("nothing is tainted", 0)
	figure(t, "claims: failed device tainted after %v, healed one free after %v", unhealthy.Round(time.Millisecond), healed.Round(time.Millisecond))
}

// expectRepublished: slices that somebody deletes, as a kubelet does when it starts, come back.
func expectRepublished(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	begin := time.Now()
	removeSlices(t, c, n)
	awaitKinds(t, n, unpartitioned(n))
	figure(t, "claims: slices deleted by hand are back after %v", time.Since(begin).Round(time.Millisecond))
	if err := n.Kubelet.End(9); err != nil {
		t.Fatal(err)
	}
	begin = time.Now()
	if err := n.StartKubelet(); err != nil {
		t.Fatal(err)
	}
	healthy := time.Since(begin)
	awaitKinds(t, n, unpartitioned(n))
	figure(t, "claims: kubelet started anew: healthy after %v, pool whole after %v", healthy.Round(time.Millisecond),
		time.Since(begin).Round(time.Millisecond))
}

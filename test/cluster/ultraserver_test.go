package scenarios

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"neuron-agent.test/cluster/cluster"
)

// Jobs over an UltraServer: four linked trn2u.48xlarge.

const ofUltraServer = "neuron.amazonaws.com/ultraserver-"

var wholeTrn2u = cluster.Ask{cluster.Neuron: "16", cluster.EFA: "16"}

// Nodes with these names have the labels at once, others up to a minute after the agent's start.
var (
	linkedNodes  = ultraServer("server-54", "server-71", "server-141", "server-145")
	linkedClaims = ultraServer("server-6", "server-118", "server-264", "server-297")
)

func ultraServer(names ...string) []cluster.Spec {
	var specs []cluster.Spec
	for i, name := range names {
		specs = append(specs, cluster.Spec{Name: name, InstanceType: "trn2u.48xlarge",
			Simulation: []string{"--ultraserver", fmt.Sprintf("%d:%d", len(names), i)}})
	}
	return specs
}

// startUltraServer starts the agent on the nodes of one, and waits until their labels say where each is.
func startUltraServer(t *testing.T, c *cluster.Cluster) []*cluster.Node {
	t.Helper()
	nodes := c.Nodes(t, linkedNodes...)
	c.Apply(t, cluster.Manifest(statusManifest))
	for _, n := range nodes {
		n.ExpectAllocatable(t, cluster.Counts{Cores: 64, Devices: 16, EFAs: 16})
	}
	awaitPlaces(t, c, nodes)
	watchRefusals(t, c)
	return nodes
}

// awaitPlaces: the labels are what the driver's files say.
func awaitPlaces(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node) {
	t.Helper()
	for i, n := range nodes {
		want := map[string]string{"mode": "1_3_4", "node-id-4": strconv.Itoa(i), "node-id-2": strconv.Itoa(i % 2)}
		for _, key := range []string{"server-id-4", "server-id-2"} {
			text, err := os.ReadFile(filepath.Join(n.Host(), "sys/class/neuron_device", strings.ReplaceAll(key, "-", "_")))
			if err != nil {
				t.Fatal(err)
			}
			want[key] = strings.TrimSpace(string(text))
		}
		awaitNode(t, c, n, "labels of an UltraServer", func(node *core.Node) error {
			for key, value := range want {
				if got := node.Labels[ofUltraServer+key]; got != value {
					return fmt.Errorf("label %s is %q, want %q", key, got, value)
				}
			}
			return nil
		})
	}
}

// expectTogether: the ranks are all nodes of an UltraServer of that many, which is returned, and what tells the runtime its place is the
// node's. mode is the driver's number.
func expectTogether(t *testing.T, c *cluster.Cluster, ranks []rank, nodes int, mode string) (server string) {
	t.Helper()
	for _, r := range ranks {
		server, id := placeOf(t, c, r, nodes)
		for variable, want := range map[string]string{"MODE": mode, "SERVER_ID": server, "NODE_ID": id} {
			if got := r.report.Env["NEURON_RT_ULTRASERVER_"+variable]; got != want {
				t.Errorf("%s on %s: %s is %q, want %q", r.pod.Name, r.pod.Spec.NodeName, variable, got, want)
			}
		}
	}
	return expectOneServer(t, c, ranks, nodes)
}

// placeOf is what the labels of a rank's node say of UltraServers of that many nodes.
func placeOf(t *testing.T, c *cluster.Cluster, r rank, nodes int) (server, id string) {
	labels := nodeOf(t, c, r.report.Node).Labels
	return labels[ofUltraServer+"server-id-"+strconv.Itoa(nodes)], labels[ofUltraServer+"node-id-"+strconv.Itoa(nodes)]
}

// expectOneServer is expectTogether without what the runtime is told.
func expectOneServer(t *testing.T, c *cluster.Cluster, ranks []rank, nodes int) (server string) {
	t.Helper()
	servers, ids := map[string]bool{}, map[string]bool{}
	for _, r := range ranks {
		var id string
		server, id = placeOf(t, c, r, nodes)
		servers[server], ids[id] = true, true
	}
	if len(servers) != 1 || servers[""] || len(ids) != nodes || len(ranks) != nodes {
		t.Errorf("%d ranks on the nodes %v of %v", len(ranks), ids, servers)
	}
	return server
}

// halved makes of a job over four nodes one over two of them.
func halved(object map[string]any) {
	text, _ := json.Marshal(object)
	half := strings.NewReplacer("server-id-4", "server-id-2", `"size":4`, `"size":2`, `"replicas":1`, `"replicas":2`, `"parallelism":4`, `"parallelism":2`,
		`"completions":4`, `"completions":2`, `NODE_CONFIG","value":"4"`, `NODE_CONFIG","value":"2"`).Replace(string(text))
	clear(object)
	_ = json.Unmarshal([]byte(half), &object)
}

// awaitSomeWait waits until exactly so many pods, none of them one of before, are there, of which so many are not to be placed and the
// others run.
func awaitSomeWait(t *testing.T, c *cluster.Cluster, selector string, count, waiting int, before ...rank) {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, fmt.Sprintf("%d of %d of %s wait", waiting, count, selector), func() error {
		pods, err := c.Pods("default", selector)
		if err != nil {
			return err
		}
		run, wait := 0, 0
		for _, pod := range pods {
			for _, r := range before {
				if r.pod.UID == pod.UID {
					return fmt.Errorf("%s is there still", pod.Name)
				}
			}
			if pod.Status.Phase == core.PodRunning && pod.DeletionTimestamp == nil {
				run++
			} else if pod.Spec.NodeName == "" && expectUnschedulable(&pod, "nodes are available") == nil {
				wait++
			}
		}
		if len(pods) != count || wait != waiting || run != count-waiting {
			return fmt.Errorf("%d run and %d wait of %s", run, wait, places(pods))
		}
		return nil
	})
}

// loseNode cuts the power of a rank's node, for good: the rank is evicted, as by the taint of a node that is not heard of, and then the
// node deleted, as clouds do.
func loseNode(t *testing.T, c *cluster.Cluster, r rank) {
	t.Helper()
	r.report.Node.PowerOff(t)
	c.Kubectl(t, "delete", "pod", r.pod.Name, "--wait=false")
	c.RemoveNode(t, r.report.Node)
}

// TestLWSUltraServer: groups over four nodes and over two, each alone on its UltraServer.
func TestLWSUltraServer(t *testing.T) {
	cluster.NeedsSystem(t, lws.Name)
	c := cluster.Get(t)
	startUltraServer(t, c)
	c.StartSystem(t, lws)
	whole := submission{system: lws.Name, file: "ultraserver.yaml", name: "whole", selector: setSelector("whole")}
	withdraw := submit(t, c, whole)
	ranks := awaitRanks(t, c, whole.selector, 4, wholeTrn2u)
	expectTogether(t, c, ranks, 4, "1")
	other := submission{system: lws.Name, file: "ultraserver.yaml", name: "other", selector: setSelector("other")}
	withdrawOther := submit(t, c, other)
	awaitSomeWait(t, c, other.selector, 1, 1) // the workers come after the leader is placed
	withdrawOther()

	// A lost node's group starts anew; as a whole it is placed only while nobody else takes nodes.
	loseNode(t, c, ranks[3])
	awaitSomeWait(t, c, whole.selector, 4, 1, ranks...)
	begin := time.Now()
	c.Nodes(t, linkedNodes...)
	ranks = awaitRanks(t, c, whole.selector, 4, wholeTrn2u, ranks...)
	cluster.Figure(t, "LeaderWorkerSet: a node of the UltraServer is back, all run", time.Since(begin))
	expectTogether(t, c, ranks, 4, "1")
	withdraw()

	halves := submission{system: lws.Name, file: "ultraserver.yaml", name: "halves", selector: setSelector("halves"), adjust: halved}
	submit(t, c, halves)
	ranks = awaitRanks(t, c, halves.selector, 4, wholeTrn2u)
	if a, b := expectTogether(t, c, ofGroup(ranks, "0"), 2, "3"), expectTogether(t, c, ofGroup(ranks, "1"), 2, "3"); a == b {
		t.Errorf("both are on %s", a)
	}
	c.Kubectl(t, "scale", "leaderworkersets/halves", "--replicas=3")
	awaitSomeWait(t, c, halves.selector, 5, 1)
}

// TestUltraServerClaims: a claim per pod for a whole node, whose configuration tells the runtime its place, and pod affinity.
func TestUltraServerClaims(t *testing.T) {
	needsDeep(t)
	c := cluster.Get(t)
	specs := make([]cluster.Spec, len(linkedClaims))
	for i, spec := range linkedClaims {
		specs[i] = ofClaims(spec)
	}
	nodes := c.Nodes(t, specs...)
	const heading = "An UltraServer by claims"
	c.Shell(t, cluster.CodeLines(t, typedPage, heading)[0])
	t.Cleanup(func() {
		c.Shell(t, "helm -n "+system+" uninstall neuron-agent --wait --timeout 90s")
		c.ExpectNoPods(t, system, draPod)
	})
	for _, n := range nodes {
		awaitKinds(t, n, unpartitioned(n))
	}
	awaitPlaces(t, c, nodes)
	watchRefusals(t, c)
	node := cluster.Counts{Devices: 16}
	typeRecipe(t, c, nodes, heading, "training:1", jobSelector("ultraserver"), 4, node)
	applyExamples(t, c)
	job := func(name string, adjust func(map[string]any)) submission {
		return submission{system: "ultraserver", file: "job.yaml", name: name, selector: jobSelector(name), adjust: func(object map[string]any) {
			text, _ := json.Marshal(object)
			_ = json.Unmarshal([]byte(strings.NewReplacer(`ultraserver-job":"ultraserver"`, `ultraserver-job":"`+name+`"`,
				`"values":["ultraserver"]`, `"values":["`+name+`"]`).Replace(string(text))), &object)
			if adjust != nil {
				adjust(object)
			}
		}}
	}
	whole := job("whole", nil)
	withdraw := submit(t, c, whole)
	ranks := awaitClaimRanks(t, c, whole.selector, 4, node)
	expectTogether(t, c, ranks, 4, "1")
	other := job("other", nil)
	withdrawOther := submit(t, c, other)
	awaitSomeWait(t, c, other.selector, 4, 4)
	withdrawOther()

	lost := ranks[3]
	loseNode(t, c, lost)
	awaitSomeWait(t, c, whole.selector, 4, 1, lost) // the others run on
	c.Nodes(t, specs...)
	expectTogether(t, c, awaitClaimRanks(t, c, whole.selector, 4, node, lost), 4, "1")
	withdraw()

	ofTwo := exactly("node", cluster.Driver, 1)
	template(t, c, "ultraserver-node-of-2", resource.DeviceClaim{Requests: []resource.DeviceRequest{ofTwo},
		Config: []resource.DeviceClaimConfiguration{{DeviceConfiguration: resource.DeviceConfiguration{
			Opaque: &resource.OpaqueDeviceConfiguration{Driver: cluster.Driver, Parameters: runtime.RawExtension{
				Raw: []byte(`{"apiVersion":"neuron.aws.com/v1","kind":"UltraServerConfig","ultraserverMode":2}`)}}}}}})
	half := func(object map[string]any) {
		halved(object)
		text, _ := json.Marshal(object)
		_ = json.Unmarshal([]byte(strings.ReplaceAll(string(text), "neuron-ultraserver-node", "ultraserver-node-of-2")), &object)
	}
	first, second := job("first", half), job("second", half)
	submit(t, c, first)
	submit(t, c, second)
	onFirst, onSecond := awaitClaimRanks(t, c, first.selector, 2, node), awaitClaimRanks(t, c, second.selector, 2, node)
	if a, b := expectTogether(t, c, onFirst, 2, "3"), expectTogether(t, c, onSecond, 2, "3"); a == b {
		t.Errorf("both are on %s", a)
	}
}

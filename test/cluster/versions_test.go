package scenarios

import (
	"cmp"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

// Scenarios for one version of Kubernetes after another, and for several at once: test/deep.sh --only versions.

// needsVersions are the versions that the run was given, at least so many.
func needsVersions(t *testing.T, count int) []string {
	t.Helper()
	versions := cluster.Versions()
	if len(versions) < count {
		t.Skipf("CLUSTER_KUBERNETES names %d versions of the %d that this needs", len(versions), count)
	}
	return versions
}

// minorOf "1.36", "v1.36.3": 36.
func minorOf(t *testing.T, version string) int {
	t.Helper()
	parts := strings.Split(version, ".")
	minor, err := strconv.Atoi(parts[min(1, len(parts)-1)])
	if err != nil {
		t.Fatalf("no version: %q", version)
	}
	return minor
}

func serverMinor(t *testing.T, c *cluster.Cluster) int {
	t.Helper()
	version, err := c.Client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return minorOf(t, version.GitVersion)
}

// figureVersions prints what runs, and fails where a kubelet is another than the node's specification says.
func figureVersions(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node) {
	t.Helper()
	server, err := c.Client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		node, err := c.Client.CoreV1().Nodes().Get(t.Context(), n.Name, meta.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		info := node.Status.NodeInfo
		figure(t, "versions: API server %s, %s: kubelet %s, %s", server.GitVersion, n.Name, info.KubeletVersion, info.ContainerRuntimeVersion)
		if want := cmp.Or(n.Kubernetes, cluster.Versions()[0]); !strings.HasPrefix(info.KubeletVersion, "v"+want+".") {
			t.Errorf("%s runs kubelet %s, want %s", n.Name, info.KubeletVersion, want)
		}
	}
}

// TestVersion: device plugin and claims on the version that the run was given, with what docs/dra.md says of it. Without CLUSTER_DEEP=1 only
// what the version has beyond older ones.
func TestVersion(t *testing.T) {
	needsVersions(t, 1)
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Trn1, trn1DRA)
	figureVersions(t, c, nodes)
	if deep() {
		t.Run("DevicePlugin", func(t *testing.T) { expectPluginServes(t, c, nodes[:1]) })
	}
	if serverMinor(t, c) < 34 {
		t.Run("NoClaims", func(t *testing.T) { expectNoClaims(t, c, nodes[1]) })
		return
	}
	if deep() {
		t.Run("Claims", func(t *testing.T) { expectClaims(t, c, nodes[1:]) })
	}
	t.Run("Shares", func(t *testing.T) { expectSharedByDefault(t, c, nodes[1], serverMinor(t, c) >= 37) })
	t.Run("Newer", func(t *testing.T) { expectNewer(t, c, nodes[1], nodes[0]) })
}

// expectSharedByDefault: with no option, devices are shared where allocationMode: All waits for shared ones (docs/dra-partitions.md).
func expectSharedByDefault(t *testing.T, c *cluster.Cluster, n *cluster.Node, want bool) {
	startDriver(t, c, []*cluster.Node{n})
	if want {
		awaitShared(t, n)
	} else {
		expectNoneShared(t, n)
	}
}

// TestVersionSkew: kubelets of the older versions that the run was given, newest first, on one API server.
func TestVersionSkew(t *testing.T) {
	versions := needsVersions(t, 2)
	var specs []cluster.Spec
	for _, version := range versions[1:] {
		if minorOf(t, version) < minorOf(t, versions[0]) {
			specs = append(specs, cluster.Spec{Name: "kubelet-" + strings.ReplaceAll(version, ".", "-"), InstanceType: cluster.Trn1.InstanceType,
				Kubernetes: version})
		}
	}
	if specs == nil {
		t.Skip("no older version is named in CLUSTER_KUBERNETES")
	}
	c := cluster.Get(t)
	nodes := c.Nodes(t, specs...)
	figureVersions(t, c, nodes)
	t.Run("DevicePlugin", func(t *testing.T) { expectPluginServes(t, c, nodes) })
	serveClaims := func(all []*cluster.Node) {
		for _, n := range all {
			c.Kubectl(t, "label", "node", n.Name, "neuron-agent/mode=dra")
		}
	}
	if last := len(nodes) - 1; minorOf(t, nodes[last].Kubernetes) < 34 {
		serveClaims(nodes[last:])
		t.Run("NoClaims", func(t *testing.T) { expectNoClaims(t, c, nodes[last]) })
		nodes = nodes[:last]
	}
	serveClaims(nodes)
	t.Run("Claims", func(t *testing.T) { expectClaims(t, c, nodes) })
}

// expectPluginServes: random pods on each node, under both names, with a fixed split of the devices between them: none is refused, and
// nothing is given twice.
func expectPluginServes(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node) {
	set := cluster.DefaultAgent(t)
	set.Spec.Template.Spec.Containers[0].Args = splitArguments
	c.StartAgent(t, set)
	var queues []*queue
	for _, n := range nodes {
		expectOffered(t, n, expectSplit(wholeTrn1))
		queues = append(queues, &queue{name: "version", node: n, count: 40, lives: [2]int{1, 3},
			asks: withEFA(append(asksFor(cluster.Neuron, 1, 1, 2, 2, 4, 8), asksFor(cluster.NeuronCore, 1, 1, 2, 2, 4, 8)...))})
	}
	for i, o := range runQueues(t, c, 8*time.Minute, queues...) {
		expectOutcome(t, c, queues[i], o)
	}
}

// expectNoClaims: the driver says why the node's kubelet, before 1.34, does not take it, and the node has no slices.
func expectNoClaims(t *testing.T, c *cluster.Cluster, n *cluster.Node) {
	manifest := cluster.Manifest(draManifest)
	_, _ = c.TryKubectl("apply", "-f", manifest) // below 1.34 all but the classes
	t.Cleanup(func() {
		_, _ = c.TryKubectl("delete", "--ignore-not-found", "--wait", "-f", manifest)
		c.ExpectNoPods(t, system, draPod)
	})
	c.AwaitSaid(t, []string{"dynamic resource allocation needs a kubelet of 1.34.2 or newer"}, "-n", system, "logs", "--prefix", "--tail=-1", "-l", draPod)
	if said, _ := c.TryKubectl("get", "resourceslices", "-o", "custom-columns=NODE:.spec.nodeName"); strings.Contains(said, n.Name) {
		t.Errorf("there are slices:\n%s", said)
	}
}

// expectClaims: the nodes offer what docs/dra.md says of the API server's version, random claims of that are served and nothing is given
// twice, and an unhealthy device is tainted or, where the server does not keep taints, withdrawn.
func expectClaims(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node) {
	whole := serverMinor(t, c) >= 36 // cores, groups, taints
	extended := whole && !slices.ContainsFunc(nodes, func(n *cluster.Node) bool { return n.Kubernetes != "" && minorOf(t, n.Kubernetes) < 36 })
	t.Cleanup(func() { c.ExpectNoPods(t, system, draPod) })
	components := []string{partitioned, unmodified}
	if whole && !extended {
		components = components[:1]
	}
	applyDRA(t, c, components...)
	applyExamples(t, c)
	shapes := shapesNamed(everyTemplate...)
	if !whole {
		shapes = shapesNamed("neuron-1", "neuron-2", "neuron-4", "neuron-8", "neuron-16-efa-8", "efa-1")
	}
	l := &claimLoad{t: t, c: c, name: "version"}
	for _, n := range nodes {
		if whole {
			awaitPool(t, n)
		} else {
			awaitKinds(t, n, unpartitioned(n))
		}
		drawn := drawClaims(rand.New(rand.NewSource(int64(len(l.pods)))), "version", n, 120, [2]int{1, 3}, shapes)
		if !extended {
			drawn = slices.DeleteFunc(drawn, func(p claimPod) bool { return p.ask != nil })
		}
		l.pods = append(l.pods, drawn[:30]...)
	}
	l.expectUsed(l.run(10*time.Minute, nil), "random claims on nodes of a version")
	if whole {
		expectTaintedWhileUnhealthy(t, nodes[0], 6)
	} else {
		expectWithdrawnWhileUnhealthy(t, nodes[0])
	}
	if !whole {
		w := cluster.One("unmodified", cluster.Ask{cluster.Neuron: "1"})
		w.Node = nodes[0].Name
		expectWaits(t, c, w)
	}
}

// expectWithdrawnWhileUnhealthy: a device that fails leaves the slices, and comes back.
func expectWithdrawnWhileUnhealthy(t *testing.T, n *cluster.Node) {
	t.Helper()
	without := unpartitioned(n)
	without["neuron_device"]--
	n.Inject(t, "neuron3", "sram_ecc_uncorrected=1")
	awaitKinds(t, n, without)
	n.Inject(t, "neuron3", "heal")
	awaitKinds(t, n, unpartitioned(n))
}

package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"neuron-agent.test/cluster/cluster"
)

// watchShares keeps which cores claims have of devices that several share: a claim keeps them, and CDI files go with it.
func (l *claimLoad) watchShares(ctx context.Context) {
	const interval = 100 * time.Millisecond
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, n := range l.nodes() {
			found, err := n.SharesOf()
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a file that went after it was listed
				l.t.Error(err)
			}
			l.mu.Lock()
			for claim, places := range found {
				if before := l.shares[claim]; before != nil && !maps.EqualFunc(before, places, slices.Equal) {
					l.t.Errorf("claim %s had the places %v, and has %v", claim, before, places)
				}
				l.shares[claim] = places
			}
			l.mu.Unlock()
		}
	}
}

func (l *claimLoad) nodes() []*cluster.Node {
	var nodes []*cluster.Node
	for _, p := range l.pods {
		if !slices.Contains(nodes, p.node) {
			nodes = append(nodes, p.node)
		}
	}
	return nodes
}

// shareOfResult are the node's numbers of the cores that a result of the claim has of a device that it shares; none: the whole device.
func (l *claimLoad) shareOfResult(claim *resource.ResourceClaim, result resource.DeviceRequestAllocationResult, perDevice int) ([]string, error) {
	consumed, shared := result.ConsumedCapacity["cores"]
	count := int(consumed.Value())
	if !shared || count >= perDevice {
		return nil, nil
	}
	device, err := strconv.Atoi(strings.TrimPrefix(result.Device, "neuron-device-"))
	places := l.shares[string(claim.UID)][device]
	if err != nil || count == 0 || len(places)%count != 0 || len(places) == 0 {
		return nil, fmt.Errorf("claim %s consumes %d cores of %s and has the places %v there", claim.Name, count, result.Device, places)
	}
	var ids []string
	width := len(places) / count
	for _, place := range places {
		if place%width == 0 {
			ids = append(ids, strconv.Itoa(device*perDevice+place/width))
		}
	}
	return ids, nil
}

// awaitShared waits until claims may share the node's devices.
func awaitShared(t *testing.T, n *cluster.Node) {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, "devices may be shared", func() error {
		devices, err := n.Offered()
		if err == nil {
			if shared := countShared(devices); shared == 0 || shared != countKinds(devices)["neuron_device"] {
				err = fmt.Errorf("%d of %v may", shared, countKinds(devices))
			}
		}
		return err
	})
}

// countShared counts the devices that claims may share.
func countShared(devices []resource.Device) int {
	count := 0
	for _, device := range devices {
		if *device.Attributes["resourceType"].StringValue == "neuron_device" && device.AllowMultipleAllocations != nil {
			count++
		}
	}
	return count
}

// shareShapes makes templates for shares of devices, and gives these and those for whole devices; shares more often.
func shareShapes(t *testing.T, c *cluster.Cluster) []shape {
	t.Helper()
	var shapes []shape
	add := func(name string, claim resource.DeviceClaim, counts cluster.Counts, within int) {
		template(t, c, name, claim)
		shapes = append(shapes, shape{template: name, counts: counts, within: within})
	}
	for _, cores := range []int{1, 2, 3} {
		add(fmt.Sprintf("share-of-%d", cores), shareOf(strconv.Itoa(cores)), cluster.Counts{Cores: int64(cores)}, 1)
	}
	ofThree, withInterface := shareOf("1"), shareOf("1")
	ofThree.Requests[0].Exactly.Count = 3
	add("share-of-three-devices", ofThree, cluster.Counts{Cores: 3}, 0)
	near := resource.FullyQualifiedName("resource.aws.com/devicegroup1_id")
	withInterface.Requests = append(withInterface.Requests, exactly("efas", "efa.neuron.aws.com", 1))
	withInterface.Constraints = []resource.DeviceConstraint{{Requests: []string{"cores", "efas"}, MatchAttribute: &near}}
	add("share-and-interface", withInterface, cluster.Counts{Cores: 1, EFAs: 1}, 1)
	return slices.Concat(shapes, shapes, shapesNamed("neuron-1", "neuron-2", "neuron-4", "neuron-8"))
}

// TestRandomShares: pods by the hundred whose claims share the devices of a node by their cores, beside others for whole devices. Half
// of them begin before the driver is started anew.
func TestRandomShares(t *testing.T) {
	needsDeep(t)
	c := cluster.Get(t)
	n := c.Nodes(t, trn2DRA)[0]
	startDriver(t, c, []*cluster.Node{n}, sharing)
	awaitShared(t, n)
	applyExamples(t, c)
	shapes, random := shareShapes(t, c), rand.New(rand.NewSource(5))
	l := &claimLoad{t: t, c: c, name: "random-shares", shared: true}
	for i := range 400 {
		l.pods = append(l.pods, claimPod{name: fmt.Sprintf("share-%d", i), node: n, shape: shapes[random.Intn(len(shapes))], life: 1 + random.Intn(3)})
	}
	o := l.run(15*time.Minute, func() { c.Kubectl(t, "-n", system, "delete", "pod", driverPodOn(t, c, n).Name) })
	l.expectUsed(o, "random claims with shares on one trn2.48xlarge")
}

// TestShareQueueOf60: the queue of queue_test.go asked for by claims, cores as shares, beside the same amounts asked of a device plugin
// under one name, at the same time.
func TestShareQueueOf60(t *testing.T) {
	needsDeep(t)
	c := cluster.Get(t)
	nodes := c.Nodes(t, trn1DRA, cluster.Trn1)
	startDriver(t, c, nodes[:1], sharing)
	awaitShared(t, nodes[0])
	c.StartAgent(t, cluster.DefaultAgent(t))
	expectOffered(t, nodes[1], wholeTrn1)
	count, lives := 60, [2]int{2, 9}
	template(t, c, "queue-core", shareOf("1"))
	asks := []cluster.Ask{}
	shapes := []shape{}
	for _, size := range []int{1, 1, 2, 2, 4, 8} { // devices, then as many cores
		devices := cluster.Ask{cluster.NeuronCore: strconv.Itoa(2 * size)}
		name, counts := fmt.Sprintf("queue-devices-%d", size), cluster.Counts{Devices: int64(size), EFAs: int64(size / 2)}
		claim := resource.DeviceClaim{Requests: []resource.DeviceRequest{exactly("neurons", "neuron.aws.com", int64(size))}}
		if size > 1 {
			devices[cluster.EFA] = strconv.Itoa(size / 2)
			claim.Requests = append(claim.Requests, exactly("efas", "efa.neuron.aws.com", int64(size/2)))
		}
		if !slices.ContainsFunc(shapes, func(s shape) bool { return s.template == name }) {
			template(t, c, name, claim)
		}
		shapes, asks = append(shapes, shape{template: name, counts: counts, apart: true}), append(asks, devices)
		if size == 1 {
			shapes = append(shapes, shape{template: "queue-core", counts: cluster.Counts{Cores: 1}})
		} else {
			claim.Requests = claim.Requests[:1]
			claim.Requests[0].Exactly.Count = int64(size / 2)
			template(t, c, fmt.Sprintf("queue-cores-%d-%d", size, len(shapes)), claim)
			shapes = append(shapes, shape{template: fmt.Sprintf("queue-cores-%d-%d", size, len(shapes)), counts: cluster.Counts{Devices: int64(size / 2)}})
		}
		asks = append(asks, cluster.Ask{cluster.NeuronCore: strconv.Itoa(size)})
	}
	const name = "shares-beside-plugin"
	l := &claimLoad{t: t, c: c, name: name, shared: true}
	q := &queue{name: "plugin-beside-shares", node: nodes[1], asks: asks, count: count, lives: lives}
	random := rand.New(rand.NewSource(60)) // the same draws as the queue's
	for i := range count {
		pick := random.Intn(len(shapes))
		l.pods = append(l.pods, claimPod{name: fmt.Sprintf("%s-%s-%d", name, nodes[0].Name, i), node: nodes[0], shape: shapes[pick],
			life: lives[0] + random.Intn(lives[1]-lives[0]+1)})
	}
	var plugin outcome
	podTimes := watchPods(t, c, "queue in ("+name+", "+q.name+")")
	begin, pluginBegin := time.Now(), time.Time{}
	o := l.run(10*time.Minute, func() {
		pluginBegin = time.Now()
		plugin = runQueues(t, c, 10*time.Minute, q)[0]
	})
	l.expectKept(o)
	if len(plugin.refused) > 0 {
		t.Errorf("%s: %d refused, the first: %s", q.node.Name, len(plugin.refused), plugin.refused[0].Status.Message)
	}
	expectGiven(t, q.node, plugin.ended)
	claims, plugins := lastEnd(nodes[0], slices.Collect(maps.Values(o.ended))).Sub(begin), lastEnd(nodes[1], plugin.ended).Sub(pluginBegin)
	figure(t, "queue of %d with shares: %d refused, drained in %v, %.2f of the device plugin's %v", count, len(l.pods)-len(o.ended),
		claims.Round(100*time.Millisecond), claims.Seconds()/plugins.Seconds(), plugins.Round(100*time.Millisecond))
	figureSteps(t, nodes[0], slices.Collect(maps.Values(o.ended)), podTimes, l)
	figureSteps(t, nodes[1], plugin.ended, podTimes, nil)
	if claims > plugins*6/5 {
		t.Errorf("the queue took %v through claims, %v through the device plugin", claims, plugins)
	}
	expectNothingPrepared(t, nodes[0])
}

// lastEnd is when the last of these pods ended, by its probe.
func lastEnd(n *cluster.Node, pods []*core.Pod) time.Time {
	var last time.Time
	for _, pod := range pods {
		if _, ended := n.ReportTimes(pod.Name, "main"); ended.After(last) {
			last = ended
		}
	}
	return last
}

// podTimes is when pods were seen bound to a node, and when ended, by their names.
type podTimes struct {
	mu           sync.Mutex
	bound, ended map[string]time.Time
}

// watchPods begins such a watch, which ends with the test.
func watchPods(t *testing.T, c *cluster.Cluster, selector string) *podTimes {
	t.Helper()
	p := &podTimes{bound: map[string]time.Time{}, ended: map[string]time.Time{}}
	begin := func(ctx context.Context) (watch.Interface, error) {
		return c.Client.CoreV1().Pods("default").Watch(ctx, meta.ListOptions{LabelSelector: selector})
	}
	go cluster.Watched(t.Context(), begin, func(event watch.Event) {
		pod, is := event.Object.(*core.Pod)
		if !is {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if _, was := p.bound[pod.Name]; !was && pod.Spec.NodeName != "" {
			p.bound[pod.Name] = time.Now()
		}
		if phase := pod.Status.Phase; phase == core.PodSucceeded || phase == core.PodFailed {
			if _, was := p.ended[pod.Name]; !was {
				p.ended[pod.Name] = time.Now()
			}
		}
	})
	return p
}

// figureSteps prints what a pod's life took beside its container's, which is what hardware waits for: the medians.
func figureSteps(t *testing.T, n *cluster.Node, pods []*core.Pod, seen *podTimes, l *claimLoad) {
	t.Helper()
	steps := map[string][]time.Duration{}
	add := func(step string, from, to time.Time) {
		if !from.IsZero() && !to.IsZero() {
			steps[step] = append(steps[step], to.Sub(from))
		}
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for _, pod := range pods {
		began, ended := n.ReportTimes(pod.Name, "main")
		add("bound to running", seen.bound[pod.Name], began)
		add("end to seen", ended, seen.ended[pod.Name])
		if l != nil {
			add("allocated to bound", l.taken[string(pod.UID)], seen.bound[pod.Name])
			add("seen to claim free", seen.ended[pod.Name], l.freed[string(pod.UID)])
		}
	}
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		slices.Sort(steps[step])
		figure(t, "%s: %s %v (of %d)", n.Name, step, steps[step][len(steps[step])/2].Round(time.Millisecond), len(steps[step]))
	}
}

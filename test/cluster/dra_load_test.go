package scenarios

import (
	"context"
	"fmt"
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
	"neuron-agent.test/cluster/judge"
)

// claimPod is one of many pods at once: a claim of a template, or extended resources.
type claimPod struct {
	name  string
	node  *cluster.Node
	shape shape       // with a template
	ask   cluster.Ask // without
	life  int         // seconds
}

// claimLoad runs such pods and remembers what the scheduler chose for each, since claims go with their pods.
type claimLoad struct {
	t    *testing.T
	c    *cluster.Cluster
	name string // of the label "queue"
	pods []claimPod
	// Claims share devices by their cores: which cores is seen on the nodes.
	shared bool

	mu     sync.Mutex
	claims map[string]*resource.ResourceClaim // by the uid of the pod that it was made for
	shares map[string]map[int][]int           // places by the uid of the claim and the device
	taken  map[string]time.Time               // when the claim was seen allocated, by the uid of the pod
	freed  map[string]time.Time               // and when not any more
}

// loadOutcome is what became of them.
type loadOutcome struct {
	took    time.Duration
	ended   map[string]*core.Pod // by name
	history *judge.History
}

// run makes all pods, calls meanwhile once some of them run, and waits until all have ended.
func (l *claimLoad) run(limit time.Duration, meanwhile func()) loadOutcome {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	watching := sync.WaitGroup{}
	l.claims, l.shares = map[string]*resource.ResourceClaim{}, map[string]map[int][]int{}
	l.taken, l.freed = map[string]time.Time{}, map[string]time.Time{}
	watching.Go(func() { l.watchClaims(ctx) })
	if l.shared {
		watching.Go(func() { l.watchShares(ctx) })
	}
	defer func() { cancel(); watching.Wait() }()
	selector := "queue=" + l.name
	l.t.Cleanup(func() {
		l.c.Kubectl(l.t, "delete", "pods", "--selector", selector, "--wait=false", "--grace-period=1")
		l.c.ExpectNoPods(l.t, "default", selector)
	})
	defer func() {
		if l.t.Failed() {
			output, _ := l.c.TryKubectl("get", "pods,resourceclaims", "-o", "wide")
			l.t.Log(output)
			output, _ = l.c.TryKubectl("describe", "pods", "--selector", selector) // conditions and events: why they wait
			l.t.Log(output)
		}
	}()
	begin := time.Now()
	for _, p := range l.pods {
		l.create(p)
	}
	o := loadOutcome{ended: map[string]*core.Pod{}}
	if meanwhile != nil {
		l.c.Follow(l.t, limit, "default", selector, func(pod *core.Pod) bool { return pod.Status.Phase == core.PodRunning })
		meanwhile()
	}
	l.c.Follow(l.t, limit, "default", selector, func(pod *core.Pod) bool {
		if phase := pod.Status.Phase; phase == core.PodSucceeded || phase == core.PodFailed {
			o.ended[pod.Name] = pod
			o.took = time.Since(begin)
		}
		return len(o.ended) == len(l.pods)
	})
	o.history = l.history(o)
	return o
}

func (l *claimLoad) create(p claimPod) {
	l.t.Helper()
	w := cluster.One(p.name, p.ask)
	if p.shape.template != "" {
		w = w.WithClaims(map[string]string{"devices": p.shape.template})
	}
	w.Life, w.Node = strconv.Itoa(p.life), p.node.Name
	template := w.PodTemplate()
	template.Spec.RestartPolicy = core.RestartPolicyOnFailure // a pod that a reboot interrupts starts again
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: p.name, Labels: map[string]string{"queue": l.name}}, Spec: template.Spec}
	if _, err := l.c.Client.CoreV1().Pods("default").Create(context.Background(), pod, meta.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// watchClaims keeps the last allocated state of every claim that was made for a pod.
func (l *claimLoad) watchClaims(ctx context.Context) {
	begin := func(ctx context.Context) (watch.Interface, error) {
		return l.c.Client.ResourceV1().ResourceClaims("default").Watch(ctx, meta.ListOptions{})
	}
	cluster.Watched(ctx, begin, func(event watch.Event) {
		claim, is := event.Object.(*resource.ResourceClaim)
		if !is || len(claim.OwnerReferences) == 0 {
			return
		}
		pod := string(claim.OwnerReferences[0].UID)
		l.mu.Lock()
		defer l.mu.Unlock()
		_, was := l.taken[pod]
		_, is = l.freed[pod]
		if isFree := claim.Status.Allocation == nil || event.Type == watch.Deleted; isFree && was && !is {
			l.freed[pod] = time.Now()
		} else if !isFree && !was {
			l.taken[pod] = time.Now()
		}
		if claim.Status.Allocation != nil {
			l.claims[pod] = claim
		}
	})
}

// history is what ran when on what, from what the probes wrote and from the claims.
func (l *claimLoad) history(o loadOutcome) *judge.History {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	h := &judge.History{Machines: map[string]judge.Machine{}, Pods: map[string]*judge.Pod{}}
	for _, p := range l.pods {
		devices, perDevice := size(p.node)
		h.Machines[p.node.Name] = judge.Machine{Devices: devices, CoresPerDevice: perDevice, Verbs: p.node.Verbs()}
		pod := o.ended[p.name]
		began, ended := p.node.ReportTimes(p.name, "main")
		h.Pods[string(pod.UID)] = &judge.Pod{Name: p.name, UID: string(pod.UID), Node: p.node.Name, Ended: time.Now(),
			Succeeded: pod.Status.Phase == core.PodSucceeded}
		report, err := p.node.Report(p.name, "main")
		if err != nil {
			l.t.Errorf("%s: %v", p.name, err)
			continue
		}
		visible, set := report.Env["NEURON_RT_VISIBLE_CORES"]
		container := &judge.Container{Node: p.node.Name, Pod: p.name, UID: string(pod.UID), Name: "main", Reported: true,
			Span: judge.Span{Begin: began, End: ended}, Open: report.Open, Refused: report.Refused, Visible: visible, Set: set}
		held := l.heldOf(p, pod, devices, perDevice)
		container.Held, container.Ask = map[string][]string{}, map[string]int{}
		for name, ids := range held {
			container.Held[string(name)], container.Ask[string(name)] = ids, len(ids)
		}
		h.Containers = append(h.Containers, container)
	}
	return h
}

// heldOf is what the scheduler chose; it has to be what was asked for.
func (l *claimLoad) heldOf(p claimPod, pod *core.Pod, devices, perDevice int) cluster.Held {
	l.t.Helper()
	claim := l.claims[string(pod.UID)]
	if claim == nil {
		l.t.Errorf("%s: nobody saw its claim", p.name)
		return nil
	}
	held := cluster.Held{}
	for _, result := range claim.Status.Allocation.Devices.Results {
		share, err := l.shareOfResult(claim, result, perDevice)
		if err != nil {
			l.t.Errorf("%s: %v", p.name, err)
		}
		if share != nil {
			held[cluster.NeuronCore] = append(held[cluster.NeuronCore], share...)
			continue
		}
		if err := cluster.HoldDevice(held, result.Device, devices, perDevice); err != nil {
			l.t.Error(err)
		}
	}
	if p.shape.template != "" {
		want := p.shape
		if want.template == "group-or-device" && len(held[cluster.Neuron]) == 1 {
			want.counts.Devices = 1
		}
		if err := want.check(held, p.node.InstanceType, perDevice); err != nil {
			l.t.Errorf("%s: %v", p.name, err)
		}
		return held
	}
	for _, name := range []core.ResourceName{cluster.Neuron, cluster.NeuronCore, cluster.EFA} {
		if asked, _ := strconv.Atoi(p.ask[name]); asked != len(held[name]) {
			l.t.Errorf("%s: asked for %v, was given %v", p.name, p.ask, held)
		}
	}
	return held
}

// expectKept: everybody ended well, nothing was in two containers at once, and the judge saw enough to say so.
func (l *claimLoad) expectKept(o loadOutcome) *judge.Verdict {
	l.t.Helper()
	for name, pod := range o.ended {
		if pod.Status.Phase != core.PodSucceeded {
			l.t.Errorf("%s failed: %s %s", name, pod.Status.Reason, pod.Status.Message)
		}
	}
	verdict := judge.JudgeClaims(o.history)
	for _, violation := range verdict.Violations {
		l.t.Error(violation.What)
	}
	if verdict.Exact != len(l.pods) {
		l.t.Errorf("%d of %d containers were judged", verdict.Exact, len(l.pods))
	}
	return verdict
}

// expectReuse: expectKept, and some core or interface went from one container to another: else nothing was judged.
func (l *claimLoad) expectReuse(o loadOutcome) *judge.Verdict {
	l.t.Helper()
	verdict := l.expectKept(o)
	if verdict.Pairs == 0 {
		l.t.Error("nothing was used twice: this judged nothing")
	}
	return verdict
}

// expectUsed: expectReuse with its figure, and afterwards nothing is left on the nodes.
func (l *claimLoad) expectUsed(o loadOutcome, what string) {
	l.t.Helper()
	verdict := l.expectReuse(o)
	figure(l.t, "%d %s: %v, %d pairs of containers on one core or interface, %d violations", len(l.pods), what, o.took.Round(100*time.Millisecond),
		verdict.Pairs, len(verdict.Violations))
	for _, n := range l.nodes() {
		expectNothingPrepared(l.t, n)
	}
}

// shapesNamed are those of a trn1.32xlarge with these templates.
func shapesNamed(templates ...string) []shape {
	var shapes []shape
	for _, name := range templates {
		at := slices.IndexFunc(shapesOfTrn1, func(s shape) bool { return s.template == name })
		if at < 0 {
			panic("no shape is named " + name)
		}
		shapes = append(shapes, shapesOfTrn1[at])
	}
	return shapes
}

// drawClaims draws pods of all kinds for a node.
func drawClaims(random *rand.Rand, prefix string, n *cluster.Node, count int, lives [2]int, shapes []shape) []claimPod {
	var pods []claimPod
	asks := []cluster.Ask{{cluster.Neuron: "1"}, {cluster.Neuron: "2", cluster.EFA: "1"}, {cluster.NeuronCore: "1"}, {cluster.NeuronCore: "5"}}
	if pools[n.InstanceType]["efa"] == 0 {
		asks = slices.Delete(asks, 1, 2)
	}
	for i := range count {
		p := claimPod{name: fmt.Sprintf("%s-%s-%d", prefix, n.Name, i), node: n, life: lives[0] + random.Intn(lives[1]-lives[0]+1)}
		if pick := random.Intn(len(shapes) + len(asks)); pick < len(shapes) {
			p.shape = shapes[pick]
		} else {
			p.ask = asks[pick-len(shapes)]
		}
		pods = append(pods, p)
	}
	return pods
}

var everyTemplate = strings.Fields("neuron-1 neuron-2 neuron-4 neuron-8 neuron-16-efa-8 cores-3 cores-2-together group-of-4 group-or-device " +
	"group-of-4-efa-1 efa-1")

// TestRandomClaims: pods by the hundred, claims and extended resources of all kinds, on a busy node; some on Inferentia 1 and 2 first.
func TestRandomClaims(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, trn1DRA, inf2DRA, inf1DRA)
	n, lives := nodes[0], [2]int{1, 3}
	startDriver(t, c, nodes, partitioned, unmodified)
	applyExamples(t, c)
	count, random := shortOrDeep(36, 400), rand.New(rand.NewSource(1))
	t.Run("Inferentia", func(t *testing.T) {
		last := len(shapesOfInferentia) - 1
		pods := append(drawClaims(rand.New(rand.NewSource(2)), "random", nodes[1], count/7, lives, shapesOfInferentia),
			drawClaims(rand.New(rand.NewSource(3)), "random", nodes[2], count/14, lives, shapesOfInferentia[:last])...)
		l := &claimLoad{t: t, c: c, name: "random-inferentia", pods: pods}
		o := l.run(5*time.Minute, nil)
		figure(t, "%d random claims on inf2.48xlarge and inf1.6xlarge: %v, %d pairs of containers on one core or interface", len(pods),
			o.took.Round(100*time.Millisecond), l.expectKept(o).Pairs)
		expectNothingPrepared(t, nodes[1])
		expectNothingPrepared(t, nodes[2])
	})
	l := &claimLoad{t: t, c: c, name: "random", pods: drawClaims(random, "random", n, count, lives, shapesNamed(everyTemplate...))}
	l.expectUsed(l.run(15*time.Minute, nil), "random claims on one trn1.32xlarge")
}

// TestClaimQueueOf60: the queue of queue_test.go, mixed and unmodified, is refused nowhere and drained as fast as the device plugin
// drains the same amounts asked for under one name.
func TestClaimQueueOf60(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, trn1DRA, cluster.Trn1)
	startDriver(t, c, nodes[:1], partitioned, unmodified)
	c.StartAgent(t, cluster.DefaultAgent(t))
	expectOffered(t, nodes[1], wholeTrn1)
	mixed := withEFA(append(asksFor(cluster.Neuron, 1, 1, 2, 2, 4, 8), asksFor(cluster.NeuronCore, 1, 1, 2, 2, 4, 8)...))
	one := withEFA(append(asksFor(cluster.Neuron, 1, 1, 2, 2, 4, 8), asksFor(cluster.NeuronCore, 1, 1, 2, 2, 4, 8)...))
	for _, ask := range one { // the same silicon, asked for as cores
		if devices, _ := strconv.Atoi(ask[cluster.Neuron]); devices > 0 {
			delete(ask, cluster.Neuron)
			ask[cluster.NeuronCore] = strconv.Itoa(2 * devices)
		}
	}
	const name = "claims-beside-plugin" // both at the same time, so that whatever else the machine does slows both
	queues := []*queue{{name: name, node: nodes[0], asks: mixed}, {name: name, node: nodes[1], asks: one}}
	for _, q := range queues {
		q.count, q.lives = shortOrDeep(30, 60), shortOrDeep([2]int{1, 3}, [2]int{2, 9})
	}
	outcomes := runQueues(t, c, 10*time.Minute, queues...)
	for i, o := range outcomes {
		q := queues[i]
		figure(t, "queue of %d, lives of %d to %d s, %s: %d refused, drained in %v", q.count, q.lives[0], q.lives[1], q.node.Name,
			len(o.refused), o.took.Round(100*time.Millisecond))
		if len(o.refused) > 0 {
			t.Errorf("%s: %d refused, the first: %s", q.node.Name, len(o.refused), o.refused[0].Status.Message)
		}
		expectGiven(t, q.node, o.ended)
	}
	claims, plugin := outcomes[0].took, outcomes[1].took
	figure(t, "queue of %d: claims took %.2f of the device plugin's time", queues[0].count, claims.Seconds()/plugin.Seconds())
	if claims > plugin*3/2 {
		t.Errorf("the queue took %v through claims, %v through the device plugin", claims, plugin)
	}
	expectNothingPrepared(t, nodes[0])
}

// expectNothingPrepared: once all pods have ended no CDI file of a claim is left.
func expectNothingPrepared(t *testing.T, n *cluster.Node) {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, n.Name+": nothing is prepared", func() error {
		files, err := n.CDIFiles()
		if err == nil && len(files) > 0 {
			err = fmt.Errorf("%d files are there: %v", len(files), files)
		}
		return err
	})
}

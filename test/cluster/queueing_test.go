package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/cluster/judge"
)

// Scenarios of queueing systems: test/deep.sh --only queues. cluster/system.go says how one is added.

var wholeNode = cluster.Ask{cluster.Neuron: "16", cluster.EFA: "8"}

// startFour starts the agent on four nodes, and watches until the end of the test for pods that a kubelet refuses.
func startFour(t *testing.T, c *cluster.Cluster) []*cluster.Node {
	t.Helper()
	return startNodes(t, c, 4, cluster.Trn1, wholeTrn1)
}

func startNodes(t *testing.T, c *cluster.Cluster, count int, kind cluster.Spec, whole cluster.Counts) []*cluster.Node {
	t.Helper()
	var specs []cluster.Spec
	for i := range count {
		specs = append(specs, cluster.Spec{Name: fmt.Sprintf("%s-%d", kind.Name, i), InstanceType: kind.InstanceType})
	}
	nodes := c.Nodes(t, specs...)
	c.Apply(t, cluster.Manifest("static/neuron-agent.yaml"))
	for _, n := range nodes {
		n.ExpectAllocatable(t, whole)
	}
	watchRefusals(t, c)
	return nodes
}

func watchRefusals(t *testing.T, c *cluster.Cluster) {
	ctx, cancel := context.WithCancel(context.Background())
	refused, seen, done := map[string]string{}, map[string]bool{}, make(chan struct{})
	var mu sync.Mutex
	go func() {
		defer close(done)
		pods := c.Client.CoreV1().Pods("default")
		cluster.Watched(ctx, func(ctx context.Context) (watch.Interface, error) { return pods.Watch(ctx, meta.ListOptions{}) }, func(e watch.Event) {
			pod, is := e.Object.(*core.Pod)
			if !is {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			seen[string(pod.UID)] = true
			if reason := pod.Status.Reason; strings.HasSuffix(reason, "AdmissionError") || strings.HasPrefix(reason, "OutOf") {
				refused[pod.Name] = reason + " " + pod.Status.Message
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if len(refused) > 0 || len(seen) == 0 {
			t.Errorf("of %d pods were refused: %v", len(seen), refused)
		}
		figure(t, "queueing: %d pods, %d refused", len(seen), len(refused))
	})
}

// submission is a spec of queueing/SYSTEM, and the pods that come of it.
type submission struct {
	system, file string
	name         string // instead of the name in the file; empty: as it is
	selector     string // of its pods
	life         string // of the probes; empty: stay; "fail": who is ended fails, as torchrun does, others succeed
	// Adjust changes the first object further; nil: the spec is as published.
	adjust func(object map[string]any)
}

// submit applies a spec with the probe in place of image and command. withdraw deletes it, and so does the end of the test.
func submit(t *testing.T, c *cluster.Cluster, s submission) (withdraw func()) {
	t.Helper()
	text, err := os.ReadFile(cluster.SystemFile(s.system, s.file))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := cluster.ReadObjects(text)
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for i, object := range objects {
		if i == 0 && s.name != "" {
			object.SetName(s.name)
		}
		if i == 0 && s.adjust != nil {
			s.adjust(object.Object)
		}
		replacePrograms(object.Object, s.life)
		one, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, "---\n"...), append(one, '\n')...)
	}
	path := filepath.Join(t.TempDir(), s.file)
	if err := os.WriteFile(path, all, 0o644); err != nil {
		t.Fatal(err)
	}
	withdraw = func() {
		c.Kubectl(t, "delete", "--ignore-not-found", "--wait", "--timeout=60s", "-f", path)
		if s.selector != "" {
			c.ExpectNoPods(t, "default", s.selector)
		}
	}
	t.Cleanup(withdraw)
	c.Kubectl(t, "create", "-f", path)
	return withdraw
}

func jobSelector(name string) string { return "batch.kubernetes.io/job-name=" + name }

// replacePrograms puts the probe into every pod template of an object.
func replacePrograms(value any, life string) {
	switch value := value.(type) {
	case map[string]any:
		if containers, is := value["containers"].([]any); is {
			value["terminationGracePeriodSeconds"], value["dnsPolicy"] = 1, "Default"
			out := map[string]any{"name": "out", "hostPath": map[string]any{"path": "/var/lib/probe"}}
			value["volumes"] = added(value["volumes"], out)
			for _, container := range containers {
				replaceProgram(container.(map[string]any), life)
			}
			before, _ := value["initContainers"].([]any)
			for _, container := range before {
				replaceProgram(container.(map[string]any), "once")
			}
			return
		}
		for _, inner := range value {
			replacePrograms(inner, life)
		}
	case []any:
		for _, inner := range value {
			replacePrograms(inner, life)
		}
	}
}

func replaceProgram(container map[string]any, life string) {
	if life == "" {
		life = "stay"
	}
	delete(container, "args")
	container["image"], container["imagePullPolicy"] = cluster.ProbeImage, "Never"
	program := []any{"/probe", container["name"], life}
	if life == "fail" { // a first process without a handler gets no SIGTERM
		program = []any{"/bin/busybox", "sh", "-c", fmt.Sprintf("/probe %s stay; exit 1", container["name"])}
	}
	container["command"] = append(wrapper(container["command"]), program...)
	name := map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}
	container["env"] = added(container["env"], map[string]any{"name": "PROBE_POD", "valueFrom": name})
	container["volumeMounts"] = added(container["volumeMounts"], map[string]any{"name": "out", "mountPath": "/out"})
}

// wrapper is what of a command ends in the program: sh -c '… exec "$@"' sh.
func wrapper(command any) []any {
	words, _ := command.([]any)
	if len(words) < 4 || !strings.Contains(fmt.Sprint(words[2]), `exec "$@"`) {
		return nil
	}
	return append([]any{"/bin/busybox"}, words[:4]...)
}

func added(list any, one map[string]any) []any {
	all, _ := list.([]any)
	return append(all[:len(all):len(all)], one)
}

// rank is a pod that runs, and what it was given.
type rank struct {
	pod    core.Pod
	report cluster.Report
}

// awaitRunning waits until exactly so many pods are selected and run, none of them one of before.
func awaitRunning(t *testing.T, c *cluster.Cluster, selector string, count int, before ...rank) []core.Pod {
	t.Helper()
	old := map[string]bool{}
	for _, r := range before {
		old[string(r.pod.UID)] = true
	}
	var pods []core.Pod
	cluster.Eventually(t, cluster.Patience, fmt.Sprintf("%d ranks of %s run", count, selector), func() error {
		all, err := c.Pods("default", selector)
		pods = nil
		for _, pod := range all {
			if pod.Status.Phase == core.PodRunning && pod.DeletionTimestamp == nil && !old[string(pod.UID)] {
				pods = append(pods, pod)
			}
		}
		if err == nil && (len(pods) != count || len(all) != count) {
			err = fmt.Errorf("%d run of %d: %s", len(pods), len(all), places(all))
		}
		return err
	})
	return pods
}

// awaitRanks is awaitRunning, and judges what the pods were given. ask is of one pod's first container; with whole nodes no two are on one.
func awaitRanks(t *testing.T, c *cluster.Cluster, selector string, count int, ask cluster.Ask, before ...rank) []rank {
	t.Helper()
	var ranks []rank
	for _, pod := range awaitRunning(t, c, selector, count, before...) {
		ranks = append(ranks, rank{pod, awaitReport(t, c, &pod)})
	}
	for _, r := range ranks {
		_, perDevice := size(r.report.Node)
		r.report.ExpectGiven(t, ask, perDevice)
	}
	expectNothingTwice(t, ranks)
	return ranks
}

// awaitClaimRanks is awaitRanks for pods that are given that much by claims.
func awaitClaimRanks(t *testing.T, c *cluster.Cluster, selector string, count int, want cluster.Counts, before ...rank) []rank {
	t.Helper()
	var ranks []rank
	for _, pod := range awaitRunning(t, c, selector, count, before...) {
		r := rank{pod, awaitReport(t, c, &pod)}
		devices, perDevice := size(r.report.Node)
		held, err := c.ClaimedBy(&pod, devices, perDevice)
		if err != nil {
			t.Fatal(err)
		}
		r.report.Held = held[r.report.Container]
		if got := cluster.CountsOf(r.report.Held); got != want {
			t.Errorf("%s holds %+v, want %+v", pod.Name, got, want)
		}
		r.report.ExpectSeen(t, perDevice)
		ranks = append(ranks, r)
	}
	expectNothingTwice(t, ranks)
	return ranks
}

// awaitReport is ReportsOf for pods that may have the name of an earlier one.
func awaitReport(t *testing.T, c *cluster.Cluster, pod *core.Pod) cluster.Report {
	t.Helper()
	var report cluster.Report
	cluster.Eventually(t, cluster.Patience, pod.Name+" reports anew", func() error {
		report = c.ReportsOf(t, "default", pod.Name)[0]
		if began, _ := report.Node.ReportTimes(pod.Name, report.Container); began.Before(pod.CreationTimestamp.Time) {
			return fmt.Errorf("its report is of %v", began)
		}
		return nil
	})
	return report
}

func places(pods []core.Pod) string {
	var all []string
	for _, pod := range pods {
		all = append(all, fmt.Sprintf("%s on %q %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase))
	}
	return strings.Join(all, ", ")
}

// expectNothingTwice: no core and no interface is in two of the ranks, which run at the same time.
func expectNothingTwice(t *testing.T, ranks []rank) {
	t.Helper()
	h := &judge.History{Machines: map[string]judge.Machine{}, Pods: map[string]*judge.Pod{}}
	now := judge.Span{Begin: time.Now(), End: time.Now().Add(time.Second)}
	for _, r := range ranks {
		devices, perDevice := size(r.report.Node)
		h.Machines[r.report.Node.Name] = judge.Machine{Devices: devices, CoresPerDevice: perDevice, Verbs: r.report.Node.Verbs()}
		visible, set := r.report.Env["NEURON_RT_VISIBLE_CORES"]
		one := &judge.Container{Node: r.report.Node.Name, Pod: r.pod.Name, UID: string(r.pod.UID), Name: r.report.Container, Span: now,
			Reported: true, Open: r.report.Open, Refused: r.report.Refused, Visible: visible, Set: set,
			Ask: map[string]int{}, Held: map[string][]string{}}
		for name, ids := range r.report.Held {
			one.Ask[string(name)], one.Held[string(name)] = len(ids), ids
		}
		h.Containers = append(h.Containers, one)
	}
	for _, violation := range judge.JudgeClaims(h).Violations {
		t.Error(violation.What)
	}
}

// expectNonePlaced: no pod that is selected has a node.
func expectNonePlaced(t *testing.T, c *cluster.Cluster, selector string) {
	t.Helper()
	pods, err := c.Pods("default", selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			t.Errorf("%s is on %s", pod.Name, pod.Spec.NodeName)
		}
	}
}

// drainRank drains the node of a rank: afterwards as many run as awaitRanks says, none of them there. uncordon lets pods on the node again, and
// the end of the test does.
func drainRank(t *testing.T, c *cluster.Cluster, what string, r rank, selector string, count int, ask cluster.Ask, before ...rank) (moved []rank, uncordon func()) {
	t.Helper()
	begin, node := time.Now(), r.pod.Spec.NodeName
	uncordon = func() { c.Kubectl(t, "uncordon", node) }
	t.Cleanup(uncordon)
	c.Kubectl(t, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
	moved = awaitRanks(t, c, selector, count, ask, before...)
	cluster.Figure(t, what, time.Since(begin))
	for _, other := range moved {
		if other.pod.Spec.NodeName == node {
			t.Errorf("%s is on %s", other.pod.Name, node)
		}
	}
	return moved, uncordon
}

// expectSomeWait waits until so many of the selected pods are refused by the scheduler for want of devices, and the others run.
func expectSomeWait(t *testing.T, c *cluster.Cluster, selector string, waiting int) {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, fmt.Sprintf("%d of %s wait", waiting, selector), func() error {
		pods, err := c.Pods("default", selector)
		if err != nil {
			return err
		}
		unplaced := 0
		for _, pod := range pods {
			if pod.Status.Phase == core.PodRunning {
				continue
			}
			if err := expectUnschedulable(&pod, "Insufficient "+string(cluster.Neuron)); err != nil {
				return err
			}
			unplaced++
		}
		if unplaced != waiting {
			return fmt.Errorf("%d wait: %s", unplaced, places(pods))
		}
		return nil
	})
}

const typedPage = "docs/workloads.md"

// typeRecipe types what the page has under a heading, with stand-ins for the images of its specs. Before the last line, which removes
// everything, so many pods hold what they asked for.
func typeRecipe(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node, heading, image, selector string, count int, want cluster.Counts) {
	t.Helper()
	for _, n := range nodes {
		n.AddStandIn(t, image)
	}
	lines := cluster.CodeLines(t, typedPage, heading)
	last := len(lines) - 1
	for _, line := range lines[:last] {
		c.Shell(t, line)
	}
	pods, err := c.Pods("default", selector)
	if err != nil || len(pods) != count {
		t.Fatalf("%d pods of %s: %v", len(pods), selector, err)
	}
	for _, n := range nodes {
		held, err := n.Holdings()
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods {
			if pod.Spec.NodeName != n.Name {
				continue
			}
			container := pod.Spec.Containers[0].Name
			mine := held["default/"+pod.Name+"/"+container]
			if len(pod.Spec.ResourceClaims) > 0 {
				devices, perDevice := size(n)
				claimed, err := c.ClaimedBy(&pod, devices, perDevice)
				if err != nil {
					t.Fatal(err)
				}
				mine = claimed[container]
			}
			if cluster.CountsOf(mine) != want {
				t.Errorf("%s holds %v, want %+v", pod.Name, mine, want)
			}
		}
	}
	c.Shell(t, lines[last])
	c.ExpectNoPods(t, "default", selector)
}

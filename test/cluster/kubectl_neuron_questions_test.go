package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/suite"
)

// asker asks kubectl neuron about pods drawn at random, and lets scheduler, kubelet and agent decide.
type asker struct {
	*testing.T
	c      *cluster.Cluster
	nodes  []*cluster.Node
	whole  map[string]core.ResourceList // allocatable, by node
	random *rand.Rand
	draw   func(*asker, *core.Pod)
	settle func()

	templates map[string]resource.DeviceClaim
	running   []*core.Pod // as they were made
	number    int
	fillers   int
	fits      int
	wrong     int
	unknown   map[string]bool // pods of the questions that plan or why answers with status 2
	lacks     map[string]int  // questions that did not fit, by what why finds
	carried   map[string]int  // changes, by kind
}

func newAsker(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node, draw func(*asker, *core.Pod)) *asker {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	a := &asker{T: t, c: c, nodes: nodes, random: rand.New(rand.NewPCG(seed, 0)), draw: draw, settle: func() {}, whole: map[string]core.ResourceList{},
		templates: map[string]resource.DeviceClaim{}, unknown: map[string]bool{}, lacks: map[string]int{}, carried: map[string]int{}}
	for _, n := range nodes {
		a.whole[n.Name] = allocatable(t, c, n)
	}
	return a
}

func allocatable(t *testing.T, c *cluster.Cluster, n *cluster.Node) core.ResourceList {
	t.Helper()
	node, err := c.Client.CoreV1().Nodes().Get(context.Background(), n.Name, meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node.Status.Allocatable
}

// settled waits before each question until the API server has what the kubelets count: where devices have two names, what one holds the
// other lacks with the next node status.
func (a *asker) settled(nodes []*cluster.Node) *asker {
	a.settle = func() {
		for _, n := range nodes {
			cluster.Eventually(a, cluster.Patience, n.Name+": the node status is that of the kubelet", func() error {
				kubelet, err := n.KubeletAllocatable()
				if err != nil {
					return err
				}
				if shown, err := n.Allocatable(); err != nil || shown != kubelet {
					return fmt.Errorf("%+v, the kubelet has %+v, %v", shown, kubelet, err)
				}
				return nil
			})
		}
	}
	return a
}

// needsQuestions skips what waits for a node status at each question, unless CLUSTER_DEEP or CLUSTER_QUESTIONS is set.
func needsQuestions(t *testing.T) {
	t.Helper()
	if os.Getenv("CLUSTER_QUESTIONS") == "" {
		needsDeep(t)
	}
}

// mostUnknown is the share of questions that may stay without an answer.
const mostUnknown = 0.05

// ask asks so many questions, or that share of CLUSTER_QUESTIONS. No answer may be wrong, and few may be "cannot tell".
func (a *asker) ask(count int, share float64) {
	if long, err := strconv.Atoi(os.Getenv("CLUSTER_QUESTIONS")); err == nil {
		count = int(share * float64(long))
	}
	defer func() {
		for _, pod := range a.running {
			a.c.DeletePod(a, "default", pod.Name)
		}
	}()
	for range count {
		a.question()
	}
	figure(a.T, "kubectl neuron: %d questions, %d fit, %d wrong, %d not answered; lacks %v; carried out %v", count, a.fits, a.wrong, len(a.unknown),
		a.lacks, a.carried)
	if most := max(1, int(mostUnknown*float64(count))); len(a.unknown) > most {
		a.Errorf("%d of %d questions are not answered, at most %d may be", len(a.unknown), count, most)
	}
}

func (a *asker) question() {
	a.number++
	n := a.nodes[a.random.IntN(len(a.nodes))]
	switch a.random.IntN(8) {
	case 0, 1:
		a.fill(n)
	case 2:
		a.empty(a.nodes[a.random.IntN(len(a.nodes))])
	}
	pod := made(fmt.Sprintf("question-%d", a.number), n)
	if a.random.IntN(2) == 0 {
		pod.Spec.NodeSelector = nil
	}
	a.draw(a, pod)
	if a.random.IntN(3) == 0 {
		a.addOrdinary(pod, a.drawOrdinary(n))
	}
	undo := a.hinder(n, pod)
	defer undo()
	a.awaitClaimsGone()
	a.settle()
	dump := filepath.Join(a.TempDir(), "fleet.tar.gz")
	kubectlNeuron(a.T, a.c, "dump", dump)
	var of []string // of the cluster itself, or of what the dump has read of it: quicker
	if a.number%4 > 0 {
		of = []string{"--from", dump}
	}
	text, status := askPlan(a.T, a.c, pod, of...)
	a.c.CreatePod(a, "default", pod)
	end := a.outcome(pod)
	held := heldBack(pod)
	switch {
	case status == 2:
		a.unknown[pod.Name] = true
		a.Logf("%s: not answered\n%s", describePod(pod), text)
	case held == "" && end.runs != (status == 0):
		a.isWrong(pod, dump, "kubectl neuron plan ends with %d, runs: %v, said of it: %s\n%s", status, end.runs, end.said, text)
	}
	if end.runs {
		a.fits++
		a.running = append(a.running, pod)
		a.expectPossible(pod, end.node, dump)
	} else {
		why := a.change(pod, end, dump)
		// plan counts it without what holds it back.
		named := slices.ContainsFunc(why.Changes, func(c whyChange) bool { return c.Kind == held })
		if held != "" && status < 2 && named != (status == 0) {
			a.isWrong(pod, dump, "plan ends with %d, why names %s: %v\n%s", status, held, named, text)
		}
	}
	for len(a.running) > 8 {
		a.c.DeletePod(a, "default", a.running[0].Name)
		a.running = a.running[1:]
	}
}

// heldBack is the kind of change without which no scheduler places the pod; "": one does.
func heldBack(pod *core.Pod) string {
	switch {
	case len(pod.Spec.SchedulingGates) > 0:
		return "gate_removed"
	case pod.Spec.SchedulerName != "":
		return "default_scheduler"
	}
	return ""
}

// made is a pod of a probe for this node.
func made(name string, n *cluster.Node) *core.Pod {
	template := onNode(name, n, nil).PodTemplate()
	pod := &core.Pod{TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = name
	return pod
}

// fill lets a pod without devices hold something of a node, where it fits.
func (a *asker) fill(n *cluster.Node) {
	a.fillers++
	pod := made(fmt.Sprintf("filler-%d", a.fillers), n)
	a.addOrdinary(pod, a.drawOrdinary(n))
	a.c.CreatePod(a, "default", pod)
	if a.outcome(pod).runs {
		a.running = append(a.running, pod)
	} else {
		a.c.DeletePod(a, "default", pod.Name)
	}
}

// isWrong counts an answer that scheduler, kubelet or agent contradict, and keeps beside the logs what it was about: the fleet before the
// pod, and the pod.
func (a *asker) isWrong(pod *core.Pod, dump, format string, arguments ...any) {
	a.Helper()
	a.wrong++
	a.Errorf("%s: %s", describePod(pod), fmt.Sprintf(format, arguments...))
	name := filepath.Join(os.Getenv("CLUSTER_LOGS"), strings.ReplaceAll(a.Name(), "/", "-")+"-"+pod.Name)
	manifest, err := json.Marshal(pod)
	fleet, unread := os.ReadFile(dump)
	err = errors.Join(err, unread, os.WriteFile(name+".tar.gz", fleet, 0o644), os.WriteFile(name+".json", manifest, 0o644))
	a.Logf("kept in %s.*, %v", name, err)
}

func describePod(pod *core.Pod) string {
	text := pod.Name
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		text += fmt.Sprintf(" %s %s", container.Name, describeAmounts(container.Resources.Requests, container.Resources.Limits))
	}
	for _, claim := range pod.Spec.ResourceClaims {
		text += " " + *claim.ResourceClaimTemplateName
	}
	return fmt.Sprintf("%s on %v", text, pod.Spec.NodeSelector)
}

// hinder puts something else than hardware in the way of some pods; the function takes it away from the node.
func (a *asker) hinder(n *cluster.Node, pod *core.Pod) func() {
	switch a.random.IntN(12) {
	case 0:
		a.c.Kubectl(a, "cordon", n.Name)
		return func() { a.c.Kubectl(a, "uncordon", n.Name) }
	case 1:
		a.c.Kubectl(a, "taint", "node", n.Name, "asked=no:NoSchedule")
		return func() { a.c.Kubectl(a, "taint", "node", n.Name, "asked-") }
	case 2:
		pod.Spec.SchedulingGates = []core.PodSchedulingGate{{Name: "example.com/later"}}
	case 3:
		pod.Spec.SchedulerName = "nobody"
	}
	return func() {}
}

// awaitClaimsGone: the claims that were made for pods end a moment after these.
func (a *asker) awaitClaimsGone() {
	cluster.Eventually(a, cluster.Patience, "claims of pods that are gone end", func() error {
		list, err := a.c.Client.ResourceV1().ResourceClaims("default").List(context.Background(), meta.ListOptions{})
		if err != nil {
			return err
		}
		for _, claim := range list.Items {
			owned := slices.ContainsFunc(claim.OwnerReferences, func(owner meta.OwnerReference) bool {
				return slices.ContainsFunc(a.running, func(pod *core.Pod) bool { return pod.Name == owner.Name })
			})
			if !owned {
				return fmt.Errorf("%s is there", claim.Name)
			}
		}
		return nil
	})
}

// podOutcome is what became of a pod: it runs on a node, or what the scheduler or the kubelet said.
type podOutcome struct {
	runs       bool
	node, said string
}

// outcome waits until the pod runs, or the scheduler or the node refuses it.
func (a *asker) outcome(pod *core.Pod) (end podOutcome) {
	if pod.Spec.SchedulerName != "" {
		return end // nothing is ever said of it
	}
	cluster.Eventually(a, cluster.Patience, pod.Name+" runs or is refused", func() error {
		now, err := a.c.Client.CoreV1().Pods("default").Get(context.Background(), pod.Name, meta.GetOptions{})
		if err != nil {
			return suite.Permanent(err)
		}
		end = podOutcome{runs: now.Status.Phase == core.PodRunning, node: now.Spec.NodeName}
		refused := now.Status.Phase == core.PodFailed
		if refused {
			end.said = now.Status.Reason + " " + now.Status.Message
		}
		for _, condition := range now.Status.Conditions {
			if condition.Type == core.PodScheduled && condition.Status == core.ConditionFalse && condition.Reason != "" {
				refused, end.said = true, condition.Message
			}
		}
		if !end.runs && !refused {
			return fmt.Errorf("phase %s on %q", now.Status.Phase, now.Spec.NodeName)
		}
		return nil
	})
	return end
}

// expectPossible: of the node that the scheduler chose plan does not say that the pod fits not.
func (a *asker) expectPossible(pod *core.Pod, node, dump string) {
	if pod.Spec.NodeSelector != nil {
		return
	}
	there := pod.DeepCopy()
	there.Spec.NodeSelector = map[string]string{core.LabelHostname: node}
	if text, status := askPlan(a.T, a.c, there, "--from", dump); status == 1 {
		a.isWrong(there, dump, "it runs there\n%s", text)
	}
}

var insufficient = regexp.MustCompile(`(\d+) Insufficient ([^ ,]+)`)

// expectSameLacks compares on how many nodes, of those that the pod's rules allow, too little of a resource is free, as why finds and as the
// scheduler says.
func (a *asker) expectSameLacks(pod *core.Pod, why whyAnswer, said, dump string) {
	said, _, _ = strings.Cut(said, "preemption:")
	if !strings.Contains(said, "nodes are available") {
		return // no node was tried, or one was chosen
	}
	says, finds := map[string]int{}, map[string]int{}
	for _, match := range insufficient.FindAllStringSubmatch(said, -1) {
		says[strings.TrimSuffix(match[2], ".")], _ = strconv.Atoi(match[1])
	}
	for _, group := range why.Nodes {
		if group.has("claim_missing", "class_unknown", "all_differ", "claim_full", "claim_limit") {
			return // the scheduler ends with an error
		}
		if group.has("not_ready", "unschedulable", "taint", "label") {
			continue
		}
		for _, one := range group.Obstacles {
			if isCounted(one) && !(one.Kind == "no_resource" && a.isServedByClass(one.Name)) {
				finds[one.Name] += len(group.Nodes)
			}
		}
	}
	if !maps.Equal(says, finds) {
		a.isWrong(pod, dump, "too little is free on so many nodes: %v, the scheduler says %v: %s", finds, says, said)
	}
}

// isCounted: the scheduler compares numbers.
func isCounted(one whyObstacle) bool {
	switch one.Kind {
	case "too_little", "no_resource":
		return true
	case "too_few":
		return one.Detail != "refused"
	case "other_mode":
		return strings.Contains(one.Name, "/")
	}
	return false
}

// isServedByClass: where a class has the name of a resource, the scheduler looks for devices on nodes that do not list it.
func (a *asker) isServedByClass(name string) bool {
	classes, err := a.c.Client.ResourceV1().DeviceClasses().List(context.Background(), meta.ListOptions{})
	if err != nil {
		a.Fatal(err)
	}
	return slices.ContainsFunc(classes.Items, func(class resource.DeviceClass) bool {
		return class.Spec.ExtendedResourceName != nil && *class.Spec.ExtendedResourceName == name
	})
}

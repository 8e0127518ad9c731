package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
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
	random *rand.Rand
	draw   func(*asker, *core.Pod)
	settle func()

	templates map[string]resource.DeviceClaim
	running   []*core.Pod // as they were made
	number    int
	fits      int
	unknown   map[string]bool // pods of the questions that plan or why answers with status 2
	carried   map[string]int  // changes, by kind
}

func newAsker(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node, draw func(*asker, *core.Pod)) *asker {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return &asker{T: t, c: c, nodes: nodes, random: rand.New(rand.NewPCG(seed, 0)), draw: draw, settle: func() {},
		templates: map[string]resource.DeviceClaim{}, unknown: map[string]bool{}, carried: map[string]int{}}
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
	figure(a.T, "kubectl neuron: %d questions, %d fit, %d not answered, changes carried out: %v", count, a.fits, len(a.unknown), a.carried)
	if most := max(1, int(mostUnknown*float64(count))); len(a.unknown) > most {
		a.Errorf("%d of %d questions are not answered, at most %d may be", len(a.unknown), count, most)
	}
}

func (a *asker) question() {
	a.number++
	n := a.nodes[a.random.IntN(len(a.nodes))]
	template := onNode(fmt.Sprintf("question-%d", a.number), n, nil).PodTemplate()
	pod := &core.Pod{TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = fmt.Sprintf("question-%d", a.number)
	if a.random.IntN(4) == 0 {
		pod.Spec.NodeSelector = nil
	}
	a.draw(a, pod)
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
	runs := a.outcome(pod)
	served := pod.Spec.SchedulerName == ""
	switch {
	case status == 2:
		a.unknown[pod.Name] = true
		a.Logf("%s: not answered\n%s", describePod(pod), text)
	case served && runs != (status == 0):
		a.Errorf("%s: kubectl neuron plan ends with %d, runs: %v\n%s", describePod(pod), status, runs, text)
		a.keep(dump, pod)
	}
	if runs {
		a.fits++
		a.running = append(a.running, pod)
	} else {
		a.change(pod)
	}
	for len(a.running) > 5 {
		a.c.DeletePod(a, "default", a.running[0].Name)
		a.running = a.running[1:]
	}
}

// keep leaves beside the logs what a wrong answer was about: the fleet before the pod, and the pod.
func (a *asker) keep(dump string, pod *core.Pod) {
	name := filepath.Join(os.Getenv("CLUSTER_LOGS"), strings.ReplaceAll(a.Name(), "/", "-")+"-"+pod.Name)
	manifest, err := json.Marshal(pod)
	fleet, unread := os.ReadFile(dump)
	err = errors.Join(err, unread, os.WriteFile(name+".tar.gz", fleet, 0o644), os.WriteFile(name+".json", manifest, 0o644))
	a.Logf("kept in %s.*, %v", name, err)
}

func describePod(pod *core.Pod) string {
	text := pod.Name
	for _, container := range pod.Spec.Containers {
		text += fmt.Sprintf(" %v", container.Resources.Limits)
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

// outcome waits until the pod runs, or the scheduler or the node refuses it.
func (a *asker) outcome(pod *core.Pod) (runs bool) {
	if pod.Spec.SchedulerName != "" {
		return false // nothing is ever said of it
	}
	cluster.Eventually(a, cluster.Patience, pod.Name+" runs or is refused", func() error {
		now, err := a.c.Client.CoreV1().Pods("default").Get(context.Background(), pod.Name, meta.GetOptions{})
		if err != nil {
			return suite.Permanent(err)
		}
		runs = now.Status.Phase == core.PodRunning
		refused := now.Status.Phase == core.PodFailed
		for _, condition := range now.Status.Conditions {
			refused = refused || condition.Type == core.PodScheduled && condition.Status == core.ConditionFalse && condition.Reason != ""
		}
		if !runs && !refused {
			return fmt.Errorf("phase %s on %q", now.Status.Phase, now.Spec.NodeName)
		}
		return nil
	})
	return runs
}

// change carries one of the changes out that why names for a pod that does not run, and the pod then has to run.
func (a *asker) change(pod *core.Pod) {
	why, status := askWhy(a.T, a.c, pod.Name)
	if status == 0 {
		a.Errorf("%s does not run, why says %+v", describePod(pod), why)
	} else if status != 1 {
		a.unknown[pod.Name] = true
		a.Logf("%s does not run, why does not say the reason: %+v", describePod(pod), why)
	}
	// TestKubectlNeuronLNC has this one.
	possible := slices.DeleteFunc(why.Changes, func(c whyChange) bool { return c.Kind == "other_lnc" })
	if len(possible) == 0 {
		a.c.DeletePod(a, "default", pod.Name)
		return
	}
	// Kinds that were seldom carried out first.
	c := possible[a.random.IntN(len(possible))]
	for _, other := range possible {
		if a.carried[other.Kind] < a.carried[c.Kind] {
			c = other
		}
	}
	a.carried[c.Kind]++
	a.Logf("%s: %s", describePod(pod), c.Sentence)
	next := pod.DeepCopy()
	switch c.Kind {
	case "pods_ended":
		a.end(c.Pods...)
	case "pod_moved":
		moved := a.end(c.Pods...)[0].DeepCopy()
		moved.Name += "-m"
		moved.Spec.NodeSelector = map[string]string{core.LabelHostname: c.To}
		a.c.CreatePod(a, "default", moved)
		a.awaitRunning(moved.Name)
		a.running = append(a.running, moved)
	case "uncordon":
		a.c.Kubectl(a, "uncordon", c.Node)
	case "tolerate":
		key, value, effect := cutTaint(c.Value)
		next.Spec.Tolerations = append(next.Spec.Tolerations, core.Toleration{Key: key, Operator: core.TolerationOpEqual, Value: value, Effect: core.TaintEffect(effect)})
	case "gate_removed":
		next.Spec.SchedulingGates = nil
	case "default_scheduler":
		next.Spec.SchedulerName = ""
	case "fewer":
		a.askForFewer(next, c)
	case "claim_not_count":
		a.claimInstead(next)
	case "count_not_claim":
		a.countInstead(next)
	default:
		a.Fatalf("change %+v", c)
	}
	a.settle() // a pod that came before this may have been refused
	now, err := a.c.Client.CoreV1().Pods("default").Get(context.Background(), pod.Name, meta.GetOptions{})
	if err != nil {
		a.Fatal(err)
	}
	if again := c.Kind != "pods_ended" && c.Kind != "pod_moved" && c.Kind != "uncordon"; again || now.Status.Phase == core.PodFailed {
		a.c.DeletePod(a, "default", pod.Name)
		next.Name += "-c"
		a.c.CreatePod(a, "default", next)
	}
	a.awaitRunning(next.Name)
	a.running = append(a.running, next)
}

func (a *asker) awaitRunning(name string) {
	cluster.Eventually(a, cluster.Patience, name+" runs", func() error {
		now, err := a.c.Client.CoreV1().Pods("default").Get(context.Background(), name, meta.GetOptions{})
		if err != nil {
			return suite.Permanent(err)
		}
		if now.Status.Phase == core.PodFailed {
			return suite.Permanent(fmt.Errorf("%s: %s", now.Status.Reason, now.Status.Message))
		}
		if now.Status.Phase != core.PodRunning {
			return fmt.Errorf("phase %s on %q", now.Status.Phase, now.Spec.NodeName)
		}
		return nil
	})
}

func cutTaint(text string) (key, value, effect string) {
	pair, effect, _ := strings.Cut(text, ":")
	key, value, _ = strings.Cut(pair, "=")
	return key, value, effect
}

// end deletes pods, "default/question-3", and returns them as they were made.
func (a *asker) end(names ...string) (ended []*core.Pod) {
	for _, name := range names {
		at := slices.IndexFunc(a.running, func(pod *core.Pod) bool { return "default/"+pod.Name == name })
		if at < 0 {
			a.Fatalf("%s is none of the test's pods", name)
		}
		ended = append(ended, a.running[at])
		a.running = slices.Delete(a.running, at, at+1)
		a.c.DeletePod(a, "default", ended[len(ended)-1].Name)
	}
	return ended
}

func (a *asker) askForFewer(pod *core.Pod, c whyChange) {
	if c.Resource == "claim" {
		whole := a.templates[*pod.Spec.ResourceClaims[0].ResourceClaimTemplateName]
		claim := whole.DeepCopy()
		count, err := strconv.ParseInt(c.Value, 10, 64)
		if err != nil || len(claim.Requests) != 1 {
			a.Fatalf("%+v of %+v", c, claim)
		}
		claim.Requests[0].Exactly.Count = count
		a.useClaim(pod, 0, *claim)
		return
	}
	for i := range pod.Spec.Containers {
		limits := pod.Spec.Containers[i].Resources.Limits
		if _, asks := limits[core.ResourceName(c.Resource)]; asks {
			limits[core.ResourceName(c.Resource)] = quantity(c.Value)
		}
	}
}

// useClaim gives the pod a claim, as the one at this place or one more.
func (a *asker) useClaim(pod *core.Pod, place int, claim resource.DeviceClaim) {
	name := fmt.Sprintf("asked-%d", len(a.templates))
	template(a.T, a.c, name, claim)
	a.templates[name] = claim
	if place < len(pod.Spec.ResourceClaims) {
		pod.Spec.ResourceClaims[place].ResourceClaimTemplateName = &name
		return
	}
	own := fmt.Sprintf("c%d", place)
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, core.PodResourceClaim{Name: own, ResourceClaimTemplateName: &name})
	for i := range pod.Spec.Containers {
		resources := &pod.Spec.Containers[i].Resources
		resources.Claims = append(resources.Claims, core.ResourceClaim{Name: own})
	}
}

var classServing = map[core.ResourceName]string{cluster.Neuron: "neuron.aws.com", cluster.NeuronCore: "core.neuron.aws.com", cluster.EFA: "efa.neuron.aws.com"}

func (a *asker) claimInstead(pod *core.Pod) {
	var claim resource.DeviceClaim
	for i := range pod.Spec.Containers {
		for name, class := range classServing {
			limits := pod.Spec.Containers[i].Resources.Limits
			if asked, asks := limits[name]; asks {
				claim.Requests = append(claim.Requests, exactly(fmt.Sprintf("r%d", len(claim.Requests)), class, asked.Value()))
				delete(limits, name)
				delete(pod.Spec.Containers[i].Resources.Requests, name)
			}
		}
	}
	a.useClaim(pod, 0, claim)
}

func (a *asker) countInstead(pod *core.Pod) {
	counts := core.ResourceList{}
	for _, own := range pod.Spec.ResourceClaims {
		for _, request := range a.templates[*own.ResourceClaimTemplateName].Requests {
			for name, class := range classServing {
				if class == request.Exactly.DeviceClassName {
					sum := counts[name]
					sum.Add(counted(request.Exactly.Count))
					counts[name] = sum
				}
			}
		}
	}
	pod.Spec.ResourceClaims = nil
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Resources.Claims = nil
	}
	pod.Spec.Containers[0].Resources.Limits = counts
}

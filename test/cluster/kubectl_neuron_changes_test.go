package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/suite"
)

// The changes that kubectl neuron why names, carried out.

// change compares what why says of a pod that does not run with what was said of it, and carries out the changes that why names, each as
// things were before the others; the pod then has to run. It returns what why says first.
func (a *asker) change(pod *core.Pod, end podOutcome, dump string) whyAnswer {
	first, status := askWhy(a.T, a.c, pod.Name)
	why := first
	switch status {
	case 0:
		a.isWrong(pod, dump, "it does not run, why says %+v", why)
	case 1:
		a.expectSameLacks(pod, why, end.said, dump)
	default:
		a.unknown[pod.Name] = true
		a.Logf("%s does not run, why does not say the reason: %+v", describePod(pod), why)
	}
	lacks := lacksOf(why)
	for _, lack := range lacks {
		a.lacks[lack]++
	}
	a.Logf("%s: %v, %d changes %v", describePod(pod), lacks, len(why.Changes), why.Notes)
	defer func() {
		if !slices.Contains(a.running, pod) {
			a.c.DeletePod(a, "default", pod.Name)
		}
	}()
	done := map[string]bool{}
	chosen := a.choose(why.Changes, done)
	for len(chosen) > 0 {
		c := chosen[0]
		chosen = chosen[1:]
		done[keyOf(c)] = true
		next, undo := a.carryOut(pod, c, dump)
		if next == nil {
			return first
		}
		if len(chosen) == 0 {
			a.running = append(a.running, next)
			return first
		}
		undo()
		if !isInPlace(c) {
			continue
		}
		// The pod itself ran: it is made again, and why is asked again, since others may have other devices now.
		a.awaitClaimsGone()
		a.settle()
		pod = renamed(pod, "b")
		a.c.CreatePod(a, "default", pod)
		if a.outcome(pod).runs { // those that were made again have left it room
			a.running = append(a.running, pod)
			return first
		}
		why, _ = askWhy(a.T, a.c, pod.Name)
		chosen = a.choose(why.Changes, done)
	}
	return first
}

// lacksOf are what a pod lacks on the nodes that it may be on, "taint" or "too_little cpu".
func lacksOf(why whyAnswer) (all []string) {
	for _, group := range why.Nodes {
		if group.has("label") {
			continue
		}
		for _, one := range group.Obstacles {
			name := one.Kind
			if one.Kind == "too_little" || one.Kind == "no_resource" {
				name += " " + one.Name
			}
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// choose gives the changes that are still to be carried out: with CLUSTER_DEEP=1 every one, else two, such of kinds that were not carried out
// yet before others. Those that leave other pods where they are come first.
func (a *asker) choose(all []whyChange, done map[string]bool) []whyChange {
	all = slices.DeleteFunc(slices.Clone(all), func(c whyChange) bool {
		return c.Kind == "other_lnc" || done[keyOf(c)] // TestKubectlNeuronLNC has this kind
	})
	if os.Getenv("CLUSTER_DEEP") != "1" {
		slices.SortStableFunc(all, func(one, other whyChange) int {
			return cmp.Compare(min(a.carried[one.Kind], 1), min(a.carried[other.Kind], 1))
		})
		all = all[:min(len(all), max(0, 2-len(done)))]
	}
	slices.SortStableFunc(all, func(one, other whyChange) int { return cmp.Compare(orderOf(one), orderOf(other)) })
	return all
}

// keyOf names a change also after pods were made again under other names.
func keyOf(c whyChange) string {
	return strings.Join([]string{c.Kind, c.Node, c.To, c.Resource, c.Value}, " ")
}

// orderOf: changes to a copy of the pod, then to a node, then to other pods.
func orderOf(c whyChange) int {
	return slices.Index([]string{"uncordon", "pod_moved", "pods_ended"}, c.Kind)
}

// isInPlace: the pod itself then runs, else a copy that asks otherwise.
func isInPlace(c whyChange) bool { return orderOf(c) >= 0 }

// carryOut makes a change, after which the pod runs, or a copy that asks otherwise: that is returned, and undo ends it and takes the change
// back. nil: it does not run.
func (a *asker) carryOut(pod *core.Pod, c whyChange, dump string) (next *core.Pod, undo func()) {
	a.carried[c.Kind]++
	a.Logf("%s: %s", describePod(pod), c.Sentence)
	next, restore := pod.DeepCopy(), func() {}
	switch c.Kind {
	case "pods_ended":
		ended := a.end(c.Pods...)
		restore = func() { a.startAgain(c.Node, ended...) }
	case "pod_moved":
		ended := a.end(c.Pods...)
		moved := renamed(ended[0], "m")
		moved.Spec.NodeSelector = map[string]string{core.LabelHostname: c.To}
		a.c.CreatePod(a, "default", moved)
		if err := a.awaitRunning(moved.Name, cluster.Patience); err != nil {
			a.isWrong(moved, dump, "%s: %v", c.Sentence, err)
			a.c.DeletePod(a, "default", moved.Name)
			return nil, nil
		}
		a.running = append(a.running, moved)
		restore = func() {
			a.end("default/" + moved.Name)
			a.startAgain(c.Node, ended...)
		}
	case "uncordon":
		a.c.Kubectl(a, "uncordon", c.Node)
		restore = func() { a.c.Kubectl(a, "cordon", c.Node) }
	case "tolerate":
		key, value, effect := cutTaint(c.Value)
		next.Spec.Tolerations = append(next.Spec.Tolerations,
			core.Toleration{Key: key, Operator: core.TolerationOpEqual, Value: value, Effect: core.TaintEffect(effect)})
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
	if isInPlace(c) && now.Status.Phase != core.PodFailed && c.RefusedOn == "" {
		next = pod
	} else {
		if isInPlace(c) {
			a.c.DeletePod(a, "default", pod.Name) // it may take what the copy needs
		}
		if c.RefusedOn != "" {
			next.Spec.NodeSelector = map[string]string{core.LabelHostname: c.Node}
		}
		next.Name += "-" + strings.ReplaceAll(c.Kind, "_", "-")
		a.c.CreatePod(a, "default", next)
	}
	undo = func() {
		a.c.DeletePod(a, "default", next.Name)
		if isInPlace(c) {
			a.c.DeletePod(a, "default", pod.Name)
		}
		restore()
	}
	if err := a.awaitRunning(next.Name, cluster.Patience); err != nil {
		a.isWrong(next, dump, "%s: %v", c.Sentence, err)
		undo()
		return nil, nil
	}
	return next, undo
}

func renamed(pod *core.Pod, suffix string) *core.Pod {
	other := pod.DeepCopy()
	other.Name += "-" + suffix
	return other
}

// startAgain makes pods that were ended again, on their node. They may not fit beside each other in another order: these stay away.
func (a *asker) startAgain(node string, ended ...*core.Pod) {
	const limit = 20 * time.Second
	a.awaitClaimsGone()
	for _, pod := range ended {
		a.settle()
		again := renamed(pod, "a")
		again.Spec.NodeSelector = map[string]string{core.LabelHostname: node}
		a.c.CreatePod(a, "default", again)
		if err := a.awaitRunning(again.Name, limit); err != nil {
			a.Logf("%s is not made again: %v", describePod(again), err)
			a.c.DeletePod(a, "default", again.Name)
			continue
		}
		a.running = append(a.running, again)
	}
}

func (a *asker) awaitRunning(name string, limit time.Duration) error {
	return suite.Wait(limit, name+" runs", func() error {
		now, err := a.c.Client.CoreV1().Pods("default").Get(context.Background(), name, meta.GetOptions{})
		if err != nil {
			return suite.Permanent(err)
		}
		if now.Status.Phase == core.PodFailed {
			return suite.Permanent(fmt.Errorf("%s: %s", now.Status.Reason, now.Status.Message))
		}
		if now.Status.Phase != core.PodRunning {
			return fmt.Errorf("phase %s on %q: %+v", now.Status.Phase, now.Spec.NodeName, now.Status.Conditions)
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

// empty ends the test's pods on a node, so that others could move there.
func (a *asker) empty(n *cluster.Node) {
	list, err := a.c.Client.CoreV1().Pods("default").List(context.Background(), meta.ListOptions{FieldSelector: "spec.nodeName=" + n.Name})
	if err != nil {
		a.Fatal(err)
	}
	for _, there := range list.Items {
		if slices.ContainsFunc(a.running, func(pod *core.Pod) bool { return pod.Name == there.Name }) {
			a.end("default/" + there.Name)
		}
	}
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
	first := &pod.Spec.Containers[0].Resources
	if first.Limits == nil {
		first.Limits = core.ResourceList{}
	}
	maps.Copy(first.Limits, counts)
}

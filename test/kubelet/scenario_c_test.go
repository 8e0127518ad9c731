package kubelettest

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
)

// running is everything that must outlive a restart, for a set of pods.
type running struct {
	containers map[string]map[string]string // pod → container → id and restart count
	devices    map[string]map[string]held   // pod → container → what PodResources says
}

func (n *node) observe(t *testing.T, pods []podSpec) running {
	t.Helper()
	r := running{map[string]map[string]string{}, map[string]map[string]held{}}
	for _, s := range pods {
		r.containers[s.name] = n.containerIDs(t, s.name)
		r.devices[s.name] = holdings(t, s.name)
	}
	return r
}

// Scenario c: kubelet and agent are killed under running pods, each several ways.
func TestRestarts(t *testing.T) {
	n := startNode(t, "trn1.32xlarge")
	n.expectAllocatable(t, patience, trn1Whole)
	pods := []podSpec{
		onePod("training", ask{neuron: "4", efa: "2"}),
		onePod("serving", ask{neuronCore: "3"}),
		onePod("both", ask{neuron: "1", neuronCore: "2", efa: "1"}),
	}
	for _, s := range pods {
		n.expectRunning(t, s)
	}
	// 4+1 devices take 10 cores from neuroncore, but the two that "both" holds itself stay; 3+2 cores take
	// 2 devices from neuron, and the third one is the device that "both" holds itself.
	offered := counts{cores: 24, devices: 14, efas: 8}
	n.expectAllocatable(t, patience, offered)
	before := n.observe(t, pods)

	for _, c := range []struct {
		name    string
		stop    func(t *testing.T)
		restart func(t *testing.T)
	}{
		{"kubelet killed", n.killKubelet, n.startKubelet},
		{"agent killed", n.killAgent, n.startAgent},
		{"agent ended by SIGTERM", n.terminateAgent, n.startAgent},
		{"both killed", func(t *testing.T) { n.killKubelet(t); n.killAgent(t) },
			func(t *testing.T) { n.startAgent(t); n.startKubelet(t) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.stop(t)
			if n.kubelet.Running() == nil { // it must have seen the agent go, or "back" would mean nothing
				n.expectNothingAllocatable(t)
			}
			begin := time.Now()
			c.restart(t)
			n.awaitKubelet(t)
			n.expectAllocatable(t, patience, offered)
			since(t, c.name+" to resources back", begin)
			n.sinceSocket(t, c.name)
			eventually(t, patience, "the same pods run with the same devices", func() error {
				return differ(before, n.observe(t, pods))
			})
			n.expectFresh(t, "fresh-"+strings.ReplaceAll(strings.ToLower(c.name), " ", "-"), pods)
			n.expectAllocatable(t, patience, offered)
			if err := differ(before, n.observe(t, pods)); err != nil {
				t.Error(err)
			}
		})
	}
}

// sinceSocket prints the time from the kubelet's new socket to now, when all resources are back. The
// kubelet is asked every 20 ms, and its own PodResources service may start later than the socket.
func (n *node) sinceSocket(t *testing.T, what string) {
	t.Helper()
	if file, err := os.Stat(kubeletDir + "/device-plugins/kubelet.sock"); err == nil && strings.Contains(what, "kubelet") {
		since(t, "kubelet.sock back to resources back", file.ModTime())
	}
}

func differ(before, after running) error {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	return fmt.Errorf("before %v\nafter  %v", before, after)
}

// terminateAgent ends the agent the polite way: under 2 s, exit code 0.
func (n *node) terminateAgent(t *testing.T) {
	t.Helper()
	begin := time.Now()
	if err := errors.Join(n.agent.End(syscall.SIGTERM), n.agent.Exit()); err != nil {
		t.Errorf("agent after SIGTERM: %v\n%s", err, n.agent.Tail())
	}
	since(t, "agent gone after SIGTERM", begin)
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("agent took %v to end", took)
	}
}

// expectNothingAllocatable waits until the kubelet noticed that the plugins are gone.
func (n *node) expectNothingAllocatable(t *testing.T) {
	t.Helper()
	client := podResources(t)
	eventually(t, patience, "nothing allocatable", func() error {
		now, err := allocatable(client)
		if err != nil {
			return err
		}
		return counts{}.compare(now)
	})
}

// awaitKubelet waits until the kubelet answers and knows its pods again.
func (n *node) awaitKubelet(t *testing.T) {
	t.Helper()
	eventually(t, patience, "kubelet answers", func() error {
		n.alive(t)
		pod, err := n.status("training")
		if err == nil && (pod == nil || pod.Status.Phase != core.PodRunning) {
			return fmt.Errorf("pod not running yet")
		}
		return err
	})
}

// expectFresh starts one more pod: its silicon must be nobody else's. The name must be new: the kubelet
// takes a static pod with the same text for the same pod and brings it back slowly.
func (n *node) expectFresh(t *testing.T, name string, pods []podSpec) {
	t.Helper()
	s := onePod(name, ask{neuron: "2", efa: "1"})
	found, h := n.expectRunning(t, s)["main"], holdings(t, s.name)["main"]
	n.expectGiven(t, found, h, trn1CoresPerDevice)
	for _, other := range pods {
		theirs := holdings(t, other.name)["main"]
		expectDisjoint(t, theirs, h)
		if slices.ContainsFunc(h[efa], func(id string) bool { return slices.Contains(theirs[efa], id) }) {
			t.Errorf("one EFA in two pods: %v and %v", theirs, h)
		}
	}
	n.remove(t, s)
}

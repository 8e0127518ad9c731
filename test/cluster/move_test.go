package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

const (
	theirNeuron = "neuron-device-plugin-daemonset"
	theirEFA    = "aws-efa-k8s-device-plugin"
	theirPod    = "name=neuron-device-plugin-ds"
)

// TestMove is docs/upgrade.md, section "From AWS's plugins and back", on a node whose pods run on: what they hold is theirs all the
// way, and no part of it is given to anybody else while our agent serves the node.
func TestMove(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, cluster.Trn1)[0]
	theirs, ours := theirManifests(t), cluster.Manifest("static/neuron-agent.yaml")
	remove := func(file string) { c.Kubectl(t, "delete", "--ignore-not-found", "--wait", "-f", file) }
	t.Cleanup(func() { remove(ours); remove(theirs[0]); remove(theirs[1]) })
	c.Kubectl(t, "apply", "-f", theirs[0], "-f", theirs[1])
	n.ExpectAllocatable(t, wholeTrn1)
	before := startLodger(t, c, n, "before", cluster.Ask{cluster.Neuron: "4", cluster.EFA: "2"})
	cores := startLodger(t, c, n, "before-cores", cluster.Ask{cluster.NeuronCore: "3"})
	if !slices.Equal(before.report(t).Open[2:], neuronNodes(before.report(t).Held[cluster.Neuron])) {
		t.Errorf("AWS's plugin gave %v for %v", before.report(t).Open, before.report(t).Held)
	}

	t.Run("OursBesideTheirsIsPending", func(t *testing.T) {
		c.Kubectl(t, "apply", "-f", ours)
		said := c.AwaitSaid(t, []string{"FailedScheduling", "anti-affinity"}, "-n", system, "describe", "pod", "-l", agentPod)
		t.Logf("SAID\n%s", eventsIn(said))
		n.ExpectAllocatable(t, wholeTrn1)
	})
	t.Run("TheirsAway", func(t *testing.T) {
		c.Kubectl(t, "-n", system, "delete", "daemonset", theirEFA)
		c.ExpectNoPods(t, system, "name="+theirEFA)
		begin := time.Now()
		c.Kubectl(t, "-n", system, "delete", "daemonset", theirNeuron)
		c.Kubectl(t, "-n", system, "rollout", "status", "daemonset/neuron-agent", "--timeout=90s")
		expectReadyEverywhere(t, c, agentPod, 1)
		expectWithheld(t, n, before, cores)
		cluster.Figure(t, "AWS's plugin deleted to ours serving, in the API", time.Since(begin))
		before.expectUnmoved(t)
		cores.expectUnmoved(t)
	})
	t.Run("NothingHeldIsGiven", func(t *testing.T) { expectRestGiven(t, c, n, before, cores) })
	t.Run("RestartedContainerKeepsAll", func(t *testing.T) { before.expectSameAfterRestart(t) })
	t.Run("Back", func(t *testing.T) { expectBack(t, c, n, theirs, ours, before, cores) })
}

// theirManifests writes AWS's manifests with the stand-in's place filled in: that for Neuron and that for EFA.
func theirManifests(t *testing.T) [2]string {
	t.Helper()
	text, err := os.ReadFile(cluster.Manifest("../test/cluster/awsplugin/daemonsets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	neuron, efa, _ := strings.Cut(strings.ReplaceAll(string(text), "TOOLS", filepath.Dir(cluster.Tool("awsplugin"))), "---\n")
	dir := t.TempDir()
	paths := [2]string{filepath.Join(dir, "neuron.yaml"), filepath.Join(dir, "efa.yaml")}
	if err := errors.Join(os.WriteFile(paths[0], []byte(neuron), 0o644), os.WriteFile(paths[1], []byte(efa), 0o644)); err != nil {
		t.Fatal(err)
	}
	return paths
}

// lodger is a pod that runs through the whole move and is started again in place when it ends.
type lodger struct {
	c    *cluster.Cluster
	name string
	ask  cluster.Ask
	uid  string // of the pod
	held cluster.Held
}

func startLodger(t *testing.T, c *cluster.Cluster, n *cluster.Node, name string, ask cluster.Ask) *lodger {
	t.Helper()
	w := cluster.One(name, ask)
	w.Node = n.Name
	w.Adjust = func(pod *core.PodSpec) { pod.RestartPolicy = core.RestartPolicyAlways }
	c.StartPod(t, w)
	r := &lodger{c: c, name: name, ask: ask}
	r.held = r.report(t).Held
	r.uid = string(r.pod(t).UID)
	return r
}

func (r *lodger) report(t *testing.T) cluster.Report {
	t.Helper()
	return r.c.ReportsOf(t, "default", r.name)[0]
}

func (r *lodger) pod(t *testing.T) *core.Pod {
	t.Helper()
	pod, err := r.c.Client.CoreV1().Pods("default").Get(context.Background(), r.name, meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// expectUnmoved: the same pod holds the same units, and its container was never restarted.
func (r *lodger) expectUnmoved(t *testing.T) {
	t.Helper()
	pod := r.pod(t)
	if string(pod.UID) != r.uid || pod.Status.Phase != core.PodRunning || pod.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("%s: uid %s (was %s), %s, %d restarts", r.name, pod.UID, r.uid, pod.Status.Phase,
			pod.Status.ContainerStatuses[0].RestartCount)
	}
	if held := r.report(t).Held; !reflect.DeepEqual(held, r.held) {
		t.Errorf("%s holds %v, held %v before", r.name, held, r.held)
	}
}

// expectSameAfterRestart ends the container; the kubelet starts it again, asking the plugin that serves now.
func (r *lodger) expectSameAfterRestart(t *testing.T) {
	t.Helper()
	was := r.report(t)
	count := r.pod(t).Status.ContainerStatuses[0].RestartCount
	_, _ = r.c.TryKubectl("exec", r.name, "--", "/bin/busybox", "kill", "1") // the connection ends with it
	cluster.Eventually(t, cluster.Patience, r.name+" is started again", func() error {
		status := r.pod(t).Status.ContainerStatuses[0]
		if status.RestartCount <= count || status.State.Running == nil {
			return fmt.Errorf("%d restarts, %+v", status.RestartCount, status.State)
		}
		return nil
	})
	is := r.report(t)
	if !reflect.DeepEqual(is.Held, was.Held) || !slices.Equal(is.Open, was.Open) ||
		is.Env["NEURON_RT_VISIBLE_CORES"] != was.Env["NEURON_RT_VISIBLE_CORES"] {
		t.Errorf("%s after a restart: %v %v, before %v %v", r.name, is.Held, is.Open, was.Held, was.Open)
	}
}

// expectWithheld: what the two pods hold stays in the list of the name through which it is held and leaves the other's. Silicon that
// was given twice before the move, since AWS's counts know nothing of each other, is in both.
func expectWithheld(t *testing.T, n *cluster.Node, whole, cores *lodger) {
	t.Helper()
	taken := map[string]bool{}
	for _, core := range cores.held[cluster.NeuronCore] {
		taken[deviceOfCore(core)] = true
	}
	want := cluster.Counts{Cores: 32 - 8, Devices: 16 - int64(len(taken)), EFAs: 8}
	byBoth := 0
	for _, device := range whole.held[cluster.Neuron] {
		if taken[device] {
			byBoth++
			want.Devices++
		}
	}
	for _, core := range cores.held[cluster.NeuronCore] {
		if slices.Contains(whole.held[cluster.Neuron], deviceOfCore(core)) {
			want.Cores++
		}
	}
	t.Logf("before: %v, %v; devices held through both names: %d", whole.held, cores.held, byBoth)
	if byBoth > 0 {
		t.Logf("the silicon of %d devices was given twice before the move", byBoth)
	}
	n.ExpectAllocatable(t, want)
}

func deviceOfCore(core string) string {
	var number int
	_, _ = fmt.Sscan(core, &number)
	return fmt.Sprint(number / 2)
}

// expectRestGiven fills the node through both names: exactly what the lodgers do not hold can be had.
func expectRestGiven(t *testing.T, c *cluster.Cluster, n *cluster.Node, lodgers ...*lodger) {
	t.Helper()
	held := map[string]bool{}
	for _, r := range lodgers {
		for _, node := range r.report(t).Open {
			held[node] = true
		}
	}
	rest := cluster.Ask{cluster.Neuron: "4", cluster.EFA: "6"}
	devices := cluster.One("rest-devices", rest)
	c.StartJob(t, devices)
	first := c.AwaitReports(t, devices)[0]
	first.ExpectGiven(t, rest, 2)
	ask := cluster.Ask{cluster.NeuronCore: "4"}
	some := cluster.One("rest-cores", ask)
	c.StartJob(t, some)
	second := c.AwaitReports(t, some)[0]
	second.ExpectGiven(t, ask, 2)
	for _, node := range append(first.Open, second.Open...) {
		if held[node] {
			t.Errorf("%s was given again while it is held", node)
		}
		held[node] = true
	}
	c.DeleteJob(t, devices, some)
}

// expectBack: ours is deleted, theirs serves again; the kubelet itself keeps what is held within one name. Nothing keeps the EFA
// plugin waiting while ours serves: applied too early it loses the resource to ours, and has it no more once ours is gone.
func expectBack(t *testing.T, c *cluster.Cluster, n *cluster.Node, theirs [2]string, ours string, lodgers ...*lodger) {
	t.Helper()
	c.Kubectl(t, "apply", "-f", theirs[0])
	said := c.AwaitSaid(t, []string{"FailedScheduling", "anti-affinity"}, "-n", system, "describe", "pod", "-l", theirPod)
	t.Logf("SAID\n%s", eventsIn(said))
	begin := time.Now()
	c.Kubectl(t, "delete", "-f", ours)
	c.ExpectNoPods(t, system, agentPod)
	c.Kubectl(t, "apply", "-f", theirs[1])
	n.ExpectAllocatable(t, wholeTrn1)
	cluster.Figure(t, "ours deleted to AWS's plugin serving, in the API", time.Since(begin))
	ask := cluster.Ask{cluster.Neuron: "12"}
	all := cluster.One("all-the-rest", ask)
	c.StartJob(t, all)
	report := c.AwaitReports(t, all)[0]
	for _, r := range lodgers {
		for _, device := range report.Held[cluster.Neuron] {
			if slices.Contains(r.held[cluster.Neuron], device) {
				t.Errorf("device %s was given again while %s holds it", device, r.name)
			}
		}
	}
	shared := 0
	for _, node := range lodgers[1].report(t).Open {
		if slices.Contains(report.Open, node) {
			shared++
		}
	}
	t.Logf("devices that the counts of the stand-in give to a second pod: %d", shared)
	c.DeleteJob(t, all)
	for _, r := range lodgers {
		if held := r.report(t).Held; !reflect.DeepEqual(held, r.held) {
			t.Errorf("%s holds %v, held %v before", r.name, held, r.held)
		}
	}
	lodgers[0].expectSameAfterRestart(t)
}

func neuronNodes(devices []string) []string {
	var nodes []string
	for _, device := range devices {
		nodes = append(nodes, "/dev/neuron"+device)
	}
	slices.Sort(nodes)
	return nodes
}

// eventsIn returns what kubectl describe prints from "Events:" on.
func eventsIn(described string) string {
	_, events, found := strings.Cut(described, "Events:")
	if !found {
		return described
	}
	return "Events:" + events
}

package scenarios

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/suite"
)

const (
	fleetInDocs = 5000 // nodes that the figures are carried over to
	// Of the controller manager (--kube-api-qps): so many pods of a DaemonSet start in a second, whatever its size.
	podsPerSecond = 20
	// Agents try again after half of 30 s to 30 s (kube::WatchTimes::longest_retry): the shortest time in which all of them return.
	returnSeconds = 15.0
	fleetLevel    = "workload-high" // the priority level of kube-system's accounts, which are one flow together
)

// fleetPhase is a phase of TestFleet with what each mode called.
type fleetPhase struct {
	name    string
	took    time.Duration
	traffic map[*fleetMode]traffic
}

// TestFleet: what many agents cost one API server: at their start, when a device fails, at rest, in an update, and after the server was
// away. CLUSTER_FLEET agents of each mode, or 4 and shorter phases.
func TestFleet(t *testing.T) {
	c := cluster.Get(t)
	size, long := 4, false
	if text := os.Getenv("CLUSTER_FLEET"); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil || size < 1 {
			t.Fatalf("CLUSTER_FLEET=%q", text)
		}
		long = true
	}
	during := func(inShort, inLong time.Duration) time.Duration {
		if long {
			return inLong
		}
		return inShort
	}
	plugin, dra := pluginFleet(), claimsFleet()
	f := newFleet(t, c, size, plugin, dra)
	f.each(8, func(n *fleetNode) error { return n.startKubelet(f.input()) })
	var phases []fleetPhase
	phase := func(name string, do func()) {
		begin := time.Now()
		for _, m := range f.modes {
			m.begin()
		}
		do()
		p := fleetPhase{name: name, took: time.Since(begin), traffic: map[*fleetMode]traffic{}}
		for _, m := range f.modes {
			p.traffic[m] = m.traffic(m.nodes)
			if name == "failure" {
				p.traffic[m] = m.traffic(m.failingNodes())
			}
			if name != "away" { // then nothing is answered
				f.report(p, m)
			}
		}
		phases = append(phases, p)
	}

	phase("start", func() {
		f.each(4, func(n *fleetNode) error { return n.startAgent(c) })
		f.awaitTaints(dra, 0)
		if long { // otherwise the failure brings it on; by itself it takes up to a minute
			f.awaitHealth(plugin, core.ConditionFalse)
		}
	})
	var failed time.Time
	phase("failure", func() {
		failed = time.Now()
		f.inject("sram_ecc_uncorrected=1")
		f.awaitTaints(dra, 1)
		f.awaitHealth(plugin, core.ConditionTrue)
		f.awaitNoWrites()
	})
	inSlice := phases[1].traffic[dra].delays(failed, func(call *apiCall) bool { return call.verb == http.MethodPut })
	inStatus := phases[1].traffic[plugin].delays(failed, func(call *apiCall) bool { return strings.HasSuffix(call.path, "/status") })
	f.inject("heal")
	f.awaitTaints(dra, 0)
	f.awaitHealth(plugin, core.ConditionFalse)
	f.awaitNoWrites()

	phase("rest", func() {
		before, begin := f.wakeups(), time.Now()
		f.pass(during(15*time.Second, 5*time.Minute))
		for m, most := range f.wakeups() {
			perSecond := float64(most-before[m]) / time.Since(begin).Seconds()
			figure(t, "fleet: %s: at rest %.0f wakeups a second of the agent with the most", m.name, perSecond)
			if perSecond > 100 {
				t.Errorf("%s: %.0f wakeups a second", m.name, perSecond)
			}
		}
	})
	memory := map[*fleetMode][]int64{}
	for _, m := range f.modes {
		memory[m] = f.memory(m)
	}
	if open := dra.watches(); open != size || plugin.watches() != 0 {
		t.Errorf("%d watches of %d drivers, %d of device plugins", open, size, plugin.watches())
	}
	generations := f.awaitTaints(dra, 0)
	phase("update", func() {
		f.each(4, func(n *fleetNode) error { return n.update(c) })
		f.pass(during(time.Second, 65*time.Second)) // within a minute each agent reads its Node
	})

	refusedBefore := f.metric(`apiserver_flowcontrol_rejected_requests_total\{[^}]*\}`)
	phase("away", func() {
		for _, m := range f.modes {
			m.closed.Store(true)
		}
		if err := c.APIServer.End(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		f.pass(during(5*time.Second, 10*time.Minute))
		if err := errors.Join(c.StartAPIServer(), c.RestartClients()); err != nil {
			t.Fatal(err)
		}
	})
	var back time.Duration
	phase("return", func() {
		begin := time.Now()
		for _, m := range f.modes {
			m.closed.Store(false)
		}
		cluster.Eventually(t, 2*cluster.Patience, "all drivers watch again", func() error {
			if open := dra.watches(); open != size {
				return fmt.Errorf("%d of %d", open, size)
			}
			return nil
		})
		back = time.Since(begin)
		f.pass(during(2*time.Second, 35*time.Second))
	})
	if after := f.awaitTaints(dra, 0); !maps.Equal(after, generations) {
		t.Errorf("generations were %v and are %v", generations, after)
	}
	f.expectAllocatable(plugin)

	for _, m := range f.modes {
		attempts := phases[4].traffic[m]
		figure(t, "fleet: %s: %.1f attempts per node in %v without the API server", m.name, attempts.perNode(len(attempts.calls)),
			phases[4].took.Round(time.Second))
		most := memory[m][len(memory[m])-1]
		figure(t, "fleet: %s: memory per agent at rest: median %.1f MiB, most %.1f MiB", m.name, mebibytes(memory[m][size/2]), mebibytes(most))
		if most > 48<<20 {
			t.Errorf("an agent takes %.1f MiB", mebibytes(most))
		}
	}
	f.reportDelays("slice written", inSlice)
	f.reportDelays("condition written", inStatus)
	figure(t, "fleet: all %d drivers watch again %v after the API server's return", size, back.Round(100*time.Millisecond))
	f.carryOver(phases)

	rest, update := phases[2], phases[3]
	if writes := rest.traffic[dra].writes() + rest.traffic[plugin].writes(); writes != 0 {
		t.Errorf("%d writes at rest", writes)
	}
	if writes := update.traffic[dra].writes() + update.traffic[plugin].writes(); writes != 0 {
		t.Errorf("%d writes in an update", writes)
	}
	if failing := len(dra.failingNodes()); len(inSlice) != failing || len(inStatus) != failing {
		t.Errorf("%d of %d drivers wrote the failure, %d of %d device plugins", len(inSlice), failing, len(inStatus), failing)
	}
	if refused := refusedBefore + f.metric(`apiserver_flowcontrol_rejected_requests_total\{[^}]*\}`); refused != 0 {
		t.Errorf("API priority and fairness rejected %v requests", refused)
	}
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// inject changes device 3 of the nodes whose device fails.
func (f *fleet) inject(action string) {
	f.t.Helper()
	for _, m := range f.modes {
		if _, err := suite.Run(fleetProgram("neuron-sim"), "set", m.failing, "neuron3", action); err != nil {
			f.t.Fatal(err)
		}
	}
}

// pass lets time pass, in which no program may end.
func (f *fleet) pass(long time.Duration) {
	f.t.Helper()
	begin := time.Now()
	cluster.Eventually(f.t, 2*long, fmt.Sprint(long, " pass"), func() error {
		for _, n := range f.nodes() {
			if err := errors.Join(n.kubelet.Running(), n.agent.Running()); err != nil {
				return suite.Permanent(err)
			}
		}
		if left := long - time.Since(begin); left > 0 {
			return fmt.Errorf("%v to go", left)
		}
		return nil
	})
}

// awaitTaints waits until each driver offers all devices, with so many tainted where a device may fail, and returns the generations of the
// pools.
func (f *fleet) awaitTaints(m *fleetMode, tainted int) map[string]int64 {
	f.t.Helper()
	generations := map[string]int64{}
	what := fmt.Sprintf("%s: whole pools with %d devices tainted", m.name, tainted)
	if err := suite.WaitEvery(f.pause(), 3*cluster.Patience, what, func() error {
		list, err := f.c.Client.ResourceV1().ResourceSlices().List(context.Background(), meta.ListOptions{FieldSelector: "spec.driver=" + cluster.Driver})
		if err != nil {
			return err
		}
		byNode := map[string][]resource.ResourceSlice{}
		for _, slice := range list.Items {
			byNode[*slice.Spec.NodeName] = append(byNode[*slice.Spec.NodeName], slice)
		}
		for _, n := range m.nodes {
			devices, generation, err := cluster.OfferedBy(byNode[n.name])
			count := 0
			for _, device := range devices {
				if len(device.Taints) > 0 {
					count++
				}
			}
			want := 0
			if n.fails() {
				want = tainted
			}
			if err != nil || len(devices) != 32 || count != want {
				return fmt.Errorf("%s: %d devices, %d tainted, %v", n.name, len(devices), count, err)
			}
			generations[n.name] = generation
		}
		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
	return generations
}

// awaitHealth waits until the condition of each device plugin's node has that status, False where no device fails.
func (f *fleet) awaitHealth(m *fleetMode, failing core.ConditionStatus) {
	f.t.Helper()
	if err := suite.WaitEvery(f.pause(), 3*cluster.Patience, m.name+": conditions "+string(failing), func() error {
		list, err := f.c.Client.CoreV1().Nodes().List(context.Background(), meta.ListOptions{LabelSelector: fleetLabel + "=" + m.name})
		if err != nil {
			return err
		}
		status := map[string]core.ConditionStatus{}
		for i := range list.Items {
			status[list.Items[i].Name] = conditionOf(&list.Items[i], neuronHealth).Status
		}
		for _, n := range m.nodes {
			want := core.ConditionFalse
			if n.fails() {
				want = failing
			}
			if status[n.name] != want {
				return fmt.Errorf("%s: %q", n.name, status[n.name])
			}
		}
		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
}

// pause keeps the test's own lists of all nodes from becoming the load.
func (f *fleet) pause() time.Duration {
	return 100*time.Millisecond + time.Duration(len(f.nodes()))*5*time.Millisecond
}

// awaitNoWrites waits until no agent has written for some seconds.
func (f *fleet) awaitNoWrites() {
	f.t.Helper()
	cluster.Eventually(f.t, 2*cluster.Patience, "no writes", func() error {
		for _, m := range f.modes {
			if since := time.Since(m.lastWrite()); since < 3*time.Second {
				return fmt.Errorf("%s wrote %v ago", m.name, since)
			}
		}
		return nil
	})
}

// expectAllocatable: every device plugin is registered and all its devices are healthy.
func (f *fleet) expectAllocatable(m *fleetMode) {
	f.t.Helper()
	for _, n := range m.nodes {
		observer, err := suite.OpenPodResources(n.kubeletDir())
		if err != nil {
			f.t.Fatal(err)
		}
		held, err := observer.Allocatable(cluster.Patience)
		observer.Close()
		if err != nil || len(held[cluster.Neuron]) != 16 || len(held[cluster.NeuronCore]) != 64 {
			f.t.Errorf("%s: %d devices and %d cores are allocatable: %v", n.name, len(held[cluster.Neuron]), len(held[cluster.NeuronCore]), err)
		}
	}
}

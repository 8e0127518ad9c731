package scenarios

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"neuron-agent.test/cluster/cluster"
)

const agentProgram = "neuron-agent"

// residents are pods that run while something happens to their node, and must not notice.
type residents struct {
	cluster *cluster.Cluster
	node    *cluster.Node
	jobs    []cluster.Workload
	before  []resident
}

type resident struct {
	pod, container string // uid, container id
	restarts       int32
	held           cluster.Held
}

var (
	wholeTrn1 = cluster.Counts{Cores: 32, Devices: 16, EFAs: 8}
	// What is left of each name with the residents on the node: the units of the other name behind the same silicon are
	// withheld. Three cores lie on two devices.
	besideResidents = cluster.Counts{Cores: 24, Devices: 14, EFAs: 8}
)

// settleIn starts a pod with four devices and two interfaces, and one with three cores.
func settleIn(t *testing.T, c *cluster.Cluster, n *cluster.Node, prefix string) *residents {
	t.Helper()
	r := &residents{cluster: c, node: n}
	for name, ask := range map[string]cluster.Ask{
		"whole": {cluster.Neuron: "4", cluster.EFA: "2"}, "cores": {cluster.NeuronCore: "3"}} {
		w := cluster.One(prefix+"-"+name, ask)
		w.Node = n.Name
		c.StartJob(t, w)
		c.AwaitReports(t, w)[0].ExpectGiven(t, ask, 2)
		r.jobs = append(r.jobs, w)
	}
	n.ExpectKubeletAllocatable(t, besideResidents)
	r.before = r.now(t)
	return r
}

// expectOffered waits for the kubelet and then for the API server, which may still say what an earlier agent offered.
func expectOffered(t *testing.T, n *cluster.Node, want cluster.Counts) {
	t.Helper()
	n.ExpectKubeletAllocatable(t, want)
	n.ExpectAllocatable(t, want)
}

// now is how the residents are.
func (r *residents) now(t *testing.T) []resident {
	t.Helper()
	var all []resident
	cluster.Eventually(t, cluster.Patience, "the residents are seen", func() error {
		all = nil
		held, err := r.node.Holdings()
		if err != nil {
			return err
		}
		for _, job := range r.jobs {
			pods, err := r.cluster.Pods("default", "workload="+job.Name)
			if err != nil {
				return err
			}
			if len(pods) != 1 || len(pods[0].Status.ContainerStatuses) != 1 || pods[0].Status.Phase != core.PodRunning {
				return fmt.Errorf("%s: %d pods, none that runs", job.Name, len(pods))
			}
			status := pods[0].Status.ContainerStatuses[0]
			all = append(all, resident{string(pods[0].UID), status.ContainerID, status.RestartCount, held["default/"+pods[0].Name+"/main"]})
		}
		return nil
	})
	return all
}

// expectUnnoticed: the same containers run on with the same units.
func (r *residents) expectUnnoticed(t *testing.T) {
	t.Helper()
	cluster.Eventually(t, cluster.Patience, "the pods that ran have noticed nothing", func() error {
		if now := r.now(t); !reflect.DeepEqual(now, r.before) { // a kubelet that has just started does not show holdings yet
			return fmt.Errorf("they are %+v, were %+v", now, r.before)
		}
		return nil
	})
}

// expectServed: a new pod gets devices and runs.
func expectServed(t *testing.T, c *cluster.Cluster, n *cluster.Node, name string) {
	t.Helper()
	ask := cluster.Ask{cluster.Neuron: "2", cluster.EFA: "1"}
	w := cluster.One(name, ask)
	w.Node = n.Name
	c.StartJob(t, w)
	c.AwaitReports(t, w)[0].ExpectGiven(t, ask, 2)
	c.DeleteJob(t, w)
}

// agentPodOn returns the agent's only pod on a node.
func agentPodOn(t *testing.T, c *cluster.Cluster, n *cluster.Node) *core.Pod {
	t.Helper()
	pod, err := tryAgentPodOn(c, n)
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func tryAgentPodOn(c *cluster.Cluster, n *cluster.Node) (*core.Pod, error) {
	pods, err := c.Pods(system, agentPod)
	if err != nil {
		return nil, err
	}
	var found *core.Pod
	for i := range pods {
		if pods[i].Spec.NodeName == n.Name {
			if found != nil {
				return nil, fmt.Errorf("%s and %s are both on %s", found.Name, pods[i].Name, n.Name)
			}
			found = &pods[i]
		}
	}
	if found == nil {
		return nil, fmt.Errorf("no agent on %s", n.Name)
	}
	return found, nil
}

// agentProcess returns the pid of the agent on a node.
func agentProcess(t *testing.T, n *cluster.Node) int {
	t.Helper()
	pids := n.ContainerProcesses(agentProgram)
	if len(pids) != 1 {
		t.Fatalf("%s: %d processes of the agent, want one: %v", n.Name, len(pids), pids)
	}
	return pids[0]
}

func figureMemory(t *testing.T, n *cluster.Node, when string) {
	t.Helper()
	memory, err := cluster.MemoryOf(agentProcess(t, n))
	if err != nil {
		t.Fatal(err)
	}
	figure(t, "memory of the agent on %s %s: %v", n.Name, when, memory)
}

// lookPause leaves the agent its share of the 100 calls per second, all callers together, that the kubelet answers.
const lookPause = 25 * time.Millisecond

// offerWatch records how long a node offers less than it should.
type offerWatch struct {
	stop chan struct{}
	done chan struct{}

	Kubelet time.Duration  // in the kubelet's own view, looked at every lookPause
	API     time.Duration  // in the API server's, every 20 ms
	back    time.Time      // when the kubelet's view was whole again, the last time
	more    cluster.Counts // the most of each that the kubelet had above what it should; a held unit was offered
}

// watchOffer looks until End is called. What cannot be asked counts as it was before.
func watchOffer(t *testing.T, n *cluster.Node, want cluster.Counts) *offerWatch {
	t.Helper()
	view, err := n.Observe()
	if err != nil {
		t.Fatal(err)
	}
	w := &offerWatch{stop: make(chan struct{}), done: make(chan struct{}, 2)}
	look := func(every time.Duration, ask func() (cluster.Counts, error), less *time.Duration, back *time.Time) {
		tick, last, missing := time.NewTicker(every), time.Now(), false
		defer func() { tick.Stop(); w.done <- struct{}{} }()
		for stopping := false; !stopping; {
			select {
			case <-w.stop:
				stopping = true // after one more look
			case <-tick.C:
			}
			now, err := ask()
			if missing {
				*less += time.Since(last)
			}
			last = time.Now()
			if err == nil {
				if missing && now == want {
					*back = last
				}
				missing = now != want
			}
		}
	}
	go func() {
		look(lookPause, func() (cluster.Counts, error) {
			held, err := view.Allocatable(5 * time.Second)
			now := cluster.CountsOf(held)
			w.more.Cores, w.more.Devices = max(w.more.Cores, now.Cores-want.Cores), max(w.more.Devices, now.Devices-want.Devices)
			return now, err
		}, &w.Kubelet, &w.back)
		view.Close()
	}()
	go look(20*time.Millisecond, n.Allocatable, &w.API, new(time.Time))
	return w
}

// ours is how much of that was the agent's: from the start of its process, which the kubelet and containerd have made, to
// everything offered. The kernel counts starts in hundredths of a second.
func (w *offerWatch) ours(t *testing.T, n *cluster.Node) time.Duration {
	t.Helper()
	started, err := cluster.StartedAt(agentProcess(t, n))
	if err != nil {
		t.Fatal(err)
	}
	return max(0, w.back.Sub(started)).Round(10 * time.Millisecond)
}

// End stops looking; afterwards the fields may be read. What is held must not have been offered under the other name.
func (w *offerWatch) End(t *testing.T) {
	t.Helper()
	close(w.stop)
	<-w.done
	<-w.done
	if w.more != (cluster.Counts{}) {
		t.Errorf("the kubelet had more to offer than it may while pods hold units: %+v", w.more)
	}
}

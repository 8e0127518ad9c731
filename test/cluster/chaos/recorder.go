package chaos

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/cluster/judge"
)

// recorder collects the history; every goroutine of a run writes to it.
type recorder struct {
	t     testing.TB
	begin time.Time

	mu         sync.Mutex
	history    *judge.History
	containers map[string]*judge.Container // "pod.container"
	asks       map[string]map[string]int   // by the same
	uids       map[string]string           // by pod
	lives      map[string]*judge.Life      // by node, of the agent that runs now
	pods       map[string]*judge.Pod       // by UID
	counts     map[string]int              // what else is worth a number
	lines      []line                      // what was said, for the story around a violation
}

type line struct {
	at   time.Time
	text string
}

func newRecorder(t testing.TB) *recorder {
	h := &judge.History{Machines: map[string]judge.Machine{}, Pods: map[string]*judge.Pod{}, Deleted: map[string]time.Time{}}
	return &recorder{t: t, begin: time.Now(), history: h, containers: map[string]*judge.Container{}, asks: map[string]map[string]int{},
		uids: map[string]string{}, lives: map[string]*judge.Life{}, pods: h.Pods, counts: map[string]int{}}
}

// note keeps a line for the story.
func (r *recorder) note(format string, values ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line{time.Now(), fmt.Sprintf(format, values...)})
}

func (r *recorder) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

// fault records one that is over.
func (r *recorder) fault(f judge.Fault) {
	r.note("%s", f)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Faults = append(r.history.Faults, f)
	r.counts["fault "+f.Kind]++
}

// asked says what a container of a pod to come asks for.
func (r *recorder) asked(pod, container string, ask cluster.Ask) {
	counts := map[string]int{}
	for name, quantity := range ask {
		count := 0
		_, _ = fmt.Sscan(quantity, &count)
		counts[string(name)] = count
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks[pod+"."+container] = counts
}

// running: a process of the container is there, or was until just now. In a Job the pod's name begins with the workload's.
func (r *recorder) running(n *cluster.Node, pod, workload, container string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[pod+"."+container]
	if c == nil {
		ask, known := r.asks[workload+"."+container]
		if !known {
			return
		}
		c = &judge.Container{Node: n.Name, Pod: pod, Name: container, Ask: ask, Span: judge.Span{Begin: at, End: at}}
		r.containers[pod+"."+container] = c
		r.history.Containers = append(r.history.Containers, c)
		r.counts["containers"]++
	}
	c.End = at
	if !c.Reported {
		r.read(n, c)
	}
}

// read takes what the container wrote, if it has.
func (r *recorder) read(n *cluster.Node, c *judge.Container) {
	report, err := n.Report(c.Pod, c.Name)
	if err != nil {
		return
	}
	c.Open, c.Refused, c.Reported = report.Open, report.Refused, true
	c.Visible, c.Set = report.Env["NEURON_RT_VISIBLE_CORES"]
	if began, _ := n.ReportTimes(c.Pod, c.Name); !began.IsZero() && began.Before(c.Begin) {
		c.Begin = began
	}
}

// agent: the agent's process on a node is this one now, of the pod with this UID; 0 for none.
func (r *recorder) agent(node string, pid int, pod string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	life := r.lives[node]
	if life != nil && life.Pid == pid {
		life.End = at
		return
	}
	if life != nil {
		r.history.Lives = append(r.history.Lives, *life)
		delete(r.lives, node)
	}
	if pid != 0 {
		r.lives[node] = &judge.Life{Node: node, Pid: pid, Pod: pod, Span: judge.Span{Begin: at, End: at}}
		r.counts["agent processes"]++
	}
}

// deleted: the pod of an agent was there at that time and deleted at the next look.
func (r *recorder) deleted(pod string, at time.Time) {
	r.note("agent pod %s deleted", pod)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Deleted[pod] = at
}

// agentSince is when the agent that runs on a node began; zero for none.
func (r *recorder) agentSince(node string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if life := r.lives[node]; life != nil {
		return life.Begin
	}
	return time.Time{}
}

// looked adds a look at what a node offers, or makes the last one longer.
func (r *recorder) looked(node string, at time.Time, offered cluster.Held) {
	var plain map[string][]string
	if offered != nil {
		plain = map[string][]string{}
		for name, ids := range offered {
			plain[string(name)] = ids
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.history.Looks) - 1; i >= 0; i-- {
		if last := &r.history.Looks[i]; last.Node == node {
			if (last.Offered == nil) == (plain == nil) && maps.EqualFunc(last.Offered, plain, equal) {
				last.End = at
				return
			}
			break
		}
	}
	r.history.Looks = append(r.history.Looks, judge.Look{Node: node, Span: judge.Span{Begin: at, End: at}, Offered: plain})
}

// recorded takes the kubelet's checkpoint.
func (r *recorder) recorded(node string, at time.Time, entries []cluster.Recorded, open map[string]*judge.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, entry := range entries {
		units := map[string][]string{}
		for name, ids := range entry.Held {
			units[string(name)] = ids
		}
		key := entry.PodUID + " " + entry.Container
		if open[key] == nil || !maps.EqualFunc(open[key].Units, units, equal) {
			if open[key] != nil {
				r.history.Holds = append(r.history.Holds, *open[key])
			}
			open[key] = &judge.Hold{Node: node, UID: entry.PodUID, Container: entry.Container, Span: judge.Span{Begin: at}, Units: units}
		}
		open[key].End = at
	}
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// finish makes the history whole, after all watching has ended: what the kubelet recorded goes to its containers.
func (r *recorder) finish(nodes map[string]*cluster.Node) *judge.History {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, life := range r.lives {
		life.Last = true
		r.history.Lives = append(r.history.Lives, *life)
	}
	for _, c := range r.history.Containers {
		c.UID = r.uids[c.Pod]
		n := nodes[c.Node]
		if !c.Reported {
			r.read(n, c)
		}
		if _, ended := n.ReportTimes(c.Pod, c.Name); ended.After(c.End) {
			c.End = ended
		}
		c.Held = r.history.RecordOf(c)
		if c.Held == nil && len(c.Ask) == 0 {
			c.Held = map[string][]string{}
		}
	}
	return r.history
}

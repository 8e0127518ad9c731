package chaos

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/cluster/judge"
)

// process is one that is worth watching: a probe or an agent.
type process struct {
	node                *cluster.Node
	agent               bool
	pod, workload, name string // of an agent: the pod's UID alone
}

// watcher finds the processes of containers, so that what runs is known from nobody but the kernel.
type watcher struct {
	r     *recorder
	nodes []*cluster.Node
	known map[int]*process
	young map[int]time.Time // others, looked at again until they are old: one that starts is somebody else before its exec
}

const (
	every     = 100 * time.Millisecond
	youngFor  = 2 * time.Second
	lookEvery = 250 * time.Millisecond
)

// ticks calls f until the context ends.
func ticks(ctx context.Context, period time.Duration, f func()) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for ctx.Err() == nil {
		f()
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

func (r *recorder) watchProcesses(ctx context.Context, nodes []*cluster.Node) {
	w := &watcher{r, nodes, map[int]*process{}, map[int]time.Time{}}
	ticks(ctx, every, w.look)
}

func (w *watcher) look() {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	now := time.Now()
	there := map[int]bool{}
	agents, pods := map[string]int{}, map[string]string{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		there[pid] = true
		if p := w.find(pid, now); p != nil && alive(pid) {
			if p.agent {
				if first := agents[p.node.Name]; first == 0 || pid < first {
					agents[p.node.Name], pods[p.node.Name] = pid, p.pod
				}
			} else {
				w.r.running(p.node, p.pod, p.workload, p.name, now)
			}
		}
	}
	for _, n := range w.nodes {
		w.r.agent(n.Name, agents[n.Name], pods[n.Name], now)
	}
	for pid := range w.known {
		if !there[pid] {
			delete(w.known, pid)
		}
	}
	for pid := range w.young {
		if !there[pid] {
			delete(w.young, pid)
		}
	}
}

func (w *watcher) find(pid int, now time.Time) *process {
	if p := w.known[pid]; p != nil {
		return p
	}
	since, seen := w.young[pid]
	if !seen {
		w.young[pid] = now
	} else if now.Sub(since) > youngFor {
		return nil
	}
	p, starting := w.classify(pid)
	if starting {
		w.young[pid] = now
	}
	if p != nil {
		w.known[pid] = p
		delete(w.young, pid)
	}
	return p
}

// classify says who a process is; starting: runc's own, which becomes the container's once containerd starts what it created.
func (w *watcher) classify(pid int) (p *process, starting bool) {
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	arguments := strings.Split(string(command), "\x00")
	if err != nil || len(arguments) < 3 {
		return nil, false
	}
	p = &process{agent: arguments[0] == "neuron-agent" && arguments[1] == "run"}
	isProbe := len(arguments) > 4 && arguments[1] == "sh" && arguments[2] == "/probe"
	if !p.agent && !isProbe {
		return nil, arguments[1] == "init"
	}
	group, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	at := slices.IndexFunc(w.nodes, func(n *cluster.Node) bool { return n.OwnsCgroup(string(group)) })
	if at < 0 {
		return nil, false
	}
	p.node = w.nodes[at]
	if p.agent {
		if uid := podOfCgroup.FindSubmatch(group); uid != nil {
			p.pod = strings.ReplaceAll(string(uid[1]), "_", "-")
		}
		return p, false
	}
	environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for _, variable := range strings.Split(string(environment), "\x00") {
		if pod, is := strings.CutPrefix(variable, "PROBE_POD="); is {
			p.pod, p.workload, p.name = pod, workloadOf(pod), arguments[3]
			return p, false
		}
	}
	return nil, false
}

var podOfCgroup = regexp.MustCompile(`pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})`)

// watchDeletions notes when the pod of an agent was deleted: the last time that it was there and was not.
func (r *recorder) watchDeletions(ctx context.Context, c *cluster.Cluster) {
	present := map[string]time.Time{}
	ticks(ctx, lookEvery, func() {
		short, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		now := time.Now()
		list, err := c.Client.CoreV1().Pods(system).List(short, meta.ListOptions{LabelSelector: agentPod})
		if err != nil {
			return
		}
		there := map[string]bool{}
		for _, pod := range list.Items {
			if pod.DeletionTimestamp == nil {
				there[string(pod.UID)] = true
				present[string(pod.UID)] = now
			}
		}
		for uid, last := range present {
			if !there[uid] {
				r.deleted(uid, last)
				delete(present, uid)
			}
		}
	})
}

// workloadOf: a Job's pod has a suffix after the name of the Job, which ends in "-job".
func workloadOf(pod string) string {
	if before, _, is := strings.Cut(pod, "-job-"); is {
		return before + "-job"
	}
	return pod
}

// alive: neither gone nor a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	last := bytes.LastIndexByte(stat, ')')
	return err == nil && last > 0 && len(stat) > last+2 && stat[last+2] != 'Z' && stat[last+2] != 'X'
}

// watchOffers looks at what a node's kubelet offers and has on record.
func (r *recorder) watchOffers(ctx context.Context, n *cluster.Node) {
	observer, err := n.Observe()
	if err != nil {
		r.t.Error(err)
		return
	}
	defer observer.Close()
	open := map[string]*judge.Hold{}
	ticks(ctx, lookEvery, func() {
		begin := time.Now()
		offered, err := observer.Allocatable(2 * time.Second)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			offered = nil
			r.count("looks without an answer")
		}
		r.looked(n.Name, begin, offered)
		if entries, err := n.Checkpoint(); err == nil {
			r.recorded(n.Name, begin, entries, open)
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, hold := range open {
		r.history.Holds = append(r.history.Holds, *hold)
	}
}

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/cluster/judge"
	"neuron-agent.test/suite"
)

// calm waits until no pod of the load is left and the API has everything allocatable, and takes the footprints.
func (r *run) calm() {
	begin := time.Now()
	r.await("the pods of the load have ended", limit, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		left := r.load.left()
		if left == 0 {
			return nil
		}
		if time.Since(begin) > 20*time.Second { // those that nothing places any more
			r.load.drop(ctx)
		}
		return fmt.Errorf("%d are left", left)
	})
	r.note("calm: no pods")
	ended, all := time.Now(), map[*cluster.Node]judge.Footprint{}
	for _, n := range r.nodes {
		want, now := r.whole[n.Name], cluster.Counts{}
		r.awaitQuietly(r.bounds.Serve, func() error {
			var err error
			if now, err = n.Allocatable(); err == nil && now != want {
				err = fmt.Errorf("allocatable %+v", now)
			}
			return err
		})
		all[n] = judge.Footprint{Settled: time.Since(ended), SettleBound: r.bounds.Serve + 5*time.Second,
			Allocatable: fmt.Sprintf("%+v", now), Whole: fmt.Sprintf("%+v", want)}
	}
	for _, n := range r.nodes {
		r.tread(n, all[n])
	}
}

// tread takes a footprint of a node. Containers that the API has forgotten may still be on their way out: of a node without pods, some
// mounts were there 16 s later on a machine with a load of 17.
func (r *run) tread(n *cluster.Node, settled judge.Footprint) {
	var f judge.Footprint
	first := r.first[n.Name]
	r.awaitQuietly(time.Minute, func() error {
		if f = r.footprint(n); first != nil && (f.Mounts > first.Mounts || f.Processes > first.Processes || f.ResidentAgents != 1) {
			return fmt.Errorf("%d mounts, %d processes, %d agents", f.Mounts, f.Processes, f.ResidentAgents)
		}
		return nil
	})
	if first == nil {
		r.first[n.Name] = &f
	}
	f.Settled, f.SettleBound, f.Allocatable, f.Whole = settled.Settled, settled.SettleBound, settled.Allocatable, settled.Whole
	r.mu.Lock()
	r.history.Footprints = append(r.history.Footprints, f)
	r.mu.Unlock()
	r.t.Logf("chaos: calm on %s after %v: agent %d fds, %d threads, %d KiB anonymous, %d files; node %d fds, %d processes, %d mounts",
		n.Name, f.Settled.Round(time.Millisecond), f.Fds, f.Threads, f.AnonymousBytes>>10, len(f.Files), f.NodeFds, f.Processes, f.Mounts)
}

// unique is the part of a socket's name that belongs to one process of the agent.
var unique = regexp.MustCompile(`-[0-9]+-[0-9a-f]+-[0-9]+\.sock$`)

func (r *run) footprint(n *cluster.Node) judge.Footprint {
	f := judge.Footprint{Node: n.Name, At: time.Now()}
	agents := []int{}
	for _, pid := range n.ContainerProcesses("neuron-agent") {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if bytes.HasPrefix(command, []byte("neuron-agent\x00run")) && alive(pid) {
			agents = append(agents, pid)
		}
	}
	f.ResidentAgents = len(agents)
	for _, pid := range agents {
		threads, _ := suite.Status(pid, "Threads")
		anonymous, _ := suite.Status(pid, "RssAnon")
		f.Fds, f.Threads, f.AnonymousBytes = suite.Descriptors(pid), int(threads), anonymous<<10
	}
	for _, program := range n.Programs() {
		f.NodeFds += suite.Descriptors(program.Pid)
	}
	entries, _ := os.ReadDir(n.Disk("/var/lib/kubelet/device-plugins"))
	for _, entry := range entries {
		f.Files = append(f.Files, unique.ReplaceAllString(entry.Name(), "-*.sock"))
	}
	slices.Sort(f.Files)
	f.Processes = r.processes(n)
	mounts, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", n.Programs()[0].Pid))
	f.Mounts = bytes.Count(mounts, []byte("\n"))
	return f
}

// processes counts those in the node's pods.
func (r *run) processes(n *cluster.Node) int {
	count := 0
	groups, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, path := range groups {
		if text, err := os.ReadFile(path); err == nil && n.OwnsCgroup(string(text)) {
			count++
		}
	}
	return count
}

// begin makes the namespace and notes what the nodes have.
func (r *run) prepare() error {
	spaces := r.c.Client.CoreV1().Namespaces()
	if _, err := spaces.Create(context.Background(), &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: namespace}}, meta.CreateOptions{}); err != nil {
		return err
	}
	if err := await("the namespace has a service account", func() error {
		_, err := r.c.Client.CoreV1().ServiceAccounts(namespace).Get(context.Background(), "default", meta.GetOptions{})
		return err
	}); err != nil {
		return err
	}
	for _, n := range r.nodes {
		whole, err := n.Allocatable()
		if err != nil {
			return err
		}
		if whole.Devices == 0 {
			return fmt.Errorf("%s offers nothing", n.Name)
		}
		r.whole[n.Name] = whole
		r.history.Machines[n.Name] = judge.Machine{Devices: int(whole.Devices), CoresPerDevice: int(whole.Cores / whole.Devices), Verbs: n.Verbs()}
		r.load.efa = r.load.efa || whole.EFAs > 0
	}
	return nil
}

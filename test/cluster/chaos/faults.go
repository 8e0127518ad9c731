package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/cluster/judge"
	"neuron-agent.test/suite"
)

const (
	system   = "kube-system"
	agentPod = "app.kubernetes.io/name=neuron-agent"
	limit    = 2 * time.Minute // for a fault to be over
)

func await(what string, check func() error) error { return suite.WaitEvery(every, limit, what, check) }

// node does one fault of the lane "programs" and waits until it is over: kubelet and agent run again.
func (r *run) node(ctx context.Context, n *cluster.Node, e Event) error {
	f := judge.Fault{Kind: e.Kind, Node: n.Name, Serving: true, Span: judge.Span{Begin: time.Now()}}
	var after time.Time // the agent must be one that began then
	var err error
	switch e.Kind {
	case "agent-kill", "agent-term", "agent-pod-deleted":
		after = time.Now()
		err = r.endAgent(n, e.Kind)
	case "reboot":
		after = time.Now()
		r.count("kubelet restarts")
		err = n.PowerCycle()
	case "containerd-kill", "containerd-term", "wire-cut": // the agent needs neither
		f.Serving = false
		err = r.interrupt(ctx, n, e)
	default:
		err = r.interrupt(ctx, n, e)
	}
	if err == nil && n.Kubelet.Running() != nil { // it ends by itself where its runtime was away too long
		r.count("kubelet ended by itself")
		f.Serving = true
		err = r.startKubelet(n)
	}
	f.End = time.Now()
	if err == nil {
		var since time.Time
		if since, err = r.agentBack(n, after); since.After(f.End) {
			f.End = since
		}
	}
	r.fault(f)
	return err
}

func (r *run) endAgent(n *cluster.Node, how string) error {
	switch how {
	case "agent-kill":
		return signal(n.ContainerProcesses("neuron-agent"), syscall.SIGKILL)
	case "agent-term":
		return signal(n.ContainerProcesses("neuron-agent"), syscall.SIGTERM)
	default:
		return r.deleteAgentPod(n)
	}
}

// interrupt takes something away for as long as the event says.
func (r *run) interrupt(ctx context.Context, n *cluster.Node, e Event) error {
	var away, back func() error
	switch e.Kind {
	case "agent-stopped":
		pids := n.ContainerProcesses("neuron-agent")
		away = func() error { return signal(pids, syscall.SIGSTOP) }
		back = func() error { return signal(pids, syscall.SIGCONT) }
	case "kubelet-kill":
		away = func() error { return n.Kubelet.End(syscall.SIGKILL) }
		back = func() error { return r.startKubelet(n) }
	case "kubelet-stopped":
		away, back = n.Kubelet.Pause, n.Kubelet.Resume
	case "containerd-kill":
		away, back = func() error { return n.Containerd.End(syscall.SIGKILL) }, n.StartContainerd
	case "containerd-term":
		away, back = func() error { return n.Containerd.End(syscall.SIGTERM) }, n.StartContainerd
	case "wire-cut":
		away, back = n.Unplug, n.Plug
	default:
		return fmt.Errorf("nobody knows %q", e.Kind)
	}
	err := away()
	lasts(ctx, e.For)
	return errors.Join(err, back())
}

// startKubelet starts a kubelet that has ended; its runtime may only just be back.
func (r *run) startKubelet(n *cluster.Node) error {
	r.count("kubelet restarts")
	var err error
	for range 3 {
		if err = n.StartKubelet(); err == nil {
			return nil
		}
		r.note("%s: %v", n.Name, err)
	}
	return err
}

// signal sends to processes; that one has ended is no error.
func signal(pids []int, s syscall.Signal) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

func (r *run) deleteAgentPod(n *cluster.Node) error {
	return await("the agent's pod is deleted", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return r.c.Client.CoreV1().Pods(system).DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{
			LabelSelector: agentPod, FieldSelector: "spec.nodeName=" + n.Name})
	})
}

// agentBack waits for an agent that began after a time, and returns when it did; the zero time is for one that only had to stay.
// The kubelet waits longer and longer before it starts a container again that ends often; whoever cannot wait deletes the pod,
// and so does this.
func (r *run) agentBack(n *cluster.Node, after time.Time) (time.Time, error) {
	var since time.Time
	tired := time.Now().Add(5 * time.Second)
	err := await(n.Name+" has an agent", func() error {
		if since = r.agentSince(n.Name); since.IsZero() || !since.After(after) {
			since = time.Time{}
		} else if after.IsZero() {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		pods, err := r.c.Client.CoreV1().Pods(system).List(ctx, meta.ListOptions{LabelSelector: agentPod,
			FieldSelector: "spec.nodeName=" + n.Name})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp != nil || len(pod.Status.ContainerStatuses) != 1 {
				return errors.New("a pod is on its way")
			}
			status := pod.Status.ContainerStatuses[0]
			if waiting := status.State.Waiting; waiting != nil && waiting.Reason == "CrashLoopBackOff" && time.Now().After(tired) {
				tired = time.Now().Add(20 * time.Second)
				r.count("agent pods deleted, tired of the kubelet's back-off")
				return r.deleteAgentPod(n)
			}
		}
		if len(pods.Items) != 1 || since.IsZero() {
			return errors.New("none yet")
		}
		return nil
	})
	return since, err
}

// hardware does one fault of the lane "hardware".
func (r *run) hardware(ctx context.Context, n *cluster.Node, e Event) error {
	m := r.history.Machines[n.Name]
	var interfaces []string
	for name := range m.Verbs {
		interfaces = append(interfaces, name)
	}
	slices.Sort(interfaces)
	device := fmt.Sprintf("neuron%d", e.Pick%m.Devices)
	f := judge.Fault{Kind: e.Kind, Node: n.Name, Targets: []string{device}}
	action := "vanish"
	switch e.Kind {
	case "device-ecc":
		action = "mem_ecc_uncorrected=1"
	case "efa-vanishes", "efa-unbound":
		if len(interfaces) == 0 {
			return nil
		}
		f.Targets = []string{interfaces[e.Pick%len(interfaces)]}
		if e.Kind == "efa-unbound" {
			action = "unbind"
		}
	case "driver-reload":
		f.Targets = nil
		for i := range m.Devices {
			f.Targets = append(f.Targets, fmt.Sprintf("neuron%d", i))
		}
	}
	f.Begin = time.Now()
	set := func(action string) error {
		var err error
		for _, target := range f.Targets {
			err = errors.Join(err, n.Set(target, action))
		}
		return err
	}
	err := set(action)
	lasts(ctx, e.For)
	err = errors.Join(err, set("heal"))
	f.End = time.Now()
	r.fault(f)
	return err
}

// control does one fault of the control plane. None of them takes anything from what a node offers.
func (r *run) control(ctx context.Context, e Event) error {
	f := judge.Fault{Kind: e.Kind, Span: judge.Span{Begin: time.Now()}}
	c := r.c
	var program *cluster.Process
	start := c.StartScheduler
	switch e.Kind {
	case "api-away":
		program, start = c.APIServer, c.StartAPIServer
	case "etcd-away":
		program, start = c.Etcd, c.StartEtcd
	case "scheduler-kill":
		program = c.Scheduler
	case "controllers-kill":
		program, start = c.ControllerManager, c.StartControllerManager
	}
	err := program.End(syscall.SIGKILL)
	lasts(ctx, e.For)
	err = errors.Join(err, start())
	f.End = time.Now()
	r.fault(f)
	return errors.Join(err, r.keep())
}

// keep starts again what ended by itself because others were away, as a service manager would.
func (r *run) keep() error {
	c := r.c
	for _, p := range []struct {
		process *cluster.Process
		start   func() error
	}{{c.Etcd, c.StartEtcd}, {c.APIServer, c.StartAPIServer}, {c.ControllerManager, c.StartControllerManager},
		{c.Scheduler, c.StartScheduler}} {
		if p.process.Running() != nil {
			r.count("programs of the control plane that ended by themselves")
			if err := p.start(); err != nil {
				return err
			}
		}
	}
	return nil
}

// cluster does what an administrator does.
func (r *run) cluster(ctx context.Context, e Event) error {
	f := judge.Fault{Kind: e.Kind, Node: e.Node, Span: judge.Span{Begin: time.Now()}}
	var err error
	switch e.Kind {
	case "pod-grace-0":
		name := r.load.kill(e.Pick)
		if name == "" {
			return nil
		}
		r.note("%s deleted with grace 0", name)
	case "drain":
		_, failed := r.c.TryKubectl("drain", e.Node, "--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=15s")
		if failed != nil {
			r.count("drains that did not end in 15 s")
		}
		lasts(ctx, e.For)
		err = await("uncordon", func() error {
			_, err := r.c.TryKubectl("uncordon", e.Node)
			return err
		})
	case "rolling-restart":
		f.Serving = true
		for _, arguments := range [][]string{{"restart", "daemonset/neuron-agent"}, {"status", "daemonset/neuron-agent", "--timeout=20s"}} {
			err = errors.Join(err, await("rollout "+arguments[0], func() error {
				_, err := r.c.TryKubectl(append([]string{"-n", system, "rollout"}, arguments...)...)
				return err
			}))
		}
		// The status is complete once each node's new pod is ready; the old one ends after that.
		err = errors.Join(err, await("end of the old agents", func() error {
			names, err := r.c.TryKubectl("-n", system, "get", "pods", "-l", agentPod, "-o", "name")
			if pods := len(strings.Fields(names)); err == nil && pods > len(r.nodes) {
				return fmt.Errorf("%d pods on %d nodes", pods, len(r.nodes))
			}
			return err
		}))
	}
	f.End = time.Now()
	r.fault(f)
	return err
}

package main

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type kind int

const (
	plainInit kind = iota
	sidecar        // a restartable init container
	application
)

type containerState int

const (
	waiting containerState = iota
	starting
	running
	over
)

// containerRun is one container of a pod. The kubelet does not survive its death, the container does.
type containerRun struct {
	name     string
	kind     kind
	wants    ask
	state    containerState
	stay     *stay // while running
	runs     int   // of this container so far
	id       string
	failures int
}

type podState int

const (
	pending podState = iota // the kubelet has not said yes or no
	admitted
	ending // all containers are over, or must be; the kubelet has not heard
	gone
)

// podRun is one pod, as the API server and the runtime know it.
type podRun struct {
	name, uid  string
	spec       *v1.Pod
	containers []*containerRun
	state      podState
	admittedAt time.Time
	given      map[string][]heldIDs // by container: what the kubelet had on record when it was admitted
	cut        bool                 // is being deleted: nothing starts any more
	bare       bool                 // admitted without devices, by a kubelet that had lost its checkpoint
	twice      bool                 // a kubelet died before it had said yes or no
}

// total is what the scheduler counts: resources as the API has it, init containers before the others.
func (p *podRun) total(resource string) int64 {
	sum, most, beside := 0, 0, 0
	for _, c := range p.containers {
		switch n := c.wants[resource]; c.kind {
		case plainInit:
			most = max(most, beside+n)
		case sidecar:
			beside += n
			sum += n
		default:
			sum += n
		}
	}
	return int64(max(sum, most))
}

func (l *life) newPod(containers []*containerRun) *podRun {
	l.created++
	p := &podRun{name: fmt.Sprintf("p%d", l.created), uid: fmt.Sprintf("%08x-0000-4000-8000-%012x", l.seed&0xffffffff, l.created),
		containers: containers, given: map[string][]heldIDs{}}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.name, Namespace: "default", UID: types.UID(p.uid),
		CreationTimestamp: metav1.NewTime(time.Now())}}
	always := v1.ContainerRestartPolicyAlways
	for _, c := range containers {
		list := v1.ResourceList{}
		for name, count := range c.wants {
			list[v1.ResourceName(name)] = *resource.NewQuantity(int64(count), resource.DecimalSI)
		}
		container := v1.Container{Name: c.name, Resources: v1.ResourceRequirements{Requests: list, Limits: list}}
		switch c.kind {
		case plainInit:
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
		case sidecar:
			container.RestartPolicy = &always
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
		default:
			pod.Spec.Containers = append(pod.Spec.Containers, container)
		}
	}
	p.spec = pod
	return p
}

// randomPod draws a pod of the kinds that users write, small ones more often, so that a node has room for many.
func (l *life) randomPod() *podRun {
	r, h := l.random, l.hardware
	one := func(name string, k kind, wants ask) *containerRun {
		return &containerRun{name: name, kind: k, wants: wants}
	}
	efas := func(most int) int { return min(h.efas, 1+r.IntN(max(1, most))) }
	if h.devices == 0 {
		pods := []*containerRun{one("main", application, ask{efa: efas(4)})}
		if r.IntN(4) == 0 {
			pods = append(pods, one("second", application, ask{efa: 1}))
		}
		if r.IntN(8) == 0 {
			pods = append([]*containerRun{one("first", plainInit, ask{efa: efas(3)})}, pods...)
		}
		return l.newPod(pods)
	}
	devices := min(h.devices, []int{1, 1, 1, 1, 1, 2, 2, 4, 4, 8}[r.IntN(10)])
	cores := 1 + r.IntN(min(h.devices, 2)*h.coresPerDevice)
	if r.IntN(2) == 0 {
		cores = 1
	}
	with := func(wants ask, most int) ask {
		if h.efas > 0 && r.IntN(2) == 0 {
			wants[efa] = efas(most)
		}
		return wants
	}
	main := func(wants ask) *podRun { return l.newPod([]*containerRun{one("main", application, wants)}) }
	switch r.IntN(16) {
	case 0, 1, 2, 3:
		return main(with(ask{neuron: devices}, max(1, devices*h.efas/h.devices)))
	case 4, 5, 6, 7, 8:
		return main(with(ask{neuronCore: cores}, 1))
	case 9: // both names of one silicon
		return main(ask{neuron: 1, neuronCore: h.coresPerDevice})
	case 10: // init container with as much as the application, or other
		return l.newPod([]*containerRun{one("first", plainInit, ask{neuronCore: cores}),
			one("main", application, with(ask{neuronCore: max(1, cores-r.IntN(2))}, 1))})
	case 11: // the init container through the one name, the application through the other
		return l.newPod([]*containerRun{one("first", plainInit, ask{neuron: 1}), one("main", application, ask{neuronCore: 1 + r.IntN(h.coresPerDevice)})})
	case 12:
		return l.newPod([]*containerRun{one("side", sidecar, with(ask{neuronCore: 1}, 1)), one("main", application, ask{neuronCore: cores})})
	case 13:
		return l.newPod([]*containerRun{one("side", sidecar, ask{}), one("first", plainInit, ask{neuron: 1}),
			one("main", application, with(ask{neuron: 1}, 1))})
	case 14:
		return l.newPod([]*containerRun{one("devices", application, with(ask{neuron: 1}, 1)),
			one("cores", application, ask{neuronCore: 1 + r.IntN(h.coresPerDevice)}), one("plain", application, ask{})})
	default:
		if h.efas > 0 && r.IntN(2) == 0 {
			return main(ask{efa: efas(2)})
		}
		return l.newPod([]*containerRun{one("a", application, ask{neuronCore: 1}), one("b", application, ask{neuronCore: 1}),
			one("c", application, ask{neuronCore: 1})})
	}
}

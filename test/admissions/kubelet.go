package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	cadvisor "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

const apiSource = "api"

// kubelet is the part of a kubelet that a device plugin meets: the real device manager, Topology Manager, predicates and
// PodResources, wired as in pkg/kubelet/kubelet.go and cm/container_manager_linux.go. A restart is a new process.
type kubelet struct {
	pods      podList
	devices   *devicemanager.ManagerImpl
	topology  topologymanager.Manager
	predicate lifecycle.PodAdmitHandler
	sources   config.SourcesReady
	node      nodeStatus

	admissions chan question // one at a time, in their order, as in the kubelet's loop
	output     sync.Mutex
}

// runKubelet serves questions on standard input until it is killed.
func runKubelet() error {
	quietLogs()
	k := &kubelet{admissions: make(chan question, 1024)}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	decoder := json.NewDecoder(lines)
	for {
		var q question
		if err := decoder.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		switch q.Op {
		case "start":
			r, err := k.start(q.Start)
			k.answer(q, r, err)
			if err != nil {
				return err
			}
		case "pods":
			k.answer(q, k.takeOver(q.Pods), nil)
			go k.admitAll()
		case "admit":
			k.admissions <- q
		default:
			go func() {
				r, err := k.serve(q)
				k.answer(q, r, err)
			}()
		}
	}
}

// quietLogs keeps errors only.
func quietLogs() {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=ERROR"})
	klog.SetOutput(io.Discard)
}

func (k *kubelet) answer(q question, r reply, err error) {
	r.Number = q.Number
	if err != nil {
		r.Error = err.Error()
	}
	line, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	k.output.Lock()
	defer k.output.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n'))
}

func (k *kubelet) start(b *beginning) (reply, error) {
	var nodes []cadvisor.Node
	for _, id := range b.NumaNodes {
		nodes = append(nodes, cadvisor.Node{Id: id})
	}
	var err error
	if k.topology, err = topologymanager.NewManager(nodes, b.Policy, b.Scope, nil); err != nil {
		return reply{}, err
	}
	if k.devices, err = devicemanager.NewManagerImpl(nodes, k.topology); err != nil {
		return reply{}, err
	}
	k.topology.AddHintProvider(klog.Background(), k.devices)
	k.node.set(b.Allocatable)
	k.predicate = lifecycle.NewPredicateAdmitHandler(k.node.get, noEviction{}, k.devices.UpdatePluginResources)
	k.sources = config.NewSourcesReady(func(seen sets.Set[string]) bool { return seen.Has(apiSource) })

	containers, running := containermap.NewContainerMap(), sets.New[string]()
	for _, c := range b.Containers {
		containers.Add(c.UID, c.Container, c.ID)
		if c.Running {
			running.Insert(c.ID)
		}
	}
	if err := k.devices.Start(klog.Background(), k.pods.GetActivePods, k.sources, containers, running); err != nil {
		return reply{}, err
	}
	go func() { // nobody here has pod statuses to refresh
		for range k.devices.Updates() {
		}
	}()
	if err := k.servePodResources(context.Background()); err != nil {
		return reply{}, err
	}
	go k.node.post(k.devices, time.Duration(b.PostMillis)*time.Millisecond)

	return reply{}, nil
}

// takeOver is told of all pods at once: the API server's answer to a kubelet that starts.
func (k *kubelet) takeOver(pods []*v1.Pod) reply {
	var r reply
	for _, pod := range pods { // HandlePodAdditions: each is known to the pod manager only as its turn comes
		k.pods.add(pod)
		r.Verdicts = append(r.Verdicts, k.admit(pod))
	}
	k.sources.AddSource(apiSource)
	r.Held, r.Posted = k.held(k.pods.GetPods()), k.node.posted()
	return r
}

func (k *kubelet) admitAll() {
	for q := range k.admissions {
		k.pods.add(q.Pod) // before admission, as HandlePodAdditions does
		v := k.admit(q.Pod)
		k.answer(q, reply{Verdicts: []verdict{v}, Held: k.held([]*v1.Pod{q.Pod}), Posted: k.node.posted()}, nil)
	}
}

// admit is AddPod of the allocation manager with its handlers in the kubelet's order: resources first, then predicates.
// A refused pod has failed, and so is not active any more.
func (k *kubelet) admit(pod *v1.Pod) verdict {
	others := slices.DeleteFunc(k.pods.GetActivePods(), func(p *v1.Pod) bool { return p.UID == pod.UID })
	attributes := &lifecycle.PodAdmitAttributes{Pod: pod, OtherPods: others, Operation: lifecycle.AddOperation}
	for _, handler := range []lifecycle.PodAdmitHandler{k.topology, k.predicate} {
		if result := handler.Admit(attributes); !result.Admit {
			k.pods.remove(string(pod.UID))
			return verdict{UID: string(pod.UID), Reason: result.Reason, Message: result.Message}
		}
	}
	return verdict{UID: string(pod.UID), Admitted: true}
}

func (k *kubelet) serve(q question) (reply, error) {
	switch q.Op {
	case "status":
		return reply{Posted: k.node.posted()}, nil
	case "inactive":
		k.pods.remove(q.UID)
		return reply{}, nil
	case "options":
		return k.options(q.UID, q.Container)
	case "look":
		r := reply{Held: k.held(k.pods.GetPods()), Healthy: map[string][]string{}, Posted: k.node.posted()}
		for resource, ids := range k.devices.GetAllocatableDevices() {
			for id := range ids {
				r.Healthy[resource] = append(r.Healthy[resource], id)
			}
		}
		r.Status = k.status()
		return r, nil
	}
	return reply{}, fmt.Errorf("unknown question %q", q.Op)
}

// status is what the kubelet tells the API server of the units of regular containers: the unhealthy ones.
func (k *kubelet) status() []heldIDs {
	all := []heldIDs{}
	for _, pod := range k.pods.GetPods() {
		status := v1.PodStatus{}
		for _, container := range pod.Spec.Containers {
			status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{Name: container.Name})
		}
		k.devices.UpdateAllocatedResourcesStatus(pod, &status)
		for _, container := range status.ContainerStatuses {
			for _, resource := range container.AllocatedResourcesStatus {
				one := heldIDs{string(pod.UID), container.Name, string(resource.Name), nil}
				for _, unit := range resource.Resources {
					if unit.Health == v1.ResourceHealthStatusUnhealthy {
						one.IDs = append(one.IDs, string(unit.ResourceID))
					}
				}
				all = append(all, one)
			}
		}
	}
	return all
}

// options is what the kubelet asks before it creates a container.
func (k *kubelet) options(uid, name string) (reply, error) {
	pod := k.pods.byUID(uid)
	if pod == nil {
		return reply{}, fmt.Errorf("no pod %s", uid)
	}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if container.Name != name {
			continue
		}
		options, err := k.devices.GetDeviceRunContainerOptions(context.Background(), pod, &container)
		if err != nil {
			return reply{}, err
		}
		r := reply{Held: k.heldBy(uid, name)}
		if options == nil {
			return r, nil
		}
		for _, env := range options.Envs {
			r.Env = append(r.Env, variable{env.Name, env.Value})
		}
		for _, device := range options.Devices {
			r.Nodes = append(r.Nodes, deviceNode{device.PathOnHost, device.PathInContainer, device.Permissions})
		}
		return r, nil
	}
	return reply{}, fmt.Errorf("no container %s in pod %s", name, uid)
}

func (k *kubelet) held(pods []*v1.Pod) []heldIDs {
	var all []heldIDs
	for _, pod := range pods {
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			all = append(all, k.heldBy(string(pod.UID), container.Name)...)
		}
	}
	return all
}

func (k *kubelet) heldBy(uid, container string) []heldIDs {
	var all []heldIDs
	for resource, instances := range k.devices.GetDevices(uid, container) {
		one := heldIDs{uid, container, resource, nil}
		for id := range instances {
			one.IDs = append(one.IDs, id)
		}
		slices.Sort(one.IDs)
		all = append(all, one)
	}
	return all
}

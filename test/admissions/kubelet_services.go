package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-client/pkg/util"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	podresourcesv1alpha1 "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
	kubeletgrpc "k8s.io/kubernetes/pkg/kubelet/apis/grpc"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

const (
	kubeletDir         = "/var/lib/kubelet" // hard-coded in the device manager
	podResourcesDir    = kubeletDir + "/pod-resources"
	podResourcesSocket = podResourcesDir + "/kubelet.sock"
)

// podList is the kubelet's pod manager together with its view of who is active: a pod leaves both when its last container
// has ended and the kubelet knows it, or when it was refused. Any thread.
type podList struct {
	mutex sync.Mutex
	order []*v1.Pod
}

func (l *podList) add(pod *v1.Pod) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.order = append(l.order, pod)
}

func (l *podList) remove(uid string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.order = slices.DeleteFunc(slices.Clone(l.order), func(p *v1.Pod) bool { return string(p.UID) == uid })
}

func (l *podList) byUID(uid string) *v1.Pod {
	for _, pod := range l.GetPods() {
		if string(pod.UID) == uid {
			return pod
		}
	}
	return nil
}

func (l *podList) GetPods() []*v1.Pod {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.Clone(l.order)
}

func (l *podList) GetActivePods() []*v1.Pod { return l.GetPods() }

func (l *podList) GetPodByName(namespace, name string) (*v1.Pod, bool) {
	for _, pod := range l.GetPods() {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, true
		}
	}
	return nil, false
}

// servePodResources is ListenAndServePodResources of pkg/kubelet/server, which would bring an HTTP server along.
func (k *kubelet) servePodResources(ctx context.Context) error {
	if err := os.MkdirAll(podResourcesDir, 0o750); err != nil {
		return err
	}
	listener, err := util.CreateListener("unix://" + podResourcesSocket)
	if err != nil {
		return err
	}
	providers := podresources.PodResourcesProviders{Pods: &k.pods, Devices: deviceProvider{k.devices}, Cpus: nothing{},
		Memory: nothing{}, DynamicResources: nothing{}}
	server := grpc.NewServer(kubeletgrpc.WithRateLimiter(ctx, "podresources", podresources.DefaultQPS, podresources.DefaultBurstTokens))
	podresourcesv1alpha1.RegisterPodResourcesListerServer(server, podresources.NewV1alpha1PodResourcesServer(providers))
	podresourcesv1.RegisterPodResourcesListerServer(server, podresources.NewV1PodResourcesServer(ctx, providers))
	go func() { _ = server.Serve(listener) }()
	return nil
}

// deviceProvider turns the device manager's records into messages as the container manager does: one entry per device and
// NUMA node.
type deviceProvider struct{ manager *devicemanager.ManagerImpl }

func (p deviceProvider) UpdateAllocatedDevices() { p.manager.UpdateAllocatedDevices() }

func (p deviceProvider) GetDevices(uid, container string) []*podresourcesv1.ContainerDevices {
	return messages(p.manager.GetDevices(uid, container))
}

func (p deviceProvider) GetAllocatableDevices() []*podresourcesv1.ContainerDevices {
	return messages(p.manager.GetAllocatableDevices())
}

func messages(all devicemanager.ResourceDeviceInstances) []*podresourcesv1.ContainerDevices {
	var entries []*podresourcesv1.ContainerDevices
	for name, instances := range all {
		for id, device := range instances {
			if device.GetTopology() == nil {
				entries = append(entries, &podresourcesv1.ContainerDevices{ResourceName: name, DeviceIds: []string{id}})
				continue
			}
			for _, node := range device.GetTopology().GetNodes() {
				entries = append(entries, &podresourcesv1.ContainerDevices{ResourceName: name, DeviceIds: []string{id},
					Topology: &podresourcesv1.TopologyInfo{Nodes: []*podresourcesv1.NUMANode{{ID: node.GetID()}}}})
			}
		}
	}
	return entries
}

// nothing: this node manages no CPUs, memory or claims.
type nothing struct{}

func (nothing) GetCPUs(string, string) []int64                             { return nil }
func (nothing) GetAllocatableCPUs() []int64                                { return nil }
func (nothing) GetMemory(string, string) []*podresourcesv1.ContainerMemory { return nil }
func (nothing) GetAllocatableMemory() []*podresourcesv1.ContainerMemory    { return nil }
func (nothing) GetDynamicResources(*v1.Pod, *v1.Container) []*podresourcesv1.DynamicResource {
	return nil
}

// noEviction: no pod here is critical.
type noEviction struct{}

func (noEviction) HandleAdmissionFailure(_ context.Context, _ *v1.Pod, reasons []lifecycle.PredicateFailureReason) ([]lifecycle.PredicateFailureReason, error) {
	return reasons, nil
}

// nodeStatus is the node object as the API server has it: extended resources are as old as the last status.
type nodeStatus struct {
	mutex       sync.Mutex
	allocatable map[string]int64
}

func (n *nodeStatus) set(allocatable map[string]int64) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.allocatable = maps.Clone(allocatable)
	if n.allocatable == nil {
		n.allocatable = map[string]int64{}
	}
}

func (n *nodeStatus) posted() map[string]int64 {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return maps.Clone(n.allocatable)
}

// post is the node status loop: GetCapacity, with removed resources at zero.
func (n *nodeStatus) post(manager *devicemanager.ManagerImpl, every time.Duration) {
	for tick := time.NewTicker(every); ; <-tick.C {
		_, allocatable, removed := manager.GetCapacity()
		now := n.posted()
		for name, count := range allocatable {
			now[string(name)] = count.Value()
		}
		for _, name := range removed {
			now[name] = 0
		}
		n.set(now)
	}
}

func (n *nodeStatus) get(context.Context, bool) (*v1.Node, error) {
	list := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("192"), v1.ResourceMemory: resource.MustParse("2Ti"), v1.ResourcePods: resource.MustParse("1000"),
	}
	for name, count := range n.posted() {
		list[v1.ResourceName(name)] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{v1.LabelOSStable: "linux"}},
		Status: v1.NodeStatus{Capacity: list, Allocatable: list}}, nil
}

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Resource names.
const (
	NeuronCore core.ResourceName = "aws.amazon.com/neuroncore"
	Neuron     core.ResourceName = "aws.amazon.com/neuron"
	EFA        core.ResourceName = "vpc.amazonaws.com/efa"
)

// Counts is what a node can hand out; 0 means that the resource is absent or empty.
type Counts struct{ Cores, Devices, EFAs int64 }

// Allocatable returns what the API server says of the node.
func (n *Node) Allocatable() (Counts, error) {
	node, err := n.cluster.Client.CoreV1().Nodes().Get(context.Background(), n.Name, meta.GetOptions{})
	if err != nil {
		return Counts{}, err
	}
	count := func(name core.ResourceName) int64 {
		quantity := node.Status.Allocatable[name]
		return quantity.Value()
	}
	return Counts{count(NeuronCore), count(Neuron), count(EFA)}, nil
}

// ExpectAllocatable waits until the API server says exactly this of the node.
func (n *Node) ExpectAllocatable(t testing.TB, want Counts) {
	t.Helper()
	Eventually(t, Patience, fmt.Sprintf("%s: allocatable %+v", n.Name, want), func() error {
		if err := n.Running(); err != nil {
			return permanent{err}
		}
		now, err := n.Allocatable()
		if err == nil && now != want {
			err = fmt.Errorf("it is %+v", now)
		}
		return err
	})
}

// Held maps a resource to the sorted ids of one container.
type Held map[core.ResourceName][]string

// Counts of what is held.
func (h Held) Counts() Counts {
	return Counts{int64(len(h[NeuronCore])), int64(len(h[Neuron])), int64(len(h[EFA]))}
}

// Holdings asks the kubelet's PodResources service what all containers of the node hold, as "namespace/pod/container".
func (n *Node) Holdings() (map[string]Held, error) {
	connection, err := grpc.NewClient("unix:"+n.Disk(n.kubeletRoot()+"/pod-resources/kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := podresources.NewPodResourcesListerClient(connection).List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	all := map[string]Held{}
	for _, pod := range answer.PodResources {
		for _, container := range pod.Containers {
			all[pod.Namespace+"/"+pod.Name+"/"+container.Name] = heldOf(container.Devices)
		}
	}
	return all, nil
}

func heldOf(devices []*podresources.ContainerDevices) Held {
	sets := map[core.ResourceName]map[string]bool{} // one id may come once per NUMA node
	for _, device := range devices {
		name := core.ResourceName(device.ResourceName)
		if sets[name] == nil {
			sets[name] = map[string]bool{}
		}
		for _, id := range device.DeviceIds {
			sets[name][id] = true
		}
	}
	held := Held{}
	for name, ids := range sets {
		held[name] = slices.SortedFunc(maps.Keys(ids), compareIDs)
	}
	return held
}

// compareIDs sorts numbers as numbers and before names.
func compareIDs(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil {
		return x - y
	}
	if a < b {
		return -1
	}
	return 1
}

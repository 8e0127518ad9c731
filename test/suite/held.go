package suite

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	core "k8s.io/api/core/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Resource names.
const (
	NeuronCore = "aws.amazon.com/neuroncore"
	Neuron     = "aws.amazon.com/neuron"
	EFA        = "vpc.amazonaws.com/efa"
)

// Held maps a resource to the sorted ids of one container, or of the whole node.
type Held map[core.ResourceName][]string

// HeldOf sorts what the kubelet answers by resource.
func HeldOf(devices []*podresources.ContainerDevices) Held {
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
		held[name] = slices.SortedFunc(maps.Keys(ids), CompareIDs)
	}
	return held
}

// CompareIDs sorts numbers as numbers and before names.
func CompareIDs(a, b string) int {
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

// Dial is for a socket of the kubelet's, which may not be there yet and may come anew.
func Dial(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix:"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: Poll, Multiplier: 1, MaxDelay: Poll}, MinConnectTimeout: time.Second}))
}

// PodResources is the kubelet's service of that name, over one connection that outlives restarts of the kubelet.
type PodResources struct {
	podresources.PodResourcesListerClient
	connection *grpc.ClientConn
}

// OpenPodResources takes the kubelet's directory. The caller closes it.
func OpenPodResources(kubeletDir string) (*PodResources, error) {
	connection, err := Dial(kubeletDir + "/pod-resources/kubelet.sock")
	if err != nil {
		return nil, err
	}
	return &PodResources{podresources.NewPodResourcesListerClient(connection), connection}, nil
}

func (p *PodResources) Close() { _ = p.connection.Close() }

// Allocatable returns the ids that the kubelet has as healthy, given away or not. Unlike Holdings the question changes nothing
// in the kubelet: List makes it sweep its records. The API server learns the answer with the next node status.
func (p *PodResources) Allocatable(limit time.Duration) (Held, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	answer, err := p.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	if err != nil {
		return nil, err
	}
	return HeldOf(answer.Devices), nil
}

// Holdings tells what all containers of the node hold, as "namespace/pod/container".
func (p *PodResources) Holdings() (map[string]Held, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := p.List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	all := map[string]Held{}
	for _, pod := range answer.PodResources {
		for _, container := range pod.Containers {
			all[pod.Namespace+"/"+pod.Name+"/"+container.Name] = HeldOf(container.Devices)
		}
	}
	return all, nil
}

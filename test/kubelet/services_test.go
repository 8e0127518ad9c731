package kubelettest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Resource names.
const (
	neuronCore = "aws.amazon.com/neuroncore"
	neuron     = "aws.amazon.com/neuron"
	efa        = "vpc.amazonaws.com/efa"
)

// held maps a resource to the sorted ids of one container, or of the whole node.
type held map[string][]string

func (h held) count(resource string) int { return len(h[resource]) }

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient("unix:"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		grpc.WithConnectParams(grpc.ConnectParams{ // the socket may not be there yet: try often
			Backoff: backoff.Config{BaseDelay: poll, Multiplier: 1, MaxDelay: poll}, MinConnectTimeout: time.Second}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func podResources(t *testing.T) podresources.PodResourcesListerClient {
	t.Helper()
	return podresources.NewPodResourcesListerClient(dial(t, kubeletDir+"/pod-resources/kubelet.sock"))
}

func collect(devices []*podresources.ContainerDevices) held {
	sets := map[string]map[string]bool{} // one id may come once per NUMA node
	for _, device := range devices {
		if sets[device.ResourceName] == nil {
			sets[device.ResourceName] = map[string]bool{}
		}
		for _, id := range device.DeviceIds {
			sets[device.ResourceName][id] = true
		}
	}
	all := held{}
	for resource, ids := range sets {
		all[resource] = slices.SortedFunc(maps.Keys(ids), compareIDs)
	}
	return all
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

// allocatable asks the kubelet which devices it could hand out (healthy ones, free or not).
func allocatable(client podresources.PodResourcesListerClient) (held, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := client.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	if err != nil {
		return nil, err
	}
	return collect(answer.Devices), nil
}

// counts is what a node should be able to hand out; 0 means that the resource must be absent or empty.
type counts struct{ cores, devices, efas int }

func (c counts) compare(now held) error {
	found := counts{now.count(neuronCore), now.count(neuron), now.count(efa)}
	if found != c {
		return fmt.Errorf("allocatable cores/devices/EFAs %v, want %v", found, c)
	}
	return nil
}

// expectAllocatable waits until the kubelet's allocatable is exactly this.
func (n *node) expectAllocatable(t *testing.T, limit time.Duration, want counts) held {
	t.Helper()
	client := podResources(t)
	var now held
	eventually(t, limit, fmt.Sprintf("%v allocatable", want), func() error {
		n.alive(t)
		var err error
		if now, err = allocatable(client); err != nil {
			return err
		}
		return want.compare(now)
	})
	return now
}

// holdings asks PodResources what each container of a pod holds.
func holdings(t *testing.T, pod string) map[string]held {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := podResources(t).List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	containers := map[string]held{}
	for _, listed := range answer.PodResources {
		if listed.Name == staticName(pod) {
			for _, container := range listed.Containers {
				containers[container.Name] = collect(container.Devices)
			}
		}
	}
	return containers
}

// plugin finds the agent's socket that serves a resource: the one whose ListAndWatch sends ids of that
// kind and that many devices. The name of a socket is the agent's own business.
func plugin(t *testing.T, ids []string) deviceplugin.DevicePluginClient {
	t.Helper()
	directory := kubeletDir + "/device-plugins"
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Type()&os.ModeSocket == 0 || entry.Name() == "kubelet.sock" {
			continue
		}
		client := deviceplugin.NewDevicePluginClient(dial(t, filepath.Join(directory, entry.Name())))
		if slices.Equal(firstList(client), ids) {
			return client
		}
	}
	t.Fatalf("no plugin socket serves %v", ids)
	return nil
}

// firstList returns all ids of a plugin, healthy or not, sorted; nil when nobody answers.
func firstList(client deviceplugin.DevicePluginClient) []string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	stream, err := client.ListAndWatch(ctx, &deviceplugin.Empty{})
	if err != nil {
		return nil
	}
	list, err := stream.Recv()
	if err != nil {
		return nil
	}
	var ids []string
	for _, device := range list.Devices {
		ids = append(ids, device.ID)
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}

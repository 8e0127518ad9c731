package kubelettest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"neuron-agent.test/suite"
)

// Resource names.
const (
	neuronCore = suite.NeuronCore
	neuron     = suite.Neuron
	efa        = suite.EFA
)

// held maps a resource to the sorted ids of one container, or of the whole node.
type held = suite.Held

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	connection, err := suite.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func podResources(t *testing.T) *suite.PodResources {
	t.Helper()
	kubelet, err := suite.OpenPodResources(kubeletDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kubelet.Close)
	return kubelet
}

// allocatable asks the kubelet which devices it could hand out (healthy ones, free or not).
func allocatable(kubelet *suite.PodResources) (held, error) {
	return kubelet.Allocatable(5 * time.Second)
}

// counts is what a node should be able to hand out; 0 means that the resource must be absent or empty.
type counts struct{ cores, devices, efas int }

func countsOf(h held) counts { return counts{len(h[neuronCore]), len(h[neuron]), len(h[efa])} }

func (c counts) compare(now held) error {
	if found := countsOf(now); found != c {
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
	all, err := podResources(t).Holdings()
	if err != nil {
		t.Fatal(err)
	}
	containers := map[string]held{}
	for name, h := range all {
		if container, is := strings.CutPrefix(name, "default/"+staticName(pod)+"/"); is {
			containers[container] = h
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
	slices.SortFunc(ids, suite.CompareIDs)
	return ids
}

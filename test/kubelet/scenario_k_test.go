package kubelettest

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	surgeName  = "example.com/surge"
	surgeUnits = 4
)

// surgePlugin offers four units through a socket of its own.
type surgePlugin struct {
	deviceplugin.UnimplementedDevicePluginServer
	server *grpc.Server
	once   sync.Once
	sent   chan struct{} // closed once the kubelet has been sent the list
}

func (*surgePlugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{}, nil
}

func (p *surgePlugin) ListAndWatch(_ *deviceplugin.Empty, stream grpc.ServerStreamingServer[deviceplugin.ListAndWatchResponse]) error {
	list := &deviceplugin.ListAndWatchResponse{}
	for i := range surgeUnits {
		list.Devices = append(list.Devices, &deviceplugin.Device{ID: fmt.Sprint(i), Health: deviceplugin.Healthy})
	}
	if err := stream.Send(list); err != nil {
		return err
	}
	p.once.Do(func() { close(p.sent) })
	<-stream.Context().Done()
	return nil
}

func startSurgePlugin(t *testing.T, socket string) *surgePlugin {
	t.Helper()
	directory := filepath.Join(kubeletDir, "device-plugins")
	listener, err := net.Listen("unix", filepath.Join(directory, socket))
	if err != nil {
		t.Fatal(err)
	}
	p := &surgePlugin{server: grpc.NewServer(), sent: make(chan struct{})}
	deviceplugin.RegisterDevicePluginServer(p.server, p)
	go func() { _ = p.server.Serve(listener) }()
	t.Cleanup(p.server.Stop)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request := &deviceplugin.RegisterRequest{Version: deviceplugin.Version, Endpoint: socket, ResourceName: surgeName}
	if _, err := deviceplugin.NewRegistrationClient(dial(t, filepath.Join(directory, "kubelet.sock"))).Register(ctx, request); err != nil {
		t.Fatal(err)
	}
	<-p.sent
	return p
}

// Scenario k: a fact that --take-over rests on. A second plugin of a resource registers, then the first one ends: kubelets up to 1.36
// then have no unit until the second registers anew; 1.37 keeps its units.
func TestSecondPluginOfAResource(t *testing.T) {
	n := startNode(t, "inf2.48xlarge")
	n.expectAllocatable(t, patience, counts{24, 12, 0})
	version, err := exec.Command(env.kubelet, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	keeps := !strings.Contains(string(version), " v1.36.")
	client := podResources(t)
	units := func() int {
		t.Helper()
		now, err := allocatable(client)
		if err != nil {
			t.Fatal(err)
		}
		return len(now[surgeName])
	}
	first := startSurgePlugin(t, "surge-1.sock")
	eventually(t, patience, "first plugin's units", func() error { return expectUnits(units(), surgeUnits) })
	startSurgePlugin(t, "surge-2.sock")
	if err := expectUnits(units(), surgeUnits); err != nil {
		t.Errorf("after the second plugin's registration: %v", err)
	}
	least := surgeUnits
	first.server.Stop()
	looks := time.NewTicker(20 * time.Millisecond) // PodResources answers 100 questions a second
	defer looks.Stop()
	for range 100 { // an absence is looked for
		<-looks.C
		least = min(least, units())
	}
	after := units()
	t.Logf("FIGURE %s: first plugin ended: at least %d units, then %d", strings.TrimSpace(string(version)), least, after)
	if want := map[bool]int{true: surgeUnits, false: 0}[keeps]; least != want || after != want {
		t.Errorf("least %d, then %d, want %d: docs/reference/kubelet.md", least, after, want)
	}
}

func expectUnits(found, want int) error {
	if found != want {
		return fmt.Errorf("%d units, want %d", found, want)
	}
	return nil
}

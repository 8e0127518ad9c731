// Program awsplugin stands in for AWS's closed device plugins where a test moves a node from them to ours and back. What it does
// is what is documented of theirs and seen from outside: bare integer ids, one socket per resource with a fixed name, counts of
// neuron and neuroncore that know nothing of each other, no preference, no health, /dev/neuronN and NEURON_RT_VISIBLE_CORES in
// the answer. What theirs does beyond that is not known. Unlike theirs it gives any number of devices, as theirs does for a pod
// that AWS's scheduler extender placed.
//
//	awsplugin neuron|neuroncore|efa...     serves these until SIGTERM
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// service is one resource.
type service struct {
	plugin.UnimplementedDevicePluginServer
	resource, socket string
	units            []string // ids
	nodes            func(ids []string) (paths []string, cores string)
	stop             chan struct{}
}

func (*service) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return &plugin.DevicePluginOptions{}, nil
}

func (s *service) ListAndWatch(_ *plugin.Empty, stream grpc.ServerStreamingServer[plugin.ListAndWatchResponse]) error {
	list := &plugin.ListAndWatchResponse{}
	for _, id := range s.units {
		list.Devices = append(list.Devices, &plugin.Device{ID: id, Health: plugin.Healthy})
	}
	if err := stream.Send(list); err != nil {
		return err
	}
	select {
	case <-s.stop:
	case <-stream.Context().Done():
	}
	return nil
}

func (s *service) Allocate(_ context.Context, request *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	response := &plugin.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		paths, cores := s.nodes(container.DevicesIds)
		answer := &plugin.ContainerAllocateResponse{}
		for _, path := range paths {
			answer.Devices = append(answer.Devices, &plugin.DeviceSpec{ContainerPath: path, HostPath: path, Permissions: "rw"})
		}
		if cores != "" {
			answer.Envs = map[string]string{"NEURON_RT_VISIBLE_CORES": cores}
		}
		response.ContainerResponses = append(response.ContainerResponses, answer)
	}
	return response, nil
}

// serve listens and registers; the socket goes with the server.
func (s *service) serve() (*grpc.Server, error) {
	path := filepath.Join(plugin.DevicePluginPath, s.socket)
	_ = os.Remove(path) // left by a process that was killed
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	plugin.RegisterDevicePluginServer(server, s)
	go func() { _ = server.Serve(listener) }()
	connection, err := grpc.NewClient("unix:"+plugin.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	_, err = plugin.NewRegistrationClient(connection).Register(context.Background(),
		&plugin.RegisterRequest{Version: plugin.Version, Endpoint: s.socket, ResourceName: s.resource})
	return server, err
}

// host is what sysfs shows.
type host struct {
	devices, coresPerDevice int
	verbs                   map[string]string // RDMA device to node
}

func scan() host {
	h := host{verbs: map[string]string{}}
	folders, _ := filepath.Glob("/sys/class/neuron_device/neuron*")
	h.devices = len(folders)
	if text, err := os.ReadFile("/sys/class/neuron_device/neuron0/core_count"); err == nil {
		h.coresPerDevice, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	files, _ := filepath.Glob("/sys/class/infiniband_verbs/uverbs*/ibdev")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			h.verbs[strings.TrimSpace(string(text))] = "/dev/infiniband/" + filepath.Base(filepath.Dir(file))
		}
	}
	return h
}

func (h host) service(name string) (*service, error) {
	s := &service{stop: make(chan struct{})}
	switch name {
	case "neuron":
		s.resource, s.socket, s.units = "aws.amazon.com/neuron", "neuron-devplugin.sock", numbers(h.devices)
		s.nodes = func(ids []string) ([]string, string) {
			return devices(ids), joined(numbers(len(ids) * h.coresPerDevice))
		}
	case "neuroncore":
		s.resource, s.socket = "aws.amazon.com/neuroncore", "neuroncore-devplugin.sock"
		s.units = numbers(h.devices * h.coresPerDevice)
		s.nodes = h.cores
	case "efa":
		s.resource, s.socket = "vpc.amazonaws.com/efa", "aws-efa-device-plugin.sock"
		for rdma := range h.verbs {
			s.units = append(s.units, rdma)
		}
		s.nodes = func(ids []string) (paths []string, _ string) {
			for _, id := range ids {
				paths = append(paths, h.verbs[id])
			}
			return paths, ""
		}
	default:
		return nil, fmt.Errorf("no resource %q: neuron, neuroncore or efa", name)
	}
	return s, nil
}

// cores gives the devices of the cores, and numbers the cores from 0 over these.
func (h host) cores(ids []string) ([]string, string) {
	var given []int
	for _, id := range ids {
		core, _ := strconv.Atoi(id)
		given = append(given, core)
	}
	slices.Sort(given)
	var seen, local []string
	for _, core := range given {
		device := strconv.Itoa(core / h.coresPerDevice)
		if !slices.Contains(seen, device) {
			seen = append(seen, device)
		}
		local = append(local, strconv.Itoa((len(seen)-1)*h.coresPerDevice+core%h.coresPerDevice))
	}
	return devices(seen), joined(local)
}

func devices(ids []string) (paths []string) {
	for _, id := range ids {
		paths = append(paths, "/dev/neuron"+id)
	}
	return paths
}

func numbers(count int) (all []string) {
	for i := range count {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

func joined(ids []string) string { return strings.Join(ids, ",") }

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	h := scan()
	var servers []*grpc.Server
	var services []*service
	for _, name := range os.Args[1:] {
		s, err := h.service(name)
		if err == nil {
			var server *grpc.Server
			if server, err = s.serve(); err == nil {
				servers, services = append(servers, server), append(services, s)
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "awsplugin:", err)
			os.Exit(1)
		}
		fmt.Println("serves", len(s.units), s.resource)
	}
	<-stop
	for i, server := range servers {
		close(services[i].stop)
		server.Stop()
	}
}

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	"neuron-agent.test/suite"
)

// Observe opens the kubelet's PodResources, until the node is rebooted. The caller closes it.
func (n *Node) Observe() (*suite.PodResources, error) {
	return suite.OpenPodResources(n.Disk(n.kubeletRoot()))
}

// Recorded is what the kubelet's checkpoint has of one container.
type Recorded struct {
	PodUID, Container string
	Held              Held
}

// Checkpoint reads what the kubelet has on record, as it last wrote it.
func (n *Node) Checkpoint() ([]Recorded, error) {
	text, err := os.ReadFile(n.Disk(kubeletDir + "/device-plugins/kubelet_internal_checkpoint"))
	if err != nil {
		return nil, err
	}
	var file struct {
		Data struct {
			PodDeviceEntries []struct {
				PodUID, ContainerName, ResourceName string
				DeviceIDs                           map[string][]string // by NUMA node
			}
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	devices := map[[2]string][]*podresources.ContainerDevices{}
	var order [][2]string
	for _, entry := range file.Data.PodDeviceEntries {
		key := [2]string{entry.PodUID, entry.ContainerName}
		if devices[key] == nil {
			order = append(order, key)
		}
		for _, ids := range entry.DeviceIDs {
			devices[key] = append(devices[key], &podresources.ContainerDevices{ResourceName: entry.ResourceName, DeviceIds: ids})
		}
	}
	var all []Recorded
	for _, key := range order {
		all = append(all, Recorded{key[0], key[1], suite.HeldOf(devices[key])})
	}
	return all, nil
}

// Report reads what a probe wrote; an error when it has not written anything.
func (n *Node) Report(pod, container string) (Report, error) {
	path := n.Disk("/var/lib/probe/" + pod + "." + container)
	text, err := os.ReadFile(path)
	if err != nil {
		return Report{}, err
	}
	return Report{Pod: pod, Container: container, Node: n, Report: suite.ParseReport(string(text))}, nil
}

// ReportTimes returns when a probe wrote its report and when it said that it ends; zero where it has not.
func (n *Node) ReportTimes(pod, container string) (began, ended time.Time) {
	path := n.Disk("/var/lib/probe/" + pod + "." + container)
	if file, err := os.Stat(path); err == nil {
		began = file.ModTime()
	}
	if file, err := os.Stat(path + ".end"); err == nil {
		ended = file.ModTime()
	}
	return began, ended
}

// Verbs maps the node's RDMA devices to their nodes below /dev/infiniband.
func (n *Node) Verbs() map[string]string { return suite.VerbsNodes(n.Host()) }

// OwnsCgroup says whether a process with this /proc/PID/cgroup is in a container of the node.
func (n *Node) OwnsCgroup(text string) bool { return strings.Contains(text, n.group()+"/") }

// List is what neuron-ls says on the node.
func (n *Node) List(arguments ...string) (string, error) {
	return suite.Run(filepath.Join(filepath.Dir(env.simulator()), "neuron-ls"), append([]string{"--root", n.Host()}, arguments...)...)
}

// Set changes the simulated host as Inject does.
func (n *Node) Set(target string, actions ...string) error {
	_, err := suite.Run(env.simulator(), append([]string{"set", n.Host(), target}, actions...)...)
	return err
}

// PowerCycle is Reboot for another goroutine than the test's.
func (n *Node) PowerCycle() error { return errors.Join(n.powerOff(), n.PowerOn()) }

// Unplug takes the node's wire away, Plug brings it back.
func (n *Node) Unplug() error { return ip(fmt.Sprintf("link set %s down", nodePort(n.number))) }
func (n *Node) Plug() error   { return ip(fmt.Sprintf("link set %s up", nodePort(n.number))) }

// Programs are kubelet and containerd, for their descriptors.
func (n *Node) Programs() []*Process { return []*Process{n.Kubelet, n.Containerd} }

// WithInit makes the first containers of a workload init containers.
func (w Workload) WithInit(count int) Workload {
	w.Adjust = func(pod *core.PodSpec) {
		pod.InitContainers, pod.Containers = pod.Containers[:count:count], pod.Containers[count:]
		for i := range pod.InitContainers {
			pod.InitContainers[i].Command[2] = "once"
		}
	}
	return w
}

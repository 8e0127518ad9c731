package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/suite"
)

const (
	largeType  = "trn1.32xlarge"
	largeRange = "10.98.0.0/16" // of the agents' pods; the suite's namespace answers for all of these addresses
	largeLabel = "large-test"
	mostMemory = 150 << 20 // of 1,000 nodes
)

// largeFleet is Node objects, each with an agent's pod whose address is a stand-in's.
type largeFleet struct {
	*testing.T
	c        *cluster.Cluster
	nodes    int
	document []byte
	silent   atomic.Int64 // so many agents, the first ones, do not answer
	release  chan struct{}
}

// TestKubectlNeuronSize: `nodes` of many nodes, whose agents answer through the API server's pod proxy, beside kubectl get --raw, and a
// program that only reads the same documents. With CLUSTER_DEEP=1 500 nodes, and the memory of 1,000.
func TestKubectlNeuronSize(t *testing.T) {
	f := &largeFleet{T: t, c: cluster.Get(t), release: make(chan struct{})}
	t.Cleanup(func() { f.c.Kubectl(t, "delete", "nodes", "--selector", largeLabel, "--wait=false") })
	t.Cleanup(func() {
		f.c.Kubectl(t, "-n", system, "delete", "pods", "--selector", largeLabel, "--force", "--grace-period=0", "--wait=false")
	})
	f.makeDocument()
	f.serve()
	f.add(shortOrDeep(60, 500))
	f.compare()
	f.expectDelay()
	f.add(shortOrDeep(0, 500))
	_, peak := f.run()
	figure(t, "kubectl neuron nodes, %d nodes of 16 devices: %.0f MiB at most", f.nodes, mebibytes(peak))
	if peak > mostMemory {
		t.Errorf("%.0f MiB", mebibytes(peak))
	}
}

// makeDocument makes the answer of an agent, one pod of whose node holds some devices.
func (f *largeFleet) makeDocument() {
	host := filepath.Join(f.TempDir(), "host")
	if _, err := suite.Run(fleetProgram("neuron-sim"), "node", host, "--instance-type", largeType); err != nil {
		f.Fatal(err)
	}
	text, err := exec.Command(fleetProgram("neuron-ls"), "--root", host, "--output-format", "json").Output()
	document := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err != nil {
		f.Fatal(err)
	}
	document["pods"] = []map[string]any{{"namespace": "team", "pod": "train-0", "container": "main", "claim": nil, "claim_namespace": nil,
		"devices": []int{0, 1, 2, 3}, "core_ids": []int{0, 1, 2, 3, 4, 5, 6, 7}, "efa_interfaces": []string{}}}
	if f.document, err = json.Marshal(document); err != nil {
		f.Fatal(err)
	}
}

func largeAddress(number int) string { return fmt.Sprintf("10.98.%d.%d", number/250, 1+number%250) }

// serve answers at every address of the range.
func (f *largeFleet) serve() {
	if _, err := suite.Run("ip", "route", "add", "local", largeRange, "dev", "lo"); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _, _ = suite.Run("ip", "route", "del", "local", largeRange, "dev", "lo") })
	listener, err := net.Listen("tcp4", "0.0.0.0:8000")
	if err != nil {
		f.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address := r.Context().Value(http.LocalAddrContextKey).(net.Addr).(*net.TCPAddr).IP.To4()
		if number := int(address[2])*250 + int(address[3]) - 1; number < int(f.silent.Load()) {
			select {
			case <-r.Context().Done():
			case <-f.release:
			}
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(f.document)
	})}
	go func() { _ = server.Serve(listener) }()
	f.Cleanup(func() { close(f.release); _ = server.Close() })
}

// add makes nodes and their agents' pods.
func (f *largeFleet) add(count int) {
	f.Helper()
	var running sync.WaitGroup
	places, failures := make(chan struct{}, 32), make([]error, count)
	for i := range count {
		places <- struct{}{}
		running.Go(func() {
			failures[i] = f.make(f.nodes + i)
			<-places
		})
	}
	running.Wait()
	for _, err := range failures {
		if err != nil {
			f.Fatal(err)
		}
	}
	f.nodes += count
}

func (f *largeFleet) make(number int) error {
	ctx, name := context.Background(), fmt.Sprintf("large-%04d", number)
	room := core.ResourceList{core.ResourceCPU: quantity("128"), core.ResourceMemory: quantity("512Gi"), core.ResourcePods: quantity("110"),
		cluster.Neuron: quantity("16"), cluster.NeuronCore: quantity("32"), cluster.EFA: quantity("8")}
	node := &core.Node{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{core.LabelHostname: name, core.LabelInstanceTypeStable: largeType, largeLabel: ""}},
		Spec: core.NodeSpec{Unschedulable: true}, // of no use to other scenarios
		Status: core.NodeStatus{Capacity: room, Allocatable: room, Conditions: []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue,
			LastHeartbeatTime: meta.Now(), LastTransitionTime: meta.Now()}}}}
	if _, err := f.c.Client.CoreV1().Nodes().Create(ctx, node, meta.CreateOptions{}); err != nil {
		return err
	}
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "agent-" + name, Namespace: system, Labels: map[string]string{"app.kubernetes.io/name": "neuron-agent", largeLabel: ""}},
		Spec: core.PodSpec{NodeName: name, Tolerations: []core.Toleration{{Operator: core.TolerationOpExists}}, Containers: []core.Container{{Name: "neuron-agent",
			Image: "localhost/neuron-agent:0.1.0", Ports: []core.ContainerPort{{Name: "metrics", ContainerPort: 8000}}}}}}
	made, err := f.c.Client.CoreV1().Pods(system).Create(ctx, pod, meta.CreateOptions{})
	if err != nil {
		return err
	}
	address := largeAddress(number)
	made.Status = core.PodStatus{Phase: core.PodRunning, PodIP: address, PodIPs: []core.PodIP{{IP: address}},
		Conditions: []core.PodCondition{{Type: core.PodReady, Status: core.ConditionTrue}}}
	_, err = f.c.Client.CoreV1().Pods(system).UpdateStatus(ctx, made, meta.UpdateOptions{})
	return err
}

// run gives the time and the memory that the program takes, up to its last milliseconds; kubectl beside it is not counted. What the kernel
// reports of a child that has ended is at least the memory of this process.
func (f *largeFleet) run() (time.Duration, int64) {
	f.Helper()
	command := exec.Command(fleetProgram("kubectl-neuron"), "nodes", "--kubeconfig", f.c.Kubeconfig)
	command.Env = append(os.Environ(), "PATH="+cluster.Tools()+":"+os.Getenv("PATH"), "HOME="+f.TempDir())
	var output, problems bytes.Buffer
	command.Stdout, command.Stderr = &output, &problems
	begin := time.Now()
	if err := command.Start(); err != nil {
		f.Fatal(err)
	}
	ended, most := make(chan error), int64(0)
	go func() { ended <- command.Wait() }()
	var err error
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-time.After(5 * time.Millisecond):
			if kibibytes, unread := suite.Status(command.Process.Pid, "VmHWM"); unread == nil {
				most = max(most, kibibytes<<10)
			}
		}
	}
	took := time.Since(begin)
	if lines := strings.Count(output.String(), "\nlarge-"); err != nil || lines != f.nodes {
		f.Fatalf("%v: %d of %d nodes: %s%s", err, lines, f.nodes, problems.String(), output.String())
	}
	if unknown := strings.Contains(output.String(), "without an answer"); f.silent.Load() > 0 && !unknown {
		f.Fatalf("%d agents are silent: %s", f.silent.Load(), output.String()[strings.LastIndex(output.String(), "\n\n"):])
	}
	return took, most
}

// readAll calls get for each document that the program reads: for the lists at once, then for all agents' answers, so many at a time.
func (f *largeFleet) readAll(places int, get func(path string)) {
	var running sync.WaitGroup
	for _, list := range []string{"/api/v1/nodes", "/api/v1/pods", "/apis/resource.k8s.io/v1/resourceslices", "/apis/resource.k8s.io/v1/resourceclaims",
		"/apis/resource.k8s.io/v1/deviceclasses"} {
		running.Go(func() { get(list) })
	}
	running.Wait()
	taken := make(chan struct{}, places)
	for i := range f.nodes {
		taken <- struct{}{}
		running.Go(func() {
			get(fmt.Sprintf("/api/v1/namespaces/%s/pods/http:agent-large-%04d:8000/proxy/node", system, i))
			<-taken
		})
	}
	running.Wait()
}

// readRaw reads each document with `kubectl get --raw`, as many at a time as are the quickest on few cores.
func (f *largeFleet) readRaw() time.Duration {
	f.Helper()
	begin := time.Now()
	f.readAll(2*runtime.NumCPU(), func(path string) {
		command := exec.Command(filepath.Join(cluster.Tools(), "kubectl"), "--kubeconfig", f.c.Kubeconfig, "get", "--raw", path)
		if err := command.Run(); err != nil { // its output goes to /dev/null
			f.Errorf("%s: %v", path, err)
		}
	})
	return time.Since(begin)
}

// readOnly reads each document through one `kubectl proxy`, as many at a time as kubectl-neuron.
func (f *largeFleet) readOnly() time.Duration {
	f.Helper()
	begin := time.Now()
	proxy := exec.Command(filepath.Join(cluster.Tools(), "kubectl"), "--kubeconfig", f.c.Kubeconfig, "proxy", "--port=0")
	output, err := proxy.StdoutPipe()
	if err == nil {
		err = proxy.Start()
	}
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = proxy.Process.Kill(); _ = proxy.Wait() }()
	var address string
	if _, err := fmt.Fscanf(output, "Starting to serve on %s", &address); err != nil {
		f.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	f.readAll(64, func(path string) {
		answer, err := client.Get("http://" + address + path)
		if err != nil {
			f.Error(err)
			return
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			f.Errorf("%s: %s, %v", path, answer.Status, err)
		}
	})
	return time.Since(begin)
}

func (f *largeFleet) compare() {
	var plain, full []time.Duration
	for range shortOrDeep(1, 5) {
		plain = append(plain, f.readOnly())
		took, _ := f.run()
		full = append(full, took)
	}
	own, other := slices.Min(full), slices.Min(plain) // the least disturbed of each
	raw := f.readRaw()
	ratio, literal := own.Seconds()/other.Seconds(), own.Seconds()/raw.Seconds()
	figure(f.T, "kubectl neuron nodes, %d nodes of 16 devices: %.2f s; the same documents through kubectl get --raw %.2f s, ratio %.2f; through one kubectl proxy alone %.2f s, ratio %.2f; an agent's answer has %d kB",
		f.nodes, own.Seconds(), raw.Seconds(), literal, other.Seconds(), ratio, len(f.document)/1000)
	if literal > 1.5 || deep() && (own > 3*time.Second || ratio > 2.5) { // docs/performance.md has the goal
		f.Errorf("%v, %.2f times kubectl get --raw, %.2f times the plain reading", own, literal, ratio)
	}
}

// expectDelay: agents that do not answer delay the others by 2 s.
func (f *largeFleet) expectDelay() {
	without, _ := f.run()
	f.silent.Store(5)
	with, _ := f.run()
	f.silent.Store(0)
	figure(f.T, "kubectl neuron nodes, %d nodes: %.2f s, with 5 agents that do not answer %.2f s", f.nodes, without.Seconds(), with.Seconds())
	if with > without+2*time.Second+time.Second { // what the machine does meanwhile
		f.Errorf("%v instead of %v", with, without)
	}
}

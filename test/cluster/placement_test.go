package scenarios

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
	"neuron-agent.test/cluster/extender"
	"neuron-agent.test/suite"
)

const placer = "my-scheduler"

// startPlacer starts a second scheduler with the extender behind it, configured as AWS's is.
func startPlacer(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: extender.New(c.Client)}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	c.StartSchedulerOf(t, placer, fmt.Sprintf(`extenders:
- urlPrefix: http://%s
  filterVerb: filter
  bindVerb: bind
  weight: 1
  enableHTTPS: false
  nodeCacheCapable: true
  ignorable: false
  managedResources:
  - {name: aws.amazon.com/neuron, ignoredByScheduler: false}
  - {name: aws.amazon.com/neuroncore, ignoredByScheduler: false}
`, listener.Addr()))
}

// expectPlaced: the kubelet's record has the ids that are written on the pod, and the agent has said so.
func expectPlaced(t *testing.T, c *cluster.Cluster, w cluster.Workload) {
	t.Helper()
	reports := c.ReportsOf(t, "default", w.Name)
	cluster.Eventually(t, cluster.Patience, w.Name+" is acknowledged", func() error {
		pod, err := c.Client.CoreV1().Pods("default").Get(context.Background(), w.Name, meta.GetOptions{})
		if err != nil {
			return err
		}
		if got := pod.Annotations[extender.Allocated]; got != "true" {
			return fmt.Errorf("%s is %q", extender.Allocated, got)
		}
		ids, err := extender.Parse(pod)
		if err != nil || len(ids) == 0 {
			return errors.Join(err, errors.New("no ids"))
		}
		var want, got []string
		for _, id := range ids {
			want = append(want, strconv.Itoa(id))
		}
		for i, container := range w.Containers {
			for _, name := range []core.ResourceName{cluster.Neuron, cluster.NeuronCore} {
				if container.Ask[name] != "" {
					got = append(got, reports[i].Held[name]...)
				}
			}
		}
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s holds %v, written are %v", w.Name, got, want)
		}
		return nil
	})
}

// awaitFollowed: an agent that does not yet see the pods of its node, as while its role is new, chooses by itself and answers no
// placement. Pods are placed until one is acknowledged.
func awaitFollowed(t *testing.T, c *cluster.Cluster, first cluster.Workload) {
	t.Helper()
	const most, each = 12, 5 * time.Second
	var err error
	for i := range most {
		w := first
		w.Name = fmt.Sprintf("%s-%d", first.Name, i)
		c.StartPod(t, w)
		err = suite.Wait(each, w.Name+" is acknowledged", func() error {
			pod, err := c.Client.CoreV1().Pods("default").Get(context.Background(), w.Name, meta.GetOptions{})
			if err == nil && pod.Annotations[extender.Allocated] != "true" {
				err = fmt.Errorf("%s is %q", extender.Allocated, pod.Annotations[extender.Allocated])
			}
			return err
		})
		c.DeletePod(t, "default", w.Name)
		if err == nil {
			return
		}
		t.Logf("not yet followed: %v", err)
	}
	t.Fatal(err)
}

// TestPlacedByAnExtender: pods that an extender places, as AWS's and HAMi do, hold the devices and cores that it has written on them,
// which are not those that the agent would choose.
func TestPlacedByAnExtender(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, cluster.Trn1)[0]
	whole := cluster.Counts{Cores: 32, Devices: 16, EFAs: 8}
	dir := cluster.Copy(t, "manifests")
	text := "resources: [manifests/base]\ncomponents: [manifests/components/honor-placement]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kubectl(t, "delete", "--ignore-not-found", "-k", dir)
		c.ExpectNoPods(t, system, agentPod)
	})
	c.Kubectl(t, "apply", "-k", dir)
	n.ExpectAllocatable(t, whole)
	startPlacer(t, c)
	mine := func(spec *core.PodSpec) { spec.SchedulerName = placer }
	followed := cluster.One("placed-first", cluster.Ask{cluster.Neuron: "1"})
	followed.Node, followed.Adjust = n.Name, mine
	awaitFollowed(t, c, followed)
	all := []cluster.Workload{
		cluster.One("placed-device", cluster.Ask{cluster.Neuron: "1"}),
		cluster.One("placed-four", cluster.Ask{cluster.Neuron: "4"}),
		cluster.One("placed-cores", cluster.Ask{cluster.NeuronCore: "2"}),
		{Name: "placed-twice", Containers: []cluster.Container{
			{Name: "one", Ask: cluster.Ask{cluster.Neuron: "1"}}, {Name: "two", Ask: cluster.Ask{cluster.Neuron: "1"}}}},
	}
	for i := range all {
		all[i].Node, all[i].Adjust = n.Name, mine
		c.StartPod(t, all[i])
		expectPlaced(t, c, all[i])
	}
	log := c.Kubectl(t, "-n", system, "logs", "daemonset/neuron-agent")
	if strings.Contains(log, "placement not honored") {
		t.Errorf("the agent's log:\n%s", log)
	}
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"neuron-agent.test/suite"
)

// DefaultAgent is the DaemonSet of the default manifest, for tests that change something about it.
func DefaultAgent(t testing.TB) *apps.DaemonSet {
	t.Helper()
	file, err := os.Open(Manifest("static/neuron-agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	set := &apps.DaemonSet{}
	if err := yaml.NewYAMLOrJSONDecoder(file, 4096).Decode(set); err != nil || set.Kind != "DaemonSet" {
		t.Fatalf("%s: %v, want a DaemonSet: %v", file.Name(), set.Kind, err)
	}
	return set
}

// ScanningOften is a copy of a manifest below manifests/ whose agents scan every second, for tests that break and heal much.
func ScanningOften(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(Manifest(name))
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(text), "\n            - run\n")
	if !found {
		t.Fatalf("%s: no arguments of the agent", name)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(name))
	if err := os.WriteFile(path, []byte(before+"\n            - run\n            - --scan-interval=1s\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// StartAgent makes a DaemonSet and deletes it with its pods after the test.
func (c *Cluster) StartAgent(t testing.TB, set *apps.DaemonSet) {
	t.Helper()
	if _, err := c.Client.AppsV1().DaemonSets(set.Namespace).Create(context.Background(), set, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.DeleteAgent(t, set) })
}

// DeleteAgent deletes a DaemonSet and waits until its pods are gone from the API.
func (c *Cluster) DeleteAgent(t testing.TB, set *apps.DaemonSet) {
	t.Helper()
	background := meta.DeletePropagationBackground
	err := c.Client.AppsV1().DaemonSets(set.Namespace).Delete(context.Background(), set.Name,
		meta.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	c.ExpectNoPods(t, set.Namespace, meta.FormatLabelSelector(set.Spec.Selector))
}

// TagImage gives an image of the node a second name.
func (n *Node) TagImage(t testing.TB, from, to string) {
	t.Helper()
	if err := n.engine().tag(n, from, to); err != nil {
		t.Fatal(err)
	}
}

// AddStandIn gives the node an image "NAME:TAG" that stands in for a published one: the probe, until it is ended.
func (n *Node) AddStandIn(t testing.TB, name string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stand-in.tar")
	err := suite.WriteProbeImageAs(path, "docker.io/library/"+name, "/probe", "main", "stay")
	if err = errors.Join(err, n.importImages(path)); err != nil {
		t.Fatal(err)
	}
}

// KubeletAllocatable is what the kubelet itself would hand out: it counts the healthy units of each resource, held or not.
func (n *Node) KubeletAllocatable() (Counts, error) {
	observer, err := n.Observe()
	if err != nil {
		return Counts{}, err
	}
	defer observer.Close()
	held, err := observer.Allocatable(5 * time.Second)
	return CountsOf(held), err
}

// ExpectKubeletAllocatable waits until the kubelet would hand out exactly this.
func (n *Node) ExpectKubeletAllocatable(t testing.TB, want Counts) {
	t.Helper()
	Eventually(t, Patience, fmt.Sprintf("%s: the kubelet offers %+v", n.Name, want), func() error {
		if err := n.Running(); err != nil {
			return suite.Permanent(err)
		}
		now, err := n.KubeletAllocatable()
		if err == nil && now != want {
			err = fmt.Errorf("it is %+v", now)
		}
		return err
	})
}

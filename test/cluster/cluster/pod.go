package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/suite"
)

// StartPod makes the workload a pod of its own, which no controller makes again, and deletes it after the test.
func (c *Cluster) StartPod(t testing.TB, w Workload) {
	t.Helper()
	template := w.PodTemplate()
	pod := &core.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = w.Name
	c.CreatePod(t, w.namespace(), pod)
}

// CreatePod creates a pod and deletes it after the test.
func (c *Cluster) CreatePod(t testing.TB, namespace string, pod *core.Pod) {
	t.Helper()
	if _, err := c.Client.CoreV1().Pods(namespace).Create(context.Background(), pod, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.DeletePod(t, namespace, pod.Name) })
}

// DeletePod deletes a pod, if it is there, and waits until it is gone from the API.
func (c *Cluster) DeletePod(t testing.TB, namespace, name string) {
	t.Helper()
	pods := c.Client.CoreV1().Pods(namespace)
	err := pods.Delete(context.Background(), name, meta.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	Eventually(t, Patience, name+" is gone", func() error {
		pod, err := pods.Get(context.Background(), name, meta.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = errors.New(describe(pod))
		}
		return err
	})
}

// ReportsOf waits until every container of one pod has reported, whatever made the pod. The pod's main program has to be the
// probe, with /var/lib/probe of the node at /out.
func (c *Cluster) ReportsOf(t testing.TB, namespace, name string) []Report {
	t.Helper()
	var reports []Report
	Eventually(t, Patience, name+" reports", func() error {
		pod, err := c.Client.CoreV1().Pods(namespace).Get(context.Background(), name, meta.GetOptions{})
		if err != nil {
			return err
		}
		if pod.Status.Phase == core.PodFailed {
			return suite.Permanent(errors.New(describe(pod)))
		}
		if reports, err = c.reports(pod); err != nil {
			return fmt.Errorf("%s: %w", describe(pod), err)
		}
		return nil
	})
	return reports
}

const kubectlPause = 200 * time.Millisecond // between two calls of kubectl, which takes a processor for half of that

// AwaitSaid waits until kubectl, with these arguments, prints every phrase, and returns what it printed. It may fail meanwhile.
func (c *Cluster) AwaitSaid(t testing.TB, phrases []string, arguments ...string) string {
	t.Helper()
	var said string
	err := suite.WaitEvery(kubectlPause, Patience, fmt.Sprintf("kubectl %s says %q", strings.Join(arguments, " "), phrases), func() error {
		said, _ = c.TryKubectl(arguments...)
		for _, phrase := range phrases {
			if !strings.Contains(said, phrase) {
				return fmt.Errorf("no %q in:\n%s", phrase, said)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return said
}

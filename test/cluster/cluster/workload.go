package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/suite"
)

// Ask is what one container asks for, resource to quantity.
type Ask = suite.Ask

// Container is one container that runs the probe.
type Container struct {
	Name string
	Ask  Ask
}

// Workload is a pod of probes.
type Workload struct {
	Name       string
	Namespace  string // empty: default
	Containers []Container
	Node       string              // empty: the scheduler chooses
	Life       string              // "once", "stay" until deleted, or a number of seconds; empty: stay
	Adjust     func(*core.PodSpec) // may change what the fields above make; nil: nothing
}

// One is a workload with a single container, "main".
func One(name string, ask Ask) Workload {
	return Workload{Name: name, Containers: []Container{{"main", ask}}}
}

func (w Workload) namespace() string {
	if w.Namespace == "" {
		return "default"
	}
	return w.Namespace
}

// PodTemplate is the pod of the workload, for whatever controller.
func (w Workload) PodTemplate() core.PodTemplateSpec {
	grace, life := int64(1), w.Life
	if life == "" {
		life = "stay"
	}
	template := core.PodTemplateSpec{
		ObjectMeta: meta.ObjectMeta{Labels: map[string]string{"workload": w.Name}},
		Spec: core.PodSpec{
			RestartPolicy: core.RestartPolicyNever, TerminationGracePeriodSeconds: &grace, DNSPolicy: core.DNSDefault,
			Volumes: []core.Volume{suite.ReportVolume("/var/lib/probe")},
		},
	}
	if w.Node != "" {
		template.Spec.NodeSelector = map[string]string{core.LabelHostname: w.Node}
	}
	podName := core.EnvVar{ValueFrom: &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{FieldPath: "metadata.name"}}}
	for _, c := range w.Containers {
		template.Spec.Containers = append(template.Spec.Containers, suite.ProbeContainer(c.Name, c.Ask, life, podName))
	}
	if w.Adjust != nil {
		w.Adjust(&template.Spec)
	}
	return template
}

// StartJob makes a Job of one pod, which the scheduler places, and deletes it with its pod after the test.
func (c *Cluster) StartJob(t testing.TB, w Workload) {
	t.Helper()
	never, jobs := int32(0), c.Client.BatchV1().Jobs(w.namespace())
	job := &batch.Job{
		ObjectMeta: meta.ObjectMeta{Name: w.Name},
		Spec:       batch.JobSpec{BackoffLimit: &never, Template: w.PodTemplate()},
	}
	if _, err := jobs.Create(context.Background(), job, meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.DeleteJob(t, w) })
}

// DeleteJob deletes Jobs and waits until their pods are gone from the API.
func (c *Cluster) DeleteJob(t testing.TB, all ...Workload) {
	t.Helper()
	background := meta.DeletePropagationBackground
	for _, w := range all {
		err := c.Client.BatchV1().Jobs(w.namespace()).Delete(context.Background(), w.Name,
			meta.DeleteOptions{PropagationPolicy: &background})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	for _, w := range all {
		c.ExpectNoPods(t, w.namespace(), "workload="+w.Name)
	}
}

// Pods lists the pods that a label selector selects.
func (c *Cluster) Pods(namespace, selector string) ([]core.Pod, error) {
	list, err := c.Client.CoreV1().Pods(namespace).List(context.Background(), meta.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ExpectNoPods waits until no pod is selected.
func (c *Cluster) ExpectNoPods(t testing.TB, namespace, selector string) {
	t.Helper()
	Eventually(t, Patience, "no pods of "+selector, func() error {
		pods, err := c.Pods(namespace, selector)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d are there, the first is %s", len(pods), describe(&pods[0]))
		}
		return err
	})
}

// describe says in one line how a pod fares.
func describe(pod *core.Pod) string {
	text := fmt.Sprintf("%s on %q: %s %s %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.Reason, pod.Status.Message)
	for _, condition := range pod.Status.Conditions {
		if condition.Status != core.ConditionTrue && condition.Message != "" {
			text += "; " + condition.Message
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil {
			text += "; " + status.Name + " " + waiting.Reason + " " + waiting.Message
		}
	}
	return text
}

// Report is what a probe found inside its container, and what the kubelet says that it holds.
type Report struct {
	Pod, Container string
	Node           *Node
	suite.Report
	Held Held
}

// AwaitReports waits until every container of the workload's single pod has reported, in the order of the containers.
func (c *Cluster) AwaitReports(t testing.TB, w Workload) []Report {
	t.Helper()
	var reports []Report
	Eventually(t, Patience, w.Name+" reports", func() error {
		pods, err := c.Pods(w.namespace(), "workload="+w.Name)
		if err != nil {
			return err
		}
		if len(pods) != 1 {
			return fmt.Errorf("%d pods", len(pods))
		}
		if pods[0].Status.Phase == core.PodFailed {
			return suite.Permanent(errors.New(describe(&pods[0])))
		}
		reports, err = c.reports(&pods[0])
		if err != nil {
			return fmt.Errorf("%s: %w", describe(&pods[0]), err)
		}
		return nil
	})
	return reports
}

func (c *Cluster) reports(pod *core.Pod) ([]Report, error) {
	n := c.nodes[pod.Spec.NodeName]
	if n == nil {
		return nil, errors.New("not placed on a node that runs")
	}
	if err := n.Running(); err != nil {
		return nil, suite.Permanent(err)
	}
	held, err := n.Holdings()
	if err != nil {
		return nil, err
	}
	var reports []Report
	for _, container := range pod.Spec.Containers {
		r, err := n.Report(pod.Name, container.Name)
		if err != nil {
			return nil, err
		}
		r.Held = held[pod.Namespace+"/"+pod.Name+"/"+container.Name]
		reports = append(reports, r)
	}
	return reports, nil
}

// ExpectGiven: the container holds as many as it asked for, and sees exactly what it holds.
func (r Report) ExpectGiven(t testing.TB, ask Ask, coresPerDevice int) {
	t.Helper()
	for _, name := range []core.ResourceName{NeuronCore, Neuron, EFA} {
		if want := ask[name]; strconv.Itoa(len(r.Held[name])) != want && (want != "" || len(r.Held[name]) > 0) {
			t.Errorf("%s/%s holds %s %v, asked for %q", r.Pod, r.Container, name, r.Held[name], want)
		}
	}
	if err := r.CheckGiven(r.Held, coresPerDevice, r.Node.Verbs()); err != nil {
		t.Errorf("%s/%s: %v", r.Pod, r.Container, err)
	}
}

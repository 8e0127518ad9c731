package kubelettest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/suite"
)

// ask is what one container asks for, resource to quantity.
type ask = suite.Ask

// container describes one test container. It runs the probe and then stays, init containers end.
type container struct {
	name string
	ask  ask
}

// podSpec describes a test pod.
type podSpec struct {
	name       string
	init       []container
	containers []container
	user       int64 // 0: root
}

// onePod is a pod with a single container called "main".
func onePod(name string, a ask) podSpec {
	return podSpec{name: name, containers: []container{{"main", a}}}
}

// staticName is the name the kubelet gives a static pod on the node "localhost".
func staticName(pod string) string { return pod + "-localhost" }

func (s podSpec) build() *core.Pod {
	grace := int64(10) // a container on a busy machine may need a second for its last word
	pod := &core.Pod{
		TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta.ObjectMeta{Name: s.name, Namespace: "default"},
		Spec: core.PodSpec{
			HostNetwork: true, DNSPolicy: core.DNSDefault, TerminationGracePeriodSeconds: &grace,
			RestartPolicy:   core.RestartPolicyAlways,
			SecurityContext: &core.PodSecurityContext{},
		},
	}
	if s.user != 0 {
		group, files := s.user+1000, s.user+2000 // uid 1000, gid 2000, fsGroup 3000 in the EKS tests
		pod.Spec.SecurityContext = &core.PodSecurityContext{RunAsUser: &s.user, RunAsGroup: &group, FSGroup: &files}
	}
	pod.Spec.Volumes = []core.Volume{suite.ReportVolume(filepath.Join(env.work, "n", "reports"))}
	for _, c := range s.init {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, s.container(c, "once"))
	}
	for _, c := range s.containers {
		pod.Spec.Containers = append(pod.Spec.Containers, s.container(c, "stay"))
	}
	return pod
}

func (s podSpec) container(c container, life string) core.Container {
	return suite.ProbeContainer(c.name, c.ask, life, core.EnvVar{Value: s.name})
}

func (n *node) podFile(s podSpec) string { return filepath.Join(n.pods, s.name+".json") }

// submit writes the pod's file where the kubelet finds it and removes pod and file after the test.
func (n *node) submit(t *testing.T, s podSpec) {
	t.Helper()
	text, err := json.Marshal(s.build())
	if err != nil {
		t.Fatal(err)
	}
	hidden, final := filepath.Join(n.pods, "."+s.name), n.podFile(s)
	if err := os.WriteFile(hidden, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(hidden, final); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.remove(t, s) })
}

// remove deletes the pod and waits until the kubelet has forgotten it.
func (n *node) remove(t *testing.T, s podSpec) {
	t.Helper()
	if os.Remove(n.podFile(s)) != nil {
		return // already removed by the test
	}
	n.awaitGone(t, s)
}

// removeAll deletes pods at one moment and waits until the kubelet has forgotten all of them.
func (n *node) removeAll(t *testing.T, pods []podSpec) {
	t.Helper()
	for _, s := range pods {
		_ = os.Remove(n.podFile(s))
	}
	for _, s := range pods {
		n.awaitGone(t, s)
	}
}

// awaitGone waits until the kubelet has forgotten the pod and removes its reports.
func (n *node) awaitGone(t *testing.T, s podSpec) {
	t.Helper()
	n.awaitForgotten(t, s)
	n.removeReports(s)
}

func (n *node) awaitForgotten(t *testing.T, s podSpec) {
	t.Helper()
	eventually(t, patience, s.name+" is gone", func() error {
		pod, err := n.status(s.name)
		if err == nil && pod != nil {
			return fmt.Errorf("phase %s", pod.Status.Phase)
		}
		return err
	})
}

func (n *node) removeReports(s podSpec) {
	for _, c := range slices.Concat(s.init, s.containers) {
		_ = os.Remove(filepath.Join(n.reports, s.name+"."+c.name))
		_ = os.Remove(filepath.Join(n.reports, s.name+"."+c.name+".end"))
	}
}

// status reads a pod from the kubelet; nil when the kubelet does not know it.
func (n *node) status(pod string) (*core.Pod, error) {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/pods", n.readOnly))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var list core.PodList
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].Name == staticName(pod) {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// containerIDs returns container name to "id restarts" for the running containers of a pod.
func (n *node) containerIDs(t *testing.T, pod string) map[string]string {
	t.Helper()
	found, err := n.status(pod)
	if err != nil || found == nil {
		t.Fatalf("pod %s: %v, %v", pod, found, err)
	}
	ids := map[string]string{}
	for _, c := range found.Status.ContainerStatuses {
		if c.State.Running != nil {
			ids[c.Name] = fmt.Sprintf("%s restarts=%d", c.ContainerID, c.RestartCount)
		}
	}
	return ids
}

// expectRefused waits until the kubelet refused the pod and returns the message that its user sees.
func (n *node) expectRefused(t *testing.T, s podSpec) string {
	t.Helper()
	n.submit(t, s)
	message := n.awaitStart(t, s)
	if message == "" {
		t.Fatalf("%s runs, but had to be refused", s.name)
	}
	t.Logf("%s: %s", s.name, message)
	return message
}

// awaitStart waits until the pod runs or was refused; the refusal, or "".
func (n *node) awaitStart(t *testing.T, s podSpec) string {
	t.Helper()
	message := ""
	eventually(t, patience, s.name+" runs or is refused", func() error {
		n.alive(t)
		pod, err := n.status(s.name)
		if err != nil || pod == nil {
			return fmt.Errorf("not known (%v)", err)
		}
		if pod.Status.Phase == core.PodFailed {
			message = pod.Status.Reason + ": " + pod.Status.Message
			return nil
		}
		if pod.Status.Phase != core.PodRunning {
			return fmt.Errorf("phase %s, %s", pod.Status.Phase, waitingFor(pod))
		}
		return nil
	})
	return message
}

// report is what a probe found inside its container.
type report = suite.Report

// expectRunning submits the pod and returns the reports of its containers, init containers included.
func (n *node) expectRunning(t *testing.T, s podSpec) map[string]report {
	t.Helper()
	n.submit(t, s)
	return n.awaitReports(t, s)
}

// awaitReports waits until every container of a submitted pod has reported.
func (n *node) awaitReports(t *testing.T, s podSpec) map[string]report {
	t.Helper()
	reports := map[string]report{}
	for _, c := range slices.Concat(s.init, s.containers) {
		path := filepath.Join(n.reports, s.name+"."+c.name)
		eventually(t, patience, s.name+"."+c.name+" reports", func() error {
			n.alive(t)
			text, err := os.ReadFile(path)
			if err == nil {
				reports[c.name] = suite.ParseReport(string(text))
				return nil
			}
			pod, statusErr := n.status(s.name)
			if statusErr == nil && pod != nil && pod.Status.Phase == core.PodFailed {
				t.Fatalf("%s was refused: %s", s.name, pod.Status.Message)
			}
			if pod != nil {
				return fmt.Errorf("phase %s, %s", pod.Status.Phase, waitingFor(pod))
			}
			return err
		})
	}
	return reports
}

func waitingFor(pod *core.Pod) string {
	var reasons []string
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.State.Waiting != nil {
			reasons = append(reasons, c.Name+" "+c.State.Waiting.Reason+" "+c.State.Waiting.Message)
		}
	}
	return strings.Join(reasons, "; ")
}

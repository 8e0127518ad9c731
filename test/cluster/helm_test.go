package scenarios

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"neuron-agent.test/cluster/cluster"
)

// TestHelm: install, test, upgrade, rollback and uninstall, with a pod that holds devices all the time.
func TestHelm(t *testing.T) {
	if _, err := os.Stat(cluster.Tool("helm")); err != nil {
		t.Fatal(err, "; test/helm/run.sh --command FILE builds it")
	}
	c := cluster.Get(t)
	node := c.Nodes(t, cluster.Trn1)[0]
	whole := cluster.Counts{Cores: 32, Devices: 16, EFAs: 8}
	helm := func(line string, values ...any) string {
		return c.Shell(t, "helm -n "+system+" "+fmt.Sprintf(line, values...))
	}
	const chart = "neuron-agent manifests/helm/neuron-agent"
	t.Cleanup(func() {
		_, _ = c.TryKubectl("-n", system, "delete", "daemonset,pod", "-l", "app.kubernetes.io/instance=neuron-agent")
	})
	notes := helm("install %s --wait --timeout 60s", chart)
	if !strings.Contains(notes, "DaemonSet neuron-agent") {
		t.Errorf("notes:\n%s", notes)
	}
	node.ExpectAllocatable(t, whole)
	if out := helm("test neuron-agent --timeout 60s"); !strings.Contains(out, "Succeeded") {
		t.Errorf("helm test says\n%s", out)
	}

	ask := cluster.Ask{cluster.Neuron: "2"}
	job := cluster.One("through-helm", ask)
	c.StartJob(t, job)
	c.AwaitReports(t, job)[0].ExpectGiven(t, ask, 2)

	arguments := func() string { return strings.Join(runningAgentOn(t, c, node).Spec.Containers[0].Args, " ") }
	helm("upgrade %s --wait --timeout 60s --set logLevel=debug", chart)
	if got := arguments(); got != "run --take-over --metrics-address=:8000 --log-level=debug" {
		t.Errorf("after the upgrade it runs with %q", got)
	}
	helm("rollback neuron-agent 1 --wait --timeout 60s")
	if got := arguments(); got != "run --take-over --metrics-address=:8000" {
		t.Errorf("after the rollback it runs with %q", got)
	}
	node.ExpectAllocatable(t, cluster.Counts{Cores: 28, Devices: 16, EFAs: 8}) // the pod's two devices are still held
	c.DeleteJob(t, job)
	node.ExpectAllocatable(t, whole)

	helm("uninstall neuron-agent --wait --timeout 60s")
	c.ExpectNoPods(t, system, agentPod)
	node.ExpectAllocatable(t, cluster.Counts{})
	left := c.Kubectl(t, "get", "all,configmap,secret,serviceaccount,clusterrole,clusterrolebinding", "-A",
		"-l", "app.kubernetes.io/managed-by=Helm", "-o", "name")
	if strings.TrimSpace(left) != "" {
		t.Errorf("left behind: %s", left)
	}
}

package scenarios

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"neuron-agent.test/cluster/cluster"
)

// trainingOperator is its controller of PyTorchJobs, without webhook: queueing/training-operator/main.go says why.
var trainingOperator = cluster.System{
	Name: "training-operator", Namespace: "kubeflow", Manifests: []string{"manifests/overlays/standalone"},
	Programs: []cluster.Program{{Name: "training-operator", Account: "training-operator"}},
}

func ddp(name string) submission {
	return submission{system: trainingOperator.Name, file: "ddp.yaml", name: name, life: "fail",
		selector: "training.kubeflow.org/job-name=" + name}
}

// TestTrainingOperator: a PyTorchJob with one rank for each of two nodes, whose containers are started again where they are.
func TestTrainingOperator(t *testing.T) {
	cluster.NeedsSystem(t, trainingOperator.Name)
	c := cluster.Get(t)
	nodes := startFour(t, c)
	c.StartSystem(t, trainingOperator)
	typeRecipe(t, c, nodes, "PyTorchJob under the training operator", "training:1", ddp("ddp").selector, 2, cluster.Counts{Devices: 16, EFAs: 8})
	job := ddp("ddp")
	submit(t, c, job)
	ranks := awaitRanks(t, c, job.selector, 2, wholeNode)
	for _, r := range ranks {
		for variable, want := range map[string]string{"NEURON_RT_NUM_CORES": "32", "NEURON_RT_VISIBLE_CORES": "0-31",
			"PET_RDZV_BACKEND": "etcd", "PET_RDZV_ENDPOINT": "etcd:2379", "PET_NNODES": "1:64", "PET_MAX_RESTARTS": "100"} {
			if got := r.report.Env[variable]; got != want {
				t.Errorf("%s: %s is %q, want %q", r.pod.Name, variable, got, want)
			}
		}
	}
	c.AwaitSaid(t, []string{"cpuyeah"}, "get", "hpa", job.name, "-o", "jsonpath={.spec.metrics[*].resource.name}")

	begin := time.Now()
	expectStartedAgain(t, c, ranks[0])
	cluster.Figure(t, "PyTorchJob: one rank killed, it runs again", time.Since(begin))
	drainRank(t, c, "PyTorchJob: a node drained, its rank runs elsewhere", ranks[1], job.selector, 2, wholeNode, ranks[1])
}

// expectStartedAgain kills a rank; the kubelet starts its container again, and it has what it had.
func expectStartedAgain(t *testing.T, c *cluster.Cluster, r rank) {
	t.Helper()
	began, _ := r.report.Node.ReportTimes(r.pod.Name, r.report.Container)
	r.report.Node.KillPod(t, string(r.pod.UID))
	cluster.Eventually(t, cluster.Patience, r.pod.Name+" reports a second time", func() error {
		if now, _ := r.report.Node.ReportTimes(r.pod.Name, r.report.Container); !now.After(began) {
			return fmt.Errorf("its report is of %v", now)
		}
		return nil
	})
	if now := c.ReportsOf(t, "default", r.pod.Name)[0]; !reflect.DeepEqual(now.Held, r.report.Held) {
		t.Errorf("%s holds %v, had %v", r.pod.Name, now.Held, r.report.Held)
	} else {
		now.ExpectGiven(t, wholeNode, 2)
	}
}

package scenarios

import (
	"testing"

	"neuron-agent.test/cluster/cluster"
)

// mpiOperator has no webhooks.
var mpiOperator = cluster.System{
	Name: "mpi-operator", Namespace: "mpi-operator", Manifests: []string{"manifests/overlays/standalone"},
	Programs: []cluster.Program{{Name: "mpi-operator", Account: "mpi-operator", Arguments: []string{"-alsologtostderr",
		"--lock-namespace=mpi-operator"}}},
}

const mpiWorkers = "training.kubeflow.org/job-role=worker,training.kubeflow.org/job-name="

// nccom fails when it is ended: a launcher that is evicted and ends with 0 may count as done, as in training(), and the whole job with it.
func nccom(name string) submission {
	return submission{system: mpiOperator.Name, file: "nccom.yaml", name: name, life: "fail", selector: "training.kubeflow.org/job-name=" + name}
}

// TestMPIOperator: the MPIJob with which EKS tests collective communication between nodes, two workers that ask for both names.
func TestMPIOperator(t *testing.T) {
	cluster.NeedsSystem(t, mpiOperator.Name)
	c := cluster.Get(t)
	nodes := startFour(t, c)
	c.StartSystem(t, mpiOperator)
	typeRecipe(t, c, nodes, "nccom under the MPI operator", "neuron-test:1", mpiWorkers+"nccom", 2,
		cluster.Counts{Cores: 32, Devices: 16, EFAs: 8})
	both := cluster.Ask{cluster.Neuron: "16", cluster.NeuronCore: "32", cluster.EFA: "8"}
	first := nccom("nccom-probe")
	workers := mpiWorkers + first.name
	withdraw := submit(t, c, first)
	ranks := awaitRanks(t, c, workers, 2, both)
	launcher, err := c.Pods("default", "training.kubeflow.org/job-role=launcher,training.kubeflow.org/job-name="+first.name)
	if err != nil || len(launcher) != 1 {
		t.Fatalf("%d launchers: %v", len(launcher), err)
	}
	report := c.ReportsOf(t, "default", launcher[0].Name)[0]
	report.ExpectGiven(t, cluster.Ask{}, 2)
	if report.Env["POD_IP"] == "" {
		t.Error("the launcher has no POD_IP")
	}

	moved, uncordon := drainRank(t, c, "MPIJob: a node drained, its worker runs elsewhere", ranks[1], workers, 2, both, ranks[1])
	uncordon()

	// A worker that is killed stays failed until somebody deletes it: restartPolicy Never is the operator's default.
	moved[0].report.Node.KillPod(t, string(moved[0].pod.UID))
	c.AwaitSaid(t, []string{"Failed"}, "get", "pod", moved[0].pod.Name, "-o", "jsonpath={.status.phase}")
	c.DeletePod(t, "default", moved[0].pod.Name)
	awaitRanks(t, c, workers, 2, both, moved[0])
	withdraw()
}

package scenarios

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"neuron-agent.test/cluster/cluster"
)

// volcano with its admission, configured as its installer does.
var volcano = cluster.System{
	Name: "volcano", Namespace: "volcano-system", Port: 18443, Manifests: []string{"installer/volcano-development.yaml"},
	Programs: []cluster.Program{
		{Name: "webhook-manager", Account: "volcano-admission", Listens: 18443, Arguments: []string{"--port=18443",
			"--enabled-admission=/jobs/mutate,/jobs/validate,/podgroups/mutate,/pods/validate,/pods/mutate,/queues/mutate,/queues/validate",
			"--tls-cert-file=DIR/tls.crt", "--tls-private-key-file=DIR/tls.key", "--ca-cert-file=DIR/ca.crt",
			"--admission-conf=DIR/volcano-admission-configmap/volcano-admission.conf", "--kubeconfig=DIR/webhook-manager.kubeconfig",
			"--webhook-namespace=volcano-system", "--webhook-service-name=volcano-admission-service", "--logtostderr"}},
		{Name: "controller-manager", Account: "volcano-controllers", Arguments: []string{
			"--kubeconfig=DIR/controller-manager.kubeconfig", "--leader-elect=false", "--logtostderr", "-v=3"}},
		{Name: "scheduler", Account: "volcano-scheduler", Arguments: []string{"--kubeconfig=DIR/scheduler.kubeconfig",
			"--scheduler-conf=DIR/volcano-scheduler-configmap/volcano-scheduler.conf", "--cache-dumper=false", "--leader-elect=false",
			"--logtostderr", "-v=3"}},
	},
}

func bert(name string) submission {
	return submission{system: "volcano", file: "bert.yaml", name: name, selector: "volcano.sh/job-name=" + name}
}

// TestVolcano: BERT pretraining that TorchX submits, in a queue of three nodes on a cluster of four.
func TestVolcano(t *testing.T) {
	cluster.NeedsSystem(t, volcano.Name)
	c := cluster.Get(t)
	nodes := startFour(t, c)
	c.StartSystem(t, volcano)
	typeRecipe(t, c, nodes, "BERT by TorchX on Volcano", "pretrain:1", "app.kubernetes.io/name=bert", 2, cluster.Counts{Devices: 16, EFAs: 8})
	expectWrittenByTorchX(t, c)
	submit(t, c, submission{system: volcano.Name, file: "queue.yaml"})
	first := bert("bert-probe")
	withdraw := submit(t, c, first)
	ranks := awaitRanks(t, c, first.selector, 2, wholeNode)

	killed := ranks[0]
	begin := time.Now()
	killed.report.Node.KillPod(t, string(killed.pod.UID))
	ranks = awaitRanks(t, c, first.selector, 2, wholeNode, ranks...) // RestartJob: both are made anew
	cluster.Figure(t, "Volcano: one rank killed, all run again", time.Since(begin))

	ranks, uncordon := drainRank(t, c, "Volcano: a node drained, all run again", ranks[1], first.selector, 2, wholeNode, ranks...)
	uncordon()

	expectGang(t, c, nodes, ranks)
	second := bert("bert-second")
	submit(t, c, second)
	awaitPodGroup(t, c, second.name, "2/2 tasks in gang unschedulable")
	expectNonePlaced(t, c, second.selector)
	withdraw()
	awaitRanks(t, c, second.selector, 2, wholeNode)
}

// expectGang: of a job of two nodes nothing is placed while only one is to be had.
func expectGang(t *testing.T, c *cluster.Cluster, nodes []*cluster.Node, running []rank) {
	t.Helper()
	var free []string
	for _, n := range nodes {
		if !slices.ContainsFunc(running, func(r rank) bool { return r.report.Node == n }) {
			free = append(free, n.Name)
		}
	}
	c.Kubectl(t, "cordon", free[0])
	uncordon := func() { c.Kubectl(t, "uncordon", free[0]) }
	t.Cleanup(uncordon)
	gang := bert("bert-gang")
	gang.adjust = func(job map[string]any) { _ = unstructured.SetNestedField(job, "default", "spec", "queue") }
	withdraw := submit(t, c, gang)
	awaitPodGroup(t, c, gang.name, "2/2 tasks in gang unschedulable")
	expectNonePlaced(t, c, gang.selector)
	uncordon()
	awaitRanks(t, c, gang.selector, 2, wholeNode)
	withdraw()
}

// awaitPodGroup waits until Volcano says so of a job's group.
func awaitPodGroup(t *testing.T, c *cluster.Cluster, job, words string) {
	t.Helper()
	text := c.Kubectl(t, "get", "jobs.batch.volcano.sh", job, "-o", "jsonpath={.metadata.uid}")
	c.AwaitSaid(t, []string{words}, "describe", "podgroups.scheduling.volcano.sh", job+"-"+text)
}

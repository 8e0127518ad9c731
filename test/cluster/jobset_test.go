package scenarios

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"neuron-agent.test/cluster/cluster"
)

// jobSet with its webhooks; their certificate is the cluster's.
var jobSet = cluster.System{
	Name: "jobset", Namespace: "jobset-system", Port: 18444, Manifests: []string{"config/default"},
	Programs: []cluster.Program{{Name: "jobset", Account: "jobset-controller-manager", Listens: 18444, Arguments: []string{
		"--config=DIR/jobset-manager-config/controller_manager_config.yaml", "--leader-elect=false", "--metrics-bind-address=0",
		"--health-probe-bind-address=0"}}},
	Adjust: func(object *unstructured.Unstructured) bool {
		if object.GetKind() == "ConfigMap" {
			text := "apiVersion: config.jobset.x-k8s.io/v1alpha1\nkind: Configuration\nleaderElection: {leaderElect: false}\n" +
				"internalCertManagement: {enable: false}\nwebhook: {host: 127.0.0.1, port: 18444}\n"
			_ = unstructured.SetNestedField(object.Object, text, "data", "controller_manager_config.yaml")
		}
		return true
	},
}

// training fails when it is ended: a rank that is evicted and ends with 0 counts as done if the kubelet writes so before the Job controller
// looks, and then nobody starts the job anew.
func training(name string) submission {
	return submission{system: jobSet.Name, file: "training.yaml", name: name, life: "fail", selector: "jobset.sigs.k8s.io/jobset-name=" + name}
}

// TestJobSet: a JobSet with one rank for each of two nodes. JobSet makes all pods at once and starts all anew when one fails; it has no
// queue, and no gang: see Kueue for that.
func TestJobSet(t *testing.T) {
	cluster.NeedsSystem(t, jobSet.Name)
	c := cluster.Get(t)
	nodes := startFour(t, c)
	c.StartSystem(t, jobSet)
	typeRecipe(t, c, nodes, "Training under JobSet", "training:1", training("training").selector, 2, cluster.Counts{Devices: 16, EFAs: 8})
	first, second := training("training"), training("training-second")
	withdraw := submit(t, c, first)
	ranks := awaitRanks(t, c, first.selector, 2, wholeNode)

	begin := time.Now()
	ranks[0].report.Node.KillPod(t, string(ranks[0].pod.UID))
	ranks = awaitRanks(t, c, first.selector, 2, wholeNode, ranks...)
	cluster.Figure(t, "JobSet: one rank killed, all run again", time.Since(begin))

	_, uncordon := drainRank(t, c, "JobSet: a node drained, all run again", ranks[1], first.selector, 2, wholeNode, ranks...)
	submit(t, c, second) // three nodes are open, two of them are taken
	expectSomeWait(t, c, second.selector, 1)
	withdraw()
	awaitRanks(t, c, second.selector, 2, wholeNode)
	uncordon()
}

// TestJobSetTrn2: the same over two trn2.48xlarge, whose devices have four logical cores.
func TestJobSetTrn2(t *testing.T) {
	needsDeep(t)
	cluster.NeedsSystem(t, jobSet.Name)
	c := cluster.Get(t)
	startNodes(t, c, 2, cluster.Trn2, cluster.Counts{Cores: 64, Devices: 16, EFAs: 16})
	c.StartSystem(t, jobSet)
	job := training("trn2")
	job.adjust = func(object map[string]any) {
		text, _ := json.Marshal(object)
		_ = json.Unmarshal([]byte(strings.NewReplacer("trn1.32xlarge", "trn2.48xlarge", `efa":"8"`, `efa":"16"`).Replace(string(text))), &object)
	}
	submit(t, c, job)
	ranks := awaitRanks(t, c, job.selector, 2, wholeTrn2u)
	ranks[0].report.Node.KillPod(t, string(ranks[0].pod.UID))
	awaitRanks(t, c, job.selector, 2, wholeTrn2u, ranks...)
}

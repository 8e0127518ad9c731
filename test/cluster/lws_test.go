package scenarios

import (
	"testing"
	"time"

	"neuron-agent.test/cluster/cluster"
)

// lws is LeaderWorkerSet with its webhooks.
var lws = cluster.System{
	Name: "lws", Namespace: "lws-system", Port: 19443, Manifests: []string{"config/default"},
	Config: `
apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
webhook: {port: 19443, certDir: DIR}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "0"}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
`,
	Programs: []cluster.Program{{Name: "cmd", Account: "lws-controller-manager", Listens: 19443,
		Arguments: []string{"--config=DIR/config.yaml", "--zap-log-level=2"}}},
}

const ofSet = "leaderworkerset.sigs.k8s.io/"

func setSelector(name string) string { return ofSet + "name=" + name }

func groupSelector(name, index string) string {
	return setSelector(name) + "," + ofSet + "group-index=" + index
}

func ofGroup(ranks []rank, index string) []rank {
	var group []rank
	for _, r := range ranks {
		if r.pod.Labels[ofSet+"group-index"] == index {
			group = append(group, r)
		}
	}
	return group
}

// TestLWS: inference by groups of two pods, which start anew as a group, until every core of four nodes is given.
func TestLWS(t *testing.T) {
	cluster.NeedsSystem(t, lws.Name)
	c := cluster.Get(t)
	nodes := startFour(t, c)
	c.StartSystem(t, lws)
	typeRecipe(t, c, nodes, "Inference under LeaderWorkerSet", "vllm-neuron:1", setSelector("vllm"), 4, cluster.Counts{Cores: 8})
	vllm := submission{system: lws.Name, file: "vllm.yaml", selector: setSelector("vllm")}
	submit(t, c, vllm)
	ask := cluster.Ask{cluster.NeuronCore: "8"}
	ranks := awaitRanks(t, c, vllm.selector, 4, ask)
	for _, r := range ranks {
		if size := r.report.Env["LWS_GROUP_SIZE"]; size != "2" {
			t.Errorf("%s is of a group of %q", r.pod.Name, size)
		}
	}
	first, second := ofGroup(ranks, "0"), ofGroup(ranks, "1")

	begin := time.Now()
	first[1].report.Node.KillPod(t, string(first[1].pod.UID))
	awaitRanks(t, c, groupSelector("vllm", "0"), 2, ask, first...)
	cluster.Figure(t, "LeaderWorkerSet: one rank killed, its group runs again", time.Since(begin))
	for i, r := range awaitRanks(t, c, groupSelector("vllm", "1"), 2, ask) {
		if r.pod.UID != second[i].pod.UID {
			t.Errorf("%s of the other group was made anew", r.pod.Name)
		}
	}

	_, uncordon := drainRank(t, c, "LeaderWorkerSet: a node drained, all run again", second[0], vllm.selector, 4, ask, second...)
	uncordon()
	c.Kubectl(t, "scale", "leaderworkersets/vllm", "--replicas=8")
	awaitRanks(t, c, vllm.selector, 16, ask)
}

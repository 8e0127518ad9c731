package scenarios

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"neuron-agent.test/cluster/cluster"
)

// kueue with its webhooks, for Jobs.
var kueue = kueueOf("batch/job")

// kueueOf is Kueue for these kinds.
func kueueOf(kinds string) cluster.System {
	return cluster.System{
		Name: "kueue", Namespace: "kueue-system", Port: 19444, Manifests: []string{"config/default"},
		Config: `
apiVersion: config.kueue.x-k8s.io/v1beta1
kind: Configuration
webhook: {port: 19444}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "0"}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
integrations: {frameworks: [` + kinds + `]}
`,
		Programs: []cluster.Program{{Name: "kueue", Account: "kueue-controller-manager", Listens: 19444, Arguments: []string{
			"--config=DIR/config.yaml", "--zap-log-level=2", "--feature-gates=TopologyAwareScheduling=true,VisibilityOnDemand=false,MultiKueue=false"}}},
	}
}

// submitQueue makes a queue, which at the end is deleted after its jobs.
func submitQueue(t *testing.T, c *cluster.Cluster, file string) {
	t.Helper()
	submit(t, c, submission{system: kueue.Name, file: file})
	t.Cleanup(func() {
		cluster.Eventually(t, cluster.Patience, "no workloads", func() error {
			left, err := c.TryKubectl("get", "workloads.kueue.x-k8s.io", "--no-headers", "--ignore-not-found")
			if err == nil && strings.TrimSpace(left) != "" {
				err = errors.New(left)
			}
			return err
		})
	})
}

// workloadOf is what Kueue has made of a Job or another kind, "KIND/NAME".
func workloadOf(t *testing.T, c *cluster.Cluster, job string) string {
	t.Helper()
	uid := c.Kubectl(t, "get", job, "-o", "jsonpath={.metadata.uid}")
	return c.AwaitSaid(t, []string{strings.Replace(job, "/", "-", 1)}, "get", "workloads.kueue.x-k8s.io", "-l", "kueue.x-k8s.io/job-uid="+uid, "-o",
		"jsonpath={.items[*].metadata.name}")
}

// awaitWord waits until Kueue has said so of "KIND/NAME", in an event: it does not write the workload's status again when another was
// faster.
func awaitWord(t *testing.T, c *cluster.Cluster, job, words string) {
	t.Helper()
	c.AwaitSaid(t, []string{words}, "get", "events", "--field-selector", "involvedObject.name="+workloadOf(t, c, job), "-o",
		"jsonpath={.items[*].message}")
}

// expectQueue: two jobs that ask for as much as the queue has, each: the second starts when the first has gone.
func expectQueue(t *testing.T, c *cluster.Cluster, file, words string, expect func(selector string)) {
	t.Helper()
	job := func(name string) submission {
		return submission{system: kueue.Name, file: file, name: name, selector: jobSelector(name)}
	}
	first, second := job("first"), job("second")
	withdraw := submit(t, c, first)
	expect(first.selector)
	withdrawSecond := submit(t, c, second)
	awaitWord(t, c, "job/"+second.name, words)
	c.ExpectNoPods(t, "default", second.selector)
	withdraw()
	expect(second.selector)
	withdrawSecond()
}

// expectKeepsQuota: of a job whose ranks fail when they are ended only the rank that is killed, or whose node is drained, starts anew,
// and the job that waits gets nothing.
func expectKeepsQuota(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	job := func(name string) submission {
		return submission{system: kueue.Name, file: "job.yaml", name: name, selector: jobSelector(name), life: "fail"}
	}
	runs, waits := job("runs"), job("waits")
	submit(t, c, runs)
	ranks := awaitRanks(t, c, runs.selector, 2, wholeNode)
	submit(t, c, waits)
	awaitWord(t, c, "job/"+waits.name, "insufficient unused quota")

	begin := time.Now()
	killed := ranks[0]
	killed.report.Node.KillPod(t, string(killed.pod.UID))
	c.AwaitSaid(t, []string{"Failed"}, "get", "pod", killed.pod.Name, "-o", "jsonpath={.status.phase}")
	c.DeletePod(t, "default", killed.pod.Name) // a Job keeps it for its log
	ranks = awaitRanks(t, c, runs.selector, 2, wholeNode, killed)
	cluster.Figure(t, "Job behind Kueue: one rank killed, it runs again", time.Since(begin))

	drainRank(t, c, "Job behind Kueue: a node drained, its rank runs elsewhere", ranks[1], runs.selector, 2, wholeNode, ranks[1])
	c.ExpectNoPods(t, "default", waits.selector)
}

// TestKueue: a queue of two nodes on a cluster of four.
func TestKueue(t *testing.T) {
	cluster.NeedsSystem(t, kueue.Name)
	c := cluster.Get(t)
	nodes := startFour(t, c)
	c.StartSystem(t, kueue)
	typeRecipe(t, c, nodes, "A Job behind Kueue", "training:1", jobSelector("train"), 2, cluster.Counts{Devices: 16, EFAs: 8})
	submitQueue(t, c, "queue.yaml")
	expectQueue(t, c, "job.yaml", "insufficient unused quota for aws.amazon.com/neuron", func(selector string) {
		awaitRanks(t, c, selector, 2, wholeNode)
	})
	expectKeepsQuota(t, c)
}

// TestKueueClaims: the same on nodes with claims: by the names of resources, which the scheduler makes claims of, and by claims, whose
// pods Kueue counts.
func TestKueueClaims(t *testing.T) {
	cluster.NeedsSystem(t, kueue.Name)
	c := cluster.Get(t)
	var specs []cluster.Spec
	for i := range 4 {
		specs = append(specs, ofClaims(cluster.Spec{Name: fmt.Sprintf("trn1-%d", i), InstanceType: cluster.Trn1.InstanceType}))
	}
	startDriver(t, c, c.Nodes(t, specs...), unmodified)
	applyExamples(t, c)
	watchRefusals(t, c)
	c.StartSystem(t, kueue)
	expect := func(selector string) {
		awaitClaimRanks(t, c, selector, 2, cluster.Counts{Devices: 16, EFAs: 8})
	}
	submitQueue(t, c, "queue.yaml")
	expectQueue(t, c, "job.yaml", "insufficient unused quota for aws.amazon.com/neuron", expect)
	submitQueue(t, c, "queue-claims.yaml")
	expectQueue(t, c, "job-claims.yaml", "insufficient unused quota for pods", expect)
	expectQuotaOfClaims(t, c)
}

// expectQuotaOfClaims: Kubernetes' own quota counts what a claim's count says; a claim for all devices is as many as a claim can have.
func expectQuotaOfClaims(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	const namespace, key = "quota-of-claims", cluster.Driver + ".deviceclass.resource.k8s.io/devices"
	c.Kubectl(t, "create", "namespace", namespace)
	t.Cleanup(func() { c.Kubectl(t, "delete", "namespace", namespace, "--wait") })
	c.Kubectl(t, "-n", namespace, "create", "quota", "claims", "--hard="+key+"=32")
	used := func() string {
		return c.Kubectl(t, "-n", namespace, "get", "quota", "claims", "-o", `jsonpath={.status.used}`)
	}
	for name, each := range map[string]struct{ request, used string }{
		"sixteen": {"count: 16", `"16"`}, "all": {"allocationMode: All", `"32"`}} {
		path := filepath.Join(t.TempDir(), "claim.yaml")
		text := fmt.Sprintf("apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: %s}\nspec:\n  devices:\n    requests:\n"+
			"      - {name: neurons, exactly: {deviceClassName: %s, %s}}\n", name, cluster.Driver, each.request)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cluster.Eventually(t, cluster.Patience, "a claim is counted", func() error {
			if _, err := c.TryKubectl("-n", namespace, "apply", "-f", path); err != nil {
				return err // the quota's first count may not be there
			}
			if got := used(); !strings.Contains(got, each.used) {
				return fmt.Errorf("%s: used %s, want %s", name, got, each.used)
			}
			return nil
		})
		c.Kubectl(t, "-n", namespace, "delete", "resourceclaim", name, "--wait")
		cluster.Eventually(t, cluster.Patience, "nothing is used", func() error {
			if got := used(); !strings.Contains(got, `"0"`) {
				return errors.New(got)
			}
			return nil
		})
	}
}

// TestKueueUltraServer: all or nothing.
func TestKueueUltraServer(t *testing.T) {
	const onlyThree = `topology "ultraserver" allows to fit only 3 out of 4 pod(s)`
	cluster.NeedsSystem(t, kueue.Name)
	c := cluster.Get(t)
	nodes := startUltraServer(t, c)
	c.StartSystem(t, kueue)
	typeRecipe(t, c, nodes, "An UltraServer behind Kueue", "training:1", jobSelector("ultraserver"), 4, cluster.Counts{Devices: 16, EFAs: 16})
	submitQueue(t, c, "queue-ultraserver.yaml")
	job := func(name string, adjust func(map[string]any)) submission {
		return submission{system: kueue.Name, file: "job-ultraserver.yaml", name: name, selector: jobSelector(name), adjust: adjust}
	}
	c.Kubectl(t, "cordon", nodes[2].Name)
	t.Cleanup(func() { c.Kubectl(t, "uncordon", nodes[2].Name) })
	whole := job("whole", nil)
	withdraw := submit(t, c, whole)
	awaitWord(t, c, "job/"+whole.name, onlyThree)
	c.ExpectNoPods(t, "default", whole.selector)
	c.Kubectl(t, "uncordon", nodes[2].Name)
	ranks := awaitRanks(t, c, whole.selector, 4, wholeTrn2u)
	expectTogether(t, c, ranks, 4, "1")

	// The lost pod is bound to its node's name; a stop and a start give all back until there are four nodes.
	loseNode(t, c, ranks[3])
	awaitSomeWait(t, c, whole.selector, 4, 1, ranks[3])
	c.Kubectl(t, "delete", "events", "--all")
	for _, active := range []string{"false", "true"} {
		c.Kubectl(t, "patch", "workloads.kueue.x-k8s.io", workloadOf(t, c, "job/"+whole.name), "--type=merge", "-p", `{"spec":{"active":`+active+`}}`)
		c.ExpectNoPods(t, "default", whole.selector)
	}
	awaitWord(t, c, "job/"+whole.name, onlyThree)
	c.ExpectNoPods(t, "default", whole.selector)
	begin := time.Now()
	c.Nodes(t, linkedNodes...)
	ranks = awaitRanks(t, c, whole.selector, 4, wholeTrn2u, ranks...)
	cluster.Figure(t, "Kueue: a node of the UltraServer is back, all run", time.Since(begin))
	expectTogether(t, c, ranks, 4, "1")
	withdraw()

	first, second, third := job("first", halved), job("second", halved), job("third", halved)
	withdraw = submit(t, c, first)
	submit(t, c, second)
	onFirst := awaitRanks(t, c, first.selector, 2, wholeTrn2u)
	onSecond := awaitRanks(t, c, second.selector, 2, wholeTrn2u)
	if a, b := expectTogether(t, c, onFirst, 2, "3"), expectTogether(t, c, onSecond, 2, "3"); a == b {
		t.Errorf("both are on %s", a)
	}
	submit(t, c, third)
	awaitWord(t, c, "job/"+third.name, "insufficient unused quota")
	c.ExpectNoPods(t, "default", third.selector)
	withdraw()
	expectTogether(t, c, awaitRanks(t, c, third.selector, 2, wholeTrn2u), 2, "3")
}

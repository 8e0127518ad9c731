package scenarios

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"neuron-agent.test/cluster/cluster"
)

// queued is a JobSet of so many ranks in the queue of kueue/queue.yaml.
func queued(name string, ranks int64) submission {
	job := training(name)
	job.adjust = func(object map[string]any) {
		_ = unstructured.SetNestedField(object, "neuron", "metadata", "labels", "kueue.x-k8s.io/queue-name")
		jobs, _, _ := unstructured.NestedSlice(object, "spec", "replicatedJobs")
		for _, field := range []string{"parallelism", "completions"} {
			_ = unstructured.SetNestedField(jobs[0].(map[string]any), ranks, "template", "spec", field)
		}
		_ = unstructured.SetNestedSlice(object, jobs, "spec", "replicatedJobs")
	}
	return job
}

// TestKueueJobSet: JobSets behind a queue of two nodes on a cluster of four: admitted whole or without a pod.
func TestKueueJobSet(t *testing.T) {
	const notEnoughLeft = "insufficient unused quota for aws.amazon.com/neuron"
	const beyond = "request > maximum capacity" // said of one resource, by chance
	cluster.NeedsSystem(t, jobSet.Name)
	cluster.NeedsSystem(t, kueue.Name)
	c := cluster.Get(t)
	startFour(t, c)
	c.StartSystem(t, jobSet)
	c.StartSystem(t, kueueOf("jobset.x-k8s.io/jobset"))
	submitQueue(t, c, "queue.yaml")

	half, whole, tooLarge := queued("half", 1), queued("whole", 2), queued("too-large", 3)
	withdraw := submit(t, c, half)
	awaitRanks(t, c, half.selector, 1, wholeNode)
	submit(t, c, tooLarge)
	awaitWord(t, c, "jobset/"+tooLarge.name, beyond)
	withdrawWhole := submit(t, c, whole) // one of its two ranks would have quota and a node
	awaitWord(t, c, "jobset/"+whole.name, notEnoughLeft)
	c.ExpectNoPods(t, "default", whole.selector)
	begin := time.Now()
	withdraw()
	ranks := awaitRanks(t, c, whole.selector, 2, wholeNode)
	cluster.Figure(t, "JobSet behind Kueue: quota is given back, the next runs", time.Since(begin))

	// A job that starts anew keeps its quota: the one that waits does not take its place.
	next := queued("next", 1)
	submit(t, c, next)
	awaitWord(t, c, "jobset/"+next.name, notEnoughLeft)
	ranks[0].report.Node.KillPod(t, string(ranks[0].pod.UID))
	awaitRanks(t, c, whole.selector, 2, wholeNode, ranks...)
	c.ExpectNoPods(t, "default", next.selector)
	withdrawWhole()
	awaitRanks(t, c, next.selector, 1, wholeNode)
	c.ExpectNoPods(t, "default", tooLarge.selector)
}

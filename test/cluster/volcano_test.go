package scenarios

import (
	"testing"

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

// TestVolcano: BERT pretraining as TorchX submits it, in a queue of three nodes on a cluster of four.
func TestVolcano(t *testing.T) {
	cluster.NeedsSystem(t, volcano.Name)
	c := cluster.Get(t)
	startFour(t, c)
	c.StartSystem(t, volcano)
	submit(t, c, submission{system: "volcano", file: "queue.yaml"})
	first := bert("bert")
	submit(t, c, first)
	awaitRanks(t, c, first.selector, 2, wholeNode)
}

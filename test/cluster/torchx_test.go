package scenarios

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"neuron-agent.test/cluster/cluster"
)

// expectWrittenByTorchX: bert.yaml is what TorchX would submit for bert.py, but for the name that it draws.
func expectWrittenByTorchX(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	const run = `torchx run --dryrun --workspace "" -s kubernetes -cfg queue=test ` +
		`test/cluster/queueing/volcano/bert.py:bert --image pretrain:1 2> /dev/null`
	_, request, _ := strings.Cut(c.Shell(t, run), "=== SCHEDULER REQUEST ===\n")
	drawn, err := cluster.ReadObjects([]byte(request))
	if err != nil || len(drawn) != 1 {
		t.Fatalf("%d objects: %v", len(drawn), err)
	}
	written, err := cluster.ReadObjects([]byte(strings.ReplaceAll(request, drawn[0].GetName(), "bert")))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(cluster.SystemFile(volcano.Name, "bert.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := cluster.ReadObjects(text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(ours, written) {
		t.Errorf("bert.yaml is not what TorchX writes:\n%s", request)
	}
}

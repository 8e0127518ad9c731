package scenarios

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"neuron-agent.test/cluster/cluster"
)

// TestJobSetUltraServer: a JobSet with exclusive topology, over four nodes and over two each.
func TestJobSetUltraServer(t *testing.T) {
	needsDeep(t)
	cluster.NeedsSystem(t, jobSet.Name)
	c := cluster.Get(t)
	startUltraServer(t, c)
	c.StartSystem(t, jobSet)
	over := func(name string, adjust func(map[string]any)) submission {
		return submission{system: jobSet.Name, file: "ultraserver.yaml", name: name, selector: training(name).selector, adjust: adjust}
	}
	whole, other := over("whole", nil), over("other", nil)
	withdraw := submit(t, c, whole)
	ranks := awaitRanks(t, c, whole.selector, 4, wholeTrn2u)
	expectTogether(t, c, ranks, 4, "1")
	withdrawOther := submit(t, c, other)
	awaitSomeWait(t, c, other.selector, 1, 1) // the others come after the first is placed
	withdrawOther()

	loseNode(t, c, ranks[3])
	awaitSomeWait(t, c, whole.selector, 4, 1, ranks...) // all start anew
	begin := time.Now()
	c.Nodes(t, linkedNodes...)
	ranks = awaitRanks(t, c, whole.selector, 4, wholeTrn2u, ranks...)
	cluster.Figure(t, "JobSet: a node of the UltraServer is back, all run", time.Since(begin))
	expectTogether(t, c, ranks, 4, "1")
	withdraw()

	halves := over("halves", halved)
	submit(t, c, halves)
	ranks = awaitRanks(t, c, halves.selector, 4, wholeTrn2u)
	byJob := map[string][]rank{}
	for _, r := range ranks {
		index := r.pod.Labels["jobset.sigs.k8s.io/job-index"]
		byJob[index] = append(byJob[index], r)
	}
	if a, b := expectTogether(t, c, byJob["0"], 2, "3"), expectTogether(t, c, byJob["1"], 2, "3"); a == b {
		t.Errorf("both are on %s", a)
	}
}

// TestMPIOperatorUltraServer: the MPIJob of AWS's guide to UltraServers. Its init script, which is in AWS's image, is left out.
func TestMPIOperatorUltraServer(t *testing.T) {
	needsDeep(t)
	cluster.NeedsSystem(t, mpiOperator.Name)
	c := cluster.Get(t)
	startUltraServer(t, c)
	c.StartSystem(t, mpiOperator)
	over := func(name string, nodes string) submission {
		return submission{system: mpiOperator.Name, file: "ultraserver.yaml", name: name, selector: nccom(name).selector,
			adjust: func(job map[string]any) {
				text, _ := json.Marshal(job)
				_ = json.Unmarshal([]byte(strings.NewReplacer(`job-name":"ultraserver"`, `job-name":"`+name+`"`, `["ultraserver"]`, `["`+name+`"]`,
					"server-id-4", "server-id-"+nodes, `"replicas":4`, `"replicas":`+nodes, `"value":"4"`, `"value":"`+nodes+`"`).
					Replace(string(text))), &job)
			}}
	}
	whole, other := over("whole", "4"), over("other", "4")
	workers := mpiWorkers + whole.name
	withdraw := submit(t, c, whole)
	ranks := awaitRanks(t, c, workers, 4, wholeTrn2u)
	expectOneServer(t, c, ranks, 4)
	launcher, err := c.Pods("default", "training.kubeflow.org/job-role=launcher,"+whole.selector)
	if err != nil || len(launcher) != 1 {
		t.Fatalf("%d launchers: %v", len(launcher), err)
	}
	c.ReportsOf(t, "default", launcher[0].Name)[0].ExpectGiven(t, cluster.Ask{}, 4)
	withdrawOther := submit(t, c, other)
	awaitSomeWait(t, c, mpiWorkers+other.name, 4, 4)
	withdrawOther()

	lost := ranks[3]
	loseNode(t, c, lost)
	awaitSomeWait(t, c, workers, 4, 1, lost) // the others run on
	c.Nodes(t, linkedNodes...)
	expectOneServer(t, c, awaitRanks(t, c, workers, 4, wholeTrn2u, lost), 4)
	withdraw()

	first, second := over("first", "2"), over("second", "2")
	submit(t, c, first)
	submit(t, c, second)
	a := expectOneServer(t, c, awaitRanks(t, c, mpiWorkers+first.name, 2, wholeTrn2u), 2)
	if b := expectOneServer(t, c, awaitRanks(t, c, mpiWorkers+second.name, 2, wholeTrn2u), 2); a == b {
		t.Errorf("both are on %s", a)
	}
}

package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"neuron-agent.test/cluster/cluster"
)

// TestOtherManifests: those that stand instead of the default one, on Neuron nodes and on one without the hardware.
func TestOtherManifests(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, everyKind...)
	for _, each := range []struct {
		file, name string
		privileged bool
	}{
		{"neuron-agent-aws-names.yaml", "neuron-device-plugin-daemonset", false},
		{"neuron-agent-privileged.yaml", "neuron-agent", true},
	} {
		t.Run(each.name, func(t *testing.T) {
			before := inventoryBefore(t, c, nodes...)
			manifest := cluster.Manifest("static/" + each.file)
			c.Apply(t, manifest)
			c.Kubectl(t, "-n", system, "rollout", "status", "daemonset/"+each.name, "--timeout=90s")
			expectReadyEverywhere(t, c, agentPod, 4)
			for i, n := range nodes {
				want := everyKindsCounts[i]
				if n.Name == cluster.P5.Name {
					want = cluster.Counts{} // not for GPU nodes
				}
				n.ExpectAllocatable(t, want)
			}
			c.Kubectl(t, "delete", "-f", manifest)
			for _, n := range nodes {
				n.ExpectAllocatable(t, cluster.Counts{})
			}
			c.ExpectNoPods(t, system, agentPod)
			for _, n := range nodes { // docs/install.md says that it stays; rmdir wants it empty
				_, err := n.Exec("rmdir", "/opt/aws/neuron", "/opt/aws")
				if made := each.privileged && n.Name != cluster.P5.Name; made != (err == nil) {
					t.Errorf("%s: %s leaves the directory of the LNC file: %v, %v", n.Name, each.file, made, err)
				}
			}
			c.ExpectInventory(t, before, nodes...)
		})
	}
}

// TestLNCFile types the kustomization of docs/install.md that shows the pod the LNC file, on a node set to LNC 1.
func TestLNCFile(t *testing.T) {
	c := cluster.Get(t)
	n := c.Nodes(t, cluster.Spec{Name: "trn2-lnc1", InstanceType: "trn2.48xlarge", Simulation: []string{"--lnc", "1"}})[0]
	t.Cleanup(func() { c.ExpectNoPods(t, system, agentPod) }) // before the node goes
	c.Apply(t, cluster.Manifest("static/neuron-agent.yaml"))
	n.ExpectAllocatable(t, cluster.Counts{Cores: 64, Devices: 16, EFAs: 16}) // as documented: the family's default is assumed
	showLNCFile(t, c)
	n.ExpectAllocatable(t, cluster.Counts{Cores: 128, Devices: 16, EFAs: 16})
	ask := cluster.Ask{cluster.NeuronCore: "8"}
	w := cluster.One("eight-of-128", ask)
	c.StartJob(t, w)
	c.AwaitReports(t, w)[0].ExpectGiven(t, ask, 8)
}

// showLNCFile applies that kustomization.
func showLNCFile(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	dir := cluster.Copy(t, "manifests")
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomizationOf(t, "components:")), 0o644); err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, "apply", "-k", dir)
}

// kustomizationOf returns the kustomization.yaml in docs/install.md that has this line.
func kustomizationOf(t *testing.T, line string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cluster.Manifest(".."), "docs/install.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "\n\n") {
		if strings.HasPrefix(block, "    # kustomization.yaml") && strings.Contains(block, line) {
			return strings.ReplaceAll("\n"+block, "\n    ", "\n")
		}
	}
	t.Fatalf("docs/install.md has no kustomization with %q", line)
	return ""
}

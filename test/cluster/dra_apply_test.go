package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"neuron-agent.test/cluster/cluster"
)

// unmodified is the component that lets claims serve pods that know nothing of claims.
const unmodified = "dra-extended-resources"

// partitioned is the one that offers cores and groups.
const partitioned = "dra-partitions"

// applyDRA applies the overlay for claims with components, as docs/dra.md has people write it, and deletes it after the test.
func applyDRA(t *testing.T, c *cluster.Cluster, components ...string) {
	t.Helper()
	applyDRAWith(t, c, "", components...)
}

// applyDRAWith does so with more of the kustomization, such as patches.
func applyDRAWith(t *testing.T, c *cluster.Cluster, more string, components ...string) {
	t.Helper()
	dir := cluster.Copy(t, "manifests")
	text := "resources: [manifests/overlays/dra]\n"
	if len(components) > 0 {
		text += "components: [manifests/components/" + strings.Join(components, ", manifests/components/") + "]\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text+more), 0o644); err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, "apply", "-k", dir)
	t.Cleanup(func() { c.Kubectl(t, "delete", "--ignore-not-found", "--wait", "-k", dir) })
}

package scenarios

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"neuron-agent.test/cluster/cluster"
)

// TestDriverIsContained puts a probe into the driver's pod. What it sees and can do beside what the default pod does, and what it
// does not, is what SECURITY.md prints.
func TestDriverIsContained(t *testing.T) {
	c := cluster.Get(t)
	spec := ofClaims(cluster.Plain)
	n := c.Nodes(t, spec)[0]
	t.Cleanup(func() { c.ExpectNoPods(t, system, draPod) })
	c.Apply(t, cluster.Manifest(draManifest))
	const container = "/spec/template/spec/containers/0"
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": container + "/image", "value": cluster.ProbeImage},
		{"op": "replace", "path": container + "/command", "value": []string{"/bin/busybox", "sh", "-c", containedScript}},
		{"op": "remove", "path": container + "/readinessProbe"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, "-n", system, "patch", "daemonset", "neuron-agent-dra", "--type=json", "-p", string(patch))
	c.Kubectl(t, "-n", system, "rollout", "status", "daemonset/neuron-agent-dra", "--timeout=90s")
	usual := titled(cluster.CodeLines(t, "SECURITY.md", "What the pod sees and can do"))
	facts := awaitFacts(t, c, n, draPod)
	var got []string
	for _, line := range titled(strings.Split(strings.TrimSpace(facts.text(t, n)), "\n")) {
		if !slices.Contains(usual, line) {
			got = append(got, line)
		}
	}
	if want := cluster.CodeLines(t, "SECURITY.md", "The driver for claims"); !slices.Equal(got, want) {
		t.Errorf("beside the default pod the driver's sees and can do\n%s\nSECURITY.md says\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// titled writes the title of a row into every line of it.
func titled(lines []string) []string {
	const width = 15
	var all []string
	title := ""
	for _, line := range lines {
		if strings.TrimSpace(line[:width]) != "" {
			title = line[:width]
		}
		all = append(all, title+line[width:])
	}
	return all
}

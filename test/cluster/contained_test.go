package scenarios

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"neuron-agent.test/cluster/cluster"
)

//go:embed contained.sh
var containedScript string

// withProbe is the default manifest with this program instead of the agent, and nothing else changed.
const withProbe = `kubectl patch --local -f manifests/static/neuron-agent.yaml --type=json -p "$PATCH" -o yaml | kubectl apply -f -`

// TestContained puts a probe into the default manifest's pod. What it sees and can do is what SECURITY.md prints, with either
// containerd.
func TestContained(t *testing.T) {
	c := cluster.Get(t)
	nodes := c.Nodes(t, cluster.Plain, plainDebian)
	const container = "/spec/template/spec/containers/0"
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": container + "/image", "value": cluster.ProbeImage},
		{"op": "replace", "path": container + "/command", "value": []string{"/bin/busybox", "sh", "-c", containedScript}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kubectl(t, "delete", "--ignore-not-found", "-f", cluster.Manifest("static/neuron-agent.yaml"))
		c.ExpectNoPods(t, system, agentPod)
	})
	c.Shell(t, withProbe, "PATCH="+string(patch))
	want := strings.Join(cluster.CodeLines(t, "SECURITY.md", "What the pod sees and can do"), "\n") + "\n"
	for _, n := range nodes {
		facts := awaitFacts(t, c, n, agentPod)
		if got := facts.text(t, n); got != want {
			t.Errorf("%s: the pod sees and can do\n%sSECURITY.md says\n%s", n.Name, got, want)
		}
	}
	t.Run("PodSecurity", func(t *testing.T) { expectPodSecurity(t, c) })
}

// podFacts maps the first word of a line of contained.sh to the rest of all such lines, in order.
type podFacts map[string][]string

func awaitFacts(t *testing.T, c *cluster.Cluster, n *cluster.Node, selector string) podFacts {
	t.Helper()
	facts := podFacts{}
	cluster.Eventually(t, cluster.Patience, n.Name+": the probe reports", func() error {
		pod, err := c.TryKubectl("-n", system, "get", "pods", "-l", selector, "-o", "name", "--field-selector=spec.nodeName="+n.Name)
		if err != nil {
			return err
		}
		if pod == "" {
			return errors.New("no pod")
		}
		log, err := c.TryKubectl("-n", system, "logs", strings.TrimSpace(pod))
		if err != nil || !strings.HasSuffix(log, "\nend\n") {
			return fmt.Errorf("%v, it says %q", err, log)
		}
		for _, line := range strings.Split(strings.TrimSpace(log), "\n") {
			key, rest, _ := strings.Cut(line, " ")
			facts[key] = append(facts[key], strings.TrimSpace(rest))
		}
		return nil
	})
	return facts
}

// text says it for people.
func (f podFacts) text(t *testing.T, n *cluster.Node) string {
	status := map[string]string{}
	for _, line := range f["status"] {
		key, value, _ := strings.Cut(line, " ")
		status[key] = value
	}
	capabilities := []string{}
	for _, set := range []string{"CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"} {
		if strings.Trim(status[set], "0") != "" || status[set] == "" {
			capabilities = append(capabilities, set+"="+status[set])
		}
	}
	var b strings.Builder
	row := func(title string, values ...string) { fmt.Fprintf(&b, "%-15s%s\n", title, strings.Join(values, " ")) }
	row("user", status["Uid"]+", group "+status["Gid"]+", in groups "+status["Groups"])
	row("capabilities", or(strings.Join(capabilities, " "), "none; all five sets are empty"))
	row("privileges", word(status["NoNewPrivs"], "1", "none can be gained (NoNewPrivs)"))
	row("system calls", word(status["Seccomp"], "2", "filtered (seccomp)"))
	f.namespaces(t, n, row)
	row("processes", word(strings.Join(distinct(f["process"]), " "), "busybox", "sees its own alone"))
	row("network", strings.Join(f["interfaces"], " ")+", "+f.address())
	row("environment", distinct(f.variables())...)
	f.mounts(row)
	row("device nodes", f.devices()...)
	for _, verb := range []string{"can", "cannot"} {
		for i, what := range grouped(f[verb]) {
			row(map[bool]string{true: verb}[i == 0], what)
		}
	}
	return b.String()
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// word replaces one value by what it means; any other is shown.
func word(value, expected, meaning string) string {
	if value == expected {
		return meaning
	}
	return "UNEXPECTED " + value
}

func distinct(values []string) []string {
	set := map[string]bool{}
	for _, value := range values {
		set[value] = true
	}
	delete(set, "")
	return slices.Sorted(maps.Keys(set))
}

// namespaces: that of cgroups depends on the version of cgroups and is left out.
func (f podFacts) namespaces(t *testing.T, n *cluster.Node, row func(string, ...string)) {
	ofNode, err := n.Namespaces()
	if err != nil {
		t.Fatal(err)
	}
	var own, shared []string
	for _, line := range f["namespace"] {
		kind, link, _ := strings.Cut(line, " ")
		if kind == "cgroup" {
			continue
		}
		if ofNode[link] {
			shared = append(shared, kind)
		} else {
			own = append(own, kind)
		}
	}
	row("namespaces", strings.Join(own, " ")+" of its own; "+strings.Join(shared, " ")+" of the node")
}

func (f podFacts) address() string {
	address, err := netip.ParsePrefix(strings.Join(f["addresses"], " "))
	if err == nil && netip.MustParsePrefix("10.244.0.0/16").Contains(address.Addr()) {
		return "with an address of the pods' network"
	}
	return fmt.Sprintf("UNEXPECTED %q", f["addresses"])
}

// variables: the kubelet tells every container where the API server is, and the shell adds its own.
func (f podFacts) variables() []string {
	var names []string
	for _, name := range f["variable"] {
		if name == "SHLVL" || name == "PWD" {
			continue
		}
		if strings.HasPrefix(name, "KUBERNETES_") {
			name = "KUBERNETES_*"
		}
		names = append(names, name)
	}
	return names
}

// mounts tells apart what comes from the node's file system and what the kernel makes. Left out are those below /proc and /sys:
// they cover files, and which there are depends on the kernel.
func (f podFacts) mounts(row func(string, ...string)) {
	all := map[string][]string{}
	for _, line := range f["mount"] {
		words := strings.Fields(line)
		point, mode, from := words[0], words[1], words[len(words)-1]
		switch {
		case strings.HasPrefix(point, "/proc/") || strings.HasPrefix(point, "/sys/"):
		case strings.Contains(from, "/pods/") || strings.Contains(from, "/sandboxes/"):
			all["file "+mode] = append(all["file "+mode], point)
		case strings.Contains(from, "/disk/") || point == "/var/run/cdi": // in memory, as /run of any node
			all["node "+mode] = append(all["node "+mode], point)
		default:
			all["own "+mode] = append(all["own "+mode], point)
		}
	}
	for _, kind := range []struct{ key, title string }{{"node rw", "from the node"}, {"node ro", "  read-only"},
		{"file rw", "pod's files"}, {"file ro", "  read-only"}, {"own rw", "pod's mounts"}, {"own ro", "  read-only"}} {
		row(kind.title, distinct(all[kind.key])...)
	}
}

// devices: /dev/fd and its like are links to what is open.
func (f podFacts) devices() []string {
	return distinct(slices.DeleteFunc(slices.Clone(f["device"]), func(node string) bool {
		return strings.HasPrefix(node, "/dev/fd/") || strings.HasPrefix(node, "/dev/std") || node == "/dev/pts/ptmx"
	}))
}

var withPath = regexp.MustCompile(`^(make a file in|write to) (/\S*)$`)

// grouped writes the paths of what differs in the path alone on one line.
func grouped(lines []string) []string {
	var result []string
	for _, line := range lines {
		match := withPath.FindStringSubmatch(line)
		at := -1
		if match != nil {
			at = slices.IndexFunc(result, func(other string) bool { return strings.HasPrefix(other, match[1]+" /") })
		}
		if at < 0 {
			result = append(result, line)
		} else {
			result[at] += " " + match[2]
		}
	}
	return result
}

// expectPodSecurity: what keeps the pod out of a namespace of each level, in the API server's words.
func expectPodSecurity(t *testing.T, c *cluster.Cluster) {
	set, err := c.Client.AppsV1().DaemonSets(system).Get(context.Background(), "neuron-agent", meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const volumes = `(volumes "device-plugins", "pod-resources")`
	for level, want := range map[string]string{
		"privileged": "",
		"baseline":   `violates PodSecurity "baseline:latest": hostPath volumes ` + volumes,
		"restricted": `violates PodSecurity "restricted:latest": restricted volume types (volumes "device-plugins", "pod-resources" ` +
			`use restricted volume type "hostPath"), runAsNonRoot != true (pod or container "neuron-agent" must set ` +
			`securityContext.runAsNonRoot=true), runAsUser=0 (pod must not set runAsUser=0)`,
	} {
		namespace := "level-" + level
		c.Kubectl(t, "create", "namespace", namespace)
		t.Cleanup(func() { c.Kubectl(t, "delete", "namespace", namespace, "--wait=false") })
		c.Kubectl(t, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce="+level)
		pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "agent"}, Spec: set.Spec.Template.Spec}
		_, err := c.Client.CoreV1().Pods(namespace).Create(context.Background(), pod, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		if got := fmt.Sprint(err); (want == "") != (err == nil) || !strings.HasSuffix(got, want) && want != "" {
			t.Errorf("a namespace that enforces %s says %v, want %q", level, err, want)
		}
	}
}

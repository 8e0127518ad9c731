package cluster

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"neuron-agent.test/suite"
)

// Inventory is all that an installed manifest may leave behind, as lines that say where it is.
type Inventory map[string]bool

// ownParts are what kubelet and CNI make when they need it first, and keep.
var ownParts = regexp.MustCompile(`/device-plugins/kubelet_internal_checkpoint$|/pod-resources(/kubelet\.sock)?$|` +
	`/networks(/pods(/(lock|last_reserved_ip\.0))?)?$|/cni/(results|cache)$|/(actuated|allocated)_pods_state$|` +
	`cgroup .*/kubepods(/burstable|/besteffort)?$|network interface pods$`)

const inAPI = "API: "

// transientKinds come and go by themselves.
var transientKinds = []string{"events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses"}

// Inventory lists every object in the API; of the given nodes their labels, annotations and taints, and what they have of
// mounts, cgroups, processes in containers, network interfaces and files in the directories that pods can reach. Records of ended
// containers are not among it: the kubelet removes them once a minute.
func (c *Cluster) Inventory(nodes ...*Node) (Inventory, error) {
	all := Inventory{}
	if err := c.objects(all); err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if err := n.inventory(all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ExpectInventory waits until nothing is there beside that, and every object in the API still is; what an earlier test left on a
// node may have gone meanwhile.
func (c *Cluster) ExpectInventory(t testing.TB, want Inventory, nodes ...*Node) {
	t.Helper()
	err := suite.WaitEvery(5*kubectlPause, Patience, "everything is as it was", func() error {
		now, err := c.Inventory(nodes...)
		if err != nil {
			return err
		}
		var changes []string
		for _, line := range slices.Sorted(maps.Keys(now)) {
			if !want[line] {
				changes = append(changes, "left behind: "+line)
			}
		}
		for _, line := range slices.Sorted(maps.Keys(want)) {
			if strings.HasPrefix(line, inAPI) && !now[line] {
				changes = append(changes, "missing: "+line)
			}
		}
		if len(changes) > 0 {
			return fmt.Errorf("%d differences:\n%s", len(changes), strings.Join(changes[:min(len(changes), 20)], "\n"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) objects(all Inventory) error {
	kinds, err := c.TryKubectl("api-resources", "--verbs=list", "-o", "name")
	if err != nil {
		return err
	}
	listed := slices.DeleteFunc(strings.Fields(kinds), func(kind string) bool { return slices.Contains(transientKinds, kind) })
	lines, err := c.TryKubectl("get", strings.Join(listed, ","), "-A", "--no-headers", "--ignore-not-found",
		"-o", "custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name")
	if err != nil {
		return err
	}
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		all[inAPI+strings.Join(strings.Fields(line), " ")] = true
	}
	return nil
}

func (n *Node) inventory(all Inventory) error {
	add := func(format string, arguments ...any) {
		if line := n.Name + ": " + fmt.Sprintf(format, arguments...); !ownParts.MatchString(line) {
			all[line] = true
		}
	}
	description, err := n.cluster.TryKubectl("get", "node", n.Name, "-o",
		"go-template={{range $k, $v := .metadata.labels}}label {{$k}}={{$v}}\n{{end}}"+
			"{{range $k, $v := .metadata.annotations}}annotation {{$k}}={{$v}}\n{{end}}{{range .spec.taints}}taint {{.key}}\n{{end}}")
	if err != nil {
		return err
	}
	interfaces, err := n.Exec("ip", "-o", "-br", "link")
	if err != nil {
		return err
	}
	for _, line := range strings.Split(strings.TrimSpace(description), "\n") {
		add("%s", line)
	}
	for _, line := range strings.Split(strings.TrimSpace(interfaces), "\n") {
		add("network interface %s", strings.Fields(line)[0])
	}
	for _, p := range suite.Processes() {
		if strings.Contains(p.Group, n.group()+"/") {
			add("process %d %s", p.Pid, p.Name)
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", n.first.Process.Pid))
	if err != nil {
		return err
	}
	for _, line := range strings.Split(strings.TrimSpace(string(mounts)), "\n") {
		add("mount %s", strings.Fields(line)[4])
	}
	return n.trees(add)
}

// trees adds the node's cgroups and files.
func (n *Node) trees(add func(string, ...any)) error {
	groups, err := suite.CgroupMounts()
	if err != nil {
		return err
	}
	for _, mount := range groups {
		if err := walk(mount+n.group(), func(path string, entry fs.DirEntry) {
			if entry.IsDir() {
				add("cgroup %s", path)
			}
		}); err != nil {
			return err
		}
	}
	for _, dir := range []string{kubeletDir, "/etc/cdi", "/run/cdi", "/var/lib/cni", "/var/lib/neuron-sim", "/opt", "/usr/local"} {
		root := n.ofNode("")
		if err := walk(root+dir, func(path string, _ fs.DirEntry) {
			add("file %s", strings.TrimPrefix(path, root))
		}); err != nil {
			return err
		}
	}
	return nil
}

// walk visits what is there; what vanishes meanwhile is not an error.
func walk(top string, visit func(string, fs.DirEntry)) error {
	return filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil {
			visit(path, entry)
		}
		return err
	})
}

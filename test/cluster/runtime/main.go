// Stands between containerd or CRI-O and runc on a simulated node: in every container's /sys are the files of the simulated host instead
// of the machine's. That is what makes the node simulated for a program that reads /sys and knows nothing of tests.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const simulatedSys = "/simulated-host/sys" // see nodeMain

func main() {
	if bundle := createdBundle(os.Args[1:]); bundle != "" {
		if err := adjust(filepath.Join(bundle, "config.json")); err != nil {
			fail(err)
		}
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		fail(err)
	}
	fail(syscall.Exec(runc, append([]string{runc}, os.Args[1:]...), os.Environ()))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "simulated node's runtime:", err)
	os.Exit(1)
}

// createdBundle returns the bundle of a call that creates a container, else nothing. The shim always writes "--bundle DIR".
func createdBundle(arguments []string) string {
	at := slices.Index(arguments, "--bundle")
	if at < 0 || at+1 >= len(arguments) || !slices.Contains(arguments, "create") {
		return ""
	}
	return arguments[at+1]
}

func adjust(config string) error {
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	var spec map[string]any
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber() // a quota must not become 1e+06
	if err := numbers.Decode(&spec); err != nil {
		return fmt.Errorf("%s: %w", config, err)
	}
	if _, err := os.Stat(simulatedSys); err == nil {
		showSimulatedSys(spec)
	}
	leaveOutUnsupported(spec)
	if text, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(config, text, 0o644)
}

func showSimulatedSys(spec map[string]any) {
	mounts, _ := spec["mounts"].([]any)
	for _, each := range mounts {
		mount, _ := each.(map[string]any)
		if mount["destination"] == "/sys" {
			mount["type"], mount["source"] = "bind", simulatedSys
			mount["options"] = []string{"rbind", "ro", "nosuid", "noexec", "nodev"}
		}
	}
}

// leaveOutUnsupported: on a machine without CAP_SYS_RESOURCE no process may have a lower oom_score_adj than its parent, and one without the
// hugetlb cgroup has no limits of huge pages. containerd has options for both (see its configuration), CRI-O has none.
func leaveOutUnsupported(spec map[string]any) {
	process, _ := spec["process"].(map[string]any)
	wanted, isNumber := process["oomScoreAdj"].(json.Number)
	if own, err := os.ReadFile("/proc/self/oom_score_adj"); isNumber && err == nil {
		lowest, _ := strconv.ParseInt(strings.TrimSpace(string(own)), 10, 64)
		if number, err := wanted.Int64(); err == nil && number < lowest {
			process["oomScoreAdj"] = lowest
		}
	}
	linux, _ := spec["linux"].(map[string]any)
	resources, _ := linux["resources"].(map[string]any)
	groups, _ := os.ReadFile("/proc/self/cgroup")
	unified, _ := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	if !strings.Contains(string(groups), ":hugetlb:") && !strings.Contains(string(unified), "hugetlb") {
		delete(resources, "hugepageLimits")
	}
}

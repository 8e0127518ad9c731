package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"neuron-agent.test/suite"
)

// Memory of a process in a container, in bytes.
type Memory struct {
	Resident, Anonymous int64 // /proc/<pid>/status: VmRSS, RssAnon
	Group               int64 // what its container's cgroup is charged with, page cache included
	GroupPeak           int64 // since the container was made; -1: this kernel does not say
}

func (m Memory) String() string {
	mib := func(bytes int64) float64 { return float64(bytes) / (1 << 20) }
	text := fmt.Sprintf("resident %.1f MiB (anonymous %.1f), cgroup %.1f MiB", mib(m.Resident), mib(m.Anonymous), mib(m.Group))
	if m.GroupPeak >= 0 {
		text += fmt.Sprintf(" (peak %.1f)", mib(m.GroupPeak))
	}
	return text
}

// MemoryOf reads what the process takes now.
func MemoryOf(pid int) (Memory, error) {
	resident, err := suite.Status(pid, "VmRSS")
	if err != nil {
		return Memory{}, err
	}
	anonymous, err := suite.Status(pid, "RssAnon")
	if err != nil {
		return Memory{}, err
	}
	m := Memory{Resident: resident << 10, Anonymous: anonymous << 10, GroupPeak: -1}
	group, err := MemoryGroup(pid)
	if err != nil {
		return Memory{}, err
	}
	if m.Group, err = readNumber(group, "memory.usage_in_bytes", "memory.current"); err != nil {
		return Memory{}, err
	}
	if peak, err := readNumber(group, "memory.max_usage_in_bytes", "memory.peak"); err == nil {
		m.GroupPeak = peak
	}
	return m, nil
}

// MemoryGroup returns the directory of the cgroup, version 1 or 2, that the memory of a process is charged to.
func MemoryGroup(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", err
	}
	unified := ""
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[1] == "memory" {
			return filepath.Join("/sys/fs/cgroup/memory", parts[2]), nil
		}
		if parts[1] == "" {
			unified = filepath.Join("/sys/fs/cgroup", parts[2])
		}
	}
	if unified == "" {
		return "", fmt.Errorf("process %d is in no memory cgroup", pid)
	}
	return unified, nil
}

// readNumber reads the first of the files that is there.
func readNumber(dir string, names ...string) (int64, error) {
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	}
	return 0, fmt.Errorf("none of %v in %s", names, dir)
}

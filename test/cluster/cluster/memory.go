package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
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
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}
	m := Memory{GroupPeak: -1}
	for _, line := range strings.Split(string(status), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "VmRSS:":
			m.Resident = kib << 10
		case "RssAnon:":
			m.Anonymous = kib << 10
		}
	}
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

// StartOf returns when a process was started, to a hundredth of a second.
func StartOf(pid int) (time.Time, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return time.Time{}, err
	}
	fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
	uptime, err := os.ReadFile("/proc/uptime")
	now := time.Now()
	if err != nil || len(fields) < 20 {
		return time.Time{}, fmt.Errorf("/proc/%d/stat: %q, %v", pid, stat, err)
	}
	up, err := strconv.ParseFloat(strings.Fields(string(uptime))[0], 64)
	if err != nil {
		return time.Time{}, err
	}
	ticks, err := strconv.ParseFloat(fields[19], 64) // starttime, in hundredths of a second since boot
	return now.Add(time.Duration((ticks/100 - up) * float64(time.Second))), err
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

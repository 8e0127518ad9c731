package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ProcessInfo is what /proc says of one process.
type ProcessInfo struct {
	Pid, Parent int
	Name        string
	Group       string // its cgroup files, one line per hierarchy
}

// Processes lists all living processes of this PID namespace.
func Processes() []ProcessInfo {
	var alive []ProcessInfo
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue
		}
		text := string(stat)
		open, last := strings.Index(text, "("), strings.LastIndex(text, ") ")
		if open < 0 || last < open {
			continue
		}
		fields := strings.Fields(text[last+2:])
		if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		group, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cgroup"))
		parent, _ := strconv.Atoi(fields[1])
		alive = append(alive, ProcessInfo{pid, parent, text[open+1 : last], string(group)})
	}
	return alive
}

// Status reads a number of /proc/PID/status, as "Threads" or, in KiB, "VmRSS".
func Status(pid int, key string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if rest, is := strings.CutPrefix(line, key+":"); is {
			return strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("no %s in /proc/%d/status", key, pid)
}

// Wakeups is how often the threads of a process have waited so far.
func Wakeups(pid int) (int64, error) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return 0, err
		}
		if count, err := Status(id, "voluntary_ctxt_switches"); err == nil { // else the thread has ended
			sum += count
		}
	}
	return sum, nil
}

// Descriptors counts the open files of a process, none when it is gone.
func Descriptors(pid int) int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries)
}

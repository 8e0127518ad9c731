package cluster

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Namespaces returns the kinds of namespace in which a link of /proc/PID/ns, as "net:[4026531840]", is the node's own.
func (n *Node) Namespaces() (map[string]bool, error) {
	own := map[string]bool{}
	dir := fmt.Sprintf("/proc/%d/ns", n.first.Process.Pid)
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		link, failed := os.Readlink(dir + "/" + entry.Name())
		err = errors.Join(err, failed)
		own[link] = true
	}
	return own, err
}

// StartedAt says when a process of the suite was started, on the clock of logs, to 20 ms.
func StartedAt(pid int) (time.Time, error) {
	const ticks = 100 // per second, on every Linux that Go runs on
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return time.Time{}, err
	}
	uptime, err := os.ReadFile("/proc/uptime")
	now := time.Now()
	if err != nil {
		return time.Time{}, err
	}
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	if len(fields) < 20 {
		return time.Time{}, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	start, err := strconv.ParseFloat(fields[19], 64)
	up, failed := strconv.ParseFloat(strings.Fields(string(uptime))[0], 64)
	return now.Add(time.Duration((start/ticks - up) * float64(time.Second))), errors.Join(err, failed)
}

// ListeningSockets lists what a process' network namespace listens on, TCP and UDP, in the kernel's notation.
func ListeningSockets(pid int) ([]string, error) {
	var listening []string
	for _, kind := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, kind))
		if err != nil {
			return nil, err
		}
		for _, line := range strings.Split(string(text), "\n")[1:] {
			fields := strings.Fields(line)
			if len(fields) > 3 && (fields[3] == "0A" || strings.HasPrefix(kind, "udp")) {
				listening = append(listening, kind+" "+fields[1])
			}
		}
	}
	return listening, nil
}

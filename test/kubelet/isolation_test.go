package kubelettest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"neuron-agent.test/suite"
)

const kubeletDir = "/var/lib/kubelet" // hard-coded in the kubelet's device manager

// covered are the directories of the machine that get a private tmpfs. The kubelet and containerd's
// shims have these paths built in.
var covered = []string{kubeletDir, "/run/containerd", "/var/log"}

// runIsolated runs this test binary in new mount and PID namespaces and removes afterwards the mount points that were missing.
func runIsolated() (int, error) {
	lock, err := lockMachine()
	if err != nil {
		return 1, err
	}
	defer lock.Close()
	for _, dir := range covered {
		if os.Mkdir(dir, 0o755) == nil {
			defer os.Remove(dir)
		}
	}
	return suite.Again(0)
}

// lockMachine lets one suite run at a time: removing a mount point at the end of one would take it away
// from the other. The lock is on a directory, so that no file stays behind; it ends with the process.
func lockMachine() (*os.File, error) {
	directory, err := os.Open(filepath.Dir(kubeletDir))
	if err != nil {
		return nil, err
	}
	return directory, syscall.Flock(int(directory.Fd()), syscall.LOCK_EX)
}

// killOthers ends every other process of our PID namespace and waits until they are gone. Shims and
// containers belong to no parent of ours, so walking /proc is the only complete list.
func killOthers() error {
	return suite.Wait(20*time.Second, "no other process lives", func() error {
		var err error
		for _, p := range suite.Processes() {
			if p.Pid != os.Getpid() {
				err = fmt.Errorf("process %d %s does not end", p.Pid, p.Name)
				_ = syscall.Kill(p.Pid, syscall.SIGKILL)
			}
		}
		return err
	})
}

// unmountBelow detaches every mount strictly below dir, deepest first.
func unmountBelow(dir string) error {
	points, err := suite.MountPoints(func(point, _ string) bool { return strings.HasPrefix(point, dir+"/") })
	if err != nil {
		return err
	}
	for i := len(points) - 1; i >= 0; i-- {
		if err := syscall.Unmount(points[i], syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", points[i], err)
		}
	}
	return nil
}

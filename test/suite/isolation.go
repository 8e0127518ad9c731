// Package suite has what the suites with real parts of Kubernetes share: namespaces and cgroups of their own, programs and their
// logs, waiting, the image of the probe, and what a container with devices must see.
package suite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

const workVariable = "SUITE_WORK"

// Work is the suite's private tmpfs, short since sockets live below it; empty outside of the namespaces that Again makes.
func Work() string { return os.Getenv(workVariable) }

// Group is the suite's cgroup as an absolute path, present in every hierarchy.
func Group() string { return "/" + filepath.Base(Work()) }

// Again runs this test binary once more, in namespaces of its own where Work and Group are there, and removes afterwards what
// cannot live in a namespace. It returns the exit status. Needs root.
func Again(more uintptr) (int, error) {
	if os.Geteuid() != 0 {
		return 1, errors.New("needs root")
	}
	work, err := os.MkdirTemp("/tmp", "nst")
	if err != nil {
		return 1, err
	}
	group := "/" + filepath.Base(work)
	if err := MakeCgroups(group); err != nil {
		_ = os.Remove(work)
		return 1, err
	}
	stop, end := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer end()
	child := exec.CommandContext(stop, "/proc/self/exe", os.Args[1:]...)
	child.Env = append(os.Environ(), workVariable+"="+work)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	err = Isolated(child, more)
	if left := errors.Join(RemoveCgroups(group), os.Remove(work)); left != nil {
		return 1, fmt.Errorf("left behind: %w", left)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}

// Isolated runs a command as the first process of new mount and PID namespaces, and of more, and waits for it. Everything in
// them ends with it, and it ends with this program.
func Isolated(child *exec.Cmd, more uintptr) error {
	runtime.LockOSThread() // Pdeathsig follows the thread that forks
	defer runtime.UnlockOSThread()
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | more, Pdeathsig: syscall.SIGKILL}
	return child.Run()
}

// Private is what an isolated process begins with: its mounts are nobody else's, /proc shows its processes, and these
// directories are empty.
func Private(empty ...string) error {
	if err := Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	for _, dir := range empty {
		if err := Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"); err != nil {
			return err
		}
	}
	return nil
}

// kernelSettings are what the kubelet would set on the machine at its start.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// CoverKernel lets a kubelet find the settings that it wants, and some more, in files of dir, so that it leaves the kernel
// alone. proc is the mounted /proc.
func CoverKernel(proc, dir string, more map[string]string) error {
	values := maps.Clone(kernelSettings)
	maps.Copy(values, more)
	for name, value := range values {
		target := filepath.Join(proc, "sys", name)
		if _, err := os.Stat(target); err != nil {
			continue
		}
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := Mount(file, target, "", syscall.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

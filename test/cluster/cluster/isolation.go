package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

const (
	workVariable  = "CLUSTERTEST_WORK"
	groupVariable = "CLUSTERTEST_GROUP"
)

// runIsolated runs this test binary in new namespaces and removes afterwards what cannot live in one: the mount point of the
// work directory and the cgroups. Several suites may run at a time.
func runIsolated() int {
	complain := func(err error) int {
		fmt.Fprintln(os.Stderr, "cluster suite:", err)
		return 1
	}
	if os.Geteuid() != 0 {
		return complain(errors.New("needs root"))
	}
	work, err := os.MkdirTemp("/tmp", "nct")
	if err != nil {
		return complain(err)
	}
	group := "/" + filepath.Base(work)
	if err := makeCgroups(group); err != nil {
		_ = os.Remove(work)
		return complain(err)
	}
	code := runChild(work, group)
	if err := errors.Join(removeCgroups(group), os.Remove(work)); err != nil {
		return complain(fmt.Errorf("left behind: %w", err))
	}
	return code
}

func runChild(work, group string) int {
	runtime.LockOSThread() // Pdeathsig follows the thread that forks
	defer runtime.UnlockOSThread()
	child := exec.Command("/proc/self/exe", os.Args[1:]...)
	child.Env = append(os.Environ(), workVariable+"="+work, groupVariable+"="+group)
	child.Stdin, child.Stdout, child.Stderr = nil, os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := child.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "cluster suite: new namespaces:", err)
		return 1
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for range stop {
			_ = child.Process.Kill() // first process of its namespace: everything in it ends too
		}
	}()
	err := child.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster suite:", err)
		return 1
	}
	return 0
}

// suiteMounts runs inside the suite's namespaces.
func suiteMounts(work string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private propagation: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := syscall.Mount("tmpfs", work, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("tmpfs on %s: %w", work, err)
	}
	return nil
}

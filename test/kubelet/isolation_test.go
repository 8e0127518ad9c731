package kubelettest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	workVariable   = "KUBELETTEST_WORK"
	cgroupVariable = "KUBELETTEST_CGROUP"
	kubeletDir     = "/var/lib/kubelet" // hard-coded in the kubelet's device manager
)

// covered are the directories of the machine that get a private tmpfs. The kubelet and containerd's
// shims have these paths built in.
var covered = []string{kubeletDir, "/run/containerd", "/var/log"}

// kernelTunables are what the kubelet would set on the machine at its start. It finds these values in
// private files instead and leaves the kernel alone.
var kernelTunables = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// runIsolated runs this test binary in new mount and PID namespaces and removes afterwards what cannot
// live in a namespace: mount points that were missing, and the cgroups.
func runIsolated() int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "kubelet suite: needs root")
		return 1
	}
	lock, err := lockMachine()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubelet suite:", err)
		return 1
	}
	defer lock.Close()
	work, err := os.MkdirTemp("/tmp", "nkt")
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubelet suite:", err)
		return 1
	}
	defer os.Remove(work)
	for _, dir := range covered {
		if os.Mkdir(dir, 0o755) == nil {
			defer os.Remove(dir)
		}
	}
	group := "/" + filepath.Base(work)
	if err := makeCgroups(group); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet suite:", err)
		return 1
	}
	defer removeCgroups(group)
	return runChild(work, group)
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

func runChild(work, group string) int {
	runtime.LockOSThread() // Pdeathsig follows the thread that forks
	defer runtime.UnlockOSThread()
	child := exec.Command("/proc/self/exe", os.Args[1:]...)
	child.Env = append(os.Environ(), workVariable+"="+work, cgroupVariable+"="+group)
	child.Stdin, child.Stdout, child.Stderr = nil, os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := child.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet suite: new namespaces:", err)
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
		fmt.Fprintln(os.Stderr, "kubelet suite:", err)
		return 1
	}
	return 0
}

// privateMounts runs inside the namespaces.
func privateMounts(work string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private propagation: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, dir := range append([]string{work}, covered...) {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"); err != nil {
			return fmt.Errorf("tmpfs on %s: %w", dir, err)
		}
	}
	for name, value := range kernelTunables {
		file := filepath.Join(work, strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		err := syscall.Mount(file, "/proc/sys/"+name, "", syscall.MS_BIND, "")
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cover /proc/sys/%s: %w", name, err)
		}
	}
	return nil
}

// killOthers ends every other process of our PID namespace and waits until they are gone. Shims and
// containers belong to no parent of ours, so walking /proc is the only complete list.
func killOthers() error {
	deadline := time.Now().Add(20 * time.Second)
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		alive := livingOthers()
		if len(alive) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not end", alive)
		}
		for _, pid := range alive {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func livingOthers() []int {
	var alive []int
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue
		}
		_, rest, found := strings.Cut(string(stat), ") ")
		if found && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X") {
			alive = append(alive, pid)
		}
	}
	return alive
}

// unmountBelow detaches every mount strictly below dir, deepest first.
func unmountBelow(dir string) error {
	points, err := mountPoints(func(point, _ string) bool { return strings.HasPrefix(point, dir+"/") })
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

func mountPoints(want func(point, kind string) bool) ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var points []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		left, right, _ := strings.Cut(lines.Text(), " - ")
		fields, kind := strings.Fields(left), strings.Fields(right)
		if len(fields) > 4 && len(kind) > 0 && want(fields[4], kind[0]) {
			points = append(points, fields[4])
		}
	}
	return points, nil
}

func cgroupMounts() ([]string, error) {
	return mountPoints(func(_, kind string) bool { return kind == "cgroup" || kind == "cgroup2" })
}

// makeCgroups makes the kubelet's cgroup root in every hierarchy (version 1 or 2).
func makeCgroups(group string) error {
	mounts, err := cgroupMounts()
	if err != nil || len(mounts) == 0 {
		return fmt.Errorf("no cgroup file system (%v)", err)
	}
	for _, mount := range mounts {
		control := filepath.Join(mount, "cgroup.subtree_control")
		for _, name := range []string{"+cpuset", "+cpu", "+memory", "+pids", "+hugetlb", "+io"} {
			if len(mounts) == 1 { // version 2 alone; a controller that is missing is the kubelet's to report
				_ = os.WriteFile(control, []byte(name), 0o644)
			}
		}
		if err := os.Mkdir(filepath.Join(mount, group), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("cgroup root: %w", err)
		}
	}
	return nil
}

func removeCgroups(group string) {
	mounts, _ := cgroupMounts()
	deadline := time.Now().Add(10 * time.Second)
	for _, mount := range mounts {
		top := filepath.Join(mount, group)
		for tick := time.NewTicker(20 * time.Millisecond); removeTree(top) != nil; <-tick.C {
			if time.Now().After(deadline) {
				fmt.Fprintln(os.Stderr, "kubelet suite: cannot remove", top)
				break
			}
		}
	}
}

// removeTree removes a directory of directories; cgroup files vanish with their directory.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.IsDir() {
			_ = removeTree(filepath.Join(dir, entry.Name()))
		}
	}
	return os.Remove(dir)
}

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"neuron-agent.test/suite"
)

const (
	nodeVariable = "CLUSTERTEST_NODE"
	hostDir      = "/simulated-host" // in the node: what neuron-sim wrote; the runtime wrapper has this path too
)

// privateDirs are the directories of a node that begin empty, whatever the machine has there, and survive a reboot.
var privateDirs = []string{"/etc/cni", "/etc/containerd", "/etc/crio", "/etc/cdi", "/etc/kubernetes", "/opt/cni", "/opt/containerd",
	kubeletDir, "/var/lib/containerd", "/var/lib/containers", "/var/lib/crio", "/var/lib/cni", "/var/lib/probe", "/var/log", hostDir}

// nodeSetup is what the first process of a node is told.
type nodeSetup struct {
	Name      string
	Dir       string   // has disk/, upper/, scratch/ and root/
	Boot      string   // boot id
	Simulated bool     // disk/simulated-host holds a host, whose dev/ is the node's /dev
	Programs  []string // directories of the machine that are seen at the same path
}

func (s nodeSetup) root(path string) string { return filepath.Join(s.Dir, "root", path) }
func (s nodeSetup) disk(path string) string { return filepath.Join(s.Dir, "disk", path) }

// nodeMain is the first process of a node: it builds the node's file system, says so on file descriptor 3, and reaps orphans
// until it is killed, and the node with it.
func nodeMain() {
	orphans := make(chan os.Signal, 1)
	signal.Notify(orphans, syscall.SIGCHLD)
	ready := os.NewFile(3, "ready")
	var setup nodeSetup
	err := json.Unmarshal([]byte(os.Getenv(nodeVariable)), &setup)
	if err == nil {
		err = setup.build()
	}
	if err != nil {
		fmt.Fprint(ready, err)
		os.Exit(1)
	}
	fmt.Fprint(ready, "ready")
	_ = ready.Close()
	for range orphans {
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}

// build makes the node's file system, an overlay over the machine's root, and moves into it.
func (s nodeSetup) build() error {
	_ = os.Unsetenv(nodeVariable)
	overlay := fmt.Sprintf("lowerdir=/,upperdir=%s,workdir=%s", filepath.Join(s.Dir, "upper"), filepath.Join(s.Dir, "scratch"))
	steps := []func() error{
		func() error { return suite.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") },
		func() error { return suite.Mount("overlay", s.root(""), "overlay", 0, overlay) },
		func() error { return suite.Mount("proc", s.root("proc"), "proc", 0, "") },
		func() error { return suite.Mount("sysfs", s.root("sys"), "sysfs", syscall.MS_RDONLY, "") },
		func() error {
			return suite.Mount("/sys/fs/cgroup", s.root("sys/fs/cgroup"), "", syscall.MS_BIND|syscall.MS_REC, "")
		},
		func() error { return suite.Mount("tmpfs", s.root("run"), "tmpfs", 0, "mode=0755") },
		func() error { return suite.Mount("tmpfs", s.root("tmp"), "tmpfs", 0, "mode=1777") },
		s.bindDirs, s.makeDev, s.coverKernel,
		func() error { return syscall.Sethostname([]byte(s.Name)) },
		s.enter,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("node %s: %w", s.Name, err)
		}
	}
	return nil
}

func (s nodeSetup) bindDirs() error {
	bind := func(source, path string) error {
		if err := errors.Join(os.MkdirAll(source, 0o755), os.MkdirAll(s.root(path), 0o755)); err != nil {
			return err
		}
		return suite.Mount(source, s.root(path), "", syscall.MS_BIND|syscall.MS_REC, "")
	}
	for _, path := range privateDirs {
		if err := bind(s.disk(path), path); err != nil {
			return err
		}
	}
	for _, path := range s.Programs {
		if err := bind(path, path); err != nil {
			return err
		}
	}
	if aws := s.disk(hostDir + "/opt/aws"); isDir(aws) { // has the LNC file
		if err := bind(aws, "/opt/aws"); err != nil {
			return err
		}
	}
	// Volumes that the kubelet mounts must show in containers that have its directory.
	return suite.Mount("", s.root(kubeletDir), "", syscall.MS_SHARED|syscall.MS_REC, "")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// makeDev: the simulated host's dev/ is the node's /dev, so that what neuron-sim changes there is seen at once.
func (s nodeSetup) makeDev() error {
	dev := s.root("dev")
	source := filepath.Join(s.Dir, "dev")
	if s.Simulated {
		source = s.disk(hostDir + "/dev")
	}
	if err := os.MkdirAll(source, 0o755); err != nil {
		return err
	}
	if err := suite.Mount(source, dev, "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	for name, numbers := range map[string][2]int{"null": {1, 3}, "zero": {1, 5}, "full": {1, 7}, "random": {1, 8},
		"urandom": {1, 9}, "kmsg": {1, 11}, "tty": {5, 0}} {
		path := filepath.Join(dev, name)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() { // the simulated host's own kernel log
			if err := os.Remove(path); err != nil {
				return err
			}
		}
		err := syscall.Mknod(path, syscall.S_IFCHR|0o666, numbers[0]<<8|numbers[1])
		if err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("make %s: %w", path, err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0",
		"stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if err := errors.Join(os.MkdirAll(dev+"/pts", 0o755), os.MkdirAll(dev+"/shm", 0o755)); err != nil {
		return err
	}
	return errors.Join(suite.Mount("devpts", dev+"/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=0620"),
		suite.Mount("tmpfs", dev+"/shm", "tmpfs", 0, "mode=1777"))
}

func (s nodeSetup) coverKernel() error {
	if err := suite.CoverKernel(s.root("proc"), s.Dir, map[string]string{"kernel/random/boot_id": s.Boot}); err != nil {
		return err
	}
	return os.WriteFile(s.root("proc/sys/net/ipv4/ip_forward"), []byte("1"), 0o644)
}

// enter makes the overlay the root and lets go of the machine's.
func (s nodeSetup) enter() error {
	old := s.root("tmp/old")
	if err := os.Mkdir(old, 0o700); err != nil {
		return err
	}
	if err := syscall.PivotRoot(s.root(""), old); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := syscall.Unmount("/tmp/old", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the machine's root: %w", err)
	}
	return os.Remove("/tmp/old")
}

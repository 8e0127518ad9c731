package suite

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Mount is the system call with an error that says what was mounted where.
func Mount(source, target, kind string, flags uintptr, data string) error {
	if err := syscall.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}

// MountPoints lists the mounts of this namespace for which want says yes, in the order of mounting.
func MountPoints(want func(point, kind string) bool) ([]string, error) {
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

// CgroupMounts lists the hierarchies, version 1 or 2.
func CgroupMounts() ([]string, error) {
	return MountPoints(func(_, kind string) bool { return kind == "cgroup" || kind == "cgroup2" })
}

// MakeCgroups makes a group in every hierarchy, version 1 or 2.
func MakeCgroups(group string) error {
	mounts, err := CgroupMounts()
	if err != nil || len(mounts) == 0 {
		return fmt.Errorf("no cgroup file system (%v)", err)
	}
	for _, mount := range mounts {
		control := filepath.Join(mount, filepath.Dir(group), "cgroup.subtree_control")
		for _, name := range []string{"+cpuset", "+cpu", "+memory", "+pids", "+hugetlb", "+io"} {
			if len(mounts) == 1 { // version 2 alone; a controller that is missing is the kubelet's to report
				_ = os.WriteFile(control, []byte(name), 0o644)
			}
		}
		if err := os.MkdirAll(filepath.Join(mount, group), 0o755); err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
	}
	return nil
}

// RemoveCgroups removes a group with all below it; their processes must have ended or be ending.
func RemoveCgroups(group string) error {
	mounts, err := CgroupMounts()
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		err = errors.Join(err, Wait(10*time.Second, "processes have left their cgroups", func() error {
			return removeTree(filepath.Join(mount, group))
		}))
	}
	return err
}

// Thaw lets the processes of a group and of all below it run, so that they can end: with cgroup version 1 a killed process that runc
// had frozen does not end before that.
func Thaw(group string) {
	mounts, _ := CgroupMounts()
	for _, mount := range mounts {
		_ = filepath.WalkDir(filepath.Join(mount, group), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && filepath.Base(path) == "freezer.state" {
				_ = os.WriteFile(path, []byte("THAWED"), 0o644)
			}
			return nil
		})
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

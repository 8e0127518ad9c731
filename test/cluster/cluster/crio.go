package cluster

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// crio is CRI-O from its Go module, with Debian's conmon; images are loaded with Debian's skopeo, since CRI-O itself reads no archive.
type crio struct{}

const crioStore = "containers-storage:[overlay@/var/lib/containers/storage+/run/containers/storage]"

func (crio) name() string   { return "crio" }
func (crio) socket() string { return "/run/crio/crio.sock" }

func (crio) command() (environment, argv []string) { return nil, []string{env.tool("crio/crio")} }

// config: the runtime stands before runc on every node, for what containerd has options for.
func (crio) config(*Node) (path, text string) {
	return "/etc/crio/crio.conf", fmt.Sprintf(`[crio]
root = "/var/lib/containers/storage"
runroot = "/run/containers/storage"
storage_driver = "overlay"
[crio.runtime]
cgroup_manager = "cgroupfs"
pinns_path = %q
default_runtime = "runc"
[crio.runtime.runtimes.runc]
runtime_path = %q
runtime_root = "/run/runc"
monitor_cgroup = "pod"
[crio.image]
pause_image = %q
pause_command = ""
[crio.network]
plugin_dirs = ["/usr/lib/cni"]
`, env.tool("crio/pinns"), env.tool("runtime"), ProbeImage)
}

// load gives skopeo the archive as its input: the node does not see all directories of the suite.
func (crio) load(n *Node, archive string) error {
	names, err := imageNames(archive)
	if err != nil {
		return err
	}
	for _, name := range names {
		input, err := os.Open(archive)
		if err != nil {
			return err
		}
		argv := append(n.enter(), "skopeo", "--insecure-policy", "copy", "--quiet", "docker-archive:/dev/stdin", crioStore+name)
		skopeo := exec.Command(argv[0], argv[1:]...)
		skopeo.Stdin = input
		output, err := skopeo.CombinedOutput()
		_ = input.Close()
		if err != nil {
			return fmt.Errorf("%s: skopeo: %w\n%s", archive, err, output)
		}
	}
	return nil
}

func (crio) tag(n *Node, from, to string) error {
	_, err := n.Exec("skopeo", "--insecure-policy", "copy", "--quiet", crioStore+from, crioStore+to)
	return err
}

// imageNames are the names in an archive in the layout of `docker save`.
func imageNames(archive string) ([]string, error) {
	file, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for files := tar.NewReader(file); ; {
		header, err := files.Next()
		if err == io.EOF {
			return nil, fmt.Errorf("%s: no manifest.json", archive)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", archive, err)
		}
		if header.Name != "manifest.json" {
			continue
		}
		var images []struct{ RepoTags []string }
		if err := json.NewDecoder(files).Decode(&images); err != nil {
			return nil, fmt.Errorf("%s: %w", archive, err)
		}
		var names []string
		for _, image := range images {
			names = append(names, image.RepoTags...)
		}
		return names, nil
	}
}

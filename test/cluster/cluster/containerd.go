package cluster

import (
	"fmt"
	"os"

	"neuron-agent.test/suite"
)

type containerd struct {
	program, shims string // shims: the directory of its shim; empty: found as usual
	old            bool   // 1.x, whose configuration has version 2
	enableCDI      bool   // which 1.7 can, and 1.6 not; 2 does so by default
}

func (containerd) name() string   { return "containerd" }
func (containerd) socket() string { return "/run/containerd/containerd.sock" }

func (c containerd) command() (environment, argv []string) {
	path := os.Getenv("PATH")
	if c.shims != "" {
		path = c.shims + ":" + path
	}
	return []string{"PATH=" + path}, []string{c.program}
}

func (c containerd) config(n *Node) (path, text string) {
	runtime := ""
	if n.InstanceType != "" {
		runtime = env.tool("runtime")
	}
	path = "/etc/containerd/config.toml"
	if !c.old {
		return path, fmt.Sprintf(`version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = %q
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['/usr/lib/cni']
    conf_dir = '/etc/cni/net.d'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = %q
`, ProbeImage, runtime)
	}
	enableCDI := ""
	if c.enableCDI {
		enableCDI = "\n  enable_cdi = true"
	}
	return path, fmt.Sprintf(`version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q%s
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = %q
`, ProbeImage, enableCDI, runtime)
}

func (c containerd) load(n *Node, archive string) error {
	return c.images(n, "import", "--local", archive)
}

func (c containerd) tag(n *Node, from, to string) error {
	return c.images(n, "tag", "--local", "--force", from, to) // --local: containerd 1.6 has no transfer service
}

func (c containerd) images(n *Node, arguments ...string) error {
	all := append([]string{"--address", n.ofNode(c.socket()), "--namespace", "k8s.io", "images"}, arguments...)
	_, err := suite.Run(env.tool("containerd2/ctr"), all...)
	return err
}

package cluster

import (
	"cmp"
	"net"
	"os"
	"path/filepath"

	"neuron-agent.test/suite"
)

// engine is what runs a node's containers: containerd or CRI-O.
type engine interface {
	name() string // of its process and its log
	socket() string
	config(n *Node) (path, text string)
	command() (environment, argv []string)
	load(n *Node, archive string) error
	tag(n *Node, from, to string) error
}

func (n *Node) engine() engine {
	switch {
	case n.Runtime == DebianContainerd:
		return containerd{program: "/usr/bin/containerd", old: true}
	case env.runtime == "crio":
		return crio{}
	default:
		dir := env.tool(cmp.Or(env.runtime, "containerd2"))
		return containerd{program: filepath.Join(dir, "containerd"), shims: dir, old: env.runtime != "", enableCDI: env.runtime != ""}
	}
}

func (n *Node) writeEngineConfig() error {
	path, text := n.engine().config(n)
	return os.WriteFile(n.Disk(path), []byte(text), 0o644)
}

// StartContainerd starts containerd, or CRI-O, and waits until it serves.
func (n *Node) StartContainerd() error {
	e := n.engine()
	environment, argv := e.command()
	var err error
	if n.Containerd, err = n.start(e.name(), environment, argv...); err != nil {
		return err
	}
	return suite.Wait(Patience, n.Name+": "+e.name()+" serves", func() error {
		if err := n.Containerd.Running(); err != nil {
			return suite.Permanent(err)
		}
		connection, err := net.Dial("unix", n.ofNode(e.socket()))
		if err == nil {
			err = connection.Close()
		}
		return err
	})
}

// importImages puts image archives into the node.
func (n *Node) importImages(archives ...string) error {
	for _, archive := range archives {
		if err := n.engine().load(n, archive); err != nil {
			return err
		}
	}
	return nil
}

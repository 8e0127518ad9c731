// The programs of a control plane and of a node in one binary, for test/cluster and test/kubelet only: what it is depends on
// the name it is called by, as with busybox. One link instead of six, and Kubernetes' own code all the same.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": manager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubeletCommand(kubelet.NewKubeletCommand) },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

// kubeletCommand: from 1.34 on the function takes a context.
func kubeletCommand(create any) *cobra.Command {
	if create, is := create.(func(context.Context) *cobra.Command); is {
		return create(context.Background())
	}
	return create.(func() *cobra.Command)()
}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, known := commands[name]
	if !known {
		fmt.Fprintf(os.Stderr, "%s: call me etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet or kubectl\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}

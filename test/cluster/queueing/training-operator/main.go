// The training operator's controller of PyTorchJobs without its webhook: its own program waits for a certificate in a fixed directory of
// the machine.
package main

import (
	"fmt"
	"os"

	jobs "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/pytorch"
	"k8s.io/client-go/kubernetes/scheme"
	control "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func run() error {
	control.SetLogger(zap.New())
	if err := jobs.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	config, err := control.GetConfig()
	if err != nil {
		return err
	}
	manager, err := control.NewManager(config, control.Options{Scheme: scheme.Scheme, Metrics: metrics.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := pytorch.NewReconciler(manager, common.GenNonGangSchedulerSetupFunc()).SetupWithManager(manager, 1); err != nil {
		return err
	}
	return manager.Start(control.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "training-operator:", err)
		os.Exit(1)
	}
}

module neuron-agent.test/queueing

go 1.26.0

tool github.com/kubeflow/mpi-operator/cmd/mpi-operator

require github.com/kubeflow/mpi-operator v0.6.0

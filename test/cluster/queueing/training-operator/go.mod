module neuron-agent.test/queueing

go 1.26.0

tool github.com/kubeflow/training-operator/cmd/training-operator.v1

require github.com/kubeflow/training-operator v1.8.1

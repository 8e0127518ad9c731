module neuron-agent.test/crio

go 1.26.0

tool github.com/cri-o/cri-o/cmd/crio

// 1.34 serves newer kubelets as well: the protocol has been at v1 since Kubernetes 1.23.
require github.com/cri-o/cri-o v1.34.0

module neuron-agent.test/crio

go 1.26.0

tool github.com/cri-o/cri-o/cmd/crio

require github.com/cri-o/cri-o v1.34.0

module neuron-agent.test/queueing

go 1.26.0

tool sigs.k8s.io/jobset

require sigs.k8s.io/jobset v0.8.1

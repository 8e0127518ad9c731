module neuron-agent.test/queueing

go 1.26.0

tool volcano.sh/volcano/cmd/webhook-manager
tool volcano.sh/volcano/cmd/controller-manager
tool volcano.sh/volcano/cmd/scheduler

require volcano.sh/volcano v1.10.0

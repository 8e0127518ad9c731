package main

import (
	"fmt"

	"neuron-agent.test/dra/node"
	"neuron-agent.test/dra/pool"
)

func main() {
	for _, name := range []string{"trn1.32xlarge", "inf2.48xlarge"} {
		t, _ := node.Find(name)
		f := node.NewFabric(t)
		for _, m := range mixesOf(t) {
			var bound, low, ours measures
			for i := range uint64(20) {
				s := stream(t, m, 0.8, firstSeed+i)
				bound.add(simulateByCount(t, s))
				low.add(simulate(f, lowest{}, s))
				ours.add(simulate(f, newClaimed(t, groups, pool.Partitions{Cores: true, Groups: true}, pool.Default()), s))
			}
			fmt.Println(name, m.name, float64(bound.fitted)/float64(bound.offered), float64(low.fitted)/float64(bound.fitted), float64(low.missed)/float64(low.offered), float64(ours.fitted)/float64(bound.fitted))
			fmt.Printf("%+v\n", ours)
		}
	}
}

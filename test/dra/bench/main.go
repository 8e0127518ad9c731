package main

import (
	"fmt"
	"sync"

	"neuron-agent.test/dra/node"
	"neuron-agent.test/dra/pool"
)

func main() {
	for _, name := range []string{"trn1.32xlarge", "trn2.48xlarge"} {
		t, _ := node.Find(name)
		f := node.NewFabric(t)
		for _, m := range mixesOf(t) {
			var mu sync.Mutex
			var wg sync.WaitGroup
			out := make([]string, 17)
			sem := make(chan int, 2)
			for k := range 4 {
				o := pool.Order{Devices: 0, Cores: 0, Groups: pool.Direction(k >> 1 & 1), Kinds: pool.Default().Kinds, AlignedFirst: true}
				pairs := k&1 == 1
				wg.Go(func() {
					sem <- 1
					var ours measures
					for i := range uint64(40) {
						s := stream(t, m, 0.8, firstSeed+i)
						p := newClaimed(t, groups, pool.Partitions{Cores: true, Groups: true}, o)
						p.pairs = pairs
						ours.add(simulate(f, p, s))
					}
					<-sem
					mu.Lock()
					out[k] = fmt.Sprintf("group %-4s pairs %-5v fitted %.4f work %.4f room %.4f missed %.4f invalid %.4f hops %.3f nics %.3f largest %.3f", o.Groups, pairs,
						float64(ours.fitted)/float64(ours.offered), ours.fittedWork/ours.offeredWork, float64(ours.fitted)/float64(ours.room), float64(ours.missed)/float64(ours.offered), float64(ours.invalid)/float64(ours.offered), ours.hops/float64(ours.pairs), float64(ours.aligned)/float64(ours.withNICs), ours.largest/float64(ours.offered))
					mu.Unlock()
				})
			}
			wg.Wait()
			fmt.Println(name, m.name)
			for _, l := range out {
				if l != "" {
					fmt.Println("  ", l)
				}
			}
		}
	}
}

package main

import (
	"container/heap"
	"time"
)

// loop runs all that happens to one node on one goroutine, so that nothing in a life needs a lock.
type loop struct {
	queue  timers
	calls  chan func()
	number int
	late   time.Duration // the longest delay of a timer since takeLate
	ended  bool
}

type timer struct {
	at     time.Time
	number int // equal times in order
	run    func()
}

type timers []timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	return t[i].at.Before(t[j].at) || t[i].at.Equal(t[j].at) && t[i].number < t[j].number
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

func newLoop() *loop { return &loop{calls: make(chan func(), 4096)} }

// after runs something later, on the loop. Only from the loop.
func (l *loop) after(d time.Duration, run func()) {
	l.number++
	heap.Push(&l.queue, timer{time.Now().Add(d), l.number, run})
}

// post runs something on the loop. From any goroutine.
func (l *loop) post(run func()) { l.calls <- run }

func (l *loop) end() { l.ended = true }

// takeLate tells how late the machine let timers run at worst, since it was last asked.
func (l *loop) takeLate() time.Duration {
	late := l.late
	l.late = 0
	return late
}

func (l *loop) run() {
	for !l.ended {
		wait := time.Second
		if len(l.queue) > 0 {
			wait = time.Until(l.queue[0].at)
		}
		if wait <= 0 {
			next := heap.Pop(&l.queue).(timer)
			l.late = max(l.late, -wait)
			next.run()
			continue
		}
		alarm := time.NewTimer(wait)
		select {
		case run := <-l.calls:
			run()
		case <-alarm.C:
		}
		alarm.Stop()
	}
}

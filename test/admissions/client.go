package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
)

// client is the life's end of one kubelet process. Answers come on the loop; when the process dies, all that are missing
// come as lost, in the order of the questions.
type client struct {
	command *exec.Cmd
	input   io.WriteCloser
	logged  int64       // bytes of the log that are of earlier kubelets
	killed  bool        // only touched on the loop
	lines   chan []byte // to the writer: a kubelet that is busy must not hold up the loop
	loop    *loop

	mutex   sync.Mutex
	number  uint64
	waiting map[uint64]func(reply, bool)
	dead    bool
	gone    chan struct{}
}

// startClient starts a kubelet. died is called on the loop when it ends without having been killed.
func startClient(l *loop, log *os.File, died func(c *client)) (*client, error) {
	c := &client{command: exec.Command("/proc/self/exe", "kubelet"), loop: l, waiting: map[uint64]func(reply, bool){},
		lines: make(chan []byte, 4096), gone: make(chan struct{})}
	c.command.Stderr = log
	if size, err := log.Stat(); err == nil {
		c.logged = size.Size()
	}
	var err error
	if c.input, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	go c.write()
	go func() {
		c.read(output)
		l.post(func() {
			if !c.killed {
				died(c)
			}
		})
	}()
	return c, nil
}

func (c *client) write() {
	for {
		select {
		case line := <-c.lines:
			if _, err := c.input.Write(line); err != nil {
				return
			}
		case <-c.gone:
			return
		}
	}
}

func (c *client) read(output io.Reader) {
	decoder := json.NewDecoder(bufio.NewReaderSize(output, 1<<20))
	for {
		var r reply
		if decoder.Decode(&r) != nil {
			break
		}
		c.mutex.Lock()
		done := c.waiting[r.Number]
		delete(c.waiting, r.Number)
		c.mutex.Unlock()
		if done != nil {
			c.loop.post(func() { done(r, true) })
		}
	}
	_ = c.command.Wait()
	c.mutex.Lock()
	c.dead = true
	lost := c.waiting
	c.waiting = nil
	c.mutex.Unlock()
	close(c.gone)
	for _, number := range slicesSortedKeys(lost) {
		done := lost[number]
		c.loop.post(func() { done(reply{}, false) })
	}
}

// ask sends a question; done gets the answer, or false when the kubelet has died without one.
func (c *client) ask(q question, done func(r reply, answered bool)) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.dead {
		c.loop.post(func() { done(reply{}, false) })
		return
	}
	c.number++
	q.Number = c.number
	c.waiting[q.Number] = done
	line, err := json.Marshal(q)
	if err != nil {
		panic(err)
	}
	c.lines <- append(line, '\n')
}

// kill ends the process at once, whatever it is doing, and waits for that.
func (c *client) kill() {
	c.killed = true
	_ = c.command.Process.Kill()
	<-c.gone
}

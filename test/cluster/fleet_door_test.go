package scenarios

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"neuron-agent.test/cluster/cluster"
)

// door is a proxy in front of the API server for the agents of one mode. It records their calls, and counts the bytes of their connections,
// TLS included.
type door struct {
	url    string
	closed atomic.Bool // every connection is reset, as by a load balancer without a server behind it
	proxy  *httputil.ReverseProxy

	mutex          sync.Mutex
	nodes          map[string]string        // token to node
	bytes          map[string]*atomic.Int64 // by node
	calls          []*apiCall
	open           int // watches
	busy, mostBusy int // calls that are not watches
}

// apiCall is one request.
type apiCall struct {
	node, verb, path string
	isWatch, isDry   bool
	status           int // 0: no answer
	at               time.Time
	took             time.Duration
}

func (c *apiCall) isWrite() bool { return c.verb != http.MethodGet && !c.isDry }

// isRefused: the server answered, but not with what was asked for. An object that is not there (404) is an answer.
func (c *apiCall) isRefused() bool { return c.status >= 400 && c.status != http.StatusNotFound }

type (
	callKey       struct{}
	connectionKey struct{}
)

// openDoor serves with the API server's certificate until the end of the test.
func openDoor(t *testing.T, c *cluster.Cluster) *door {
	t.Helper()
	pki := filepath.Dir(c.Kubeconfig)
	certificate, err := tls.LoadX509KeyPair(filepath.Join(pki, "apiserver.crt"), filepath.Join(pki, "apiserver.key"))
	authority, failed := os.ReadFile(filepath.Join(pki, "ca.crt"))
	listener, refused := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(err, failed, refused); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	quiet := log.New(io.Discard, "", 0)
	d := &door{url: "https://" + listener.Addr().String(), nodes: map[string]string{}, bytes: map[string]*atomic.Int64{}}
	d.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "https", Host: "127.0.0.1:443"}) },
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableCompression: true,
			MaxIdleConnsPerHost: 1000, IdleConnTimeout: time.Minute},
		ModifyResponse: func(answer *http.Response) error {
			call := answer.Request.Context().Value(callKey{}).(*apiCall)
			d.mutex.Lock()
			defer d.mutex.Unlock()
			call.status = answer.StatusCode
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     quiet,
	}
	server := &http.Server{Handler: d, ErrorLog: quiet, ConnContext: func(ctx context.Context, connection net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, connection.(*tls.Conn).NetConn())
	}}
	go func() {
		_ = server.Serve(tls.NewListener(countedListener{listener}, &tls.Config{Certificates: []tls.Certificate{certificate}}))
	}()
	t.Cleanup(func() { _ = server.Close() })
	return d
}

func (d *door) admit(token, node string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.nodes[token], d.bytes[node] = node, &atomic.Int64{}
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	call := &apiCall{verb: r.Method, path: r.URL.Path, isWatch: query.Has("watch"), isDry: query.Has("dryRun"), at: time.Now()}
	d.enter(call, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Context().Value(connectionKey{}).(*countedConnection))
	defer d.leave(call)
	if d.closed.Load() {
		panic(http.ErrAbortHandler)
	}
	d.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, call)))
}

func (d *door) enter(call *apiCall, token string, connection *countedConnection) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	call.node = d.nodes[token]
	if bytes := d.bytes[call.node]; bytes != nil {
		connection.addTo(bytes)
	}
	d.calls = append(d.calls, call)
	if call.isWatch {
		d.open++
		return
	}
	d.busy++
	d.mostBusy = max(d.mostBusy, d.busy)
}

func (d *door) leave(call *apiCall) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	call.took = time.Since(call.at)
	if call.isWatch {
		d.open--
	} else {
		d.busy--
	}
}

func (d *door) watches() int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.open
}

// lastWrite is when the newest call that writes began.
func (d *door) lastWrite() time.Time {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, call := range slices.Backward(d.calls) {
		if call.isWrite() {
			return call.at
		}
	}
	return time.Time{}
}

// begin forgets what was recorded.
func (d *door) begin() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.calls, d.mostBusy = nil, d.busy
	for _, bytes := range d.bytes {
		bytes.Store(0)
	}
}

// traffic is what came through the door from these nodes since its last begin.
func (d *door) traffic(nodes []*fleetNode) traffic {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	all, from := traffic{nodes: len(nodes), atOnce: d.mostBusy}, map[string]bool{}
	for _, n := range nodes {
		from[n.name] = true
		all.bytes += d.bytes[n.name].Load()
	}
	for _, call := range d.calls {
		if from[call.node] {
			all.calls = append(all.calls, *call)
		}
	}
	return all
}

type traffic struct {
	nodes, atOnce int
	bytes         int64
	calls         []apiCall
}

func (t traffic) perNode(count int) float64 { return float64(count) / float64(t.nodes) }

func (t traffic) count(is func(*apiCall) bool) int {
	sum := 0
	for i := range t.calls {
		if is(&t.calls[i]) {
			sum++
		}
	}
	return sum
}

func (t traffic) writes() int { return t.count((*apiCall).isWrite) }

// busiest is the most calls that began within one second.
func (t traffic) busiest() int {
	most, first := 0, 0
	for last := range t.calls {
		for t.calls[last].at.Sub(t.calls[first].at) > time.Second {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// mean is how long a call that is not a watch took.
func (t traffic) mean() time.Duration {
	sum, count := time.Duration(0), 0
	for _, call := range t.calls {
		if !call.isWatch && call.status != 0 {
			sum, count = sum+call.took, count+1
		}
	}
	return sum / time.Duration(max(count, 1))
}

// delays are, by node, the times from `since` to the end of the first successful call that `is`, ascending.
func (t traffic) delays(since time.Time, is func(*apiCall) bool) []time.Duration {
	byNode := map[string]time.Duration{}
	for i := range t.calls {
		call := &t.calls[i]
		if _, known := byNode[call.node]; !known && call.at.After(since) && call.status > 0 && call.status < 300 && is(call) {
			byNode[call.node] = call.at.Add(call.took).Sub(since)
		}
	}
	var all []time.Duration
	for _, delay := range byNode {
		all = append(all, delay)
	}
	slices.Sort(all)
	return all
}

// kinds counts the calls by verb, status and what is below the API group: "GET 200 nodes", for messages.
func (t traffic) kinds(is func(*apiCall) bool) string {
	counts := map[string]int{}
	for i := range t.calls {
		if call := &t.calls[i]; is(call) {
			counts[fmt.Sprintf("%s %d %s", call.verb, call.status, strings.ReplaceAll(call.path, call.node, "NODE"))]++
		}
	}
	var words []string
	for kind, count := range counts {
		words = append(words, fmt.Sprintf("%d× %s", count, kind))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// countedListener counts what its connections carry, both ways.
type countedListener struct{ net.Listener }

func (l countedListener) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConnection{Conn: connection}, nil
}

// countedConnection keeps the bytes until the first request says whose they are.
type countedConnection struct {
	net.Conn
	early atomic.Int64
	sum   atomic.Pointer[atomic.Int64]
}

func (c *countedConnection) addTo(sum *atomic.Int64) {
	if c.sum.CompareAndSwap(nil, sum) {
		sum.Add(c.early.Swap(0))
	}
}

func (c *countedConnection) count(bytes int) {
	sum := c.sum.Load()
	if sum == nil {
		sum = &c.early
	}
	sum.Add(int64(bytes))
}

func (c *countedConnection) Read(data []byte) (int, error) {
	count, err := c.Conn.Read(data)
	c.count(count)
	return count, err
}

func (c *countedConnection) Write(data []byte) (int, error) {
	count, err := c.Conn.Write(data)
	c.count(count)
	return count, err
}

package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"neuron-agent.test/suite"
)

// System is a queueing system or an operator that comes as a Go module. Its programs run beside the control plane, each as the service
// account that its manifests give it; its webhooks are served on 127.0.0.1.
//
// To add one:
//   - test/cluster/queueing/NAME/go.mod requires MODULE VERSION and has a line `tool PACKAGE` for each program; `go mod download MODULE`
//     there writes go.sum. run.sh builds the packages in the module's own folder, with the versions of its own go.mod.
//   - A test has the folder's name without hyphens in its own (TestVolcano…, TestKueueJobSet), describes a System and calls StartSystem; a
//     line in durations.txt. Specs are YAML beside go.mod: see queueing_test.go.
type System struct {
	Name      string // folder in test/cluster/queueing
	Namespace string
	Manifests []string // files and kustomizations below the module's folder
	Config    string   // of the programs, becomes DIR/config.yaml; has DIR as the arguments do
	Programs  []Program
	Port      int // of the webhooks; 0: they are left out
	// Adjust may change an object of the manifests; false leaves it out. nil: nothing.
	Adjust func(object *unstructured.Unstructured) bool
}

// Program is one process of a System. Arguments have DIR for its directory, in which are NAME.kubeconfig, the certificate
// tls.crt, tls.key and ca.crt, and a file CONFIGMAP/KEY for each ConfigMap of the manifests. KUBECONFIG is set, and the certificate is also
// where controller-runtime looks for it.
type Program struct {
	Name      string // last part of the package's path
	Account   string // service account
	Arguments []string
	Listens   int // port on 127.0.0.1 that is waited for before the next program starts; 0: none
}

// Systems are those that run.sh has built for this run.
func Systems() []string { return strings.Fields(os.Getenv("CLUSTER_QUEUEING")) }

// NeedsSystem skips the test where a system was not built.
func NeedsSystem(t testing.TB, name string) {
	t.Helper()
	if !slices.Contains(Systems(), name) {
		t.Skipf("%s was not built: CLUSTER_QUEUEING=%s test/cluster/run.sh, or -run with this test's name", name, name)
	}
}

func (s System) tool(name string) string {
	return env.tool(filepath.Join("queueing", s.Name, name))
}

// SystemFile is a file of test/cluster/queueing/SYSTEM.
func SystemFile(system, name string) string {
	return filepath.Join(env.tree, "test/cluster/queueing", system, name)
}

// Version is what the system's folder says: "volcano.sh/volcano v1.10.0".
func (s System) Version(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(s.tool("version"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// runningSystem is what StartSystem leaves for its end.
type runningSystem struct {
	System
	cluster   *Cluster
	dir       string
	processes []*Process
}

// StartSystem applies a system's manifests, starts its programs, and removes everything after the test.
func (c *Cluster) StartSystem(t testing.TB, s System) {
	t.Helper()
	NeedsSystem(t, s.Name)
	begin := time.Now()
	r := &runningSystem{System: s, cluster: c, dir: env.inWork("queueing-" + s.Name)}
	objects, err := r.objects()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(r.dir), r.writeCertificate(), r.writeConfigs(objects)); err != nil {
		t.Fatal(err)
	}
	files, err := r.writeManifests(objects)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.remove(t, files) })
	for _, file := range files {
		c.Kubectl(t, "apply", "--server-side", "-f", file)
	}
	c.Kubectl(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	for _, program := range s.Programs {
		if err := r.start(program); err != nil {
			t.Fatal(err)
		}
	}
	Figure(t, s.Version(t)+" runs", time.Since(begin))
}

// running returns an error when a program of the system has ended.
func (r *runningSystem) running() error {
	for _, p := range r.processes {
		if err := p.Running(); err != nil {
			return err
		}
	}
	return nil
}

func (r *runningSystem) start(p Program) error {
	account := identity{user: "system:serviceaccount:" + r.Namespace + ":" + p.Account,
		groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + r.Namespace, "system:authenticated"}}
	kubeconfig, err := r.cluster.authority.writeKubeconfig(r.dir, p.Name, account)
	if err != nil {
		return err
	}
	argv := []string{r.tool(p.Name)}
	for _, argument := range p.Arguments {
		argv = append(argv, r.filled(argument))
	}
	process, err := suite.Start(env.log(r.Name+"-"+p.Name), []string{"KUBECONFIG=" + kubeconfig, "TMPDIR=" + r.dir}, argv...)
	if err != nil {
		return err
	}
	r.processes = append(r.processes, process)
	return suite.Wait(Patience, p.Name+" listens", func() error {
		if err := process.Running(); err != nil {
			return suite.Permanent(err)
		}
		if p.Listens == 0 {
			return nil
		}
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.Listens))
		if err == nil {
			err = connection.Close()
		}
		return err
	})
}

func (r *runningSystem) filled(text string) string { return strings.ReplaceAll(text, "DIR", r.dir) }

// writeCertificate writes the webhooks' into the directory, and to where controller-runtime looks for it.
func (r *runningSystem) writeCertificate() error {
	for _, dir := range []string{r.dir, filepath.Join(r.dir, "k8s-webhook-server/serving-certs")} {
		err := os.MkdirAll(dir, 0o755)
		err = errors.Join(err, r.cluster.authority.issue(dir, "tls", identity{user: r.Name, addresses: []string{"127.0.0.1"}}))
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "ca.crt"), r.cluster.authority.pem, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// remove ends the programs and takes the webhooks away before anything else: nobody would answer them.
func (r *runningSystem) remove(t testing.TB, files []string) {
	err := r.running()
	for _, p := range r.processes {
		err = errors.Join(err, p.End(syscall.SIGKILL))
	}
	if err != nil {
		t.Error(err)
	}
	for _, file := range slices.Backward(files) {
		r.cluster.Kubectl(t, "delete", "--ignore-not-found", "--wait", "--timeout=60s", "-f", file)
	}
}

// KillPod kills the first process of a pod's containers, as the kernel does when memory runs out. Only probes, which have this name.
func (n *Node) KillPod(t testing.TB, uid string) {
	t.Helper()
	killed := 0
	for _, p := range suite.Processes() {
		if p.Name == "probe" && strings.Contains(p.Group, "/pod"+uid+"/") {
			if err := syscall.Kill(p.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed++
		}
	}
	if killed == 0 {
		t.Fatalf("%s: no probe runs in pod %s", n.Name, uid)
	}
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"neuron-agent.test/suite"
)

// Cluster is the control plane with its nodes.
type Cluster struct {
	Client     kubernetes.Interface // as cluster administrator
	Kubeconfig string               // path, of the same

	Etcd, APIServer, ControllerManager, Scheduler *Process
	// Gates are given to API server, controller manager, scheduler and kubelets when they are started next: "Name=false,…"; empty: defaults.
	Gates string
	// APIs are served too, from the next start of the API server on: "scheduling.k8s.io/v1beta1=true,…".
	APIs string
	// Kubernetes is the minor version of what is started next, "1.37"; empty: the first of the run.
	Kubernetes string

	authority *authority
	pki       string // directory of keys and certificates
	nodes     map[string]*Node
	numbers   int // nodes ever made
	images    []string
}

var shared = &sharedCluster{}

type sharedCluster struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Get returns the cluster that all tests of the package share; the first call starts its control plane, without nodes.
func Get(t testing.TB) *Cluster {
	t.Helper()
	shared.once.Do(func() {
		begin := time.Now()
		shared.cluster, shared.err = startCluster()
		Figure(t, "control plane up", time.Since(begin))
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	if err := shared.cluster.Running(); err != nil {
		t.Fatal(err)
	}
	return shared.cluster
}

func (s *sharedCluster) shutDown() error {
	if s.cluster == nil {
		return nil
	}
	c := s.cluster
	var all []error
	for _, n := range c.nodes {
		all = append(all, n.powerOff())
	}
	for _, p := range []*Process{c.Scheduler, c.ControllerManager, c.APIServer, c.Etcd} {
		if p != nil {
			all = append(all, p.End(syscall.SIGKILL))
		}
	}
	for _, p := range suite.Processes() {
		if p.Pid != os.Getpid() {
			all = append(all, fmt.Errorf("process %d (%s) outlives the cluster", p.Pid, p.Name))
		}
	}
	return errors.Join(all...)
}

// Running returns an error if a program of the control plane has ended.
func (c *Cluster) Running() error {
	for _, p := range []*Process{c.Etcd, c.APIServer, c.ControllerManager, c.Scheduler} {
		if err := p.Running(); err != nil {
			return err
		}
	}
	return nil
}

func startCluster() (*Cluster, error) {
	c := &Cluster{pki: env.inWork("pki"), nodes: map[string]*Node{}}
	if err := c.makeIdentities(); err != nil {
		return nil, err
	}
	var err error
	if c.images, err = prepareImages(env.inWork("images")); err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	for _, start := range []func() error{c.StartEtcd, c.StartAPIServer, c.StartControllerManager, c.StartScheduler} {
		if err := start(); err != nil {
			return c, err
		}
	}
	// Pods are refused until their namespace has its service account.
	return c, suite.Wait(Patience, "namespace default has a service account", func() error {
		_, err := c.Client.CoreV1().ServiceAccounts("default").Get(context.Background(), "default", meta.GetOptions{})
		return errors.Join(err, c.Running())
	})
}

func (c *Cluster) makeIdentities() error {
	if err := os.MkdirAll(c.pki, 0o700); err != nil {
		return err
	}
	var err error
	if c.authority, err = newAuthority(); err != nil {
		return err
	}
	if err := os.WriteFile(c.file("ca.crt"), c.authority.pem, 0o644); err != nil {
		return err
	}
	server := identity{user: "kube-apiserver", names: []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local", "localhost"}, addresses: []string{gateway, apiService, "127.0.0.1"}}
	err = errors.Join(serviceAccountKeys(c.pki, "service-account"),
		c.authority.issue(c.pki, "apiserver", server),
		c.authority.issue(c.pki, "apiserver-kubelet", identity{user: "kube-apiserver", groups: []string{"system:masters"}}))
	for _, user := range []string{"kube-controller-manager", "kube-scheduler"} {
		_, failed := c.authority.writeKubeconfig(c.pki, user, identity{user: "system:" + user})
		err = errors.Join(err, failed)
	}
	admin := identity{user: "admin", groups: []string{"system:masters"}}
	path, failed := c.authority.writeKubeconfig(c.pki, "admin", admin)
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	c.Kubeconfig = path
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return err
	}
	config.QPS, config.Burst, config.Timeout = 200, 400, 20*time.Second
	c.Client, err = kubernetes.NewForConfig(config)
	return err
}

func (c *Cluster) file(name string) string { return c.pki + "/" + name }

// StartEtcd starts etcd over the data of an earlier run of it and waits until it serves.
func (c *Cluster) StartEtcd() error {
	var err error
	c.Etcd, err = suite.Start(env.log("etcd"), nil, env.kube("", "etcd"), "--data-dir", env.inWork("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380", "--log-level=warn")
	if err != nil {
		return err
	}
	return suite.Wait(Patience, "etcd serves", func() error {
		if err := c.Etcd.Running(); err != nil {
			return suite.Permanent(err)
		}
		return expectOK("http://127.0.0.1:2379/health")
	})
}

// StartAPIServer starts the API server and waits until it is ready.
func (c *Cluster) StartAPIServer() error {
	var err error
	c.APIServer, err = suite.Start(env.log("kube-apiserver"), nil, append(c.gated("kube-apiserver"),
		"--etcd-servers=http://127.0.0.1:2379", "--bind-address=0.0.0.0", "--secure-port=443", "--advertise-address="+gateway,
		"--service-cluster-ip-range="+serviceRange, "--authorization-mode=Node,RBAC",
		"--runtime-config="+strings.TrimSuffix("resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true,"+c.APIs, ","), // as older clients make claims
		"--enable-admission-plugins=NodeRestriction", "--allow-privileged=true", "--cert-dir="+c.pki,
		"--client-ca-file="+c.file("ca.crt"), "--tls-cert-file="+c.file("apiserver.crt"),
		"--tls-private-key-file="+c.file("apiserver.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+c.file("service-account.pub"),
		"--service-account-signing-key-file="+c.file("service-account.key"),
		"--kubelet-certificate-authority="+c.file("ca.crt"), "--kubelet-client-certificate="+c.file("apiserver-kubelet.crt"),
		"--kubelet-client-key="+c.file("apiserver-kubelet.key"), "--kubelet-preferred-address-types=InternalIP", "-v=2")...)
	if err != nil {
		return err
	}
	return suite.Wait(Patience, "the API server is ready", func() error {
		if err := c.APIServer.Running(); err != nil {
			return suite.Permanent(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return c.Client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// StartControllerManager and StartScheduler do not wait.
func (c *Cluster) StartControllerManager() error {
	var err error
	c.ControllerManager, err = suite.Start(env.log("kube-controller-manager"), nil, append(c.gated("kube-controller-manager"),
		"--kubeconfig="+c.file("kube-controller-manager.kubeconfig"), "--use-service-account-credentials",
		"--service-account-private-key-file="+c.file("service-account.key"), "--root-ca-file="+c.file("ca.crt"),
		"--leader-elect=false", "--bind-address=127.0.0.1", "--cert-dir="+c.pki, "-v=2")...)
	return err
}

func (c *Cluster) StartScheduler() error {
	var err error
	c.Scheduler, err = suite.Start(env.log("kube-scheduler"), nil, append(c.gated("kube-scheduler"),
		"--kubeconfig="+c.file("kube-scheduler.kubeconfig"), "--leader-elect=false", "--bind-address=127.0.0.1",
		"--cert-dir="+c.pki, "-v=2")...)
	return err
}

// StartSchedulerOf starts a second scheduler, for pods that name it, and ends it after the test. `more`: of its configuration.
func (c *Cluster) StartSchedulerOf(t testing.TB, name, more string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".yaml")
	text := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: false}\n"+
		"clientConnection: {kubeconfig: %s}\nprofiles: [{schedulerName: %s}]\n%s", c.file("kube-scheduler.kubeconfig"), name, more)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	scheduler, err := suite.Start(env.log(name), nil, append(c.gated("kube-scheduler"),
		"--config="+file, "--bind-address=127.0.0.1", "--secure-port=0", "--cert-dir="+c.pki, "-v=2")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = scheduler.End(syscall.SIGKILL) })
}

// RestartClients starts scheduler and controller manager anew after the API server was away. They would try again after up to half a
// minute; elsewhere they end by themselves when they lose their lease.
func (c *Cluster) RestartClients() error {
	return errors.Join(c.Scheduler.End(syscall.SIGKILL), c.ControllerManager.End(syscall.SIGKILL), c.StartScheduler(), c.StartControllerManager())
}

// gated is the program with its feature gates, the beginning of its arguments.
func (c *Cluster) gated(name string) []string {
	if c.Gates == "" {
		return []string{env.kube(c.Kubernetes, name)}
	}
	return []string{env.kube(c.Kubernetes, name), "--feature-gates=" + c.Gates}
}

// Kubectl runs the real kubectl as cluster administrator and fails the test if it fails.
func (c *Cluster) Kubectl(t testing.TB, arguments ...string) string {
	t.Helper()
	output, err := c.TryKubectl(arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// TryKubectl is Kubectl for what may fail; the output has both streams.
func (c *Cluster) TryKubectl(arguments ...string) (string, error) {
	return suite.Run(env.kube(c.Kubernetes, "kubectl"), append([]string{"--kubeconfig", c.Kubeconfig, "--cache-dir", env.inWork("kubectl")}, arguments...)...)
}

// Apply applies files and deletes what they made after the test.
func (c *Cluster) Apply(t testing.TB, files ...string) {
	t.Helper()
	for _, file := range files {
		c.Kubectl(t, "apply", "-f", file)
		t.Cleanup(func() { c.Kubectl(t, "delete", "--ignore-not-found", "--wait", "-f", file) })
	}
}

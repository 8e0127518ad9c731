package manifests

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const dashboardFile = "monitoring/neuron-agent-dashboard.json"

func fileOf(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestMonitoringComponentFindsTheAgents(t *testing.T) {
	for _, source := range []string{"base", "overlays/dra", "overlays/efa-only"} {
		objects := kustomized(t, source, []string{"monitoring"}, "")
		monitor := one[*monitoringv1.PodMonitor](t, objects)
		selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
		if err != nil {
			t.Fatal(err)
		}
		daemonSet := one[*appsv1.DaemonSet](t, objects)
		template := daemonSet.Spec.Template
		if !selector.Matches(labels.Set(template.Labels)) || monitor.Namespace != daemonSet.Namespace {
			t.Errorf("%s: the PodMonitor does not find pods labelled %v", source, template.Labels)
		}
		endpoint := monitor.Spec.PodMetricsEndpoints[0]
		port := template.Spec.Containers[0].Ports[0].Name
		if endpoint.Port == nil || *endpoint.Port != port || endpoint.Path != "/metrics" || !endpoint.HonorLabels {
			t.Errorf("%s: asks port %v, path %s", source, endpoint.Port, endpoint.Path)
		}
		if _, twice := template.Annotations["prometheus.io/scrape"]; twice {
			t.Errorf("%s: a Prometheus that goes by annotations, too, scrapes twice", source)
		}
		rules := one[*monitoringv1.PrometheusRule](t, objects)
		if len(rules.Spec.Groups) < 3 {
			t.Errorf("%s: %d groups of rules", source, len(rules.Spec.Groups))
		}
		dashboard := one[*corev1.ConfigMap](t, objects)
		if dashboard.Data[filepath.Base(dashboardFile)] != string(fileOf(t, dashboardFile)) || dashboard.Labels["grafana_dashboard"] != "1" {
			t.Errorf("%s: config map %s, labels %v", source, dashboard.Name, dashboard.Labels)
		}
	}
}

func TestNeuronMonitorServiceIsWhatCloudWatchLooksFor(t *testing.T) {
	objects := kustomized(t, "base", []string{"neuron-monitor-service"}, "")
	daemonSet := one[*appsv1.DaemonSet](t, objects)
	container := daemonSet.Spec.Template.Spec.Containers[0]
	services := map[string]*corev1.Service{}
	for _, object := range objects {
		if service, ok := object.(*corev1.Service); ok {
			services[service.Namespace] = service
			if service.Name != "neuron-monitor-service" || service.Labels["k8s-app"] != service.Name || service.Spec.Ports[0].Port != 8000 {
				t.Errorf("service %s, labels %v, ports %v", service.Name, service.Labels, service.Spec.Ports)
			}
		}
	}
	own, alias := services[daemonSet.Namespace], services["amazon-cloudwatch"]
	if len(services) != 2 || own == nil || alias == nil {
		t.Fatalf("services in %v", services)
	}
	if !labels.SelectorFromSet(own.Spec.Selector).Matches(labels.Set(daemonSet.Spec.Template.Labels)) {
		t.Errorf("the service selects %v", own.Spec.Selector)
	}
	if policy := own.Spec.InternalTrafficPolicy; policy == nil || *policy != corev1.ServiceInternalTrafficPolicyLocal {
		t.Error("an agent of CloudWatch would be answered by another node's")
	}
	if own.Spec.Ports[0].TargetPort.String() != container.Ports[0].Name {
		t.Errorf("target port %s", own.Spec.Ports[0].TargetPort.String())
	}
	if want := own.Name + "." + own.Namespace + ".svc.cluster.local"; alias.Spec.ExternalName != want {
		t.Errorf("the alias leads to %s", alias.Spec.ExternalName)
	}
	for _, argument := range []string{"--metrics-tls-cert=/etc/neuron-agent-tls/tls.crt", "--metrics-tls-key=/etc/neuron-agent-tls/tls.key"} {
		if !slices.Contains(container.Args, argument) {
			t.Errorf("arguments %v lack %s", container.Args, argument)
		}
	}
	if container.ReadinessProbe.HTTPGet.Scheme != corev1.URISchemeHTTPS {
		t.Error("the readiness probe asks without TLS")
	}
	if last := container.VolumeMounts[len(container.VolumeMounts)-1]; last.MountPath != "/etc/neuron-agent-tls" || !last.ReadOnly {
		t.Errorf("mounts %v", last)
	}
}

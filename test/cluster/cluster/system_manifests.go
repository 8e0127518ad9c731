package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Kinds of a system's manifests that are left out: what runs its programs in pods, and what needs controllers that are not here.
var notApplied = []string{"Deployment", "Job", "Service", "ServiceMonitor", "Certificate", "Issuer", "APIService", "FlowSchema",
	"PriorityLevelConfiguration", "NetworkPolicy", "PodDisruptionBudget"}

// objects reads the manifests from the module's folder.
func (r *runningSystem) objects() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range r.Manifests {
		path := filepath.Join(r.tool("module"), name)
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		var text []byte
		if info.IsDir() {
			var built string
			built, err = r.cluster.TryKubectl("kustomize", path)
			text = []byte(built)
		} else {
			text, err = os.ReadFile(path)
		}
		if err != nil {
			return nil, err
		}
		some, err := ReadObjects(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, some...)
	}
	return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool { return !r.keeps(o) }), nil
}

// ReadObjects reads the objects of a YAML text.
func ReadObjects(text []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(&object.Object); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

func isWebhook(o *unstructured.Unstructured) bool {
	return strings.HasSuffix(o.GetKind(), "WebhookConfiguration")
}

func (r *runningSystem) keeps(o *unstructured.Unstructured) bool {
	if slices.Contains(notApplied, o.GetKind()) || isWebhook(o) && r.Port == 0 || r.Adjust != nil && !r.Adjust(o) {
		return false
	}
	r.serveLocally(o.Object)
	return true
}

// serveLocally gives every clientConfig that names a service the address of the program instead.
func (r *runningSystem) serveLocally(value any) {
	switch value := value.(type) {
	case map[string]any:
		if config, is := value["clientConfig"].(map[string]any); is && config["service"] != nil {
			path, _, _ := unstructured.NestedString(config, "service", "path")
			value["clientConfig"] = map[string]any{"caBundle": r.cluster.authority.pem, "url": fmt.Sprintf("https://127.0.0.1:%d%s", r.Port, path)}
		}
		for _, inner := range value {
			r.serveLocally(inner)
		}
	case []any:
		for _, inner := range value {
			r.serveLocally(inner)
		}
	}
}

// writeConfigs writes the configuration, and the keys of all ConfigMaps as files.
func (r *runningSystem) writeConfigs(objects []*unstructured.Unstructured) error {
	if err := os.WriteFile(filepath.Join(r.dir, "config.yaml"), []byte(r.filled(r.Config)), 0o644); err != nil {
		return err
	}
	for _, o := range objects {
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		if o.GetKind() != "ConfigMap" {
			continue
		}
		for key, text := range data {
			path := filepath.Join(r.dir, o.GetName(), key)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeManifests writes files in the order in which they are applied: namespaces and definitions, the rest, the webhooks.
func (r *runningSystem) writeManifests(objects []*unstructured.Unstructured) ([]string, error) {
	var texts [3]bytes.Buffer
	for _, o := range objects {
		part := 1
		if isWebhook(o) {
			part = 2
		} else if kind := o.GetKind(); kind == "Namespace" || kind == "CustomResourceDefinition" {
			part = 0
		}
		text, err := json.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		texts[part].WriteString("---\n")
		texts[part].Write(append(text, '\n'))
	}
	var files []string
	for i, text := range texts {
		path := filepath.Join(r.dir, fmt.Sprintf("manifests-%d.yaml", i))
		if text.Len() == 0 {
			continue
		}
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			return nil, err
		}
		files = append(files, path)
	}
	return files, nil
}

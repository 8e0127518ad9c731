package suite

import (
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Ask is what one container asks for, resource to quantity. It goes into limits only; for extended resources the API fills in
// equal requests.
type Ask map[core.ResourceName]string

// ProbeContainer runs the probe, whose reports go to a directory of the node: see ReportVolume. life is "once", "stay" until
// deleted, or a number of seconds; pod is where the probe has the pod's name from.
func ProbeContainer(name string, ask Ask, life string, pod core.EnvVar) core.Container {
	limits := core.ResourceList{}
	for name, quantity := range ask {
		limits[name] = resource.MustParse(quantity)
	}
	pod.Name = "PROBE_POD"
	return core.Container{
		Name: name, Image: ProbeImage, ImagePullPolicy: core.PullNever, Command: []string{"/probe", name, life},
		Env: []core.EnvVar{pod}, Resources: core.ResourceRequirements{Limits: limits},
		VolumeMounts: []core.VolumeMount{{Name: "out", MountPath: "/out"}},
	}
}

// ReportVolume is where ProbeContainer writes: POD.CONTAINER in this directory of the node.
func ReportVolume(dir string) core.Volume {
	return core.Volume{Name: "out", VolumeSource: core.VolumeSource{HostPath: &core.HostPathVolumeSource{Path: dir}}}
}

// Report is what a probe found inside its container.
type Report struct {
	UID     string
	Env     map[string]string
	Open    []string // device nodes that opened for reading and writing, sorted
	Refused []string // device nodes that exist but did not
	Reads   []string // device nodes that opened for reading alone
	Writes  []string // device nodes that opened for writing alone
}

// ParseReport reads what probe.sh wrote.
func ParseReport(text string) Report {
	r := Report{Env: map[string]string{}}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "uid":
			r.UID = rest
		case "env":
			key, value, _ := strings.Cut(rest, "=")
			r.Env[key] = value
		case "open":
			r.Open = append(r.Open, rest)
		case "refused":
			r.Refused = append(r.Refused, rest)
		case "reads":
			r.Reads = append(r.Reads, rest)
		case "writes":
			r.Writes = append(r.Writes, rest)
		}
	}
	slices.Sort(r.Open)
	return r
}

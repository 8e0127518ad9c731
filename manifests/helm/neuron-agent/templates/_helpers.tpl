{{/* Short name: the value of app.kubernetes.io/name. */}}
{{- define "neuron-agent.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Name of the objects: the release's, with the chart's where the release's does not hold it. */}}
{{- define "neuron-agent.fullname" -}}
{{- $name := include "neuron-agent.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "neuron-agent.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{/* Labels of an object that is no part of a DaemonSet of its own name; takes (dict "root" . "name" NAME). */}}
{{- define "neuron-agent.labels" -}}
app.kubernetes.io/name: {{ .name | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "neuron-agent.image" -}}
{{- $image := ternary .Values.dev.image .Values.image .Values.dev.enabled -}}
{{ $image.repository }}:{{ default .Chart.AppVersion $image.tag }}
{{- end -}}

{{/* What cannot be meant. */}}
{{- define "neuron-agent.validate" -}}
{{- if not (or .Values.neuron.enabled .Values.efaOnly.enabled) -}}
{{- fail "neuron.enabled and efaOnly.enabled are both false: nothing would run" -}}
{{- end -}}
{{- if .Values.dev.enabled -}}
{{- if .Values.efaOnly.enabled }}{{ fail "dev.enabled goes with neuron.enabled alone: set efaOnly.enabled to false" }}{{ end -}}
{{- if or .Values.privileged .Values.lncFile }}{{ fail "dev.enabled reads a simulated host: set privileged and lncFile to false" }}{{ end -}}
{{- end -}}
{{- if .Values.nodeGroups -}}
{{- range .Values.env }}{{ if eq .name "NODE_NAME" }}{{ fail "nodeGroups sets NODE_NAME itself: take it out of env" }}{{ end }}{{ end -}}
{{- end -}}
{{- if and .Values.neuron.enabled .Values.efaOnly.enabled (eq .Values.daemonSetName (printf "%s-efa" (include "neuron-agent.fullname" .))) -}}
{{- fail "daemonSetName is the name of the second DaemonSet: choose another" -}}
{{- end -}}
{{- end -}}

{{/* The JSON of --node-groups, with the keys that the program knows. */}}
{{- define "neuron-agent.nodeGroups" -}}
{{- $groups := list -}}
{{- range .Values.nodeGroups -}}
{{- $group := dict "name" .name -}}
{{- with .instanceTypes }}{{ $_ := set $group "instance-types" . }}{{ end -}}
{{- with .nodeNames }}{{ $_ := set $group "node-names" . }}{{ end -}}
{{- with .resourceNames }}{{ $_ := set $group "resources" (join "," .) }}{{ end -}}
{{- if hasKey . "coreDevices" }}{{ with toString .coreDevices }}{{ $_ := set $group "core-devices" . }}{{ end }}{{ end -}}
{{- $groups = append $groups $group -}}
{{- end -}}
{{- dict "groups" $groups | toPrettyJson -}}
{{- end -}}

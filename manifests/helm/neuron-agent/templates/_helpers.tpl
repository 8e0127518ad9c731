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

{{/* Ranges of --core-devices that the program would refuse; takes (dict "where" NAME "value" VALUE). */}}
{{- define "neuron-agent.checkCoreDevices" -}}
{{- $where := .where -}}
{{- range splitList "," (toString .value) -}}
{{- if regexMatch "^[0-9]" . -}}
{{- $ends := splitList "-" . -}}
{{- $first := atoi (first $ends) -}}
{{- $last := atoi (last $ends) -}}
{{- if gt $first $last }}{{ fail (printf "%s: the range %s runs backwards: write %d-%d" $where . $last $first) }}{{ end -}}
{{- if gt $last 63 }}{{ fail (printf "%s: %s is no device: their numbers go from 0 to 63" $where .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Refuses contradictory values. */}}
{{- define "neuron-agent.validate" -}}
{{- include "neuron-agent.validateDra" . -}}
{{- include "neuron-agent.validateNodeStatus" . -}}
{{- include "neuron-agent.validatePlacement" . -}}
{{- if not (or .Values.neuron.enabled .Values.efaOnly.enabled) -}}
{{- fail "neuron.enabled and efaOnly.enabled are both false: nothing would run" -}}
{{- end -}}
{{- if .Values.dev.enabled -}}
{{- if .Values.efaOnly.enabled }}{{ fail "dev.enabled goes with neuron.enabled alone: set efaOnly.enabled to false" }}{{ end -}}
{{- if or .Values.privileged .Values.lncFile }}{{ fail "dev.enabled reads a simulated host: set privileged and lncFile to false" }}{{ end -}}
{{- end -}}
{{- with .Values.updateStrategy -}}
{{- $zero := list "0" "0%" "<nil>" "" -}}
{{- if and (eq .type "RollingUpdate") .rollingUpdate (not (has (toString .rollingUpdate.maxSurge) $zero)) (not (has (toString .rollingUpdate.maxUnavailable) $zero)) -}}
{{- fail "updateStrategy.rollingUpdate: one of maxSurge and maxUnavailable is 0" -}}
{{- end -}}
{{- end -}}
{{- if not .Values.metrics.enabled -}}
{{- range list "podMonitor" "neuronMonitorService" "networkPolicy" }}{{ if (index $.Values.metrics .).enabled }}{{ fail (printf "metrics.%s.enabled needs metrics.enabled" .) }}{{ end }}{{ end -}}
{{- end -}}
{{- with .Values.metrics.neuronMonitorService -}}
{{- if and .enabled (not $.Values.metrics.tls.secretName) }}{{ fail "metrics.neuronMonitorService.enabled needs metrics.tls.secretName: CloudWatch's agent scrapes over TLS alone" }}{{ end -}}
{{- end -}}
{{- include "neuron-agent.checkCoreDevices" (dict "where" "coreDevices" "value" .Values.coreDevices) -}}
{{- $only := join "," .Values.resourceNames -}}
{{- if and (eq $only "neuroncore") (eq (toString .Values.coreDevices) "none") -}}
{{- fail "resourceNames [neuroncore] with coreDevices none offers nothing on any node: no device is offered as cores" -}}
{{- end -}}
{{- if and $only (empty (without .Values.resourceNames "neuron" "neurondevice")) (eq (toString .Values.coreDevices) "all") -}}
{{- fail (printf "resourceNames [%s] with coreDevices all offers nothing on any node: no device is offered whole" $only) -}}
{{- end -}}
{{- $names := dict -}}
{{- range .Values.nodeGroups -}}
{{- if hasKey $names .name }}{{ fail (printf "nodeGroups: two groups are named %q: give one another name" .name) }}{{ end -}}
{{- $_ := set $names .name true -}}
{{- if hasKey . "coreDevices" }}{{ include "neuron-agent.checkCoreDevices" (dict "where" (printf "nodeGroups, coreDevices of %q" .name) "value" .coreDevices) }}{{ end -}}
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

{{/* Arguments, environment and RBAC for placements of scheduler extenders (docs/allocation.md#placed-by-others). */}}

{{/* Name of its objects. */}}
{{- define "neuron-agent.placementName" -}}
{{- printf "%s-placement" (include "neuron-agent.fullname" .) -}}
{{- end -}}

{{/* Account of the DaemonSet for devices: another part may have one anyway. */}}
{{- define "neuron-agent.placementAccount" -}}
{{- if .Values.nodeStatus.enabled -}}
{{- include "neuron-agent.nodeStatusName" . -}}
{{- else if .Values.dev.enabled -}}
{{- printf "%s-dev" (include "neuron-agent.fullname" .) -}}
{{- else -}}
{{- include "neuron-agent.placementName" . -}}
{{- end -}}
{{- end -}}

{{/* Refuses contradictory values. */}}
{{- define "neuron-agent.validatePlacement" -}}
{{- if .Values.honorPlacement -}}
{{- if or (eq .Values.mode "dra") (not .Values.neuron.enabled) }}{{ fail "honorPlacement is for the device plugin on Neuron nodes: mode device-plugin or both, and neuron.enabled" }}{{ end -}}
{{- if semverCompare "<1.32.0-0" .Capabilities.KubeVersion.Version }}{{ fail (printf "honorPlacement needs Kubernetes 1.32 or newer, where tokens name their node; this is %s" .Capabilities.KubeVersion.Version) }}{{ end -}}
{{- range .Values.env }}{{ if eq .name "NODE_NAME" }}{{ fail "honorPlacement sets NODE_NAME itself: take it out of env" }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}

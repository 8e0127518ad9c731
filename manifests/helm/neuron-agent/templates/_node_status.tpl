{{/* Arguments, environment and RBAC of the node status (docs/node-status.md). */}}

{{/* Name of its objects. */}}
{{- define "neuron-agent.nodeStatusName" -}}
{{- printf "%s-node-status" (include "neuron-agent.fullname" .) -}}
{{- end -}}

{{- define "neuron-agent.nodeStatusArgs" -}}
{{- with .Values.nodeStatus -}}
{{- if .enabled }}
- --node-status=on
{{- if .acceleratedHardwareReady }}
- --accelerated-hardware-ready
{{- end }}
{{- with int .unhealthyDevicesForNode }}
- --unhealthy-devices-for-node={{ . }}
{{- end }}
{{- with .startupTaint }}
- --startup-taint={{ . }}
{{- end }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* Accounts of the DaemonSets: the driver for claims has one anyway. */}}
{{- define "neuron-agent.nodeStatusAccounts" -}}
{{- $accounts := list -}}
{{- if or .Values.efaOnly.enabled (and .Values.neuron.enabled (ne .Values.mode "dra")) }}{{ $accounts = append $accounts (include "neuron-agent.nodeStatusName" .) }}{{ end -}}
{{- if ne .Values.mode "device-plugin" }}{{ $accounts = append $accounts (include "neuron-agent.draName" .) }}{{ end -}}
{{- join "," $accounts -}}
{{- end -}}

{{/* A pattern that matches these names. */}}
{{- define "neuron-agent.nodeStatusPattern" -}}
{{- $accounts := splitList "," (include "neuron-agent.nodeStatusAccounts" .) -}}
{{- if eq (len $accounts) 1 }}{{ first $accounts }}{{ else }}{{ printf "(%s)" (join "|" $accounts) }}{{ end -}}
{{- end -}}

{{/* Refuses contradictory values. */}}
{{- define "neuron-agent.validateNodeStatus" -}}
{{- if .Values.nodeStatus.enabled -}}
{{- if semverCompare "<1.32.0-0" .Capabilities.KubeVersion.Version }}{{ fail (printf "nodeStatus.enabled needs Kubernetes 1.32 or newer, where tokens name their node; this is %s" .Capabilities.KubeVersion.Version) }}{{ end -}}
{{- range .Values.env }}{{ if eq .name "NODE_NAME" }}{{ fail "nodeStatus sets NODE_NAME itself: take it out of env" }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* Parts of the DaemonSet that only the driver for claims has (docs/dra.md). */}}

{{/* Name of its objects. */}}
{{- define "neuron-agent.draName" -}}
{{- printf "%s-dra" (include "neuron-agent.fullname" .) -}}
{{- end -}}

{{/* Also of the device plugin, which keeps away from hardware that this driver's claims still hold. */}}
{{- define "neuron-agent.driverNameArg" -}}
{{- if ne .Values.dra.driverName "neuron.aws.com" }}
- --dra-driver-name={{ .Values.dra.driverName }}
{{- end }}
{{- end -}}

{{- define "neuron-agent.draArgs" -}}
- run
- --mode=dra
{{- include "neuron-agent.metricsArg" . }}
{{- if ne .Values.kubeletDir "/var/lib/kubelet" }}
- {{ printf "--kubelet-dir=%s" .Values.kubeletDir | quote }}
{{- end }}
{{- include "neuron-agent.driverNameArg" . }}
{{- with default (ternary "all" "" .Values.dev.enabled) .Values.dra.partitions }}
- --dra-partitions={{ . }}
{{- end }}
{{- with .Values.dra.shares }}
- --dra-shares={{ . }}
{{- end }}
{{- with toString .Values.dra.coreDevices }}
- --core-devices={{ . }}
{{- end }}
{{- with .Values.dra.ultraserver }}
- --dra-ultraserver={{ . }}
{{- end }}
{{- with .Values.dra.taintEffect }}
- --dra-taint-effect={{ . }}
{{- end }}
{{- if .Values.dra.claimStatus }}
- --dra-claim-status=on
{{- end }}
{{- include "neuron-agent.commonArgs" . }}
{{- end -}}

{{/* The sockets are where the kubelet looks, so every path is the same inside and outside; but for device-plugins, which is in
/var/lib/kubelet with any kubelet. */}}
{{- define "neuron-agent.draMounts" -}}
- name: plugin
  mountPath: {{ printf "%s/plugins/%s" .Values.kubeletDir .Values.dra.driverName | quote }}
- name: plugins-registry
  mountPath: {{ printf "%s/plugins_registry" .Values.kubeletDir | quote }}
- name: cdi
  mountPath: /var/run/cdi
- name: device-plugins
  mountPath: {{ printf "%s/device-plugins" .Values.kubeletDir | quote }}
  readOnly: true
- name: pod-resources
  mountPath: {{ printf "%s/pod-resources" .Values.kubeletDir | quote }}
  readOnly: true
{{- end -}}

{{- define "neuron-agent.draVolumes" -}}
- name: plugin
  hostPath:
    path: {{ printf "%s/plugins/%s" .Values.kubeletDir .Values.dra.driverName | quote }}
    type: DirectoryOrCreate
- name: plugins-registry
  hostPath:
    path: {{ printf "%s/plugins_registry" .Values.kubeletDir | quote }}
    type: Directory
- name: cdi
  hostPath:
    path: /var/run/cdi
    type: DirectoryOrCreate
{{- end -}}

{{/* Selects the labelled nodes; with dra.allNodes all of the first DaemonSet's that are not labelled for the device plugin. */}}
{{- define "neuron-agent.draAffinity" -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - {key: eks.amazonaws.com/compute-type, operator: NotIn, values: [auto, fargate, hybrid]}
          - {key: kubernetes.io/os, operator: NotIn, values: [windows]}
          {{- if .Values.dra.allNodes }}
          - {key: nvidia.com/gpu.present, operator: NotIn, values: ["true"]}
          - {key: karpenter.k8s.aws/instance-gpu-manufacturer, operator: DoesNotExist}
          - {key: neuron-agent/efa-only, operator: NotIn, values: ["true"]}
          - {key: neuron-agent/mode, operator: NotIn, values: [device-plugin]}
          {{- else }}
          - {key: neuron-agent/mode, operator: In, values: [dra]}
          {{- end }}
podAntiAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    # Beside AWS's device plugin, and our own while it still ends: two that serve the same devices never overlap. One term for both:
    # with two, a pod that waits is considered again only when a pod ends that matches both of them.
    - topologyKey: kubernetes.io/hostname
      namespaceSelector: {}
      labelSelector:
        matchExpressions:
          - {key: name, operator: In, values: [neuron-device-plugin-ds, neuron-agent-device-plugin]}
{{- end -}}

{{/* One DeviceClass; takes (dict "root" . "name" NAME "is" EXPRESSION-OF-THE-KIND "extended" NAME-OR-""). */}}
{{- define "neuron-agent.deviceClass" -}}
{{- $driver := .root.Values.dra.driverName -}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: {{ .name }}
  labels:
    {{- include "neuron-agent.labels" (dict "root" .root "name" (printf "%s-dra" (include "neuron-agent.name" .root))) | nindent 4 }}
spec:
  selectors:
    - cel:
        # The driver first: another driver's device lacks the attribute, and that error ends the scheduling of the pod on all nodes.
        expression: device.driver == '{{ $driver }}' && {{ .is }}
  {{- if and .extended .root.Values.dra.extendedResources }}
  extendedResourceName: {{ .extended }}
  {{- end }}
{{- end -}}

{{/* Refuses contradictory values. */}}
{{- define "neuron-agent.validateDra" -}}
{{- range .Values.env }}{{ if eq .name "POD_NAME" }}{{ fail "the chart sets POD_NAME itself: take it out of env" }}{{ end }}{{ end -}}
{{- if ne .Values.mode "device-plugin" -}}
{{- if not .Values.neuron.enabled }}{{ fail (printf "mode %s goes with neuron.enabled: it says how Neuron nodes are served" .Values.mode) }}{{ end -}}
{{- if semverCompare "<1.34.0-0" .Capabilities.KubeVersion.Version }}{{ fail (printf "mode %s needs Kubernetes 1.34.2 or newer; this is %s" .Values.mode .Capabilities.KubeVersion.Version) }}{{ end -}}
{{- if and .Values.dra.extendedResources (semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version) }}{{ fail (printf "dra.extendedResources needs control plane and kubelets of 1.36 or newer: older kubelets start pods without their devices; this is %s" .Capabilities.KubeVersion.Version) }}{{ end -}}
{{- if and .Values.dra.claimStatus (semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version) }}{{ fail (printf "dra.claimStatus needs Kubernetes 1.36 or newer: older servers would let the driver change the allocation of any claim; this is %s" .Capabilities.KubeVersion.Version) }}{{ end -}}
{{- range .Values.env }}{{ if has .name (list "NODE_NAME" "POD_UID") }}{{ fail (printf "mode %s sets %s itself: take it out of env" $.Values.mode .name) }}{{ end }}{{ end -}}
{{- if and .Values.daemonSetName (eq .Values.daemonSetName (include "neuron-agent.draName" .)) }}{{ fail "daemonSetName is the name of the driver's DaemonSet: choose another" }}{{ end -}}
{{- end -}}
{{- if and (eq .Values.mode "both") .Values.dra.allNodes -}}
{{- fail "mode both parts the nodes by the label neuron-agent/mode=dra: dra.allNodes goes with mode dra alone" -}}
{{- end -}}
{{- if and (eq .Values.mode "dra") (or .Values.resourceNames (toString .Values.coreDevices) .Values.nodeGroups .Values.daemonSetName) -}}
{{- fail "resourceNames, coreDevices, nodeGroups and daemonSetName are of the device plugin, which mode dra does not run: leave them out, or see dra.partitions" -}}
{{- end -}}
{{- end -}}

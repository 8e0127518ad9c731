{{/*
One DaemonSet. Takes (dict "root" . "objectName" NAME "name" SHORT-NAME "mode" MODE "nodes" VALUES "update" VALUES), where MODE is
device-plugin or dra, the first VALUES have nodeSelector, affinity and tolerations, and the second are an update strategy.
*/}}
{{- define "neuron-agent.daemonset" -}}
{{- $ := .root -}}
{{- $values := .root.Values -}}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ .objectName | quote }}
  namespace: {{ include "neuron-agent.namespace" $ | quote }}
  labels:
    {{- include "neuron-agent.labels" . | nindent 4 }}
    app.kubernetes.io/component: {{ include "neuron-agent.component" . }}
spec:
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ .name | quote }}
      app.kubernetes.io/instance: {{ $.Release.Name | quote }}
  updateStrategy:
    {{- toYaml (ternary .update (omit .update "rollingUpdate") (eq .update.type "RollingUpdate")) | nindent 4 }}
  template:
    metadata:
      {{- $annotations := dict }}
      {{- if and $values.metrics.enabled $values.metrics.scrapeAnnotations (not $values.metrics.podMonitor.enabled) }}
      {{- $_ := set $annotations "prometheus.io/scrape" "true" }}
      {{- $_ := set $annotations "prometheus.io/port" (toString (int $values.metrics.port)) }}
      {{- $_ := set $annotations "prometheus.io/path" "/metrics" }}
      {{- if $values.metrics.tls.secretName }}{{ $_ := set $annotations "prometheus.io/scheme" "https" }}{{ end }}
      {{- end }}
      {{- if $values.dev.enabled }}{{ $_ := set $annotations "kubectl.kubernetes.io/default-container" "neuron-agent" }}{{ end }}
      {{- if and $values.nodeGroups (ne .mode "dra") }}{{ $_ := set $annotations "checksum/node-groups" (include "neuron-agent.nodeGroups" $ | sha256sum) }}{{ end }}
      {{- with merge (deepCopy $values.podAnnotations) $annotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      labels:
        {{- /* last, so that podLabels cannot break the selector */}}
        {{- $own := dict "app.kubernetes.io/name" .name "app.kubernetes.io/instance" $.Release.Name "app.kubernetes.io/component" (include "neuron-agent.component" .) }}
        {{- /* what the driver for claims keeps away from, beside AWS's pods, which have a label of that key */}}
        {{- if eq .mode "device-plugin" }}{{ $_ := set $own "name" "neuron-agent-device-plugin" }}{{ end }}
        {{- toYaml (merge $own $values.podLabels) | nindent 8 }}
    spec:
      {{- include "neuron-agent.pod" . | trim | nindent 6 }}
{{- end -}}

{{- define "neuron-agent.pod" -}}
{{- $values := .root.Values -}}
{{- with $values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
automountServiceAccountToken: {{ or (eq .mode "dra") $values.nodeStatus.enabled $values.honorPlacement }}
enableServiceLinks: false
terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
{{- if eq .mode "dra" }}
serviceAccountName: {{ include "neuron-agent.draName" .root | quote }}
{{- else if $values.nodeStatus.enabled }}
serviceAccountName: {{ include "neuron-agent.nodeStatusName" .root | quote }}
{{- else if $values.dev.enabled }}
serviceAccountName: {{ printf "%s-dev" (include "neuron-agent.fullname" .root) | quote }}
{{- else if $values.honorPlacement }}
serviceAccountName: {{ include "neuron-agent.placementName" .root | quote }}
{{- end }}
{{- with $values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .nodes.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .nodes.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .nodes.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "neuron-agent.podSecurityContext" .root | nindent 2 }}
{{- if $values.dev.enabled }}
initContainers:
  {{- include "neuron-agent.simulatedHost" .root | nindent 2 }}
{{- end }}
containers:
  {{- include "neuron-agent.container" (dict "root" .root "mode" .mode) | nindent 2 }}
volumes:
  {{- include "neuron-agent.volumes" (dict "root" .root "mode" .mode) | nindent 2 }}
{{- end -}}

{{- define "neuron-agent.podSecurityContext" -}}
{{- if .Values.podSecurityContext -}}
{{- toYaml .Values.podSecurityContext -}}
{{- else -}}
runAsUser: 0 # the kubelet's directories belong to root
runAsGroup: 0
{{- if not .Values.privileged }}
seccompProfile:
  type: RuntimeDefault
{{- end }}
{{- end -}}
{{- end -}}

{{- define "neuron-agent.securityContext" -}}
{{- if .Values.securityContext -}}
{{- toYaml .Values.securityContext -}}
{{- else if .Values.privileged -}}
privileged: true
readOnlyRootFilesystem: true
{{- else -}}
privileged: false
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  {{- if and .Values.kernelLog (not .Values.dev.enabled) }}
  add: [SYSLOG]
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "neuron-agent.component" -}}
{{ ternary "dra-driver" "device-plugin" (eq .mode "dra") }}
{{- end -}}

{{- define "neuron-agent.metricsArg" -}}
{{- if .Values.metrics.enabled }}
- {{ printf "--metrics-address=:%d" (int .Values.metrics.port) | quote }}
{{- if .Values.metrics.tls.secretName }}
- --metrics-tls-cert=/etc/neuron-agent-tls/tls.crt
- --metrics-tls-key=/etc/neuron-agent-tls/tls.key
{{- end }}
{{- if not .Values.metrics.nodeDocument }}
- --node-document=off
{{- end }}
{{- end }}
{{- end -}}

{{- define "neuron-agent.args" -}}
- run
- --take-over
{{- include "neuron-agent.metricsArg" . }}
{{- with .Values.resourceNames }}
- {{ printf "--resources=%s" (join "," .) | quote }}
{{- end }}
{{- with toString .Values.coreDevices }}
- {{ printf "--core-devices=%s" . | quote }}
{{- end }}
{{- if .Values.nodeGroups }}
- --node-groups=/etc/neuron-agent/node-groups.json
{{- end }}
{{- if .Values.honorPlacement }}
- --honor-placement=on
{{- end }}
{{- include "neuron-agent.driverNameArg" . }}
{{- include "neuron-agent.commonArgs" . }}
{{- end -}}

{{- define "neuron-agent.commonArgs" -}}
{{- if or .Values.kernelLog .Values.privileged }}
- --kernel-log=on
{{- end }}
{{- include "neuron-agent.nodeStatusArgs" . }}
{{- with default (ternary "debug" "" .Values.dev.enabled) .Values.logLevel }}
- --log-level={{ . }}
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "neuron-agent.env" -}}
{{- $values := .root.Values -}}
{{- if $values.dev.enabled }}
{{- range list "AGENT" "LS" "TOP" }}
- name: NEURON_{{ . }}_ROOT
  value: /var/lib/neuron-sim
- name: NEURON_{{ . }}_KUBELET_DIR
  value: /var/lib/kubelet
{{- end }}
- name: NEURON_GATHER_ROOT
  value: /var/lib/neuron-sim
{{- end }}
{{- if or $values.nodeGroups $values.nodeStatus.enabled $values.honorPlacement (eq .mode "dra") }}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- end }}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- if eq .mode "dra" }}
- name: POD_UID
  valueFrom:
    fieldRef:
      fieldPath: metadata.uid
{{- end }}
{{- with $values.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "neuron-agent.container" -}}
{{- $values := .root.Values -}}
- name: neuron-agent
  image: {{ include "neuron-agent.image" .root | quote }}
  imagePullPolicy: {{ $values.image.pullPolicy }}
  command: [neuron-agent]
  args:
    {{- include (ternary "neuron-agent.draArgs" "neuron-agent.args" (eq .mode "dra")) .root | nindent 4 }}
  {{- with include "neuron-agent.env" . | trim }}
  env:
    {{- . | nindent 4 }}
  {{- end }}
  {{- if $values.metrics.enabled }}
  ports:
    - name: metrics
      containerPort: {{ int $values.metrics.port }}
  {{- with $values.readinessProbe }}
  readinessProbe: # no liveness probe: a driver that hangs would restart an agent that still serves
    httpGet:
      path: /readyz
      port: metrics
      {{- if $values.metrics.tls.secretName }}
      scheme: HTTPS
      {{- end }}
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  resources:
    {{- toYaml $values.resources | nindent 4 }}
  securityContext:
    {{- include "neuron-agent.securityContext" .root | nindent 4 }}
  volumeMounts:
    {{- if $values.dev.enabled }}
    - name: simulated-host # writable for `kubectl exec … neuron-sim set`; the agent itself writes nothing there
      mountPath: /var/lib/neuron-sim
    {{- end }}
    {{- if eq .mode "dra" }}
    {{- include "neuron-agent.draMounts" .root | nindent 4 }}
    {{- else }}
    - name: device-plugins
      mountPath: /var/lib/kubelet/device-plugins
    - name: pod-resources
      mountPath: /var/lib/kubelet/pod-resources
      readOnly: true
    {{- end }}
    {{- if or $values.lncFile $values.privileged }}
    - name: aws-neuron
      mountPath: /opt/aws/neuron
      readOnly: true
    {{- end }}
    {{- if $values.privileged }}
    - name: dev
      mountPath: /dev
    {{- end }}
    {{- if and $values.nodeGroups (ne .mode "dra") }}
    - name: node-groups
      mountPath: /etc/neuron-agent
      readOnly: true
    {{- end }}
    {{- if and $values.metrics.enabled $values.metrics.tls.secretName }}
    - name: metrics-tls
      mountPath: /etc/neuron-agent-tls
      readOnly: true
    {{- end }}
{{- end -}}

{{- define "neuron-agent.volumes" -}}
{{- $values := .root.Values -}}
{{- if $values.dev.enabled -}}
- name: simulated-host
  hostPath:
    path: /var/lib/neuron-sim
    type: DirectoryOrCreate
- name: node-label-access
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
      - configMap:
          name: kube-root-ca.crt
          optional: true # without it NEURON_SIM_INSTANCE_TYPE decides
          items:
            - key: ca.crt
              path: ca.crt
{{ end -}}
{{- if eq .mode "dra" -}}
{{- include "neuron-agent.draVolumes" .root }}
{{ end -}}
- name: device-plugins
  hostPath:
    path: /var/lib/kubelet/device-plugins # fixed in the kubelet's program, whatever its --root-dir
    type: Directory
- name: pod-resources
  hostPath:
    path: {{ printf "%s/pod-resources" $values.kubeletDir | quote }}
    type: Directory
{{- if or $values.lncFile $values.privileged }}
- name: aws-neuron
  hostPath:
    path: /opt/aws/neuron
    type: DirectoryOrCreate
{{- end }}
{{- if $values.privileged }}
- name: dev
  hostPath:
    path: /dev
    type: Directory
{{- end }}
{{- if and $values.nodeGroups (ne .mode "dra") }}
- name: node-groups
  configMap:
    name: {{ include "neuron-agent.fullname" .root }}-node-groups
{{- end }}
{{- if and $values.metrics.enabled $values.metrics.tls.secretName }}
- name: metrics-tls
  secret:
    secretName: {{ $values.metrics.tls.secretName | quote }}
{{- end }}
{{- end -}}

{{/* The init container that writes the simulated host; it alone may make device nodes and read nodes. */}}
{{- define "neuron-agent.simulatedHost" -}}
- name: simulated-host
  image: {{ include "neuron-agent.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [neuron-sim]
  args: [node, /var/lib/neuron-sim, --keep, --type-from-node=$(NODE_NAME)]
  env:
    - name: NODE_NAME
      valueFrom:
        fieldRef:
          fieldPath: spec.nodeName
    - name: NEURON_SIM_INSTANCE_TYPE # of nodes without the label neuron-agent/simulate
      value: {{ .Values.dev.instanceType | quote }}
    {{- if .Values.dev.besideHardware }}
    - name: NEURON_SIM_BESIDE_HARDWARE
      value: "true"
    {{- end }}
  resources:
    requests:
      cpu: 10m
      memory: 24Mi
    limits:
      memory: 256Mi # 25,000 small files, should /var/lib be in memory
  securityContext:
    privileged: false
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
      add: [MKNOD] # the device nodes, which behave like /dev/null
  volumeMounts:
    - name: simulated-host
      mountPath: /var/lib/neuron-sim
    - name: node-label-access
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
{{- end -}}

{{/* The name that all objects of the release begin with; 20 characters are left for their ends. */}}
{{- define "hopwise.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 43 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 43 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 43 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The templates below take (dict "root" $ "component" "scheduler"). */}}

{{- define "hopwise.name" -}}
{{ include "hopwise.fullname" .root }}-{{ .component }}
{{- end -}}

{{/* What never changes of a component's pods: Deployments refuse another selector. */}}
{{- define "hopwise.selectorLabels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "hopwise.labels" -}}
{{ include "hopwise.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: {{ .root.Chart.Name }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "hopwise.serviceAccount" -}}
{{- $values := index .root.Values .component -}}
{{- $values.serviceAccount.name | default (include "hopwise.name" .) -}}
{{- end -}}

{{/* A digest names the very image; a tag beside it is for people. */}}
{{- define "hopwise.image" -}}
{{- $image := .Values.image -}}
{{- $place := $image.repository -}}
{{- if $image.registry -}}
{{- $place = printf "%s/%s" $image.registry $image.repository -}}
{{- end -}}
{{- if $image.digest -}}
{{- printf "%s:%s@%s" $place ($image.tag | default .Chart.AppVersion) $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $place ($image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The rules of a role: those of deploy/rbac, which says to each why it is there; none where the
component needs none. Takes the above and "kind", "ClusterRole" or "Role". */}}
{{- define "hopwise.rules" -}}
{{- $kind := .kind -}}
{{- $rules := list -}}
{{- $file := printf "files/rbac/%s.yaml" .component -}}
{{- range splitList "\n---\n" (.root.Files.Get $file) -}}
{{- $document := fromYaml . -}}
{{- if eq ($document.kind | default "") $kind -}}
{{- $rules = concat $rules $document.rules -}}
{{- end -}}
{{- end -}}
{{- if $rules -}}
{{- toYaml $rules -}}
{{- end -}}
{{- end -}}

{{- define "hopwise.securityContext" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
{{- end -}}

{{- define "hopwise.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Where a component's pods may go. */}}
{{- define "hopwise.placement" -}}
{{- $values := index .root.Values .component -}}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $values.affinity }}
affinity:
  {{- toYaml $values.affinity | nindent 2 }}
{{- else }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "hopwise.selectorLabels" . | nindent 12 }}
{{- end }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
- {{ toYaml (omit . "labelSelector") | nindent 2 | trim }}
  labelSelector:
    {{- if .labelSelector }}
    {{- toYaml .labelSelector | nindent 4 }}
    {{- else }}
    matchLabels:
      {{- include "hopwise.selectorLabels" $ | nindent 6 }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Probes: /healthz says that the threads answer, /readyz also what it waits for. A first list of a
large cluster takes its time, which a start-up probe grants. */}}
{{- define "hopwise.probes" -}}
{{- if eq .component "webhook" -}}
livenessProbe:
  tcpSocket: {port: https}
readinessProbe:
  httpGet: {path: /readyz, port: https, scheme: HTTPS}
  periodSeconds: 5
{{- else -}}
startupProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 3
{{- end -}}
{{- end -}}

{{/* The components that are on, with commas: no list comes out of a template. */}}
{{- define "hopwise.components" -}}
{{- $on := list -}}
{{- range list "scheduler" "controller" "webhook" -}}
{{- if (index $.Values .).enabled -}}
{{- $on = append $on . -}}
{{- end -}}
{{- end -}}
{{- join "," $on -}}
{{- end -}}

{{/* --- what each component is told -------------------------------------------------------- */}}

{{- define "hopwise.daemonArgs" -}}
- --lock-object-namespace={{ .root.Release.Namespace }}
- --leader-elect-resource-name={{ include "hopwise.name" . }}
- --listen-address=:{{ .port }}
- --healthz-address=:11251
- --log-format={{ .root.Values.log.format }}
- --log-level={{ .root.Values.log.level }}
{{- end -}}

{{- define "hopwise.args.scheduler" -}}
{{- $values := .root.Values.scheduler -}}
- scheduler
{{ include "hopwise.daemonArgs" (dict "root" .root "component" .component "port" 8080) }}
- --scheduler-conf=/etc/hopwise/volcano-scheduler.conf
- --default-queue={{ $values.defaultQueue }}
- --gang-deadline={{ $values.gangDeadline }}
{{- range $values.schedulerNames }}
- --scheduler-name={{ . }}
{{- end }}
{{- if $values.takeover }}
- --takeover
{{- end }}
{{- if $values.dryRun }}
- --dry-run
{{- end }}
{{- end -}}

{{- define "hopwise.args.controller" -}}
- controller
{{ include "hopwise.daemonArgs" (dict "root" .root "component" .component "port" 8081) }}
- --controller-configmap={{ .root.Release.Namespace }}/{{ include "hopwise.name" . }}-configmap
- --default-queue={{ .root.Values.scheduler.defaultQueue }}
{{- range .root.Values.scheduler.schedulerNames }}
- --scheduler-name={{ . }}
{{- end }}
{{- end -}}

{{- define "hopwise.args.webhook" -}}
- webhook
- --port=8443
- --tls-cert-file=/etc/hopwise/tls/tls.crt
- --tls-private-key-file=/etc/hopwise/tls/tls.key
- --listen-address=:8082
- --default-queue={{ .root.Values.scheduler.defaultQueue }}
- --log-format={{ .root.Values.log.format }}
- --log-level={{ .root.Values.log.level }}
{{- range .root.Values.scheduler.schedulerNames }}
- --scheduler-name={{ . }}
{{- end }}
{{- end -}}

{{- define "hopwise.ports" -}}
{{- if eq .component "webhook" -}}
- {name: https, containerPort: 8443}
- {name: metrics, containerPort: 8082}
{{- else -}}
- {name: metrics, containerPort: {{ eq .component "scheduler" | ternary 8080 8081 }}}
- {name: health, containerPort: 11251}
{{- end -}}
{{- end -}}

{{- define "hopwise.webhookSecret" -}}
{{- .Values.webhook.tls.secretName | default (printf "%s-webhook-tls" (include "hopwise.fullname" .)) -}}
{{- end -}}

{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* Labels by which the pods are found. They never change: a Deployment's selector cannot. */}}
{{- define "chandler.selector" -}}
app.kubernetes.io/name: {{ .Values.name }}
{{- end }}

{{- define "chandler.labels" -}}
{{ include "chandler.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end }}

{{- define "chandler.metadata" -}}
name: {{ .Values.name }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "chandler.labels" . | nindent 2 }}
{{- end }}

{{- define "chandler.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* A file of config/ with the names of this release. The files are copies: make generate. */}}
{{- define "chandler.file" -}}
{{- $hub := printf "system:serviceaccount:%s:%s" .root.Release.Namespace .root.Values.name -}}
{{ .root.Files.Get .file
  | replace "system:serviceaccount:chandler-system:chandler" $hub
  | replace "system:serviceaccounts:flux-system" (printf "system:serviceaccounts:%s" .root.Values.fluxNamespace)
  | replace "name: chandler-hub" (printf "name: %s-hub" .root.Values.name)
  | replace "namespace: chandler-system" (printf "namespace: %s" .root.Release.Namespace) }}
{{- end }}

{{/* The hub's arguments, one a line; nothing if there are none. */}}
{{- define "chandler.args" -}}
{{- if ne .Values.fluxNamespace "flux-system" }}
- --flux-namespace={{ .Values.fluxNamespace }}
{{- end }}
{{- if ne .Values.name "chandler" }}
- --chart-url=http://{{ .Values.name }}.{{ .Release.Namespace }}.svc
{{- end }}
{{- with .Values.hubID }}
- --hub-id={{ . }}
{{- end }}
{{- with .Values.platformNamespaces }}
- --platform-namespaces={{ join "," . }}
{{- end }}
{{- with .Values.secretNamespaces }}
- {{ printf "--secret-namespaces=%s" (join "," .) | quote }}
{{- end }}
{{- with .Values.registerAll }}
- --register-all={{ join "," . }}
{{- end }}
{{- if .Values.registrationRules }}
- --registration-rules=/etc/chandler/rules/rules.yaml
{{- end }}
{{- with .Values.policies }}
{{- if not (and .enabled .generated .copies .deliveries .registrations) }}
- --without-policies
{{- end }}
{{- end }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* The file with registration rules. */}}
{{- define "chandler.rules" -}}
{{ toYaml (dict "rules" .Values.registrationRules) }}
{{- end }}

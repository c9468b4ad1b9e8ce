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

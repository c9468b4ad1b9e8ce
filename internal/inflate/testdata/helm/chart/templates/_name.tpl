{{- define "name" }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}

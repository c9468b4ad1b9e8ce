{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /*
"secret" writes a Secret that is a copy of another one.
  where: which value it is, for messages
  secret: as in the values
  copies: as in the values
A message names the Secret and the key, and never quotes what it holds.
*/ -}}
{{- define "chandler-manifests.secret" -}}
  {{- $where := .where }}
  {{- if not (kindIs "map" .secret) }}
    {{- fail (printf "%s: not an object" $where) }}
  {{- end }}
  {{- $data := dict }}
  {{- range $key, $at := .secret.data }}
    {{- $what := printf "%s: key %q of Secret %q" $where $key $.secret.from }}
    {{- $content := get $.copies $at }}
    {{- if not (hasKey $.copies $at) }}
      {{- fail (printf "%s: not there" $what) }}
    {{- else if not (kindIs "string" $content) }}
      {{- fail (printf "%s: not a string" $what) }}
    {{- else if contains "\ufffd" $content }}
      {{- /* It stands for what Flux could not read as UTF-8: the copy would hold something else. */ -}}
      {{- fail (printf "%s: not UTF-8" $what) }}
    {{- end }}
    {{- $_ := set $data $key (b64enc $content) }}
  {{- end }}
  {{- $metadata := pick .secret "name" "namespace" "labels" "annotations" }}
  {{- printf "---\n# %s\n%s\n" $where (toYaml (dict "apiVersion" "v1" "kind" "Secret" "metadata" $metadata "type" .secret.type "data" $data)) }}
{{- end }}

{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /*
"documents" writes the selected objects of one text.
  where: which value the text is, for messages
  text: any number of YAML documents
  select: as in the values
A message names the place and never quotes the text, which may be a Secret's.
*/ -}}
{{- define "chandler-manifests.documents" -}}
  {{- if not (kindIs "string" .text) }}
    {{- fail (printf "%s: not a string" .where) }}
  {{- end }}
  {{- $text := .text | replace "\r\n" "\n" | trimPrefix "\ufeff" }}
  {{- $number := 0 }}
  {{- /* YAML allows these markers at the start of a line nowhere else, not even inside of a string. What follows on the
         line belongs to the next document. ---# is not YAML, but a separator to Kubernetes all the same. */ -}}
  {{- range $document := regexSplit `(?m)^(?:---(?:[ \t]+|#.*$|$)|\.\.\.(?:[ \t]+|$))` $text -1 }}
    {{- $document = trimPrefix "\n" $document }}
    {{- $object := dict }}
    {{- if trim $document }}
      {{- $object = fromYaml $document }}
    {{- end }}
    {{- if $object }}
      {{- $number = add1 $number }}
      {{- $where := printf "%s: document %d" $.where $number }}
      {{- if and (hasKey $object "Error") (not (hasKey $object "kind")) }}
        {{- include "chandler-manifests.unreadable" (dict "where" $where "text" $document "select" $.select "error" (toString $object.Error)) }}
      {{- else }}
        {{- include "chandler-manifests.object" (dict "where" $where "text" $document "select" $.select "object" $object) }}
      {{- end }}
    {{- end }}
  {{- end }}
{{- end }}

{{- /*
"unreadable" is for a document that fromYaml does not take: a list of objects, JSON with escapes that YAML lacks, or an
error.
  where, text, select: as in "documents"
  error: what fromYaml said
*/ -}}
{{- define "chandler-manifests.unreadable" -}}
  {{- $json := fromJson .text }}
  {{- if not (hasKey $json "Error") }}
    {{- include "chandler-manifests.object" (dict "where" .where "select" .select "object" $json) }}
  {{- else if regexMatch "cannot unmarshal array into" .error }}
    {{- include "chandler-manifests.items" (dict "where" .where "select" .select "items" (fromYamlArray .text)) }}
  {{- else if regexMatch "cannot unmarshal [a-z]+ into" .error }}
    {{- fail (printf "%s: not an object" .where) }}
  {{- else }}
    {{- /* Some errors quote what they found. Only those that are known not to are passed on. */ -}}
    {{- $error := "" }}
    {{- if regexMatch `^error converting YAML to JSON: yaml: (?:line [0-9]+: )?(?:did not find|could not find|found|mapping values are|mapping keys are|block sequence entries are|control characters are) (?:[-a-zA-Z ,<>]|'[^a-zA-Z0-9]')*$` .error }}
      {{- $error = .error | replace "error converting YAML to JSON: yaml: " ": " }}
    {{- end }}
    {{- fail (printf "%s: not valid YAML%s" .where $error) }}
  {{- end }}
{{- end }}

{{- /*
"object" writes an object if it is selected, or the selected ones of a list of objects. It takes off the annotations with which Helm would not
apply an object (an event that does not happen, or that Helm does not know), not correct it, or not remove it: here it is an object like any
other.
  where, select: as in "documents"
  object: the parsed object
  text: its text, written as it is since large numbers lose digits when parsed; absent if it has none of its own
*/ -}}
{{- define "chandler-manifests.object" -}}
  {{- $where := .where }}
  {{- range $field := list "apiVersion" "kind" }}
    {{- $value := get $.object $field }}
    {{- if not (and (kindIs "string" $value) $value) }}
      {{- fail (printf "%s: no %s" $where $field) }}
    {{- end }}
  {{- end }}
  {{- if and (hasSuffix "List" .object.kind) (or (kindIs "slice" .object.items) (and (eq .object.kind "List") (eq .object.apiVersion "v1"))) }}
    {{- include "chandler-manifests.items" (dict "where" $where "select" .select "items" .object.items "list" .object) }}
  {{- else }}
    {{- $text := .text | default "" }}
    {{- if not $text }}
      {{- $text = toYaml .object }}
    {{- else if regexMatch "(?m)^---" $text }}
      {{- fail (printf "%s: a line within the document begins with ---, and Helm would cut it there" $where) }}
    {{- else if contains "invalid character '{' after top-level value" (toString (get (fromJson $text) "Error")) }}
      {{- fail (printf "%s: several JSON objects with no --- between" $where) }}
    {{- end }}
    {{- $name := "" }}
    {{- if kindIs "map" .object.metadata }}
      {{- $name = get .object.metadata "name" }}
    {{- end }}
    {{- if not (and (kindIs "string" $name) $name) }}
      {{- fail (printf "%s: no metadata.name" $where) }}
    {{- end }}
    {{- $annotations := get (.object.metadata | default dict) "annotations" }}
    {{- if kindIs "map" $annotations }}
      {{- range $key, $value := $annotations }}
        {{- if hasPrefix "helm.sh/hook" $key }}
          {{- $_ := unset $annotations $key }}
          {{- $text = "" }}
        {{- end }}
      {{- end }}
      {{- if not $annotations }}
        {{- $_ := unset .object.metadata "annotations" }}
      {{- end }}
      {{- if not $text }}
        {{- $text = toYaml .object }}
      {{- end }}
    {{- end }}
    {{- $definition := and (eq .object.kind "CustomResourceDefinition") (hasPrefix "apiextensions.k8s.io/" .object.apiVersion) }}
    {{- if or (eq .select "all") (eq $definition (eq .select "crds")) }}
      {{- /* Helm trims what comes after the marker. The comment saves the indentation of the first line. */ -}}
      {{- printf "---\n# %s\n%s" $where $text }}
      {{- if not (hasSuffix "\n" $text) }}{{ "\n" }}{{ end }}
    {{- end }}
  {{- end }}
{{- end }}

{{- /*
"items" writes the selected ones of several parsed objects.
  where, select: as in "documents"
  items: the objects
  list: the List that they are of, if any; that of one kind need not repeat the kind in its items
*/ -}}
{{- define "chandler-manifests.items" -}}
  {{- if not (or (kindIs "slice" .items) (kindIs "invalid" .items)) }}
    {{- fail (printf "%s: items is not a list" .where) }}
  {{- end }}
  {{- range $i, $item := .items }}
    {{- $where := printf "%s, item %d" $.where (add1 $i) }}
    {{- if not (kindIs "map" $item) }}
      {{- fail (printf "%s: not an object" $where) }}
    {{- end }}
    {{- if and $.list (not (hasKey $item "kind")) (not (hasKey $item "apiVersion")) }}
      {{- if ne $.list.kind "List" }}
        {{- $item = merge (dict "apiVersion" $.list.apiVersion "kind" (trimSuffix "List" $.list.kind)) $item }}
      {{- end }}
    {{- end }}
    {{- include "chandler-manifests.object" (dict "where" $where "select" $.select "object" $item) }}
  {{- end }}
{{- end }}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lints the chart, with everything in it switched on too, and builds every kustomization. They are compared, installed or delivered by e2e.
set -euo pipefail
cd "$(dirname "$0")/.."
go run ./hack/tools helm kustomize >/dev/null
helm=$(go run ./hack/tools -print helm | cut -d' ' -f2-)
kustomize=$(go run ./hack/tools -print kustomize | cut -d' ' -f2-)
"$helm" lint --strict --quiet charts/chandler
"$helm" lint --strict --quiet charts/chandler --set serviceMonitor.enabled=true
find config examples -name kustomization.yaml | sort | while IFS= read -r file; do
  if grep -q '^kind: Component$' "$file"; then
    continue # what uses it is built, and it is built with that
  fi
  "$kustomize" build "$(dirname "$file")" >/dev/null || { echo "$file does not build" >&2; exit 1; }
done

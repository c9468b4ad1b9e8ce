#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Generates everything into a copy of the tree and compares: the checkout itself is never changed.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$root"
git ls-files --cached --others --exclude-standard -z | while IFS= read -r -d '' f; do
  [ -e "$f" ] && printf '%s\0' "$f"
done | tar --null -T - -cf - | tar -C "$copy" -xf -
cd "$copy"
status=0
# A program that was built into the checkout was once committed by a hasty "git add -A".
large=$(find . -type f -size +1M)
if [ -n "$large" ]; then
  echo "these files have more than 1 MiB, and Git keeps what is committed for ever: $large" >&2
  status=1
fi
make --no-print-directory generate
go mod tidy
for path in api config charts internal/crdschema/crds docs/api.md docs/cli go.mod go.sum; do
  diff -ru "$root/$path" "$copy/$path" || { status=1 stale=true; }
done
if [ -n "${stale:-}" ]; then
  echo "generated files or go.mod are not up to date: run 'make generate' and 'go mod tidy', and commit" >&2
fi
exit "$status"

#!/usr/bin/env bash
# Builds the pages into bin/site, with search, as static files for any web server. SITE_BASE=/chandler/ if they are not at its root.
# It needs node and npm. The generator is pinned by package-lock.json.
set -euo pipefail
cd "$(dirname "$0")/../.."
src=bin/site-src
mkdir -p "$src"
find "$src" -mindepth 1 -maxdepth 1 ! -name node_modules -exec rm -rf {} +
cp -r hack/site/package.json hack/site/package-lock.json hack/site/.npmrc hack/site/.vitepress "$src"
git ls-files README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md 'docs/*.md' 'docs/*.svg' 'docs/*.png' 'examples/*.md' |
  while read -r file; do
    to=$src/${file/%README.md/index.md} # which is the page of its folder
    mkdir -p "$(dirname "$to")"
    if [[ $file == *.md ]]; then sed -E 's#(\]\([^)]*)README\.md#\1index.md#g; s#<img src="([^"]*)"[^>]*alt="([^"]*)">#![\2](\1)#' "$file" >"$to"; else cp "$file" "$to"; fi
  done
cd "$src"
cmp -s package-lock.json node_modules/.installed || { npm ci --ignore-scripts && cp package-lock.json node_modules/.installed; }
npm run --silent build

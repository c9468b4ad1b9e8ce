#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Posts a text as the one comment of its kind on a pull request: a later run replaces it.
#
#   comment.sh NUMBER FILE
#
# It reads GITHUB_API_URL, GITHUB_REPOSITORY and GITHUB_TOKEN, which may write to pull requests. It needs curl and jq.
set -eu
mark=$(head -n 1 "$2")
url=$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues
ask() {
  curl --fail --silent --show-error --header "Authorization: Bearer $GITHUB_TOKEN" --header "Accept: application/vnd.github+json" "$@"
}
there=
page=1
while [ -z "$there" ]; do
  comments=$(ask "$url/$1/comments?per_page=100&page=$page")
  there=$(printf '%s' "$comments" | jq -r --arg mark "$mark" 'map(select(.body | startswith($mark)))[0].id // empty')
  [ "$(printf '%s' "$comments" | jq length)" -eq 100 ] || break
  page=$((page + 1))
done
body=$(mktemp)
trap 'rm -f "$body"' EXIT
jq -Rs '{body: .}' "$2" >"$body"
if [ -n "$there" ]; then
  ask --request PATCH --data "@$body" "$url/comments/$there" >/dev/null
else
  ask --request POST --data "@$body" "$url/$1/comments" >/dev/null
fi

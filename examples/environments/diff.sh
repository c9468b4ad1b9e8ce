#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints, as the text of one comment on a pull request, what it does to the clusters of each environment.
#
#   diff.sh BASE ENVIRONMENT=FOLDER [ENVIRONMENT=FOLDER...]
#
# BASE is the revision that the pull request goes to, such as origin/main. fleets/ENVIRONMENT.yaml is an export of that environment's fleet
# (chandler export fleet). It ends with 2 if something is wrong or could not be compared, after it has printed what it could.
set -u
base=$1
shift
room=$((60000 / $#)) # GitHub takes 65,536 characters
ends=0
said=$(mktemp)
trap 'rm -f "$said"' EXIT
echo "<!-- chandler environments -->"
for one in "$@"; do
  environment=${one%%=*}
  printf '\n## %s\n\n' "$environment"
  chandler diff -f "${one#*=}" --against "$base" --fleet "fleets/$environment.yaml" --output markdown --max-length "$room" 2>"$said"
  if [ $? -gt 1 ]; then # 1 says that there are changes
    ends=2
    printf '\n**Not everything could be compared**\n\n````\n'
    head -c 4000 "$said"
    printf '````\n'
  fi
  cat "$said" >&2
done
exit $ends

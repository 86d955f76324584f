#!/usr/bin/env bash
# Compares packaging/kubernetes with the schemas of Kubernetes, and rejects unknown members. kubernetes-validate contains the schemas, so no cluster is needed. Takes some seconds.
#
#   scripts/check-manifests.sh
#
# Installs kubernetes-validate (150 MB) in .build/kubernetes-validate with pip when it isn't in PATH. Exits with 0 when all manifests match, 1 otherwise, 2 when it can't compare.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -eq 0 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
tool=$(scripts/python-tool.sh kubernetes-validate kubernetes-validate)
"$tool" --strict packaging/kubernetes/*.yaml || exit 1

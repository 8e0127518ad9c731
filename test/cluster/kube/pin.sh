#!/bin/sh
# Writes MINOR.mod and MINOR.sum here: the modules of another Kubernetes, for build_kubernetes of test/suite/suite.sh.
#   usage: test/cluster/kube/pin.sh v1.37.2      needs a network
set -eu
here=$(dirname "$(readlink -f "$0")")
go=$("$here/../../go.sh")
version=${1:?usage: pin.sh VERSION, for example v1.37.2}
minor=${version#v} && minor=${minor%.*}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$here/main.go" "$dir/"
cd "$dir"
theirs=$("$go" mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
{
  echo "module neuron-agent.test"
  grep -E '^go |^godebug ' "$theirs"
  sed -n '/^godebug (/,/^)/p' "$theirs"
  echo "require k8s.io/kubernetes $version"
  echo "replace ("
  sed -n "s,^[[:space:]]*\(k8s.io/[a-z-]*\) => ./staging.*,\1 => \1 v0.${version#v1.},p" "$theirs"
  echo ")"
} >go.mod
"$go" mod edit -fmt
"$go" mod tidy
mv go.mod "$here/$minor.mod"
mv go.sum "$here/$minor.sum"

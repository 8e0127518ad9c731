#!/bin/bash
# Installs what is missing, builds the release preset and runs every test.   usage: test/run.sh [--quick]
#   --quick   leaves out the images (test/image), the real kubelet (test/kubelet) and the cluster (test/cluster), which are
#             most of the time
# Root or sudo is needed when packages are missing, and for these three. Go is installed into build/go where there is
# none. A suite whose parts cannot be installed says SKIPPED and what is missing; CI=true makes that a failure.
# The last line is "N passed, N failed, N skipped"; the exit status is 0 when nothing failed.
set -u
root=$(dirname "$(dirname "$(readlink -f "$0")")")
cd "$root" || exit 1
exec < /dev/null

quick=no
case "${1:-}" in
  "") ;;
  --quick) quick=yes ;;
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "test/run.sh: unknown argument $1 (usage: test/run.sh [--quick])" >&2; exit 2 ;;
esac

build=$root/build/release
logs=$build/test-logs
passed=0
failed=0
skipped=0

# step NAME DESCRIPTION: begins a step; the summary lists its time under NAME.
steps=()
step() {
  steps+=("$SECONDS $1")
  shift
  printf '\n==> [%d s] %s\n' "$SECONDS" "$*"
}

# Seconds of each step.
print_times() {
  local i begin name end
  printf '\nTime by step:\n'
  for i in "${!steps[@]}"; do
    read -r begin name <<< "${steps[i]}"
    read -r end _ <<< "${steps[i + 1]:-$SECONDS}"
    printf '%7d s  %s\n' $((end - begin)) "$name"
  done
  printf '%7d s  in all\n' "$SECONDS"
}

finish() {
  print_times
  printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  [ "$failed" -eq 0 ]
  exit
}

# must WHAT COMMAND...: without this step there is nothing to test.
must() {
  local what=$1
  shift
  "$@" && return
  echo "FAILED: $what: $*" >&2
  failed=$((failed + 1))
  finish
}

# Adds the last line of the form "N passed, N failed, N skipped" in a log; the suite's status decides when there is none.
add_counts() {
  local name=$1 status=$2 log=$3 line
  line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
  if [ -n "$line" ]; then
    local p f s
    read -r p f s <<< "${line//[!0-9 ]/}"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then failed=$((failed + 1)); fi
  elif [ "$status" -ne 0 ]; then
    echo "FAILED: $name ended with status $status and without counts" >&2
    failed=$((failed + 1))
  elif grep -q '^SKIPPED' "$log"; then
    skipped=$((skipped + 1))
  else
    echo "FAILED: $name reported no counts" >&2
    failed=$((failed + 1))
  fi
}

run_suite() {
  local name=$1 log=$logs/$1.log
  shift
  if [ ! -x "$1" ]; then
    echo "FAILED: $name: $1 is not there" >&2
    failed=$((failed + 1))
    return
  fi
  "$@" 2>&1 | tee "$log"
  add_counts "$name" "${PIPESTATUS[0]}" "$log"
}

# begin_suite NAME COMMAND...: starts a suite beside those that follow; end_suite NAME waits for it and prints its output.
begin_suite() {
  local name=$1
  shift
  "$@" > "$logs/$name.log" 2>&1 &
  beside=$!
}
end_suite() {
  local name=$1 status=0
  wait "$beside" || status=$?
  cat "$logs/$name.log"
  add_counts "$name" "$status" "$logs/$name.log"
}

step packages "Packages"
# What only a suite needs may be missing: that suite says so.
tools/install-deps.sh --test || must "installing packages" tools/install-deps.sh

step build "Configuring and building the release preset into build/release (some minutes the first time)"
mkdir -p "$logs"
must "configuring" cmake --preset release
must "building" cmake --build "$build" --parallel "$(nproc)"

step ctest "Unit, integration and package tests (ctest)"
run_suite ctest test/ctest.sh "$build" "$logs"

step manifests "Manifests: API types, validation, security (Go)"
run_suite manifests test/manifests/run.sh

# Its pods are mostly waited for, so it runs beside the next suites. Go is there by now.
[ "$quick" = yes ] || begin_suite kubelet test/kubelet/run.sh "$build/bin"

step helm "Helm chart: lint, rendering, schema, the files rendered from it (Go; builds Helm the first time, some minutes)"
run_suite helm test/helm/run.sh

step monitoring "Alerts, dashboard and metrics against a real Prometheus (a minute)"
run_suite monitoring test/monitoring/run.sh "$build/bin"

step dra "Claims: slices and the scheduler's choices against Kubernetes' own code (Go; half a minute, the first time some to build)"
run_suite dra test/dra/run.sh "$build/bin"

step admissions "Lives of nodes on the kubelet's device manager (Go; about a minute, the first time some to build)"
run_suite admissions test/admissions/run.sh "$build/bin"

if [ "$quick" = yes ]; then
  step left-out "Images, packages, the real kubelet and the cluster: left out by --quick"
  skipped=$((skipped + 3))
else
  step image "Images and packages (makes a Debian base the first time, then builds into build/image)"
  run_suite image test/image/run.sh

  step kubelet "The real kubelet and containerd, begun after the manifests (Go; builds Kubernetes and etcd the first time, ten minutes)"
  end_suite kubelet

  step cluster "A real cluster of simulated nodes (Go; a quarter of an hour, and the first time some to build containerd)"
  run_suite cluster test/cluster/run.sh "$build/bin"
fi

step summary "Done. Logs are in build/release/test-logs"
finish

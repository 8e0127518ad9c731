#!/bin/bash
# Installs what is missing, builds the release preset and runs every test.   usage: test/run.sh [--quick]
#   --quick   leaves out the images (test/image), the real kubelet (test/kubelet) and the cluster (test/cluster), which are
#             most of the time
# Root or sudo is needed when packages are missing, and for these three. Go is installed into build/go where there is
# none. A suite whose parts cannot be installed says SKIPPED and what is missing; CI=true makes that a failure.
# The kubelet and the cluster are of Kubernetes 1.37 and 1.36 by turns, by the number of commits: KUBERNETES=1.36 chooses one.
# The last line is "N passed, N failed, N skipped"; the exit status is 0 when nothing failed.
set -u
root=$(dirname "$(dirname "$(readlink -f "$0")")")
cd "$root" || exit 1
exec < /dev/null

quick=no
case "${1:-}" in
  "") ;;
  --quick) quick=yes ;;
  -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "test/run.sh: unknown argument $1 (usage: test/run.sh [--quick])" >&2; exit 2 ;;
esac

# An odd number of commits: the newest.
case $(git rev-list --count HEAD 2> /dev/null) in
  *[02468]) turn=1.36 ;;
  *) turn=1.37 ;;
esac
kubernetes=${KUBERNETES:-$turn}
export CLUSTER_KUBERNETES=${CLUSTER_KUBERNETES:-$kubernetes} KUBELET_KUBERNETES=${KUBELET_KUBERNETES:-$kubernetes}

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

# Seconds of each step, which is waited for, and of the suites that ran beside the steps.
print_times() {
  local i begin name end
  printf '\nTime by step:\n'
  for i in "${!steps[@]}"; do
    read -r begin name <<< "${steps[i]}"
    read -r end _ <<< "${steps[i + 1]:-$SECONDS}"
    printf '%7d s  %s\n' $((end - begin)) "$name"
  done
  printf '%7d s  in all\n' "$SECONDS"
  [ ${#beside[@]} -eq 0 ] || printf 'Beside these steps:\n'
  # shellcheck disable=SC2068  # a number and a name each
  [ ${#beside[@]} -eq 0 ] || printf '%7d s  %s\n' ${beside[@]}
}

# What failed, once more at the end where it is found, each after the last lines that its test wrote.
print_failed() {
  local failures
  failures=$(cd "$logs" && awk '
    FNR == 1 { n = 0 }
    /_test\.go:/ && !/ FIGURE | SAID / { said[n++ % 6] = substr($0, 1, 400) }
    /^(FAILED|[0-9: ]*--- FAIL)/ && !shown[$0]++ {
      for (i = n < 6 ? 0 : n - 6; i < n; i++) print said[i % 6]
      print
      n = 0
    }' ./*.log | head -n 80)
  [ -z "$failures" ] || printf '\nFailed, at least once:\n%s\n' "$failures"
}

finish() {
  print_times
  print_failed
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

# suite NAME: the command of a suite.
suite() {
  case $1 in
    ctest) test/ctest.sh "$build" "$logs" ;;
    image) test/image/run.sh ;;
    manifests | helm) "test/$1/run.sh" ;;
    *) "test/$1/run.sh" "$build/bin" ;;
  esac
}

run_suite() {
  suite "$1" 2>&1 | tee "$logs/$1.log"
  add_counts "$1" "${PIPESTATUS[0]}" "$logs/$1.log"
}

# begin_suites NAME...: starts them, one after another, beside the steps that follow; end_suites NAME... waits for them and prints their
# output.
beside=()
declare -A process_of
begin_suites() {
  local name
  for name; do rm -f "$logs/$name.log" "$logs/$name.ended"; done
  for name; do
    local begin=$SECONDS status=0
    suite "$name" > "$logs/$name.log" 2>&1 || status=$?
    echo "$status $((SECONDS - begin))" > "$logs/$name.ended"
  done &
  for name; do process_of[$name]=$!; done
}
end_suites() {
  local name status seconds
  for name; do
    wait "${process_of[$name]}"
    read -r status seconds < "$logs/$name.ended"
    beside+=("$seconds $name")
    printf '\n<== %s, %d s\n' "$name" "$seconds"
    cat "$logs/$name.log"
    add_counts "$name" "$status" "$logs/$name.log"
  done
}

step packages "Packages"
# What only a suite needs may be missing: that suite says so.
tools/install-deps.sh --test || must "installing packages" tools/install-deps.sh
test/go.sh > /dev/null # before several suites look for it at the same time

step build "Configuring and building the release preset into build/release (some minutes the first time)"
mkdir -p "$logs"
rm -f "$logs"/*.log
must "configuring" cmake --preset release
must "building" cmake --build "$build" --parallel "$(nproc)"

step ctest "Unit, integration and package tests (ctest)"
run_suite ctest

# manifests: API types, validation, security. helm: lint, rendering, schema, the files rendered from the chart. monitoring: alerts, dashboard
# and metrics against a real Prometheus. dra: slices and the scheduler's choices against Kubernetes' own code. admissions: lives of nodes on
# the kubelet's device manager. kubelet: the real kubelet and containerd. All but monitoring in Go; they build minutes the first time.
short="manifests helm monitoring dra admissions"
# shellcheck disable=SC2086  # names without blanks
begin_suites $short

if [ "$quick" = yes ]; then
  step short "Side by side: $short"
  end_suites $short
  step left-out "Images, packages, the real kubelet and the cluster: left out by --quick"
  skipped=$((skipped + 3))
else
  begin_suites kubelet
  step image "Images and packages (makes a Debian base the first time, then builds into build/image); beside it: $short kubelet"
  run_suite image

  step cluster "A real cluster of simulated nodes (Kubernetes $CLUSTER_KUBERNETES; Go; ten minutes, and the first time some to build containerd); beside it: what is left of those"
  run_suite cluster

  step beside "The suites beside it"
  end_suites $short kubelet
fi

step summary "Done. Logs are in build/release/test-logs"
finish

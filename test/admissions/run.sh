#!/bin/sh
# Plays lives of simulated nodes on the kubelet's real device manager, with the agent, faults and a judge; ends with
# "N passed, N failed, N skipped", one test per kind of node and those of the judge itself.
#   run.sh [--seed N] [--admissions N] [--restarts N] [--only KIND] [--parallel N] [--minutes M] [--fault KIND]
#          [DIRECTORY]
# --admissions, --restarts: pods admitted and kubelets killed in all lives together (3000 and 60: about a minute)
# --seed: draws the same pods and faults again, their times stay the machine's own    --only: for example trn1.32xlarge
# --parallel: lives at once (8)    --minutes: ends every life after that time, whatever its counts
# --fault: beside kubelet restarts this kind only: kill, terminate, stop (the agent), device, efa, none
# DIRECTORY has neuron-agent and neuron-sim (else $NEURON_BIN, else build/release/bin). Needs root or sudo for the lives
# themselves, and Go (test/go.sh installs it). Where a part is missing the suite says SKIPPED and succeeds; with CI=true
# that fails. Exit code: 0, or 1 when a test failed.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
suite=admissions
. "$here/../suite/suite.sh"
bin=${NEURON_BIN:-$top/build/release/bin}
options="--parallel 8"
while [ $# -gt 0 ]; do
  case $1 in
    --seed | --admissions | --restarts | --only | --parallel | --minutes | --fault)
      [ $# -gt 1 ] || { echo "run.sh: $1 needs a value" >&2; exit 2; }
      case $2 in
        *[!A-Za-z0-9.-]* | "") echo "run.sh: $1 cannot be \"$2\"" >&2; exit 2 ;;
      esac
      options="$options $1 $2"
      shift 2
      ;;
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "run.sh: unknown option $1 (--help lists them)" >&2; exit 2 ;;
    *) bin=$1; shift ;;
  esac
done
exec </dev/null

find_root
find_go
$as_root unshare --mount --pid --fork true 2>/dev/null || missing "may not make mount and PID namespaces here"
find_programs

out=$top/build/admissions
mkdir -p "$out"
$as_root rm -rf "$out/logs"
mkdir -p "$out/logs"
# Lives last minutes, and start the agent again and again: from copies, whatever is built meanwhile.
programs=$out/programs
rm -rf "$programs"
mkdir -p "$programs/bin"
cp "$bin/neuron-agent" "$bin/neuron-sim" "$programs/bin/"
if [ -d "$bin/../libexec" ]; then cp -r "$bin/../libexec" "$programs/"; fi

echo "admissions: building the kubelet's device manager (minutes the first time, then from cache)"
(cd "$here" && built "" "$out/admissions" .) ||
  missing "the program did not build (module download needs a network)"
judged=0
(cd "$here" && nice -n 10 "$go" test -count=1 -v .) >"$out/judge.txt" 2>&1 || judged=1
grep -E '^--- ' "$out/judge.txt" || true
[ $judged = 0 ] || cat "$out/judge.txt"

# shellcheck disable=SC2086  # options are words without blanks
status=0
$as_root env ADMISSIONS_LOG_LEVEL="${ADMISSIONS_LOG_LEVEL:-}" "$out/admissions" run --bin "$programs/bin" --logs "$out/logs" $options \
  >"$out/output.txt" 2>&1 &
lives=$!
trap '$as_root kill $lives 2>/dev/null || true' INT TERM HUP
tail --pid=$lives -n +1 -f "$out/output.txt" | grep -v '^    \|passed, .* failed' || true
wait $lives || status=$?

awk -v status="$status" '
  /^--- PASS/ { passed++ }
  /^--- FAIL/ { failed++ }
  /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { counted = 1; passed += $1; failed += $3 }
  END {
    if ((status != 0 || !counted) && !failed) failed = 1
    printf "%d passed, %d failed, 0 skipped\n", passed, failed
    exit failed > 0
  }' "$out/judge.txt" "$out/output.txt" || {
  echo "admissions: histories of what failed in $out/output.txt, logs of the programs in $out/logs" >&2
  exit 1
}

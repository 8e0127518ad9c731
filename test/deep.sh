#!/bin/bash
# The long runs: every suite that draws at random, for as long as it is told to, and the images for the other architecture.
#   usage: test/deep.sh [--minutes N] [--seed S] [--only SUITE] [DIRECTORY]
#   --minutes   for each suite; without it each runs until its own counts are reached (admissions: 100,000 pods and 1,000
#               kubelet restarts, about 20 minutes on two cores; attack: ten minutes; cluster and image:
#               half an hour each, whatever is said; chaos: an hour; model: ten million events, about ten minutes,
#               and each mutation of the gate and the ledger, some minutes more; plain: every file once)
#   --seed      draws the same again, as far as a suite's times allow; without it each suite draws its own and prints it
#   --only      one suite: admissions, attack, cluster, chaos, image, model, plain
# DIRECTORY has the programs (else build/release/bin, which must be built; the attacks are taken from beside it). Needs what
# the suites need: see test/admissions/run.sh and test/cluster/run.sh. The last line is "N passed, N failed, N skipped".
set -u
root=$(dirname "$(dirname "$(readlink -f "$0")")")
suites="admissions attack cluster chaos image model plain"
minutes="" seed="" only="" bin=$root/build/release/bin
while [ $# -gt 0 ]; do
  case $1 in
    --minutes | --seed | --only)
      [ $# -gt 1 ] || { echo "test/deep.sh: $1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift 2
      ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "test/deep.sh: unknown option $1 (--help lists them)" >&2; exit 2 ;;
    *) bin=$1; shift ;;
  esac
done
for number in "$minutes" "$seed"; do
  case $number in
    *[!0-9]*) echo "test/deep.sh: \"$number\" is not a number" >&2; exit 2 ;;
  esac
done
if [ -n "$only" ]; then
  case " $suites " in
    *" $only "*) suites=$only ;;
    *) echo "test/deep.sh: no suite $only (there are: $suites)" >&2; exit 2 ;;
  esac
fi
bin=$(cd "$bin" 2> /dev/null && pwd) || { echo "test/deep.sh: no directory $bin: build the programs first" >&2; exit 1; }
exec < /dev/null
logs=$root/build/deep
mkdir -p "$logs" || exit 1
passed=0 failed=0 skipped=0

# A suite is a function NAME_suite that runs it; its last line says how many passed.
admissions_suite() {
  "$root/test/admissions/run.sh" ${seed:+--seed "$seed"} ${minutes:+--minutes "$minutes"} \
    --admissions 100000 --restarts 1000 "$bin"
}

attack_suite() {
  local program=${bin%/bin}/test/attack_run
  if [ ! -x "$program" ]; then
    echo "SKIPPED: attack: $program is not built"
    echo "0 passed, 0 failed, 1 skipped"
    return
  fi
  if "$program" --seconds $((${minutes:-10} * 60)) ${seed:+--seed "$seed"}; then
    echo "1 passed, 0 failed, 0 skipped"
  else
    echo "0 passed, 1 failed, 0 skipped"
    return 1
  fi
}

cluster_suite() {
  CLUSTER_DEEP=1 "$root/test/cluster/run.sh" -run 'TestLife|TestQueue|TestAdmission' "$bin"
}

chaos_suite() {
  CHAOS_MINUTES=${minutes:-60} CHAOS_SEED=$seed "$root/test/cluster/run.sh" -run 'TestChaos$' "$bin"
}

# Builds a second time from nothing and compares, and for arm64, started under qemu.
image_suite() {
  "$root/test/image/run.sh" --deep
}

# Random events at ten times the length of ctest's, and whether the check notices a gate or a ledger that is wrong.
model_suite() {
  local program=${bin%/bin}/test/model_check status=0
  if [ ! -x "$program" ]; then
    echo "SKIPPED: model: $program is not built"
    echo "0 passed, 0 failed, 1 skipped"
    return
  fi
  "$program" --runs 5000 --events 2000 ${seed:+--first-seed "$seed"} || status=1
  python3 "$root/test/model/mutations.py" "$root" "$root/build/mutations" | tee "$logs/mutations.log"
  awk -v model="$status" '/^[0-9]+ passed, [0-9]+ failed$/ { passed = $1; failed = $3; counted = 1 }
    END { if (!counted) failed = 1; printf "%d passed, %d failed, 0 skipped\n", passed + !model, failed + model }' "$logs/mutations.log"
}

# Compiles every file without precompiled headers, which would hide an include that it lacks.
plain_suite() {
  if cmake --preset plain > /dev/null && cmake --build "$root/build/plain" --parallel "$(nproc)" -- -k 0 --quiet; then
    echo "1 passed, 0 failed, 0 skipped"
  else
    echo "0 passed, 1 failed, 0 skipped"
    return 1
  fi
}

for suite in $suites; do
  printf '\n==> [%d s] %s\n' "$SECONDS" "$suite"
  "${suite}_suite" 2>&1 | tee "$logs/$suite.log"
  status=${PIPESTATUS[0]}
  line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$logs/$suite.log" | tail -n 1)
  read -r p f s <<< "${line//[!0-9 ]/}"
  passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0})) skipped=$((skipped + ${s:-0}))
  if [ "$status" -ne 0 ] && [ "${f:-0}" -eq 0 ] || [ -z "$line" ]; then
    echo "FAILED: $suite ended with status $status" >&2
    failed=$((failed + 1))
  fi
done
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]

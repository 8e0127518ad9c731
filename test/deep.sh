#!/bin/bash
# What is too slow for every change: sanitizers, fuzzing, and every suite that draws at random, for as long as it is asked to.
#   usage: test/deep.sh [--minutes N] [--seconds N] [--seed S] [--only SUITE,...] [DIRECTORY]
#   --minutes   for each suite that draws; without it each runs until its own counts are reached (below)
#   --seconds   for each fuzz target (60)
#   --seed      draws the same again, as far as a suite's times allow; without it each suite draws its own and prints it
#   --only      these suites alone. All, in their order, with times on two cores:
#     sanitize    AddressSanitizer, LeakSanitizer and UBSan over ctest
#     tsan        ThreadSanitizer over the tests with threads and without gRPC
#     tidy        clang-tidy over what is shipped
#     plain       every file compiled without precompiled headers
#     fuzz        each fuzz target for --seconds, as many at a time as there are cores
#     model       ten million events of the gate and the ledger, and each of their mutations; the allocator against all sets: 20 minutes
#     dra         claims at random, twelve times test/run.sh's length; slices of every instance type
#     admissions  100,000 pods and 1,000 kubelet restarts: 20 minutes
#     kubelet     every Topology Manager policy on every type, 300 random pods per type: half an hour
#     cluster     the scenarios that test/run.sh shortens or leaves out: queues of 60 and 200 pods, lives of agent, node and claims,
#                 random claims, admission rate, start of claims, the claims driver, 1,000 questions to kubectl neuron: 45 minutes
#     shares      claims that share devices: 100,000 at random, pods of Kubernetes 1.37 by the hundred, what they cost its scheduler
#                 on 100 and 1,000 nodes and how much of a node they fill: 20 minutes
#     fleet       150 agents of each mode against one API server, and 500 pods with claims on one node: half an hour
#     versions    device plugin and claims on Kubernetes 1.33 to 1.37, containerd 1.7, CRI-O, kubelets that are older than their API server,
#                 an upgrade under running pods: an hour and a quarter, and an hour to build them the first time
#     queues      Volcano, JobSet, MPI operator, training operator, LeaderWorkerSet and Kueue in front of four nodes; the catalogue in
#                 Karpenter's scheduling simulation: 15 minutes, and 45 to build them the first time
#     attack      attacks on simulated nodes: an hour
#     chaos       faults in a cluster: an hour
#     image       a second build from nothing, compared; arm64 under qemu: half an hour
# model and dra run side by side, and so do attack and chaos. A suite that fails does not keep the next ones from running.
# DIRECTORY has the programs of the last twelve (else build/release/bin, which must be built; model, shares and attack are taken from
# beside it). They need what the suites need: see test/admissions/run.sh and test/cluster/run.sh. The first five build what they run
# in build/dev, build/tsan, build/tidy, build/plain and build/fuzz or build/fuzz-gcc. Output of each: build/deep/SUITE.log.
# At the end: time and result of each suite, and as the last line "N passed, N failed, N skipped".
set -u
root=$(dirname "$(dirname "$(readlink -f "$0")")")
groups="sanitize tsan tidy plain fuzz model+dra admissions kubelet cluster shares fleet versions queues attack+chaos image" # joined by +: side by side
suites=${groups//+/ }
minutes="" seconds=60 seed="" only="" bin=$root/build/release/bin
while [ $# -gt 0 ]; do
  case $1 in
    --minutes | --seconds | --seed | --only)
      [ $# -gt 1 ] || { echo "test/deep.sh: $1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift 2
      ;;
    -h | --help) sed -n '2,/^set -u/{/^set/!s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    -*) echo "test/deep.sh: unknown option $1 (--help lists them)" >&2; exit 2 ;;
    *) bin=$1; shift ;;
  esac
done
for number in "$minutes" "$seconds" "$seed"; do
  case $number in
    *[!0-9]*) echo "test/deep.sh: \"$number\" is not a number" >&2; exit 2 ;;
  esac
done
chosen=" ${only//,/ } "
if [ -n "$only" ]; then
  for suite in $chosen; do
    case " $suites " in
      *" $suite "*) ;;
      *) echo "test/deep.sh: no suite $suite (there are: $suites)" >&2; exit 2 ;;
    esac
  done
else
  chosen=" $suites "
fi
for suite in model dra admissions kubelet cluster shares fleet versions queues attack chaos; do
  case $chosen in
    *" $suite "*) bin=$(cd "$bin" 2> /dev/null && pwd) || { echo "test/deep.sh: no directory $bin: build the programs first" >&2; exit 1; } ;;
  esac
done
cd "$root" || exit 1
exec < /dev/null
logs=$root/build/deep
mkdir -p "$logs" || exit 1
passed=0 failed=0 skipped=0

# A suite is a function NAME_suite that runs it; its last line says how many passed.

# build PRESET TARGET...
build() {
  local preset=$1
  shift
  cmake --preset "$preset" > "$logs/$preset.build.log" &&
    cmake --build "build/$preset" --parallel "$(nproc)" --target "$@" >> "$logs/$preset.build.log" 2>&1 && return
  grep -E '(error|warning):|^FAILED' "$logs/$preset.build.log" | head -n 40
  echo "FAILED: building the preset $preset ($logs/$preset.build.log)"
  echo "0 passed, 1 failed, 0 skipped"
  return 1
}

# checked_ctest PRESET OPTIONS_VARIABLE OPTIONS ARGUMENT...: ctest, with a sanitizer's reports in files, so that those of
# programs that a test starts and ends count as well.
checked_ctest() {
  local preset=$1 variable=$2 options=$3 reports=$root/build/$1/reports status
  shift 3
  rm -rf "$reports"
  mkdir -p "$reports"
  env "$variable=$options:log_path=$reports/report" test/ctest.sh "build/$preset" "$reports/ctest" "$@" > "$logs/$preset.counts"
  status=$?
  grep -vE '^[0-9]+ passed, ' "$logs/$preset.counts"
  local p f s count
  read -r p f s <<< "$(tail -n 1 "$logs/$preset.counts" | tr -dc '0-9 \n')"
  count=$(find "$reports" -maxdepth 1 -type f | wc -l)
  find "$reports" -maxdepth 1 -type f -exec head -n 60 {} + | cut -c 1-200
  if [ "$count" -gt 0 ]; then echo "FAILED: $count reports in $reports"; fi
  echo "$p passed, $((f + count)) failed, $s skipped"
  [ "$status" -eq 0 ] && [ "$count" -eq 0 ]
}

# AddressSanitizer, LeakSanitizer and UBSan over everything that ctest runs.
sanitize_suite() {
  build dev all || return
  UBSAN_OPTIONS=print_stacktrace=1 checked_ctest dev ASAN_OPTIONS \
    strict_string_checks=1:detect_stack_use_after_return=1:check_initialization_order=1:strict_init_order=1
}

# ThreadSanitizer over the tests of what has threads and does without gRPC.
tsan_suite() {
  build tsan thread_tests || return
  checked_ctest tsan TSAN_OPTIONS second_deadlock_stack=1 --label-regex '^threads$'
}

# clang-tidy (.clang-tidy) over what is shipped. Where it is missing, the one of its checks that clang brings along: its analyzer.
tidy_suite() {
  local tool="" name skipped=0 files failed
  if ! command -v clang++-14 > /dev/null; then
    echo "SKIPPED: tidy: no clang++-14"
    echo "0 passed, 0 failed, 1 skipped"
    return
  fi
  for name in clang-tidy-19 clang-tidy-14; do
    command -v "$name" > /dev/null && { tool=$name; break; }
  done
  local -a protocols=(deviceplugin/v1beta1 podresources/v1 pluginregistration/v1 dra/v1 dra/v1beta1 dra_health/v1 dra_health/v1alpha1)
  protocols=("${protocols[@]/#/generated/proto/}")
  build tidy "${protocols[@]/%//api.grpc.pb.h}" || return
  mapfile -t files < <(git ls-files 'agent/*.cpp' 'plugin/*.cpp' 'tools/*.cpp')
  if [ -z "$tool" ]; then
    echo "SKIPPED: tidy: neither clang-tidy-19 nor clang-tidy-14 is installed; the clang analyzer alone"
    skipped=1
  fi
  failed=$(printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 1 test/tidy.py build/tidy $tool 2> "$logs/tidy.findings" | wc -l)
  cat "$logs/tidy.findings"
  echo "$((${#files[@]} - failed)) passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
}

# Each fuzz target for --seconds, from its corpus in the tree and what earlier runs found (build/PRESET/fuzz/corpus), with
# libFuzzer where clang has its runtime, else with test/fuzz/driver.cpp. What broke a target is left in build/PRESET/fuzz/broken,
# and is run again with: build/PRESET/fuzz/NAME_fuzz FILE
fuzz_suite() {
  local preset=fuzz-gcc
  if echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
    clang++-14 -x c++ -fsanitize=fuzzer,address - -o "$logs/has_libfuzzer" 2> /dev/null; then preset=fuzz; fi
  echo "preset $preset"
  build "$preset" fuzz_targets || return
  local fuzz=$root/build/$preset/fuzz broken=$root/build/$preset/fuzz/broken p=0 f=0 program name
  mkdir -p "$broken"
  for program in "$fuzz"/*_fuzz; do basename "$program" _fuzz; done |
    xargs -P "$(nproc)" -I NAME sh -c '"$1/NAME_fuzz" -max_total_time="$2" -timeout=25 -print_final_stats=1 -artifact_prefix="$3/NAME-" ${5:+-seed=$5} \
      "$1/corpus/NAME" test/fuzz/corpus/NAME > "$4/fuzz.NAME.log" 2>&1; echo $? > "$4/fuzz.NAME.status"' sh \
      "$fuzz" "$seconds" "$broken" "$logs" "$seed"
  for program in "$fuzz"/*_fuzz; do
    name=$(basename "$program" _fuzz)
    if [ "$(cat "$logs/fuzz.$name.status")" = 0 ]; then
      p=$((p + 1))
    else
      f=$((f + 1))
      tail -n 60 "$logs/fuzz.$name.log"
      echo "FAILED: fuzz: $name"
    fi
    awk -v name="$name" '/cov:/ { for (i = 1; i < NF; ++i) if ($i == "cov:") edges = $(i + 1) }
      /number_of_executed_units/ { runs = $2 } /new_units_added/ { found = $2 }
      END { printf "%-16s %10d runs, %6d edges, %5d new inputs\n", name, runs, edges, found }' "$logs/fuzz.$name.log"
  done
  echo "$p passed, $f failed, 0 skipped"
  [ "$f" -eq 0 ]
}
# Claims at random at twelve times the length of test/run.sh, and the agent's slices of every instance type.
dra_suite() {
  DRA_ALL=1 DRA_QUESTIONS=500 "$root/test/dra/run.sh" --steps 3000 ${seed:+--seed "$seed"} "$bin"
}

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
  if "$program" --seconds $((${minutes:-60} * 60)) ${seed:+--seed "$seed"}; then
    echo "1 passed, 0 failed, 0 skipped"
  else
    echo "0 passed, 1 failed, 0 skipped"
    return 1
  fi
}

kubelet_suite() {
  KUBELET_DEEP=1 KUBELET_PODS=300 KUBELET_SEED=$seed "$root/test/kubelet/run.sh" "$bin"
}

cluster_suite() {
  CLUSTER_DEEP=1 CLUSTER_QUESTIONS=1000 "$root/test/cluster/run.sh" \
    -run 'TestLife|TestQueue|TestClaimQueue|TestAdmission|TestStartOfClaims|TestRandomClaims|TestUnmodifiedCores|TestClaimsDriver|TestKubectlNeuron(Modes|Shares)?$' "$bin"
}

# added_up FILE: all counts in it as one, "N passed, N failed, N skipped".
added_up() {
  sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$1" |
    awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s }'
}

# counted COMMAND...: it as one test.
counted() {
  if "$@"; then
    echo "1 passed, 0 failed, 0 skipped"
  else
    echo "0 passed, 1 failed, 0 skipped"
    return 1
  fi
}

# Claims that share devices: as the driver prepares them, in a cluster, and as the scheduler's allocator finds them.
shares_suite() {
  local status=0 program=${bin%/bin}/test/dra_claims_test
  {
    if [ -x "$program" ]; then
      NEURON_CLAIMS=100000 counted "$program" --gtest_brief=1 --gtest_filter='RandomShares.*' || status=1
    else
      echo "SKIPPED: shares: $program is not built"
      echo "0 passed, 0 failed, 1 skipped"
    fi
    CLUSTER_DEEP=1 CLUSTER_KUBERNETES=1.37 "$root/test/cluster/run.sh" -run 'TestShares$|TestRandomShares|TestShareQueueOf60' "$bin" || status=1
    counted bench_shares || status=1
    exit "$status"
  } 2>&1 | tee "$logs/shares.run"
  status=${PIPESTATUS[0]}
  added_up "$logs/shares.run"
  return "$status"
}

# With the allocator of 1.37. In an idle cluster a core takes at most 1.5 times as long as a device that is not shared.
bench_shares() {
  local go
  go=$("$root/test/go.sh") || { echo "$go"; return 1; }
  (cd test && CGO_ENABLED=0 "$go" run -modfile=cluster/kube/1.37.mod ./dra/bench -nodes 1000 shares packing) > "$logs/shares.bench" || return
  cat "$logs/shares.bench"
  awk '/^[0-9]+ × / { nodes = $1 } /^  0 cores .*: 1 core [0-9]/ && nodes >= 100 {
      count++
      sub(/.*×/, "")
      if ($0 > 1.5) { failed = 1; printf "FAILED: shares: on %d nodes a core takes %s times as long as a device\n", nodes, $0 }
    } END { exit failed || count != 2 }' "$logs/shares.bench"
}

# Alone in its cluster: calls and memory are measured.
fleet_suite() {
  CLUSTER_DEEP=1 CLUSTER_SHARDS=1 CLUSTER_FLEET=${CLUSTER_FLEET:-150} "$root/test/cluster/run.sh" -run 'TestFleet|TestKubectlNeuronSize' "$bin"
}

# One run of the cluster suite for each version; the logs of one that fails are kept.
versions_suite() {
  local passed=0 failed=0 skipped=0 versions runtime only p f s
  while read -r runtime only versions; do
    echo "Kubernetes $versions, $runtime"
    CLUSTER_DEEP=1 CLUSTER_KUBERNETES=$versions CLUSTER_RUNTIME=${runtime#containerd2} "$root/test/cluster/run.sh" -run "$only" "$bin" < /dev/null 2>&1 | tee "$logs/versions.run"
    read -r p f s <<< "$(tail -n 1 "$logs/versions.run" | tr -dc '0-9 \n')"
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) skipped=$((skipped + ${s:-0}))
    if [ "${f:-1}" != 0 ]; then
      rm -rf "$logs/versions.$runtime.${versions%% *}"
      mv "$root/build/cluster/logs" "$logs/versions.$runtime.${versions%% *}"
    fi
  done << 'END'
containerd2 TestDefaultManifest|TestVersion$ 1.33
containerd2 TestDefaultManifest|TestVersion$ 1.34
containerd2 TestDefaultManifest|TestVersion$ 1.35
containerd1.7 TestDefaultManifest|TestVersion$ 1.35
crio TestBringUp|TestDefaultManifest|TestVersion$ 1.36
containerd2 TestDefaultManifest|TestVersion 1.36 1.35 1.34 1.33 1.37
containerd2 TestDefaultManifest|TestShares$|TestVersion$|TestVersionSkew 1.37 1.36 1.35 1.34
END
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
}

# run.sh builds the systems of the tests that it runs.
queues_suite() {
  local status=0
  {
    CLUSTER_DEEP=1 CLUSTER_SHARDS=1 "$root/test/cluster/run.sh" \
      -run 'TestVolcano|TestJobSet|TestMPIOperator|TestTrainingOperator|TestLWS|TestKueue|TestUltraServer' "$bin" || status=1
    "$root/test/karpenter/run.sh" "$bin" || status=1
    exit "$status"
  } 2>&1 | tee "$logs/queues.run"
  status=${PIPESTATUS[0]}
  added_up "$logs/queues.run"
  return "$status"
}

chaos_suite() {
  CHAOS_MINUTES=${minutes:-60} CHAOS_SEED=$seed "$root/test/cluster/run.sh" -run 'TestChaos$' "$bin"
}

# Builds a second time from nothing and compares, and for arm64, started under qemu.
image_suite() {
  "$root/test/image/run.sh" --deep
}

# Random events at ten times the length of ctest's, whether the check notices a gate or a ledger that is wrong, and the proof of the
# allocator, of which ctest tries a fifth.
model_suite() {
  local program=${bin%/bin}/test/model_check status=0 proof=0
  if [ ! -x "$program" ]; then
    echo "SKIPPED: model: $program is not built"
    echo "0 passed, 0 failed, 1 skipped"
    return
  fi
  "$program" --runs 5000 --events 2000 ${seed:+--first-seed "$seed"} || status=1
  "$program" --runs 1000 --events 2000 --late 40 --restarts 4 ${seed:+--first-seed "$seed"} || status=1
  NEURON_PROOF=all "${program%/*}/allocator_proof" --gtest_brief=1 || proof=1
  python3 "$root/test/model/mutations.py" "$root" "$root/build/mutations" | tee "$logs/mutations.log"
  awk -v model="$((status + proof))" '/^[0-9]+ passed, [0-9]+ failed$/ { passed = $1; failed = $3; counted = 1 }
    END { if (!counted) failed = 1; printf "%d passed, %d failed, 0 skipped\n", passed + 2 - model, failed + model }' "$logs/mutations.log"
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

# run_suite SUITE PREFIX: its output in its log, and printed with a prefix; its time and status in files beside the log.
run_suite() {
  local suite=$1 begin=$SECONDS
  "${suite}_suite" 2>&1 | tee "$logs/$suite.log" | sed -u "s/^/$2/"
  echo "$((SECONDS - begin)) ${PIPESTATUS[0]}" > "$logs/$suite.status"
}

summary=()
# add_result SUITE
add_result() {
  local suite=$1 seconds status line p f s
  read -r seconds status < "$logs/$suite.status"
  line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$logs/$suite.log" | tail -n 1)
  read -r p f s <<< "${line//[!0-9 ]/}"
  p=${p:-0} f=${f:-0} s=${s:-0}
  if [ "$status" -ne 0 ] && [ "$f" -eq 0 ] || [ -z "$line" ]; then
    echo "FAILED: $suite ended with status $status" >&2
    f=$((f + 1))
  fi
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  summary+=("$(printf '%7d s  %-10s  %d passed, %d failed, %d skipped' "$seconds" "$suite" "$p" "$f" "$s")")
  printf '<== [%d s] %s\n' "$SECONDS" "${summary[-1]}"
}

for group in $groups; do
  members=()
  for suite in ${group//+/ }; do
    case $chosen in *" $suite "*) members+=("$suite") ;; esac
  done
  if [ ${#members[@]} -eq 0 ]; then continue; fi
  printf '\n==> [%d s] %s\n' "$SECONDS" "${members[*]}"
  for suite in "${members[@]}"; do
    rm -f "$logs/$suite.log" "$logs/$suite.status"
    if [ ${#members[@]} -eq 1 ]; then run_suite "$suite" ""; else run_suite "$suite" "$suite: " & fi
  done
  wait
  for suite in "${members[@]}"; do add_result "$suite"; done
done
printf '\nTime and result by suite:\n'
printf '%s\n' "${summary[@]}"
printf '%7d s  in all\n' "$SECONDS"
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]

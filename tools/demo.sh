#!/bin/bash
# Shows the main job on this machine, without AWS hardware and without a cluster: a simulated trn1.32xlarge, a simulated
# kubelet, the real agent between them. Installs what is missing, builds build/release, then takes a few seconds.
# usage: tools/demo.sh [--no-build]
set -u
root=$(dirname "$(dirname "$(readlink -f "$0")")")
cd "$root" || exit 1
bin=${NEURON_DEMO_BIN:-$root/build/release/bin} # a test runs the demo over its own build
programs="neuron-agent neuron-ls neuron-sim"     # all that is built here; neuron-agent brings its helper

build=yes
case "${1:-}" in
  "") ;;
  --no-build) build=no ;;
  -h | --help) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "tools/demo.sh: unknown argument $1 (usage: tools/demo.sh [--no-build])" >&2; exit 2 ;;
esac

if [ "$build" = yes ]; then
  echo "Installing what is missing and building build/release (some minutes the first time)"
  tools/install-deps.sh && cmake --preset release -DBUILD_TESTING=ON > /dev/null < /dev/null &&
    cmake --build build/release --parallel "$(nproc)" --target $programs < /dev/null || {
    echo "tools/demo.sh: the build failed" >&2
    exit 1
  }
fi
for program in $programs; do
  [ -x "$bin/$program" ] || { echo "tools/demo.sh: $bin/$program is missing; run without --no-build" >&2; exit 1; }
done

# A simulated host is thousands of small files: in memory where that is possible.
dir=$(mktemp -d /dev/shm/neuron-demo.XXXXXX 2> /dev/null || mktemp -d /tmp/neuron-demo.XXXXXX) || exit 1
host=$dir/host
kubelet=$dir/kubelet
agent_pid=""
kubelet_pid=""
finished=no

clean_up() {
  if [ "$finished" = no ]; then
    echo
    echo "The demo stopped early. The agent's log:"
    cat "$dir/agent.log" 2> /dev/null
    cat "$dir/kubelet.err" 2> /dev/null
  fi
  [ -z "$agent_pid" ] || kill -9 "$agent_pid" 2> /dev/null
  [ -z "$kubelet_pid" ] || kill -9 "$kubelet_pid" 2> /dev/null
  wait 2> /dev/null
  rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

give_up() {
  echo "tools/demo.sh: $*" >&2
  exit 1
}

steps=0
step() {
  steps=$((steps + 1))
  printf '\n== %d. %s\n\n' "$steps" "$1"
}
say() { printf '%s\n' "$@"; }
show() { # runs a command as a reader would type it
  printf '$ %s\n' "$(basename "$1") ${*:2}" | sed "s|$dir/||g"
  "$@" | sed "s|$dir/||g"
  [ "${PIPESTATUS[0]}" -eq 0 ] || give_up "$(basename "$1") failed"
}

# ask COMMAND EXPECTED: one command to the simulated kubelet; its answer is printed and has to contain EXPECTED.
ask() {
  local answer
  printf 'kubelet> %s\n' "$1"
  answer=$(ask_quietly "$1") || give_up "the simulated kubelet did not answer \"$1\""
  printf '%s\n' "$answer" | sed "s|$dir/||g"
  [[ $answer == *"$2"* ]] || give_up "the answer to \"$1\" should contain \"$2\""
}
ask_quietly() {
  local line
  printf '%s\necho __end__\n' "$1" >&"$to_kubelet" || return 1
  while IFS= read -r -t 20 line <&"$from_kubelet"; do
    [ "$line" != __end__ ] || return 0
    printf '%s\n' "$line"
  done
  return 1
}

say "This is what a Kubernetes node with AWS Trainium does when neuron-agent runs on it." \
  "Everything below is real except the hardware and the kubelet."

step "A node: trn1.32xlarge, 16 Trainium devices in a 4x4 torus and 8 EFA interfaces"
show "$bin/neuron-sim" node "$host" --instance-type trn1.32xlarge
show "$bin/neuron-ls" --root "$host"

step "The agent registers with the kubelet"
mkdir -p "$kubelet"
coproc SIMULATED { exec "$bin/neuron-sim" kubelet --kubelet-dir "$kubelet" --root "$host" 2> "$dir/kubelet.err"; }
kubelet_pid=$SIMULATED_PID
exec {from_kubelet}<&"${SIMULATED[0]}" {to_kubelet}>&"${SIMULATED[1]}"
ask_quietly help > /dev/null || give_up "the simulated kubelet did not start"
"$bin/neuron-agent" run --root "$host" --kubelet-dir "$kubelet" --scan-interval 200ms > "$dir/agent.log" 2>&1 < /dev/null &
agent_pid=$!
say "\$ neuron-agent run --root host --kubelet-dir kubelet --scan-interval 200ms &"
ask "wait neuron=16 neuroncore=32 efa=8" "reached"
ask "show" "aws.amazon.com/neuron"

step "A pod asks for 4 devices and 2 network interfaces"
say "It gets four neighbours of the torus and the interfaces nearest to them. Cores are numbered" \
  "from 0 over the devices that the container sees, as the Neuron runtime counts." ""
ask "pod train neuron=4 efa=2" "NEURON_RT_VISIBLE_CORES=0-7"

step "A second pod asks for two single cores"
say "A device and its cores are the same hardware: what the first pod holds is not offered again." ""
ask "pod serve neuroncore=2" "NEURON_RT_VISIBLE_CORES=0-1"
ask "wait neuron=15 neuroncore=24" "reached"
ask "show" "aws.amazon.com/neuron"

step "A device fails"
show "$bin/neuron-sim" set "$host" neuron9 sram_ecc_uncorrected=1
ask "wait neuron=14" "reached"
say "" "Ten healthy devices are free. A pod that asks for 11 is refused:" ""
ask "pod large neuron=11" "refused"

step "The device is repaired, and offered again"
show "$bin/neuron-sim" set "$host" neuron9 heal
ask "wait neuron=15" "reached"

step "The kubelet restarts: its socket directory is wiped"
ask "restart" "restarted"
ask "wait neuron=15 neuroncore=24 efa=8" "reached"
say "" "The resources are back, the pods kept what they had:" ""
ask "list" "train"

step "The agent ends"
kill -TERM "$agent_pid"
wait "$agent_pid"
status=$?
agent_pid=""
[ "$status" -eq 0 ] || give_up "the agent ended with status $status"
say "neuron-agent ended with status 0. What it logged on the way:" ""
sed "s|$dir/||g" "$dir/agent.log" | cut -c1-150
ask_quietly quit > /dev/null
finished=yes
say "" "Next: manifests/static/neuron-agent.yaml for a cluster, docs/install.md for how, test/run.sh for the tests."

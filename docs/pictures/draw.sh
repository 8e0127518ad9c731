#!/bin/bash
# Draws docs/pictures/trn2.svg, the picture of README.md, on standard output: a simulated trn2.48xlarge with pods and a
# device that is unhealthy.    usage: docs/pictures/draw.sh [BIN] > docs/pictures/trn2.svg
set -eu
bin=${1:-build/release/bin}
dir=$(mktemp -d /dev/shm/neuron-picture.XXXXXX 2> /dev/null || mktemp -d /tmp/neuron-picture.XXXXXX)
trap 'rm -rf "$dir"' EXIT

"$bin/neuron-sim" node "$dir/host" --instance-type trn2.48xlarge > "$dir/log"
"$bin/neuron-sim" set "$dir/host" neuron13 sram_ecc_uncorrected=2 >> "$dir/log"
coproc KUBELET { exec "$bin/neuron-sim" kubelet --kubelet-dir "$dir/kubelet" 2>> "$dir/log"; }
exec {answers}<&"${KUBELET[0]}" {commands}>&"${KUBELET[1]}"
cat >&"$commands" << 'END'
pod training/llama-0 worker: chips@neuron-group-0-3,efa-rdmap201s0,efa-rdmap180s0,efa-rdmap179s0,efa-rdmap202s0
pod training/llama-1 worker: chips@neuron-group-4-7,efa-rdmap108s0,efa-rdmap87s0,efa-rdmap86s0,efa-rdmap109s0
pod serving/chat-7d9f server: chips@neuron-device-8 sidecar/embed: cores@neuron-device-11-core-0,neuron-device-11-core-1
pod notebooks/ada main: cores@neuron-device-13-core-2
echo ready
END
while read -r -t 20 line <&"$answers"; do [ "$line" != ready ] || break; done
"$bin/neuron-ls" --root "$dir/host" --kubelet-dir "$dir/kubelet" --pods --output-format svg
exec {commands}>&-

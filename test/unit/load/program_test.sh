#!/bin/sh
# neuron-sim load as a program: exit codes, messages, endings by time, by steps and by signal.
set -u
program=$1
dir=$(mktemp -d -p /dev/shm 2> /dev/null || mktemp -d) # a simulated host is thousands of small files
player=
trap '[ -z "$player" ] || kill "$player" 2>/dev/null; rm -rf "$dir"' EXIT
failures=0

# expect STATUS TEXT COMMAND...: the command ends with that status and prints the text somewhere.
expect() {
  wanted=$1 text=$2
  shift 2
  output=$("$@" 2>&1)
  status=$?
  case $output in
    *"$text"*) found=yes ;;
    *) found=no ;;
  esac
  if [ "$status" -ne "$wanted" ] || [ "$found" = no ]; then
    failures=$((failures + 1))
    echo "FAILED: $* -> status $status (wanted $wanted), wanted text: $text"
    echo "$output" | head -5
  fi
}

host=$dir/host
expect 0 "wrote" "$program" node "$host" --instance-type trn2.3xlarge
expect 0 "left unchanged" "$program" load "$host" --steps 30 --step 200ms
expect 0 "1 device, 8 cores, 1 EFA interface" "$program" load "$host" --steps 1
expect 0 "train-llama" env NEURON_SIM_STEPS=5 NEURON_SIM_SEED=7 "$program" load "$host"
expect 0 "left unchanged" "$program" load "$host" --for 50ms --step 10ms
expect 2 "exclude each other" "$program" load "$host" --for 1s --steps 3
expect 2 "--steps must be" "$program" load "$host" --steps 0
expect 2 "--step must be" "$program" load "$host" --step 2
expect 2 "--for must be" "$program" load "$host" --for soon
expect 2 "DIR" "$program" load
expect 1 "not a simulated host" "$program" load "$dir" --steps 1
expect 0 "wrote" "$program" node "$dir/old" --instance-type inf1.xlarge
expect 0 "only when a process ends" "$program" load "$dir/old" --steps 2

expect 2 "from 0 on" "$program" load "$host" --steps 1 --seed -1
expect 1 "standard output" sh -c "'$program' load '$host' --steps 1 > /dev/full"

# One at a time; a second load or a new node has to wait. What is changed by set meanwhile is fine.
mkfifo "$dir/said.first"
"$program" load "$host" >"$dir/said.first" 2>&1 &
player=$!
exec 3<"$dir/said.first"
read -r line <&3
expect 1 "another neuron-sim load runs on $host (pid $player); stop it first" "$program" load "$host" --steps 1
expect 1 "another neuron-sim load runs on" "$program" node "$host" --instance-type trn1.2xlarge
expect 0 "neuron0" "$program" set "$host" neuron0 sram_ecc_uncorrected=1
kill "$player"
cat <&3 >/dev/null
wait "$player"
player=
exec 3<&-
expect 0 "wrote" "$program" node "$host" --instance-type trn2.3xlarge

# A signal ends it well. The line is there once the signals are waited for or about to be.
for signal in INT TERM HUP; do
  mkfifo "$dir/said.$signal"
  "$program" load "$host" >"$dir/said.$signal" 2>&1 &
  player=$!
  exec 3<"$dir/said.$signal"
  read -r line <&3
  read -r line <&3
  kill -s "$signal" "$player"
  rest=$(cat <&3)
  wait "$player"
  status=$?
  player=
  exec 3<&-
  case $status:$rest in
    0:*"left unchanged"*) ;;
    *)
      failures=$((failures + 1))
      echo "FAILED: $signal -> status $status, said: $rest"
      ;;
  esac
done

[ "$failures" -eq 0 ] || exit 1
echo "neuron-sim load: ok"

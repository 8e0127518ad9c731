#!/bin/sh
# The program itself: exit codes, messages, both subcommands, environment twins.
set -u
program=$1
dir=$(mktemp -d -p /dev/shm 2> /dev/null || mktemp -d) # a simulated host is thousands of small files
trap 'rm -rf "$dir"' EXIT
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

expect 0 "neuron-sim " "$program" --version
expect 0 "Subcommands" "$program" --help
expect 2 "subcommand" "$program"
expect 1 "standard output" sh -c "'$program' --help > /dev/full"
expect 1 "standard output" sh -c "'$program' node --list > /dev/full"
expect 2 "" "$program" nonsense
expect 0 "trn2.48xlarge" "$program" node --list
expect 0 "sram_ecc_uncorrected" "$program" set --list
expect 0 "wrote trn2.3xlarge, driver 2.30.2.0: 1 device, 1 EFA interface, in $dir/host" \
  "$program" node "$dir/host" --instance-type trn2.3xlarge
expect 0 "2.28.0.0: 5 devices, 0 EFA" \
  "$program" node --missing 3 --without efa,ioctl "$dir/host" --driver 2.28.0.0 --instance-type inf2.24xlarge
expect 0 "trn2.3xlarge, driver 2.26.5.0" \
  env NEURON_SIM_INSTANCE_TYPE=trn2.3xlarge NEURON_SIM_DRIVER=2.26.5.0 "$program" node "$dir/host"
expect 0 "kept trn2.3xlarge" env NEURON_SIM_DRIVER=2.26.5.0 "$program" node "$dir/host" --keep --instance-type trn2.3xlarge
expect 0 "so it is trn2.3xlarge: not running in a pod" env -u KUBERNETES_SERVICE_HOST \
  "$program" node "$dir/host" --type-from-node n1 --instance-type trn2.3xlarge
expect 0 "/dev/neuron0  " env NEURON_RT_VISIBLE_CORES=0-3 "$program" show --root "$dir/host"
expect 1 "has none" "$program" show --root "$dir"
expect 2 "did you mean trn1.32xlarge" "$program" node "$dir/other" --instance-type trn1.32xlargee
expect 2 "give --instance-type" "$program" node "$dir/other"
expect 2 "give the DIR" "$program" node
expect 2 "the parts are" "$program" node "$dir/other" --instance-type trn1.2xlarge --without luck
expect 2 "" "$program" node "$dir/other" --instance-type trn1.2xlarge --missing three
(umask 077 && "$program" node "$dir/host" --instance-type trn2.3xlarge >/dev/null)
expect 0 "755 444" stat --printf '%a ' "$dir/host/sys/class" "$dir/host/sys/class/neuron_device/neuron0/core_count"
touch "$dir/precious"
expect 1 "not empty" "$program" node "$dir" --instance-type trn1.2xlarge
expect 1 "" "$program" node /proc/no-such-place/x --instance-type trn1.2xlarge
# A disk that fills up: what was begun goes again, a directory that was there stays.
mkdir "$dir/given"
for name in small given; do
  (ulimit -f 0; trap '' XFSZ; exec "$program" node "$dir/$name" --instance-type trn1.2xlarge) >"$dir/said" 2>&1
  [ $? -eq 1 ] || { failures=$((failures + 1)); echo "FAILED: no room in $name: $(cat "$dir/said")"; }
done
expect 1 "" test -e "$dir/small"
expect 0 "" rmdir "$dir/given"
expect 0 "apps" "$program" set "$dir/host" neuron0 apps=1:0x3,2:4
expect 0 '"nc_lock_map": 3' cat "$dir/host/neuron-ioctl/neuron0.json"
expect 2 "is not PID" "$program" set "$dir/host" neuron0 apps=1:0xg
expect 0 "neuron0: sram_ecc_uncorrected=1" "$program" set "$dir/host" neuron0 sram_ecc_uncorrected=1
expect 0 "1" cat "$dir/host/sys/class/neuron_device/neuron0/stats/hardware/sram_ecc_uncorrected"
expect 0 "heal" "$program" set "$dir/host" neuron0 vanish heal
expect 1 "does not exist" "$program" set "$dir/host" neuron9 vanish
expect 2 "unknown key" "$program" set "$dir/host" neuron0 no_such_key=1
expect 1 "not a simulated host" "$program" set "$dir" neuron0 vanish
expect 2 "give DIR" "$program" set "$dir/host"
for page in "--help" "node --help" "set --help" "show --help" "node --list" "set --list"; do
  # shellcheck disable=SC2086
  width=$("$program" $page | awk '{ if (length($0) > w) w = length($0) } END { print w }')
  [ "$width" -le 80 ] || { failures=$((failures + 1)); echo "FAILED: '$page' is $width columns wide"; }
done
[ -e "$dir/precious" ] || { failures=$((failures + 1)); echo "FAILED: a foreign file was removed"; }
[ "$failures" -eq 0 ] && echo "all passed"
exit "$((failures != 0))"

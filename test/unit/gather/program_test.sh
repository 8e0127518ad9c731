#!/bin/sh
# The program itself: what neuron-ls prints of a capture, exit codes, messages, environment twins.
# usage: program_test.sh DIRECTORY_OF_PROGRAMS
set -u
bin=$1
dir=$(mktemp -d -p /dev/shm 2> /dev/null || mktemp -d) # a simulated host is thousands of small files
trap 'rm -rf "$dir"' EXIT
export TMPDIR="$dir"
failures=0

fail() {
  failures=$((failures + 1))
  echo "FAILED: $*"
}

# expect STATUS TEXT COMMAND...: the command ends with that status and prints the text somewhere.
expect() {
  wanted=$1 text=$2
  shift 2
  output=$("$@" 2>&1)
  status=$?
  case $output in
    *"$text"*) [ "$status" -eq "$wanted" ] && return ;;
  esac
  fail "$* -> status $status (wanted $wanted), wanted text: $text"
  echo "$output" | head -5
}

"$bin/neuron-sim" node "$dir/node" --instance-type inf2.24xlarge >/dev/null || fail "no simulated node"
"$bin/neuron-sim" set "$dir/node" neuron1 apps=4290:3:16384:1782579 >/dev/null || fail "no process"
mkdir -p "$dir/node/proc/4290"
printf 'python\0train.py\0--token=hush\0' > "$dir/node/proc/4290/cmdline"
printf 'PASSWORD=hush\0' > "$dir/node/proc/4290/environ"

expect 0 "neuron-gather " "$bin/neuron-gather" --version
expect 2 "nonsense" "$bin/neuron-gather" --nonsense
expect 1 "No such file" "$bin/neuron-gather" --root "$dir/none" -o "$dir/x.tgz"
expect 1 "neither a directory nor a tar" "$bin/neuron-gather" --root "$0" -o "$dir/x.tgz"
[ -e "$dir/x.tgz" ] && fail "a failed run left an archive"

expect 0 "files of inf2.24xlarge in $dir/plain.tar.gz" "$bin/neuron-gather" --root "$dir/node" -o "$dir/plain.tar.gz"
expect 1 "exists already" "$bin/neuron-gather" --root "$dir/node" -o "$dir/plain.tar.gz"
expect 1 "choose another place" "$bin/neuron-gather" --root "$dir/node" -o "$dir/none/x.tgz"
expect 2 "--output is empty" "$bin/neuron-gather" --root "$dir/node" -o ""
expect 1 "standard output" sh -c "'$bin/neuron-gather' --help > /dev/full"
expect 1 "is not empty" "$bin/neuron-gather" --root "$dir/node" -o "$dir/node"
expect 0 "in $dir/full" env NEURON_GATHER_ROOT="$dir/node" NEURON_GATHER_OUTPUT="$dir/full" NEURON_GATHER_WITH_COMMANDS=true \
  "$bin/neuron-gather"
"$bin/neuron-gather" --root "$dir/plain.tar.gz" -o - > "$dir/again.tgz" 2> "$dir/message" || fail "no archive on stdout"
cmp "$dir/plain.tar.gz" "$dir/again.tgz" || fail "the capture of a capture differs"
grep -q "captured .* of inf2.24xlarge to standard output" "$dir/message" || fail "no message beside the archive"
(cd "$dir" && "$bin/neuron-gather" --root node >/dev/null) || fail "no default name"
ls "$dir"/neuron-inf2.24xlarge-*Z.tar.gz >/dev/null || fail "the default name is another one"

mkdir "$dir/unpacked"
tar -xzf "$dir/plain.tar.gz" -C "$dir/unpacked" || fail "tar does not take the archive"
grep -rq hush "$dir/unpacked" && fail "a secret is in the capture"
grep -rq PASSWORD "$dir/full" && fail "the environment is in the capture"
for options in "-w -a" "-t" "-j"; do
  # shellcheck disable=SC2086
  "$bin/neuron-ls" --root "$dir/node" $options > "$dir/wanted"
  # shellcheck disable=SC2086
  "$bin/neuron-ls" --root "$dir/full" $options > "$dir/seen"
  cmp "$dir/wanted" "$dir/seen" || fail "neuron-ls $options of a capture with commands differs"
done
grep -q "train.py" "$dir/wanted" || fail "the test has no command to look for"
"$bin/neuron-ls" --root "$dir/unpacked/neuron-gather" -t > "$dir/seen"
"$bin/neuron-ls" --root "$dir/node" -t > "$dir/wanted"
cmp "$dir/wanted" "$dir/seen" || fail "neuron-ls -t of an unpacked archive differs"

serial=$(cat "$dir/node/sys/class/neuron_device/neuron0/info/serial_number")
instance=$(cat "$dir/node/sys/devices/virtual/dmi/id/board_asset_tag")
expect 0 "captured" "$bin/neuron-gather" --root "$dir/full" --with-commands --anonymise -o "$dir/anonymous"
grep -rqE "$serial|$instance" "$dir/anonymous" && fail "an identity is in the anonymised capture"
grep -q '"anonymised": true' "$dir/anonymous/MANIFEST.json" || fail "the manifest does not say so"
"$bin/neuron-ls" --root "$dir/anonymous" -w -a > "$dir/seen"
"$bin/neuron-ls" --root "$dir/full" -w -a | sed "s/$instance/i-00000000000000001/" > "$dir/wanted"
cmp "$dir/wanted" "$dir/seen" || fail "neuron-ls of an anonymised capture differs in more than the instance id"

# A full disk, a reader that is gone, a signal: nothing is left, and the message says what happened.
for name in lim.tgz lim; do
  (ulimit -f 8 && exec "$bin/neuron-gather" --root "$dir/node" -o "$dir/$name") > "$dir/message" 2>&1
  [ $? -eq 1 ] || fail "-o $name does not fail at the limit of file sizes"
  grep -q "File too large; choose another place" "$dir/message" || fail "-o $name: $(cat "$dir/message")"
done
ls -d "$dir"/lim* 2> /dev/null && fail "a part of a capture was left behind"
("$bin/neuron-gather" --root "$dir/node" -o - 2> "$dir/message"; echo $? > "$dir/status") | true
[ "$(cat "$dir/status")" -eq 0 ] || grep -q "standard output was closed" "$dir/message" || fail "$(cat "$dir/message")"

# Without driver, EFA or anything: still a capture.
mkdir "$dir/bare"
expect 0 "a machine of unknown type" "$bin/neuron-gather" --root "$dir/bare" -o "$dir/bare.tgz"
# What this very machine has is captured without a complaint that ends the program.
expect 0 "captured" "$bin/neuron-gather" -o "$dir/live.tgz"
set -- "$dir"/neuron-root-*
[ -e "$1" ] && fail "an unpacked archive was left behind: $1"
[ "$failures" -eq 0 ] && echo "all passed"
exit "$((failures != 0))"

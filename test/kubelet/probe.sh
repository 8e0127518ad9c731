#!/bin/busybox sh
# Runs inside a test container: probe NAME once|stay. Writes what the container was given to /out/NAME:
#   uid N | env KEY=VALUE | open PATH | refused PATH      (the last two: opened for reading and writing)
# and, as the last thing before it ends, /out/NAME.end: between the times of the two files it was running.
b=/bin/busybox
{
  echo "uid $($b id -u)"
  $b env | $b sed 's/^/env /'
  for node in /dev/neuron* /dev/infiniband/*; do
    [ -e "$node" ] || continue
    if (: <>"$node") 2>/dev/null; then echo "open $node"; else echo "refused $node"; fi
  done
} >"/out/$1.part" && $b mv "/out/$1.part" "/out/$1"
end() {
  : >"/out/$1.end"
  exit 0
}
[ "$2" = stay ] || end "$1"
trap 'end "$1"' TERM
while :; do
  $b sleep 3600 &
  wait $!
done

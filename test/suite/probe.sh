#!/bin/busybox sh
# Runs inside a test container: probe CONTAINER once|stay|SECONDS. Writes what the container was given to /out/POD.CONTAINER,
# if there is an /out, and to its output:
#   uid N | env KEY=VALUE | open PATH | refused PATH      (the last two: opened for reading and writing)
#   reads PATH | writes PATH                               (opened for reading alone, for writing alone)
# and, as the last thing before it ends, /out/POD.CONTAINER.end: between the times of the two files it was running.
b=/bin/busybox
name=$PROBE_POD.$1
report() {
  echo "uid $($b id -u)"
  $b env | $b sed 's/^/env /'
  for node in /dev/neuron* /dev/infiniband/*; do
    [ -e "$node" ] || continue
    if (: <>"$node") 2>/dev/null; then echo "open $node"; else echo "refused $node"; fi
    if (: <"$node") 2>/dev/null; then echo "reads $node"; fi
    if (: >>"$node") 2>/dev/null; then echo "writes $node"; fi
  done
}
end() {
  [ ! -d /out ] || : >"/out/$name.end"
  exit 0
}
trap end TERM # before the report: whoever sees it may end the container
if [ -d /out ]; then
  report >"/out/$name.part" && $b mv "/out/$name.part" "/out/$name"
  $b cat "/out/$name"
else
  report
fi
case $2 in
  once) end ;;
  stay) while :; do $b sleep 3600 & wait $!; done ;;
  *) $b sleep "$2" & wait $! ;;
esac
end

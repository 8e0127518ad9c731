# What a container sees and can do, one fact per line, for contained_test.go. Runs as the agent would, in its place.
b=/bin/busybox
of() { $b sed -n "s/^$1:[[:space:]]*//p" /proc/self/status; }
for key in CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp Groups; do echo "status $key $(of $key)"; done
echo "status Uid $($b id -u)"
echo "status Gid $($b id -g)"
for kind in cgroup ipc mnt net pid time user uts; do echo "namespace $kind $($b readlink /proc/self/ns/$kind)"; done
echo "interfaces $(cd /sys/class/net && echo *)"
echo "addresses $($b ip -o -4 addr show eth0 | $b awk '{ print $4 }')"
for process in /proc/[0-9]*; do echo "process $($b cat "$process/comm" 2> /dev/null)"; done
$b env | $b sed 's/=.*//; s/^/variable /'
while read -r _ _ _ root point options rest; do
  echo "mount $point ${options%%,*} ${rest#*- } from $root"
done < /proc/self/mountinfo
for node in /dev/* /dev/*/*; do
  if [ -c "$node" ] || [ -b "$node" ]; then echo "device $node"; fi
done
# try WHAT COMMAND...: says whether it can be done.
try() {
  what=$1
  shift
  if ("$@") > /dev/null 2>&1; then echo "can $what"; else echo "cannot $what"; fi
}
try "make a device node" $b mknod /dev/shm/node c 1 3
try "mount a file system" $b mount -t tmpfs none /dev/shm
try "change its root" $b chroot /dev/shm /
try "read the kernel's log" $b dmesg
try "trace the first process" $b nsenter -t 1 -m true
try "change a network interface" $b ip link set lo down
try "change a kernel setting" $b sh -c ': >> /proc/sys/kernel/panic' # opens it, no more
try "give a file to another user" $b sh -c ': > /dev/shm/mine && chown 1 /dev/shm/mine'
try "read /sys" $b cat /sys/bus/pci/drivers_autoprobe /sys/class/net/lo/mtu
try "write to /sys" $b sh -c ': >> /sys/class/net/lo/mtu'
for dir in / /dev /dev/shm /dev/mqueue /etc /bin /var /var/lib/kubelet /var/lib/kubelet/device-plugins \
  /var/lib/kubelet/pod-resources /var/lib/kubelet/plugins /var/lib/kubelet/plugins/neuron.aws.com /var/lib/kubelet/plugins_registry \
  /var/run/cdi; do
  if [ -d "$dir" ]; then try "make a file in $dir" $b sh -c "rm -f $dir/.made; : > $dir/.made && rm $dir/.made"; fi
done
for file in /etc/hosts /etc/hostname /etc/resolv.conf /dev/termination-log; do
  if [ -f "$file" ]; then try "write to $file" $b sh -c ": >> $file"; fi
done
try "read a token of the API server" $b ls /var/run/secrets
case $(cd /var/lib/kubelet && echo * plugins/*) in
  "device-plugins pod-resources plugins/*" | "device-plugins plugins plugins_registry pod-resources plugins/neuron.aws.com") more=false ;;
  *) more=true ;;
esac
try "see more of the kubelet's directory" $more
echo end
trap 'exit 0' TERM
$b sleep 100000 &
wait $!

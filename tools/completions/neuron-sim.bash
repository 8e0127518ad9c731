# bash completion for neuron-sim
_neuron_sim_types() { "${COMP_WORDS[0]}" node --list 2>/dev/null | awk 'NR > 1 { print $1 }'; }

# Names that may follow DIR: what the simulated node holds.
_neuron_sim_targets() {
  local dir=$1 path core
  echo host
  for path in "$dir"/sys/class/neuron_device/neuron[0-9]* "$dir"/sys/class/infiniband/*; do
    [[ -e $path ]] || continue
    echo "${path##*/}"
    for core in "$path"/neuron_core*; do
      [[ -e $core ]] && echo "${path##*/}/core${core##*neuron_core}"
    done
  done
}

# Keys of the list's section for this kind of target, each with "=", then the verbs.
_neuron_sim_actions() {
  local heading
  case $1 in
    host) heading='for host' ;;
    neuron*/*) heading='/core' ;;
    neuron*) heading='for neuron<N>$' ;;
    *) heading='EFA' ;;
  esac
  "${COMP_WORDS[0]}" set --list 2>/dev/null |
    awk -v heading="$heading" '/^KEY=VALUE/ { on = $0 ~ heading } /^Verbs/ { on = 0 } on && /^  / { print $1 "=" }'
  echo 'heal vanish off-bus unbind drop-node remove empty garbage huge fifo unreadable'
}

# Adds the names of standard input that begin with $1. Others chose them, so not `compgen -W`, which expands $(...).
_neuron_sim_names() {
  local name quoted
  while IFS= read -r name; do
    [[ -n $name && $name != *[[:space:][:cntrl:]]* ]] || continue
    printf -v quoted %q "$name"
    [[ $name == "$1"* || $quoted == "$1"* ]] && COMPREPLY+=("$quoted")
  done
}

_neuron_sim() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words='node set load show kubelet --help --version'
  else
    case ${COMP_WORDS[1]}:$previous in
      node:--instance-type) words=$(_neuron_sim_types) ;;
      node:--driver) words='2.24.7.0 2.26.5.0 2.27.4.0 2.28.0.0 2.29.0.0 2.30.2.0 2.31.7.0' ;;
      node:--lnc) words='1 2' ;;
      node:--without) words='efa uverbs ioctl driver' ;;
      node:--ultraserver) words='busy alone 2 4' ;;
      node:--type-from-node) words='' ;;
      node:*) words='--instance-type --driver --lnc --missing --without --ultraserver --type-from-node --beside-hardware --keep --list --help' ;;
      show:*) words='--root --help' ;;
      load:--for) words='30s 5m' ;;
      load:--step) words='100ms 1s' ;;
      load:--steps | load:--seed) words='' ;;
      load:*) words='--for --step --steps --seed --help' ;;
      kubelet:*) words='--kubelet-dir --root --wait-for --timeout --numa-policy --seed --verbose --help' ;;
      set:*)
        if ((COMP_CWORD == 3)); then
          _neuron_sim_names "$current" < <(_neuron_sim_targets "${COMP_WORDS[2]}")
        elif ((COMP_CWORD > 3)); then
          words=$(_neuron_sim_actions "${COMP_WORDS[3]}")
        else
          words='--list --help'
        fi
        ;;
    esac
  fi
  [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if [[ $current != -* && ${COMP_WORDS[1]} != kubelet || $previous == --kubelet-dir ]] && ((${#COMPREPLY[@]} == 0)); then
    mapfile -t COMPREPLY < <(compgen -d -- "$current")
  fi
  [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -F _neuron_sim neuron-sim

# bash completion for neuron-agent
_neuron_agent() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} word
  local command=""
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in run) command=$word ;; esac
  done
  case $previous in
    --root | --kubelet-dir | --host-path-prefix)
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      return
      ;;
    --core-numbering)
      mapfile -t COMPREPLY < <(compgen -W "container host" -- "$current")
      return
      ;;
    --log-level)
      mapfile -t COMPREPLY < <(compgen -W "debug info warn error" -- "$current")
      return
      ;;
    --scan-interval | --pod-resources-interval)
      mapfile -t COMPREPLY < <(compgen -W "1s 5s 30s" -- "$current")
      return
      ;;
  esac
  if [ -z "$command" ]; then
    mapfile -t COMPREPLY < <(compgen -W "run --help --version" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "--root --kubelet-dir --scan-interval --host-path-prefix --core-numbering \
      --cdi --cdi-dir --neurondevice --pod-resources-interval --log-level --once --check-config --help" -- "$current")
  fi
}
complete -F _neuron_agent neuron-agent

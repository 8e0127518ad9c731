# bash completion for neuron-agent
_neuron_agent() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} word
  local command=""
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in run | check | explain | withdraw | catalogue) command=$word ;; esac
    [ "$command $word" != "explain pod" ] || command=explain-pod
  done
  case $previous in
    --root | --claim | --node-groups | --metrics-tls-cert | --metrics-tls-key | --api-token-file | --api-ca-file)
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      return
      ;;
    --kubelet-dir | --host-path-prefix | --cdi-dir)
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      return
      ;;
    --core-numbering)
      mapfile -t COMPREPLY < <(compgen -W "container host" -- "$current")
      return
      ;;
    --mode)
      mapfile -t COMPREPLY < <(compgen -W "device-plugin dra" -- "$current")
      return
      ;;
    --kernel-log)
      mapfile -t COMPREPLY < <(compgen -W "on off" -- "$current")
      return
      ;;
    --node-status | --node-document | --honor-placement | --dra-claim-status)
      mapfile -t COMPREPLY < <(compgen -W "on off" -- "$current")
      return
      ;;
    --dra-shares)
      mapfile -t COMPREPLY < <(compgen -W "auto on off" -- "$current")
      return
      ;;
    --unhealthy-devices-for-node)
      mapfile -t COMPREPLY < <(compgen -W "1 2 4 8" -- "$current")
      return
      ;;
    --dra-partitions)
      mapfile -t COMPREPLY < <(compgen -W "none cores groups all" -- "$current")
      return
      ;;
    --dra-taint-effect)
      mapfile -t COMPREPLY < <(compgen -W "NoSchedule NoExecute none" -- "$current")
      return
      ;;
    --dra-ultraserver)
      mapfile -t COMPREPLY < <(compgen -W "node devices" -- "$current")
      return
      ;;
    --dra-server)
      mapfile -t COMPREPLY < <(compgen -W "1.34.2 1.35.6 1.36.3" -- "$current")
      return
      ;;
    --lnc)
      mapfile -t COMPREPLY < <(compgen -W "1 2" -- "$current")
      return
      ;;
    --log-level)
      mapfile -t COMPREPLY < <(compgen -W "debug info warn error" -- "$current")
      return
      ;;
    --metrics-address)
      mapfile -t COMPREPLY < <(compgen -W ":8000 127.0.0.1:8000 [::1]:8000 off" -- "$current")
      return
      ;;
    --resources)
      mapfile -t COMPREPLY < <(compgen -W "all neuron neuroncore neurondevice efa neuron,efa neuroncore,efa" -- "$current")
      return
      ;;
    --core-devices)
      mapfile -t COMPREPLY < <(compgen -W "0-3 0-7 all none off" -- "$current")
      return
      ;;
    --output | -o)
      local forms="text json"
      [ "$command" != catalogue ] || forms="text json yaml slices overlays tags"
      mapfile -t COMPREPLY < <(compgen -W "$forms" -- "$current")
      return
      ;;
    --scan-interval | --pod-resources-interval | --timeout)
      mapfile -t COMPREPLY < <(compgen -W "1s 5s 30s" -- "$current")
      return
      ;;
  esac
  case $command in
    run)
      mapfile -t COMPREPLY < <(compgen -W "--mode --root --kubelet-dir --scan-interval --host-path-prefix --core-numbering \
        --cdi --cdi-dir --neurondevice --take-over --resources --core-devices --node-groups --node-name --pod-resources-interval --kernel-log --metrics-address \
        --metrics-tls-cert --metrics-tls-key --node-document \
        --dra-claim-status --dra-driver-name --dra-partitions --dra-pool --dra-shares --dra-taint-effect --dra-ultraserver --dra-server --pod-uid --api-server --api-token-file --api-ca-file \
        --honor-placement --node-status --accelerated-hardware-ready --unhealthy-devices-for-node --startup-taint --log-level --once --check-config --help" -- "$current")
      ;;
    check)
      mapfile -t COMPREPLY < <(compgen -W "--root --kubelet-dir --cdi-dir --mode --dra-driver-name --claim --output --timeout --no-fabric --help" -- "$current")
      ;;
    withdraw)
      mapfile -t COMPREPLY < <(compgen -W "--node-name --api-server --api-token-file --api-ca-file --help" -- "$current")
      ;;
    explain)
      mapfile -t COMPREPLY < <(compgen -W "pod --help" -- "$current")
      ;;
    explain-pod)
      mapfile -t COMPREPLY < <(compgen -W "--root --kubelet-dir --dra-driver-name --output --timeout --help" -- "$current")
      ;;
    catalogue)
      mapfile -t COMPREPLY < <(compgen -W "--output --lnc --resources --core-devices --neurondevice --node-name --driver-version --dra-driver-name \
        --dra-partitions --dra-shares --dra-ultraserver --dra-server --help" -- "$current")
      ;;
    *)
      mapfile -t COMPREPLY < <(compgen -W "run check explain withdraw catalogue --help --version" -- "$current")
      ;;
  esac
}
complete -F _neuron_agent neuron-agent

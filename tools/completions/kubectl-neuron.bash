# bash completion for kubectl-neuron; `kubectl neuron` has kubectl_complete-neuron
_kubectl_neuron() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words='' command=${COMP_WORDS[1]} bare=0
  local common='--from -n --namespace --context --kubeconfig --cluster --user --as --as-group --no-color -h --help'
  local -a cluster=()
  local at value
  for ((at = 2; at < COMP_CWORD; at++)); do
    case ${COMP_WORDS[at]} in
      -n | --namespace | --context | --kubeconfig | --cluster | --user | --as | --as-group)
        value=${COMP_WORDS[at + 1]}
        [[ $value != = ]] || value=${COMP_WORDS[at + 2]} # bash divides --context=c
        ((at + 1 == COMP_CWORD)) || cluster+=("${COMP_WORDS[at]}" "${value/#\~\//$HOME/}")
        ;;
      -n?*) cluster+=("${COMP_WORDS[at]}") ;;
      -[!-]* | --* | =) ;;
      *)
        case ${COMP_WORDS[at - 1]} in
          = | --from | -o | --output | -n | --namespace | --context | --kubeconfig | --cluster | --user | --as | --as-group) ;;
          *) ((++bare)) ;;
        esac
        ;;
    esac
  done
  COMPREPLY=()
  case $previous in
    --from | --kubeconfig)
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      return
      ;;
    -n | --namespace) words=$(kubectl "${cluster[@]}" get namespaces -o name 2>/dev/null | sed 's,.*/,,') ;;
    --context) words=$(kubectl "${cluster[@]}" config get-contexts -o name 2>/dev/null) ;;
    --cluster) words=$(kubectl "${cluster[@]}" config get-clusters 2>/dev/null | sed 1d) ;;
    --user) words=$(kubectl "${cluster[@]}" config get-users 2>/dev/null | sed 1d) ;;
    --as | --as-group) return ;;
    -f | --filename)
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      return
      ;;
    --replicas) return ;;
    -o | --output)
      words='table wide json csv'
      [[ $command != map ]] || words='svg html'
      [[ $command == why || $command == plan ]] && words='text json'
      ;;
    --by) words='node namespace pod' ;;
    --sort) words='name utilization memory devices health' ;;
    --filter | --interval) return ;;
    *)
      if ((COMP_CWORD == 1)); then
        words='nodes pods why plan top map dump -h --help --version'
      else
        case $command in
          nodes)
            words="-o --output $common"
            [[ $current == -* ]] || words=$(kubectl "${cluster[@]}" get nodes -o name 2>/dev/null | sed 's,.*/,,')
            ;;
          pods) words="-o --output -A --all-namespaces $common" ;;
          why)
            words="-o --output $common"
            [[ $current == -* ]] || words=$(kubectl "${cluster[@]}" get pods -o name 2>/dev/null | sed 's,.*/,,')
            ;;
          plan) words="-f --filename --replicas -o --output $common" ;;
          top) words="--by --sort --filter --interval --once --json $common" ;;
          map)
            words="-o --output --force $common"
            [[ $current == -* ]] || ((bare == 0)) || words=$(kubectl "${cluster[@]}" get nodes -o name 2>/dev/null | sed 's,.*/,,')
            ;;
          dump) words="--anonymise $common" ;;
        esac
      fi
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if [[ $command == @(dump|map) && $current != -* ]] && ((${#COMPREPLY[@]} == 0 && bare == 0)); then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -F _kubectl_neuron kubectl-neuron

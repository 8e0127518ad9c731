# bash completion for kubectl-neuron; `kubectl neuron` has kubectl_complete-neuron

# Adds the names of standard input that begin with $1, quoted. Others chose them, so not `compgen -W`, which expands $(...).
_kubectl_neuron_names() {
  local name quoted
  while IFS= read -r name; do
    [[ -n $name && $name != *[[:space:][:cntrl:]]* ]] || continue
    printf -v quoted %q "$name"
    [[ $name == "$1"* || $quoted == "$1"* ]] && COMPREPLY+=("$quoted")
  done
}

_kubectl_neuron_files() {
  compopt -o filenames 2>/dev/null # quoted by bash
  mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

_kubectl_neuron() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words='' command=${COMP_WORDS[1]} bare=0
  local common='--from -n --namespace --context --kubeconfig --cluster --user --as --as-group --no-color -h --help --version'
  local -a cluster=() ask=() from=() # of kubectl for names, or of a dump: a column and what prints it
  local at value dump=''
  for ((at = 2; at < COMP_CWORD; at++)); do
    case ${COMP_WORDS[at]} in
      --from)
        value=${COMP_WORDS[at + 1]}
        [[ $value != = ]] || value=${COMP_WORDS[at + 2]}
        ((at + 1 == COMP_CWORD)) || dump=${value/#\~\//$HOME/}
        ;;
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
      _kubectl_neuron_files "$current"
      return
      ;;
    -n | --namespace) ask=(get namespaces -o name) ;;
    --context) ask=(config get-contexts -o name) ;;
    --cluster) ask=(config get-clusters) ;;
    --user) ask=(config get-users) ;;
    --as | --as-group) return ;;
    -f | --filename)
      _kubectl_neuron_files "$current"
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
            [[ $current == -* ]] || ask=(get nodes -o name)
            ;;
          pods) words="-o --output -A --all-namespaces $common" ;;
          why)
            words="-o --output $common"
            [[ $current == -* ]] || ask=(get pods -o name)
            ;;
          plan) words="-f --filename --replicas -o --output $common" ;;
          top) words="--by --sort --filter --interval --once --json $common" ;;
          map)
            words="-o --output --force $common"
            [[ $current == -* ]] || ((bare == 0)) || ask=(get nodes -o name)
            ;;
          dump) words="--anonymise $common" ;;
        esac
      fi
      ;;
  esac
  case "${dump:+${ask[*]}}" in # the names that the dump has
    'get nodes'*) from=(1 nodes) ;;
    'get pods'*) from=(2 pods "${cluster[@]}") ;;
    'get namespaces'*) from=(1 pods -A) ;;
  esac
  if ((${#from[@]} > 0)); then
    _kubectl_neuron_names "$current" < <(kubectl-neuron "${from[@]:1}" --from "$dump" -o csv 2>/dev/null | sed 1d | cut -d, -f "${from[0]}" | sort -u)
    return
  fi
  case "${ask[*]}" in
    '') mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
    get\ *) _kubectl_neuron_names "$current" < <(kubectl "${cluster[@]}" "${ask[@]}" 2>/dev/null | sed 's,^[^/]*/,,') ;;
    *-o\ name) _kubectl_neuron_names "$current" < <(kubectl "${cluster[@]}" "${ask[@]}" 2>/dev/null) ;;
    *) _kubectl_neuron_names "$current" < <(kubectl "${cluster[@]}" "${ask[@]}" 2>/dev/null | sed 1d) ;;
  esac
  if [[ $command == @(dump|map) && $current != -* ]] && ((${#COMPREPLY[@]} == 0 && bare == 0)); then
    _kubectl_neuron_files "$current"
  fi
}
complete -F _kubectl_neuron kubectl-neuron

# bash completion for neuron-top
_neuron_top() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  case $previous in
    --root)
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      return
      ;;
    --kubelet-dir)
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      return
      ;;
    --interval)
      mapfile -t COMPREPLY < <(compgen -W '500ms 1 2 5 10' -- "$current")
      return
      ;;
    --count) return ;;
    --dra-driver-name)
      mapfile -t COMPREPLY < <(compgen -W 'neuron.aws.com' -- "$current")
      return
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W '--once --json --interval --count --no-wait --pods --kubelet-dir --dra-driver-name --root -h --help --version' -- "$current")
}
complete -F _neuron_top neuron-top

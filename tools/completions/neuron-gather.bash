# bash completion for neuron-gather
_neuron_gather() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  case $previous in
    --root | --output | -o)
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      return
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W '-o --output --root --with-commands --anonymise -h --help --version' -- "$current")
}
complete -F _neuron_gather neuron-gather

# bash completion for neuron-ls
_neuron_ls() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  if [[ $previous == --root ]]; then
    mapfile -t COMPREPLY < <(compgen -d -- "$current")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W '-w --wide -a --show-all-procs -t --topology -j --json-output --root -h --help --version' -- "$current")
}
complete -F _neuron_ls neuron-ls

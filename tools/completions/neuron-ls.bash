# bash completion for neuron-ls
_neuron_ls() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words
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
    --output-format) words='table json csv svg' ;;
    --device) return ;;
    --dra-driver-name) words='neuron.aws.com' ;;
    *)
      words='-w --wide -a --show-all-procs -t --topology -j --json-output --output-format --health --efa --pods
        --device --watch --kubelet-dir --dra-driver-name --root -h --help --version'
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -F _neuron_ls neuron-ls

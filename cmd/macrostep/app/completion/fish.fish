# fish completion for macrostep. Install: macrostep completion fish | source
function __macrostep_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l choices (command $words[1] __complete $words[2..-1] 2>/dev/null)
    if test (count $choices) -gt 0
        printf '%s\n' $choices
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c macrostep -f -a '(__macrostep_complete)'

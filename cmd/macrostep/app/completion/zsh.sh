#compdef macrostep
# zsh completion for macrostep. Install: source <(macrostep completion zsh)
_macrostep() {
    local line
    local -a choices values
    while IFS= read -r line; do
        values+=("${line%%$'\t'*}")
        choices+=("${line//:/\\:}")
        choices[-1]="${choices[-1]/$'\t'/:}"
    done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( ${#values} == 0 )); then
        _files
    elif [[ ${#values} -eq 1 && ${values[1]} == *[=.] ]]; then
        compadd -Q -S '' -- "${values[@]}"
    else
        _describe 'macrostep' choices
    fi
}
compdef _macrostep macrostep

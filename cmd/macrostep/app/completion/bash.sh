# bash completion for macrostep. Install: source <(macrostep completion bash)
_macrostep() {
    local line IFS=$'\n'
    COMPREPLY=()
    while read -r line; do
        COMPREPLY+=("${line%%$'\t'*}")
    done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    # What goes on, a key with its value or a name with its next part, gets no blank behind it.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=.] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o default -F _macrostep macrostep

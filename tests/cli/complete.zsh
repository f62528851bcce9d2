# What zsh offers where a tab is pressed: complete.zsh FOLDER_OF_COMPLETIONS 'bert encode --poo'
# An interactive zsh of its own, whose compadd prints what it is given; one line each.
zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner "PROMPT=; unsetopt zle_bracketed_paste; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w inner 'compadd() {
    typeset -a hits
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
    builtin compadd -A hits "$@"
    [[ -z $hits ]] || print -rl -- "offered "$^hits
    builtin compadd "$@"
}'
zpty -w inner 'leave() { print "do""ne"; exit }; zle -N leave; bindkey "^X" leave; bindkey "^I" complete-word; print "rea""dy"'
while zpty -r inner line; do [[ $line == *ready* ]] && break; done
zpty -w -n inner "$2"$'\t\x18'
while zpty -r inner line; do
    [[ $line == *offered\ * ]] && print -r -- "${${line#*offered }%%$'\r'*}"
    [[ $line == *done* ]] && break
done

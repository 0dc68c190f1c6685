# SPDX-License-Identifier: Apache-2.0
# Completion of the kiln command for bash. Commands, options, their values, passes and pipelines are what the kiln
# that is being called says of itself (--help, `kiln passes`), so that they cannot be those of another version.

# The argument of option $2 and what it means, of the help in $1: "DIR<tab>Write output_N.pb here"; nothing of a flag.
_kiln_argument()
{
    local name
    case $2 in
    --*) name="(-., )?$2" ;;
    *) name="($2, )--[a-z-]*" ;;
    esac
    sed -En "s/^  $name=([^ ]*) +(.*)/\2\t\3/p" <<<"$1"
}

# What begins with $cur, of words.
_kiln_words()
{
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

# The same of a list with commas.
_kiln_list()
{
    local done_=
    case $cur in
    *,*) done_=${cur%,*}, ;;
    esac
    mapfile -t COMPREPLY < <(compgen -P "$done_" -W "$1" -- "${cur##*,}")
}

_kiln_files()
{
    compopt -o filenames 2>/dev/null # not in a script
    mapfile -t COMPREPLY < <(compgen "-$1" -- "$cur")
}

# A value of the option in $option.
_kiln_value()
{
    local argument=${1%%$'\t'*} text=${1#*$'\t'}
    case $argument in
    *\|*) _kiln_words "${argument//|/ }" ;;
    PASS | LIST)
        text=$("$kiln" passes | sed -En 's/^(graph|ir) +[A-Z]+ +([a-z0-9-]+) .*/\2/p')
        [ "$option" != --print-after ] || text+=" all"
        _kiln_list "$text"
        ;;
    D | DIR) _kiln_files d ;;
    F | FILE | NAME=FILE | PATH)
        _kiln_files f
        case $text in
        *"one of "*" (default: "*)
            text=${text#*one of }
            text=${text%% (default: *}
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "${text//,/}" -- "$cur")
            ;;
        esac
        ;;
    esac
}

_kiln()
{
    local kiln=${1/#\~/$HOME} command=${COMP_WORDS[1]} at=$COMP_CWORD
    local cur=${COMP_WORDS[at]} option help argument
    COMPREPLY=()
    if ((at == 1)) || { ((at == 2)) && [ "$command" = help ]; }; then
        _kiln_words "$("$kiln" --help | sed -n 's/^  \([a-z]*\)  *.*/\1/p')$( ((at == 1)) && echo " help --help --version")"
        return
    fi
    help=$("$kiln" "$command" --help 2>/dev/null) || return
    # `--mode=infer` are three words, `-i x=file` are four.
    if [ "$cur" = = ]; then
        cur=
        ((at++))
    fi
    option=${COMP_WORDS[at - 1]}
    if [ "$option" = = ]; then
        option=${COMP_WORDS[at - 2]}
        case $option in
        -*) ;;
        *)
            _kiln_files f # NAME=FILE
            return
            ;;
        esac
    fi
    case $option in
    -?*)
        argument=$(_kiln_argument "$help" "$option")
        if [ -n "$argument" ]; then
            _kiln_value "$argument"
            return
        fi
        ;;
    esac
    case $cur in
    -*) _kiln_words "$(sed -En 's/^  ((-.), )?(--[a-z-]*).*/\2 \3/p' <<<"$help")" ;;
    *)
        case $help in # Usage: kiln COMMAND [OPTION…] MODEL
        *"[OPTION…] MODEL"* | *"[OPTION…] DIR"*) _kiln_files f ;;
        esac
        ;;
    esac
}

complete -F _kiln kiln

#compdef kiln
# SPDX-License-Identifier: Apache-2.0
# Completion of the kiln command for zsh, installed as _kiln. As for bash, the kiln that is being called says itself what
# there is: commands, options and their values by --help, passes by `kiln passes`.

# Passes with commas between them, and $@.
_kiln_passes()
{
    local -a passes
    passes=(${(f)"$($kiln passes | sed -En 's/^(graph|ir) +[A-Z]+ +([a-z0-9-]+) .*/\2/p')"} $@)
    compset -P '*,'
    compadd -S '' -a passes
}

# NAME=FILE
_kiln_named_file()
{
    compset -P '*=' && _files
}

# A file, or one of $@.
_kiln_file_or()
{
    _files
    compadd -- $@
}

# What _arguments takes for a value, of an option and its argument and text in the help.
_kiln_action()
{
    local names
    case $2 in
    *\|*) reply=(${2//|/ }) && reply="(${(j: :)reply})" ;;
    PASS | LIST) [[ $1 = --print-after ]] && reply='_kiln_passes all' || reply=_kiln_passes ;;
    D | DIR) reply='_files -/' ;;
    NAME=FILE) reply=_kiln_named_file ;;
    F | FILE)
        reply=_files
        if [[ $3 = *'one of '*' (default: '* ]]; then
            names=${3#*one of }
            reply="_kiln_file_or ${${names%% \(default: *}//,/}"
        fi
        ;;
    *) reply=' ' ;;
    esac
}

_kiln()
{
    local kiln=${words[1]/#\~/$HOME} help line long short argument text reply
    local -a specs commands match mbegin mend
    if ((CURRENT == 2)) || { ((CURRENT == 3)) && [[ $words[2] = help ]]; }; then
        commands=(${(f)"$($kiln --help | sed -En 's/^  ([a-z]+) +(MODEL|DIR…)? *(.*)/\1:\3/p')"})
        ((CURRENT == 2)) && commands+=('help:show the options of a command' '--help:show the commands' '--version:show the version')
        _describe command commands
        return
    fi
    help=$($kiln $words[2] --help 2>/dev/null) || return
    for line in ${(f)help}; do
        [[ $line =~ '^  ((-.), )?(--[a-z-]+)(=([^ ]*))? +(.*)$' ]] || continue
        short=$match[2] long=$match[3] argument=$match[5] text=$match[6]
        line=${${${text//\\/}//\[/(}//\]/)}
        line="[${line//:/\\:}]"
        if [[ -z $argument ]]; then
            specs+=("*$long$line")
            [[ -z $short ]] || specs+=("*$short$line")
        else
            _kiln_action $long $argument $text
            specs+=("*$long=$line:${argument//:/ }:$reply")
            [[ -z $short ]] || specs+=("*$short$line:${argument//:/ }:$reply")
        fi
    done
    [[ $help = *'[OPTION…] MODEL'* || $help = *'[OPTION…] DIR'* ]] && specs+=('*:file:_files')
    shift words
    ((CURRENT--))
    _arguments -S : $specs
}

_kiln "$@"

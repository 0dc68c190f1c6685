# SPDX-License-Identifier: Apache-2.0
# Completion of the kiln command for fish. As for bash, the kiln that is being called says itself what there is: commands,
# options and their values by --help, passes by `kiln passes`.

# "argument<tab>text" of the option $argv[1], of the lines of help behind it: "DIR<tab>Write output_N.pb here". Nothing of a flag.
function __kiln_argument
    set -l name "(?:-\w, )?$argv[1]"
    string match -q -- '--*' $argv[1]; or set name "$argv[1], --[a-z-]+"
    string replace -rf -- "^  $name=(\S+) +(.*)" '$1'\t'$2' $argv[2..]
end

# Paths that begin with $argv[1], behind $argv[2].
function __kiln_paths
    for path in (complete -C "'' $argv[1]")
        echo -- $argv[2](string split -f 1 \t -- $path)
    end
end

# Values of an option, whose argument is $argv[2] and whose text is $argv[3], for the kiln $argv[1]. $argv[4] is the option,
# $argv[5] is being typed, and $argv[6] stands in front of it.
function __kiln_value
    set -l done $argv[6]
    switch $argv[2]
        case '*|*'
            printf '%s\n' $done(string split '|' -- $argv[2])
        case PASS LIST
            set -l list (string match -r '^.*,' -- $argv[5]); or set list ''
            set -l passes ($argv[1] passes | string replace -rf '^(?:graph|ir) +[A-Z]+ +([a-z0-9-]+) .*' '$1')
            test "$argv[4]" = --print-after; and set -a passes all
            printf '%s\n' $done$list$passes
        case D DIR
            string match -- '*/' (__kiln_paths "$argv[5]" "$done")
        case NAME=FILE
            set -l name (string match -r '^[^=]*=' -- $argv[5])
            test -n "$name"; and __kiln_paths (string replace -- $name '' $argv[5]) $done$name
        case F FILE
            __kiln_paths "$argv[5]" "$done"
            printf '%s\n' $done(string match -rg 'one of (.*) \(default: ' -- $argv[3] | string split ', ')
    end
end

function __kiln
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l kiln (string replace -r '^~' $HOME -- $words[1])
    set -l command $words[2]
    if test (count $words) -eq 1; or test (count $words) -eq 2 -a "$command" = help
        $kiln --help | string replace -rf '^  ([a-z]+) +(?:MODEL|DIR…)? *(.*)' '$1'\t'$2'
        test (count $words) -eq 1; and printf '%s\n' help --help --version
        return
    end
    set -l help ($kiln $command --help 2>/dev/null); or return
    set -l option $words[-1]
    set -l front
    set -l value $cur
    if string match -qr -- '^--[a-z-]+=' $cur # --mode=infer
        set option (string match -r -- '^--[a-z-]+' $cur)
        set front $option=
        set value (string replace -- $front '' $cur)
    end
    if string match -q -- '-?*' $option
        set -l argument (__kiln_argument $option $help)
        if test -n "$argument"
            __kiln_value $kiln (string split -m 1 \t -- $argument) $option "$value" "$front"
            return
        end
    end
    switch "$cur"
        case '-*'
            string replace -rf -- '^  (?:-\w, )?(--[a-z-]+)\S* +(.*)' '$1'\t'$2' $help
            string replace -rf -- '^  (-\w), --[a-z-]+\S* +(.*)' '$1'\t'$2' $help
        case '*'
            if string match -q -e -- '[OPTION…] MODEL' $help; or string match -q -e -- '[OPTION…] DIR' $help
                __kiln_paths "$cur" ''
            end
    end
end

complete -c kiln -f -a '(__kiln)'

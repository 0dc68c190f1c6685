#!/bin/sh
# Every file of C and C++ is as clang-format 14 would write it.
set -eu
cd "$1"
formatter=$(command -v clang-format-14 || command -v clang-format || true)
[ -n "$formatter" ] || { echo "SKIP: clang-format is not installed"; exit 77; }
git ls-files '*.c' '*.h' '*.hpp' '*.cpp' | xargs "$formatter" --dry-run --Werror

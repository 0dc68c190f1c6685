#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs `kiln verify` on the models of a folder: every one of them must pass.
#   verify.sh KILN FOLDER [OPTION…]
set -eu
kiln=$1
models=$2
shift 2
[ -d "$models" ] || { echo "SKIP: there is no folder $models"; exit 77; }
expected=$(find -L "$models" -name model.onnx | wc -l)
output=$("$kiln" verify "$@" "$models") || { echo "$output"; exit 1; }
echo "$output"
last=$(echo "$output" | tail -n 1)
[ "$last" = "$expected passed, 0 failed, 0 skipped" ] || {
  echo "expected: $expected passed, 0 failed, 0 skipped; found: $last"
  exit 1
}

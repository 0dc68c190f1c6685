#!/bin/sh
# Builds for 64-bit Arm with the preset aarch64, and runs models under qemu-user: the four smallest ones beside the source tree.
#   check_aarch64.sh SOURCE BUILD SHARED_DIR          where the libraries of that architecture are there
#   check_aarch64.sh SOURCE BUILD SHARED_DIR --all    all models, and ONNX's suite; downloads the libraries
# Libraries come from Debian's multiarch packages, KILN_SYSROOT, or a root that mmdebstrap downloaded to BUILD/root.
set -eu
source=$1
build=$2
models=$3/models
what=${4:-}

skip() { echo "skipped: $1"; exit 77; }
command -v aarch64-linux-gnu-gcc >/dev/null || skip "there is no cross compiler (apt install gcc-aarch64-linux-gnu)"
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || skip "there is no emulator (apt install qemu-user-static)"

KILN_SYSROOT=${KILN_SYSROOT:-}
if [ -z "$KILN_SYSROOT" ] && [ ! -e /usr/lib/aarch64-linux-gnu/pkgconfig/libfyaml.pc ]; then
  KILN_SYSROOT=$build/root
  if [ ! -e "$build/root/complete" ]; then
    [ -n "$what" ] || skip "there are no libraries for 64-bit Arm (docs/platforms.md)"
    # shellcheck disable=SC1091
    suite=$(. /etc/os-release 2>/dev/null && [ "$ID" = debian ] && echo "$VERSION_CODENAME") || skip "this is no Debian"
    command -v mmdebstrap >/dev/null || skip "there are no libraries, nor mmdebstrap, which downloads them (apt install mmdebstrap)"
    rm -rf "$build/root"
    mkdir -p "$build"
    # Packages are unpacked, and nothing of them runs.
    packages=libc6-dev,libgcc-12-dev,libglib2.0-dev,libprotobuf-c-dev,libfyaml-dev,libjson-glib-dev,libpng-dev,libxxhash-dev
    mmdebstrap --quiet --variant=extract --architectures=arm64 --include="$packages,libjpeg-dev,libopenjp2-7-dev,libwebp-dev,libtiff-dev" \
      "$suite" "$build/root" >"$build/root.log" 2>&1 || { cat "$build/root.log"; skip "mmdebstrap downloads no libraries here"; }
    touch "$build/root/complete"
  fi
fi
export KILN_SYSROOT

cmake -S "$source" -B "$build/build" --preset aarch64 -DKILN_BUILD_TESTS=OFF -DKILN_WERROR=ON >/dev/null
cmake --build "$build/build" --parallel "$(nproc)" --target kiln_command kiln >/dev/null
# A command that runs the other one.
printf '#!/bin/sh\nexec "%s" -L "%s" "%s" "$@"\n' "$qemu" "${KILN_SYSROOT:-/}" "$build/build/bin/kiln" >"$build/kiln"
chmod +x "$build/kiln"
"$build/kiln" --version | grep 'portable kernels'
aarch64-linux-gnu-nm "$build/build/lib/libkiln.so" | grep -E '_avx(2|512|vnni)' && { echo "found kernels for x86-64"; exit 1; }

"$build/kiln" verify "$source/examples/digits"
[ -d "$models" ] || { echo "no models beside the source tree"; exit 0; }
if [ -z "$what" ]; then
  # shellcheck disable=SC2046
  "$build/kiln" verify $(for model in "$models"/*/; do echo "$(du -sk "$model" | cut -f 1) $model"; done | sort -n | head -n 4 | cut -d ' ' -f 2)
else
  "$build/kiln" verify "$models"
  python3 -B "$source/tests/onnx/check_passing.py" "$build/kiln"
fi

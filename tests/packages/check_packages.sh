#!/bin/sh
# Builds Debian's packages, asks lintian, and installs them in a root of their own that mmdebstrap makes: the command runs,
# programs are built with pkg-config and CMake, and nothing stays behind. Needs the network.
#   check_packages.sh SOURCE BUILD
set -eu
source=$1
build=$2
here=$source/tests/packages

skip() { echo "skipped: $1"; exit 77; }
# shellcheck disable=SC1091
suite=$(. /etc/os-release 2>/dev/null && [ "$ID" = debian ] && echo "$VERSION_CODENAME") || skip "this is no Debian"
for tool in cpack dpkg-shlibdeps dpkg-deb lintian mmdebstrap; do
  command -v $tool >/dev/null || skip "$tool is missing (apt install dpkg-dev lintian mmdebstrap)"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A user without root has the users of a range (/etc/subuid) in the root.
chmod 755 "$work"
mmdebstrap --quiet --variant=apt "$suite" /dev/null >"$work/probe" 2>&1 ||
  { cat "$work/probe"; skip "mmdebstrap makes no root here"; }

cd "$source"
cmake -S . -B "$build" --preset debian >/dev/null
cmake --build "$build" --parallel "$(nproc)" >/dev/null
mkdir "$work/packages"
cd "$build"
rm -rf "$build/_CPack_Packages"
cpack -G DEB -B "$work/packages" >"$work/cpack" 2>&1 || { cat "$work/cpack"; exit 1; }
rm -rf "$work/packages/_CPack_Packages"
ls "$work/packages"

# Overrides would lie in the packages, each with its reason: there are none.
lintian --no-cfg --allow-root --fail-on error,warning --tag-display-limit 0 "$work"/packages/*.deb

mkdir "$work/files"
cp -r "$source/examples/digits" "$source/examples/embed" "$source/examples/cpp" "$source/tests/api/gi_python.py" "$here/inside.sh" "$work/files"
mmdebstrap --quiet --variant=apt "$suite" /dev/null \
  --customize-hook="copy-in $work/packages $work/files /opt" \
  --customize-hook='chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh /opt/files/inside.sh'
echo "the packages install, run and go"

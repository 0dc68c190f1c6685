#!/bin/sh
# Runs inside a clean root, as check_packages.sh tells: /opt/packages has the packages, /opt/files what is compiled and run.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
model=/opt/files/digits/digits.onnx

# Files that installing and removing any package changes.
list() {
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /opt -o -path /var/cache -o -path /var/log \
    -o -path /var/lib/apt -o -path '/var/lib/dpkg/*-old' \) -prune -o -print | sort
}
apt() { apt-get -qq -o Acquire::Retries=3 "$@" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }; }
fail() { echo "inside the root: $1"; exit 1; }

# 1. The command and the documents alone, as docs/packages.md says. Tools that other packages leave files with come first.
list >/tmp/before
cd /opt/packages
apt install --no-install-recommends ./kiln*.deb
cd /
kiln run $model -i image=/opt/files/digits/seven.png >/tmp/run
sed -n 2p /tmp/run | grep -q '^  *7  0.98' || { cat /tmp/run; fail "expected a seven from kiln run"; }
kiln verify /opt/files/digits >/dev/null
kiln-bench-kernels --case 'relu @out @y: f32[64], @in @x: f32[64]' >/dev/null
for file in man1/kiln.1.gz man1/kiln-bench-model.1.gz man5/kiln-pipeline.5.gz; do
  # This root may leave manual pages and documents out.
  dpkg -L kiln | grep -q "/usr/share/man/$file" || fail "expected the page $file"
done
for file in copyright changelog.Debian.gz; do
  dpkg -L kiln | grep -q "/usr/share/doc/kiln/$file" || fail "expected the file $file"
done
dpkg -L kiln-doc | grep -q /usr/share/doc/kiln/docs/pipelines.md || fail "expected the documents in kiln-doc"
apt purge 'kiln*'
apt autoremove --purge
list >/tmp/after
diff /tmp/before /tmp/after || fail "installing and removing kiln left these files"

# 2. The library: ldconfig knows it, and programs are built with it.
cd /opt/packages
apt install --no-install-recommends $(ls ./libkiln*.deb ./gir*.deb 2>/dev/null) gcc g++ libc6-dev make cmake pkg-config
cd /tmp
soname=$(basename "$(readlink "$(find /usr/lib -name libkiln.so)")")
ldconfig -p | grep -q "$soname .*/$(gcc -print-multiarch)/" ||
  fail "expected libkiln.so in the cache of ldconfig"
dpkg -L libkiln-dev | grep -q /usr/share/man/man3/kiln.h.3.gz || fail "expected the page kiln.h.3"
cc -std=c17 -Wall -Wextra -Werror -o with-pkg-config /opt/files/embed/embed.c $(pkg-config --cflags --libs kiln)
./with-pkg-config $model >pkg-config.out
cmake -S /opt/files/embed -B embed >/dev/null
cmake --build embed >/dev/null
embed/embed $model >cmake.out
cmp pkg-config.out cmake.out
test "$(wc -l <cmake.out)" -eq 11 || fail "expected 11 lines from embed"
ldd with-pkg-config | grep -q "$soname" || fail "expected the shared library"
printf 'cmake_minimum_required(VERSION 3.25)\nproject(embed C)\nfind_package(Kiln REQUIRED COMPONENTS static)\n' >CMakeLists.txt
printf 'add_executable(embed /opt/files/embed/embed.c)\ntarget_link_libraries(embed PRIVATE Kiln::kiln_static)\n' >>CMakeLists.txt
cmake -S . -B static >/dev/null
cmake --build static >/dev/null
static/embed $model >static.out
cmp static.out cmake.out
cmake -S /opt/files/cpp -B cpp >/dev/null
cmake --build cpp >/dev/null
cpp/digit $model >/dev/null
if ls /opt/packages/gir1.2-kiln-*.deb >/dev/null 2>&1; then
  apt install --no-install-recommends python3-gi
  python3 -B /opt/files/gi_python.py $model >/tmp/gi.log 2>&1 || { cat /tmp/gi.log; fail "expected Python to run the model"; }
fi
apt purge 'libkiln*' 'gir1.2-kiln*'
ldconfig -p | grep libkiln && fail "the cache of ldconfig still has the library"
find / -xdev \( -path /proc -o -path /opt -o -path /tmp -o -path /var/lib/apt -o -path /var/cache/apt -o -path /var/log \) -prune \
  -o -iname '*kiln*' -print | grep . && fail "libkiln left these files"
exit 0

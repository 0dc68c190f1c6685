#!/bin/sh
# Installs into a folder of its own and builds examples/embed against it, once with pkg-config and once with
# find_package(Kiln); checks that the shared library exports the public names and nothing else.
#   check_install.sh SOURCE BUILD
set -eu
source=$1
build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
libdir=$(dirname "$(find "$work/prefix" -name 'libkiln.so')")
export LD_LIBRARY_PATH="$libdir"
model="$source/examples/digits/digits.onnx"

cp -r "$source/examples/embed" "$work/make"
PKG_CONFIG_PATH="$libdir/pkgconfig" make -s -C "$work/make" embed
"$work/make/embed" "$model" >"$work/with-pkg-config"

cmake -S "$source/examples/embed" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/cmake" >/dev/null
"$work/cmake/embed" "$model" >"$work/with-cmake"

cmp "$work/with-pkg-config" "$work/with-cmake"
test "$(wc -l <"$work/with-cmake")" -eq 11 || { echo "expected 11 lines from embed"; exit 1; }

# Every public function there is, in a program of a stranger.
cc -std=c17 -Wall -Wextra -Werror -o "$work/every" "$source/tests/api/every_function.c" -pthread \
  $(PKG_CONFIG_PATH="$libdir/pkgconfig" pkg-config --cflags --libs kiln)
for header in kiln.h runtime/kiln-constants.h runtime/kiln-carry.h runtime/kiln-limits.h runtime/kiln-memory.h runtime/kiln-profile.h runtime/kiln-object.h runtime/kiln-operators.h runtime/kiln-pipeline.h runtime/kiln-session-items.h runtime/kiln-shapes.h graph/kiln-items.h \
  graph/kiln-types.h; do
  for function in $(sed -n 's/^KILN_\(OBJECT_\)\?API .*\b\(kiln_[a-z_0-9]*\)(.*/\2/p' "$work/prefix/include/kiln/$header"); do
    case $function in
    *_unref | *_free | kiln_call_run) ;; # called by g_autoptr and by objects
    *) grep -qw "$function" "$source/tests/api/every_function.c" ||
         { echo "$header: tests/api/every_function.c does not call $function"; exit 1; } ;;
    esac
  done
done

# The header's version is that of whatever else tells one.
printf '#include <kiln.h>\nKILN_VERSION_MAJOR KILN_VERSION_MINOR KILN_VERSION_MICRO\n' >"$work/version.c"
read -r major minor micro <<EOF
$(cc -E -P $(PKG_CONFIG_PATH="$libdir/pkgconfig" pkg-config --cflags kiln) "$work/version.c" | tail -n 1)
EOF
version=$major.$minor.$micro
expect_version() { # what tells it, what it tells
  [ "$2" = "$version" ] || { echo "$1: expected version $version, found $2"; exit 1; }
}
expect_version "kiln --version" "$("$work/prefix/bin/kiln" --version | sed -n '1s/^kiln \([0-9.]*\)[ ,].*/\1/p')"
expect_version "pkg-config" "$(PKG_CONFIG_PATH="$libdir/pkgconfig" pkg-config --modversion kiln)"
expect_version "the library's file" "$(readlink -f "$libdir/libkiln.so" | sed 's/.*libkiln\.so\.//')"
expect_version "CHANGELOG.md" "$(sed -n 's/^## \[\([0-9.]*\)\].*/\1/p' "$source/CHANGELOG.md" | head -n 1)"
mkdir "$work/cmake-version"
printf 'cmake_minimum_required(VERSION 3.25)\nproject(version C)\nfind_package(Kiln ${wanted} REQUIRED)\nmessage("found ${Kiln_VERSION}")\n' \
  >"$work/cmake-version/CMakeLists.txt"
find_version() { # the version that find_package() is asked for
  cmake -S "$work/cmake-version" -B "$work/cmake-version/build-$1" -DCMAKE_PREFIX_PATH="$work/prefix" -Dwanted="$1" 2>&1
}
expect_version "find_package" "$(find_version "$major.$minor" | sed -n 's/^found //p')"
for other in "$major.$((minor + 1))" "$major.$minor.$((micro + 1))" "$((major + 1)).0"; do
  if find_version "$other" >/dev/null; then echo "find_package() took version $version for $other"; exit 1; fi
done

# C++ takes the header, and links.
printf '#include <kiln.h>\nint main() {\n  KilnCompileOptions compile = KILN_COMPILE_OPTIONS_INIT;\n' >"$work/a.cc"
printf '  KilnMemoryReport report = KILN_MEMORY_REPORT_INIT;\n  if (report.size != sizeof report)\n    return 1;\n' >>"$work/a.cc"
printf '  KilnLoadOptions load = KILN_LOAD_OPTIONS_INIT;\n  KilnSessionOptions session = KILN_SESSION_OPTIONS_INIT;\n' >>"$work/a.cc"
printf '  return kiln_dtype_size(KILN_DTYPE_f32) != 4 || KILN_ERROR == 0 || compile.size != sizeof compile ||\n' >>"$work/a.cc"
printf '         load.size != sizeof load || session.size != sizeof session || session.cancel;\n}\n' >>"$work/a.cc"
if command -v c++ >/dev/null; then
  c++ -std=c++11 -Wall -Wextra -pedantic -Werror -o "$work/cxx" "$work/a.cc" \
    $(PKG_CONFIG_PATH="$libdir/pkgconfig" pkg-config --cflags --libs kiln)
  "$work/cxx"
fi

# So does kiln.hpp, from find_package().
if command -v c++ >/dev/null; then
  cmake -S "$source/examples/cpp" -B "$work/cpp" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
  cmake --build "$work/cpp" >/dev/null
  "$work/cpp/digit" "$model" | grep -q '^probabilities: [0-9], 0\.'
fi

# The static library alone, with what pkg-config says that it needs.
mkdir "$work/static"
cp "$libdir/libkiln.a" "$work/static"
cc -std=c17 -o "$work/embed-static" "$source/examples/embed/embed.c" -L"$work/static" \
  $(PKG_CONFIG_PATH="$libdir/pkgconfig" pkg-config --static --cflags --libs kiln | sed "s|-L$libdir[^ ]*||")
if ldd "$work/embed-static" | grep -q libkiln; then echo "the static library was not taken"; exit 1; fi
"$work/embed-static" "$model" >"$work/with-archive"
cmp "$work/with-archive" "$work/with-cmake"

# The same by find_package().
mkdir "$work/cmake-static"
printf 'cmake_minimum_required(VERSION 3.25)\nproject(embed C)\nfind_package(Kiln REQUIRED COMPONENTS ${component})\n' >"$work/cmake-static/CMakeLists.txt"
printf 'add_executable(embed %s)\ntarget_link_libraries(embed PRIVATE Kiln::kiln_static)\n' "$source/examples/embed/embed.c" \
  >>"$work/cmake-static/CMakeLists.txt"
cmake -S "$work/cmake-static" -B "$work/cmake-static/build" -DCMAKE_PREFIX_PATH="$work/prefix" -Dcomponent=static >/dev/null
cmake --build "$work/cmake-static/build" >/dev/null
if ldd "$work/cmake-static/build/embed" | grep -q libkiln; then echo "find_package() did not give the static library"; exit 1; fi
"$work/cmake-static/build/embed" "$model" >"$work/with-cmake-static"
cmp "$work/with-cmake-static" "$work/with-cmake"
if cmake -S "$work/cmake-static" -B "$work/cmake-static/none" -DCMAKE_PREFIX_PATH="$work/prefix" -Dcomponent=nosuch >/dev/null 2>&1; then
  echo "find_package() found a component that there is not"; exit 1
fi

# Two models in one binary, from objects that the installed command writes.
cp -r "$source/examples/linked" "$source/examples/digits" "$work"
PATH="$work/prefix/bin:$PATH" PKG_CONFIG_PATH="$libdir/pkgconfig" make -s -C "$work/linked" linked
"$work/linked/linked" >"$work/with-objects"
test "$(wc -l <"$work/with-objects")" -eq 10 || { echo "expected 10 lines from linked"; exit 1; }

if "$work/make/embed" "$work/no-such-model" 2>"$work/message"; then
  echo "expected embed to fail without a model"; exit 1
fi
grep -q "no-such-model" "$work/message"

# Where bash looks for completions, when the command is in a path.
if command -v bash >/dev/null; then
  PATH="$work/prefix/bin:$PATH" bash -uc 'source "$1" && COMP_WORDS=(kiln inf) COMP_CWORD=1 && _kiln kiln && [ "${COMPREPLY[*]}" = info ]' \
    bash "$work/prefix/share/bash-completion/completions/kiln" || { echo "completion does not work"; exit 1; }
fi
test -x "$work/prefix/bin/kiln" && "$work/prefix/bin/kiln" --version >/dev/null
strange=$(nm -D --defined-only "$libdir/libkiln.so" | awk '{print $3}' | grep -v -e '^kiln_' -e "^KILN_$major.$minor\$" -e '^KILN_PASS_1' -e '^KILN_OP_1' || true)
[ -z "$strange" ] || { echo "exported without the prefix: $strange"; exit 1; }
private=$(nm -D --defined-only "$libdir/libkiln.so" | grep -c ' kiln_lower' || true)
[ "$private" -eq 0 ] || { echo "kiln_lower is exported"; exit 1; }
# examples/plugin-pass, built both ways, does in the installed command what it says.
cp -r "$source/examples/plugin-pass" "$work/plugin-make"
PKG_CONFIG_PATH="$libdir/pkgconfig" make -s -C "$work/plugin-make"
cmake -S "$source/examples/plugin-pass" -B "$work/plugin-cmake" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/plugin-cmake" >/dev/null
cp "$source/examples/plugin-pass/pipeline.yaml" "$work/plugin-cmake"
for built in plugin-make plugin-cmake; do
  "$work/prefix/bin/kiln" opt "$source/examples/plugin-pass/model.kiln" --pipeline "$work/$built/pipeline.yaml" --check \
    >"$work/$built/out.kiln"
  cmp "$source/examples/plugin-pass/expected.kiln" "$work/$built/out.kiln"
  "$work/prefix/bin/kiln" bisect "$source/examples/plugin-pass/model.kiln" --pipeline "$work/$built/pipeline.yaml" >/dev/null
done
# The same of examples/plugin-op, which as C++ gives the same bits.
cp -r "$source/examples/plugin-op" "$work/op-make"
PKG_CONFIG_PATH="$libdir/pkgconfig" make -s -C "$work/op-make"
cmake -S "$source/examples/plugin-op" -B "$work/op-cmake" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/op-cmake" >/dev/null
plugins="op-make op-cmake"
if command -v c++ >/dev/null; then
  mkdir "$work/op-cxx"
  cp "$source/examples/plugin-op/operators.c" "$work/op-cxx/operators.cc"
  c++ -std=c++20 -Wall -Werror -shared -fPIC $(PKG_CONFIG_PATH="$libdir/pkgconfig" pkg-config --cflags kiln) \
    -o "$work/op-cxx/operators.so" "$work/op-cxx/operators.cc"
  plugins="$plugins op-cxx"
fi
for built in $plugins; do
  "$work/prefix/bin/kiln" run "$source/examples/plugin-op/model.kiln" --load-plugin "$work/$built/operators.so" --random 1 --shape N=2 \
    -o "$work/$built/out" >/dev/null
  cmp "$work/op-make/out/output_0.pb" "$work/$built/out/output_0.pb"
done
# A plug-in, built against the installed headers, runs in the installed command.
cc -shared -fPIC $(pkg-config --cflags glib-2.0) -I"$work/prefix/include/kiln" -o "$work/good.so" \
  "$source/tests/plugin/good.c"
"$work/every" "$model" "$work/good.so"
printf 'version: 1\nplugins: [good.so]\ngraph: [drop-identities]\n' >"$work/plugin.yaml"
printf 'graph @f(%%x: f32[2]) {\n  %%i = identity(%%x) : f32[2]\n  %%r = relu(%%i) : f32[2]\n  return %%r\n}\n' \
  >"$work/plugin.kiln"
"$work/prefix/bin/kiln" opt "$work/plugin.kiln" --pipeline "$work/plugin.yaml" >"$work/plugin.out"
if grep -q identity "$work/plugin.out"; then echo "the pass of the plug-in did not run"; exit 1; fi
# The same as C++, and the plug-in of the documentation, loaded by option.
if command -v c++ >/dev/null; then
  cp "$source/tests/plugin/good.c" "$work/good.cc"
  c++ -std=c++20 -Wall -Werror -shared -fPIC $(PKG_CONFIG_PATH="$libdir/pkgconfig" pkg-config --cflags kiln) \
    -o "$work/good-cxx.so" "$work/good.cc"
  "$work/prefix/bin/kiln" opt "$work/plugin.kiln" --load-pass-plugin "$work/good-cxx.so" --passes=drop-identities >"$work/cxx.out"
  cmp "$work/cxx.out" "$work/plugin.out"
fi
cc -std=c17 -Wall -Wextra -Werror -shared -fPIC $(PKG_CONFIG_PATH="$libdir/pkgconfig" pkg-config --cflags kiln) \
  -o "$work/documented.so" "$source/tests/plugin/my-transposes.c"
printf 'graph @f(%%x: f32[2,3,4]) {\n  %%a = transpose(%%x) {perm=[1,0,2]} : f32[3,2,4]\n' >"$work/transposes.kiln"
printf '  %%b = transpose(%%a) : f32[4,2,3]\n  return %%b\n}\n' >>"$work/transposes.kiln"
"$work/prefix/bin/kiln" opt "$work/transposes.kiln" --load-pass-plugin "$work/documented.so" --passes=my-transposes,dce --check \
  >"$work/transposes.out"
[ "$(grep -c 'transpose(' "$work/transposes.out")" -eq 1 ] || { echo "the documented plug-in merged nothing"; exit 1; }
"$work/prefix/bin/kiln" passes --load-plugin "$work/documented.so" | grep -q my-transposes
# A program that opens the library with local symbols, as interpreters do.
cc -std=c17 -Wall -Wextra -Werror -o "$work/local" "$source/tests/install/open_locally.c" -ldl
"$work/local" "$libdir/libkiln.so.$major.$minor" "$work/good.so"
# What is not installed cannot be edited in vain: shipped pipelines are printed.
[ ! -e "$work/prefix/share/kiln/pipelines" ] || { echo "pipelines are installed, but not read"; exit 1; }
"$work/prefix/bin/kiln" opt --print-pipeline | grep -q 'pass: partition-offload'
readelf -d "$libdir/libkiln.so" | grep -q "SONAME.*\[libkiln\.so\.$major\.$minor\]"
nm -D "$libdir/libkiln.so" | grep -q " kiln_version@@KILN_$major\.$minor\$"
echo "installed tree works with pkg-config and with find_package"

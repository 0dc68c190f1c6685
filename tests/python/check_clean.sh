#!/bin/sh
# Installs the wheels of scripts/wheels in a root of their own that mmdebstrap makes, as a user of a new Debian does: pip, and three
# lines of Python that read digits. Needs the network.
#   check_clean.sh SOURCE
set -eu
source=$1

skip() { echo "skipped: $1"; exit 77; }
# shellcheck disable=SC1091
suite=$(. /etc/os-release 2>/dev/null && [ "$ID" = debian ] && echo "$VERSION_CODENAME") || skip "this is no Debian"
command -v mmdebstrap >/dev/null || skip "mmdebstrap is missing (apt install mmdebstrap)"
ls "$source"/build/wheels/kiln_nn*.whl >/dev/null 2>&1 || skip "there are no wheels (scripts/wheels)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A user without root has the users of a range (/etc/subuid) in the root.
chmod 755 "$work"
mmdebstrap --quiet --variant=apt "$suite" /dev/null >"$work/probe" 2>&1 ||
  { cat "$work/probe"; skip "mmdebstrap makes no root here"; }

# The root has Debian's packages and this folder, which holds what pip would take from PyPI. It has the same Python.
mkdir "$work/wheels" "$work/files"
cp "$source"/build/wheels/kiln_nn*.whl "$work/wheels"
/usr/bin/python3 -m venv "$work/venv"
"$work/venv/bin/pip" download -q --only-binary :all: -d "$work/wheels" "numpy>=1.23" || skip "PyPI cannot be reached"

cp "$source"/examples/digits/*.png "$source/examples/digits/digits.onnx" "$source/tests/python/case.py" "$work/files"
cat >"$work/files/digits.py" <<'end'
import case
for name in ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"):
    picture = case.digit(f"/opt/files/{name}.png")
    # What a user writes:
    import kiln_nn
    session = kiln_nn.load("/opt/files/digits.onnx").compile().session()
    print(session.run({"image": picture})["probabilities"].argmax())
end
cat >"$work/files/inside.sh" <<'end'
set -eu
cd /tmp
for name in kiln-nn kiln-nn-onednn; do
  python3 -m venv "/tmp/$name"
  "/tmp/$name/bin/pip" install -q --no-index --find-links /opt/wheels "$name"
  found=$("/tmp/$name/bin/python" -B /opt/files/digits.py | tr '\n' ' ')
  echo "$name reads $found"
  [ "$found" = "0 1 2 3 4 5 6 7 8 9 " ] || exit 1
  "/tmp/$name/bin/pip" uninstall -q -y "$name"
  find "/tmp/$name" -iname '*kiln*' ! -path "/tmp/$name" | grep . && { echo "$name left these files"; exit 1; }
done
exit 0
end
mmdebstrap --quiet --variant=apt --include=python3-venv "$suite" /dev/null \
  --customize-hook="copy-in $work/wheels $work/files /opt" \
  --customize-hook='chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 sh /opt/files/inside.sh'

#!/bin/sh
# mandoc and man have nothing to say against the manual pages.
#   check_man.sh PAGE…
set -eu
command -v mandoc >/dev/null || { echo "skipped: mandoc is missing (apt install mandoc)"; exit 77; }

status=0
for page in "$@"; do
  [ -s "$page" ] || { echo "$page: expected a manual page, found nothing"; status=1; continue; }
  # Pages of other programs may not be installed where tests run.
  found=$(mandoc -T lint "$page" | grep -v 'STYLE: referenced manual not found' || true)
  if command -v man >/dev/null; then
    found=$found$(LC_ALL=C.UTF-8 MANROFFOPT='' MANWIDTH=100 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
  fi
  [ -z "$found" ] || { printf '%s\n' "$found"; status=1; }
done
exit $status

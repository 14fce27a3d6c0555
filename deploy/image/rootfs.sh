#!/usr/bin/env bash
# Makes the root file system of the image: the smallest Debian 12 that dpkg can work in, and the
# package hopwise-cli with what it needs. No apt, no setuid programs, no devices, no documents.
#
# usage: rootfs.sh <rootfs.tar> [hopwise-cli.deb]
#
# Needs mmdebstrap, root, and the mirror that this machine's apt uses.
set -euo pipefail

fail() {
  echo "rootfs.sh: $*" >&2
  exit 1
}

[[ $# -eq 1 || $# -eq 2 ]] || fail "usage: rootfs.sh <rootfs.tar> [hopwise-cli.deb]"
target=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ $# -eq 2 ]]; then
  deb=$2
else
  shopt -s nullglob
  found=("$here"/../../build/package/hopwise-cli_*.deb)
  [[ ${#found[@]} -eq 1 ]] ||
    fail "${#found[@]} packages hopwise-cli in build/package: run ./dev package, or name one"
  deb=${found[0]}
fi
[[ -f $deb ]] || fail "$deb is not there: run ./dev package"
command -v mmdebstrap >/dev/null || fail "mmdebstrap is missing: apt-get install mmdebstrap"
[[ $EUID -eq 0 ]] || fail "run it as root: it makes files of other owners"

suite=bookworm
# Debian's mirrors as this machine knows them, with the suite's updates.
mapfile -t sources < <(grep -lw "$suite" /etc/apt/sources.list /etc/apt/sources.list.d/*.sources \
  /etc/apt/sources.list.d/*.list 2>/dev/null || true)

# "libc6 (>= 2.34), libfoo | libbar" -> "libc6,libfoo"
needs=$(dpkg-deb --field "$deb" Depends | sed -e 's/([^)]*)//g' -e 's/|[^,]*//g' -e 's/ //g')

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$deb" "$work/hopwise.deb"
export HOPWISE_WORK=$work
mkdir -p "$(dirname "$target")"

# shellcheck disable=SC2016  # "$1" is for the hooks' own shell
hooks=(
  --customize-hook='cp "$HOPWISE_WORK/hopwise.deb" "$1/tmp/"'
  --customize-hook='chroot "$1" dpkg --install /tmp/hopwise.deb'
  --customize-hook='rm "$1/tmp/hopwise.deb"'
  --customize-hook='echo "hopwise:x:65532:65532::/nonexistent:/usr/sbin/nologin" >>"$1/etc/passwd"'
  --customize-hook='echo "hopwise:x:65532:" >>"$1/etc/group"'
  --customize-hook='find "$1" -xdev -type f -perm /6000 -exec chmod a-s {} +'
)
# What apt and dpkg leave behind is of no use without apt. Devices are the container's business, and
# only root could unpack them.
mmdebstrap --quiet --variant=essential --format=tar --include="$needs,ca-certificates" \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/info/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  "${hooks[@]}" "$suite" - "${sources[@]}" |
  mmtarfilter --path-exclude='/dev/*' --path-exclude='/etc/apt/*' --path-exclude='/var/lib/apt/*' \
    --path-exclude='/var/cache/*' --path-exclude='/var/log/*' >"$work/rootfs.tar"
mv "$work/rootfs.tar" "$target"

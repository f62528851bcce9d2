# shellcheck shell=bash disable=SC2034  # sourced by quickstart and check
# Debian packages, and only those that are missing.

say() { printf '\n== %s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo -- "$@"
    else die "installing packages needs root: run as root, or install sudo, or install them yourself"
    fi
}

# need_packages NAME…: installs what is not there yet.
need_packages() {
    local missing=() name
    command -v dpkg-query >/dev/null ||
        die "this is no Debian: install what corresponds to these packages yourself, then follow CONTRIBUTING.md: $*"
    for name; do installed "$name" || missing+=("$name"); done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "Installing ${missing[*]}"
    as_root apt-get update -qq || die "apt-get update failed"
    local log
    log=$(as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" \
        2>&1) || { printf '%s\n' "$log"; die "apt-get install failed"; }
}

# What it takes to build; libopenblas0-pthread is what `--gemm openblas` loads, nothing links it. libmicrohttpd is for
# `bert serve` only.
BUILD_PACKAGES=(gcc libc6-dev meson ninja-build pkg-config libpcre2-dev libutf8proc-dev libxxhash-dev
                libmicrohttpd-dev libopenblas0-pthread python3 ca-certificates)

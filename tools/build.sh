# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by quickstart and test: installs what is missing, configures and builds, saying only what
# it does; the tools' own words are shown when they fail.

# setup_dir DIR [MESON_OPTION...]: configures DIR once.
setup_dir() {
	local dir=$1 log=$1.log
	shift
	[ ! -f "$dir/build.ninja" ] || return 0
	echo "Configuring $dir"
	meson setup "$dir" "$@" >"$log" 2>&1 || show_and_fail "$log" "meson setup"
}

# build_dir DIR [MESON_OPTION...]: configures DIR once and builds it.
build_dir() {
	local dir=$1 log=$1.log
	setup_dir "$@"
	echo "Building $dir"
	ninja -C "$dir" >"$log" 2>&1 || show_and_fail "$log" "the build"
}

show_and_fail() {
	grep -E 'error|ERROR|FAILED|warning' -A 5 "$1" | tail -n 60 >&2
	echo "$2 failed; all of its output is in $1." >&2
	exit 1
}

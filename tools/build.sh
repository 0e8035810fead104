# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by quickstart and test: installs what is missing, configures and builds, saying only what
# it does; the tools' own words are shown when they fail.

# build_dir DIR [MESON_OPTION...]: configures DIR once and builds it.
build_dir() {
	local dir=$1 log=$1.log
	shift
	if [ ! -f "$dir/build.ninja" ]; then
		echo "Configuring $dir"
		meson setup "$dir" "$@" >"$log" 2>&1 || show_and_fail "$log" "meson setup"
	fi
	echo "Building $dir"
	ninja -C "$dir" >"$log" 2>&1 || show_and_fail "$log" "the build"
}

show_and_fail() {
	grep -E 'error|ERROR|FAILED|warning' -A 5 "$1" | tail -n 60 >&2
	echo "$2 failed; all of its output is in $1." >&2
	exit 1
}

#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_golden.sh DUMP GOLDEN...: our declarations print what rdma-core's own header printed.
dump=$1
shift
status=0
for golden; do
	release=${golden##*/v}
	release=${release%.txt}
	if ! "$dump" "$release" | diff "$golden" - >&2; then
		echo "layout of release $release differs from $golden" >&2
		status=1
	fi
done
exit $status

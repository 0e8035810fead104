#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_headers.sh TOP LANGUAGE COMPILER...: each header of the contract compiles alone, cleanly.
top=$1
language=$2
shift 2
status=0
for header in "$top"/dataplane/abi/*.h; do
	name=dataplane/abi/${header##*/}
	if ! printf '#include "%s"\n#include "%s"\nint main(void) { return 0; }\n' "$name" "$name" |
		"$@" -x "$language" -Wall -Wextra -Werror -fsyntax-only -I "$top" -; then
		echo "$name does not compile alone as $language" >&2
		status=1
	fi
done
exit $status

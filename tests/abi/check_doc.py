#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_doc.py DOC TOP CC...: the tables of docs/ABI.md against the headers of dataplane/abi.

A heading "### `struct NAME` (N bytes)" announces a table of fields; a table whose first column
reads `constant` holds values. Fields must tile their struct, and every struct, operation and plain
numeric constant of the headers must stand in the document.
"""

import os
import re
import subprocess
import sys
import tempfile

HEADERS = ("abi.h", "ctrl.h")
# Not of the interface's bytes: machinery, and what is computed from other constants.
SKIP = {"UROCE_UAR_PAGE", "UROCE_UAR_WORDS", "UROCE_UAR_SUMMARY", "UROCE_ASSERT"}

PROLOGUE = r"""
#include "dataplane/abi/abi.h"
#include "dataplane/abi/ctrl.h"
#include <stdio.h>

static int is(const char *what, unsigned long long real, unsigned long long doc)
{
    if (real != doc)
        printf("%s: the headers say %llu, the document %llu\n", what, real, doc);
    return real != doc;
}

int main(void)
{
    int bad = 0;
"""


def rows(lines, at):
    """The cells of the markdown table whose header is at line `at`."""
    for line in lines[at + 2:]:
        if not line.startswith("|"):
            return
        yield [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]


def read_doc(path):
    structs, constants = {}, {}
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    name = None
    for at, line in enumerate(lines):
        heading = re.match(r"### `struct (\w+)` \((\d+) bytes\)$", line)
        if heading:
            name = heading.group(1)
            structs[name] = (int(heading.group(2)), [])
        if line.startswith("| offset |"):
            structs[name][1].extend((int(r[0]), int(r[1]), r[2]) for r in rows(lines, at))
        if line.startswith("| constant |"):
            constants.update((r[0], int(r[1], 0)) for r in rows(lines, at))
    return structs, constants


def read_headers(top):
    structs, constants = set(), set()
    for name in HEADERS:
        with open(os.path.join(top, "dataplane/abi", name), encoding="utf-8") as f:
            text = f.read()
        structs.update(re.findall(r"^struct (uroce_\w+) \{", text, re.M))
        constants.update(re.findall(r"^#define (UROCE_\w+)\s+\S", text, re.M))
        constants.update(re.findall(r"^\t(UROCE_OP_\w+)", text, re.M))
    return structs, constants - SKIP


def tiling_faults(structs):
    for name, (size, fields) in structs.items():
        at = 0
        for offset, length, field in fields:
            if offset != at:
                yield f"{name}.{field} is at {offset}, the field before it ends at {at}"
            at = offset + length
        if not at <= size < at + 8:
            yield f"{name} has {size} bytes, its fields {at}"


def program(structs, constants):
    """A program that prints one line for each number of the document that is wrong."""
    out = [PROLOGUE]
    for name, (size, fields) in structs.items():
        out.append(f'\tbad |= is("struct {name}", sizeof(struct {name}), {size}ull);')
        for offset, length, field in fields:
            out.append(f'\tbad |= is("{name}.{field}", '
                       f"offsetof(struct {name}, {field}), {offset}ull);")
            out.append(f'\tbad |= is("size of {name}.{field}", '
                       f"sizeof(((struct {name} *)0)->{field}), {length}ull);")
    for name, value in constants.items():
        out.append(f'\tbad |= is("{name}", {name}, {value}ull);')
    return "\n".join(out + ["\treturn bad;", "}", ""])


def main():
    doc, top, compiler = sys.argv[1], sys.argv[2], sys.argv[3:]
    structs, constants = read_doc(doc)
    want_structs, want_constants = read_headers(top)
    faults = [f"struct {n} is not in the document" for n in sorted(want_structs - structs.keys())]
    faults += [f"{n} is not in the document" for n in sorted(want_constants - constants.keys())]
    faults += list(tiling_faults(structs))
    with tempfile.TemporaryDirectory() as work:
        source, binary = os.path.join(work, "doc.c"), os.path.join(work, "doc")
        with open(source, "w", encoding="utf-8") as f:
            f.write(program(structs, constants))
        subprocess.run([*compiler, "-I", top, "-o", binary, source], check=True)
        run = subprocess.run([binary], stdout=subprocess.PIPE, text=True, check=False)
        faults += run.stdout.splitlines()
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(structs)} structs, {len(constants)} constants, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks that kernels compiled for AVX2 or AVX-512 define no function outside their namespace.

usage: tools/check_variant_symbols.py VARIANT OBJECT_LIST_FILE

An inline function of a header (say std::vector's destructor) that ends up in such an object may be
the copy the linker keeps for the whole program; an older CPU would then stop at its first
instruction that it does not know. Prints every such function; ends with status 1 when there is any.
"""
import subprocess
import sys


def foreign_functions(variant, path):
    """Mangled names of the functions of one object that other objects could be linked to."""
    listing = subprocess.run(["nm", "--defined-only", path], check=True, capture_output=True,
                             text=True).stdout
    marker = f"{len(variant)}{variant}"
    for line in listing.splitlines():
        kind, name = line.split()[-2:]
        if kind in "TW" and marker not in name:
            yield name


def main():
    variant, list_file = sys.argv[1:]
    with open(list_file, encoding="utf-8") as file:
        objects = [line.strip() for line in file if line.strip()]
    findings = 0
    for path in objects:
        names = sorted(foreign_functions(variant, path))
        if names:
            plain = subprocess.run(["c++filt"], input="\n".join(names), check=True,
                                   capture_output=True, text=True).stdout.splitlines()
            for name in plain:
                print(f"{path.rsplit('/', 1)[-1]}: {name}")
            findings += len(names)
    print(f"{variant}: {len(objects)} objects, {findings} functions outside namespace {variant}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

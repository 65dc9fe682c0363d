#!/usr/bin/env python3
"""Compiles CUDA kernel families again and prints what ptxas says: registers, stack, spills, shared
memory, for the kernel of each name that needs most. "a / b" are the architectures of the build,
where they differ. Usage, after configuring a build with nvcc:
tools/kernel_registers.py build [family ...]"""
import json
import pathlib
import re
import subprocess
import sys


def commands(build, families):
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path.suffix != ".cu" or not path.stem.endswith("_gpu"):
            continue
        family = path.stem[: -len("_gpu")]
        if not families or family in families:
            yield family, entry


def usage(entry):
    """(mangled name, architecture, registers, stack, spilled, shared bytes) of each kernel."""
    command = re.sub(r"\S*cmake -E env \S*ccache |\S*ccache ", "", entry["command"])
    command = re.sub(r" -o \S+", " -o /dev/null", command) + " -Xptxas=-v"
    text = subprocess.run(command, shell=True, cwd=entry["directory"], capture_output=True,
                          text=True, check=True).stderr
    name = architecture = None
    stack = spilled = 0
    for line in text.splitlines():
        if match := re.search(r"Compiling entry function '(\S+)' for '(\w+)'", line):
            name, architecture = match[1], match[2]
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes",
                                line):
            stack, spilled = int(match[1]), int(match[2]) + int(match[3])
        elif name and (match := re.search(r"Used (\d+) registers", line)):
            shared = re.search(r"(\d+) bytes smem", line)
            yield (name, architecture, int(match[1]), stack, spilled,
                   int(shared[1]) if shared else 0)
            name = None


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1])
    print("| family | kernel | variants | registers | stack | spilled | shared |")
    print("|---|---|---|---|---|---|---|")
    for family, entry in commands(build, sys.argv[2:]):
        rows = list(usage(entry))
        names = subprocess.run(["c++filt"], input="\n".join(r[0] for r in rows),
                               capture_output=True, text=True, check=True).stdout.splitlines()
        worst = {}
        for name, (_, architecture, *numbers) in zip(names, rows):
            short = re.sub(r"<.*|\(.*", "", name).split("::")[-1].split(" ")[-1]
            count, *most = worst.setdefault(short, {}).get(architecture, (0, 0, 0, 0, 0))
            worst[short][architecture] = (count + 1, *map(max, most, numbers))
        for short, each in sorted(worst.items()):
            columns = zip(*(each[architecture] for architecture in sorted(each)))
            cells = (" / ".join(map(str, c if len(set(c)) > 1 else c[:1])) for c in columns)
            print(f"| {family} | {short} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Checks the rules of the source tree that a script can check.

usage: tools/check_style.py [--root DIR] [FILE ...]

Prints one line a finding (path:line: rule: what) and ends with status 1 when there is any.
Exceptions stand in tools/style_exceptions.txt, one a line: PATH RULE REASON.
"""
import argparse
import os
import re
import subprocess
import sys

# Layers and what each may include, itself left out.
LAYERS = {
    "core": [],
    "cuda": ["core"],
    "autograd": ["core"],
    "nn": ["core", "autograd"],
    "datasets": ["core", "autograd"],
    "models": ["core", "autograd", "nn", "datasets"],
    "tools": ["core", "autograd", "nn", "datasets", "models", "cuda"],
    "tests": ["core", "autograd", "nn", "datasets", "models", "cuda", "tools"],
    "cutaway.h": ["core", "autograd", "nn", "datasets"],
}
LIBRARY = ("core/", "cuda/", "autograd/", "nn/", "datasets/", "models/")

# Kernels know nothing of tensors.
KERNEL_FOLDERS = ("core/cpu/", "core/kernels/", "core/math/")
NOT_FOR_KERNELS = re.compile(r"cutaway/core/(tensor|tensor_ops|storage|context)\.h")

# Third-party headers: pattern, the places that may include it, how to say so.
THIRD_PARTY = [
    (re.compile(r"^fmt/"), lambda p: p.endswith((".cpp", ".cu")), "sources only, never a header"),
    (re.compile(r"^nlohmann/"),
     lambda p: p.startswith(("core/io/", "models/train/", "tools/", "tests/")),
     "core/io, models/train and tools"),
    (re.compile(r"^CLI/"), lambda p: p.startswith("tools/"), "tools"),
    (re.compile(r"^(Eigen|unsupported)/"),
     lambda p: p.startswith(("core/linalg/", "models/", "tests/")), "core/linalg and models"),
    (re.compile(r"cblas|lapacke"),
     lambda p: p.startswith(("core/cpu/", "core/linalg/", "core/parallel", "tools/")),
     "core/cpu and core/linalg"),
    (re.compile(r"^stb(/|_)"),
     lambda p: p.startswith(("datasets/", "models/report/", "tools/", "tests/")),
     "datasets, models/report and tools"),
    (re.compile(r"^(zlib\.h|lz4frame\.h|minizip/)"),
     lambda p: p.startswith(("core/io/", "tests/", "tools/")), "core/io"),
    (re.compile(r"^matio\.h"), lambda p: p == "datasets/mat_child.cpp", "datasets/mat_child.cpp"),
    (re.compile(r"^(utf8proc|pcre2)\.h"), lambda p: p.startswith("datasets/text/"),
     "datasets/text"),
    (re.compile(r"^omp\.h"), lambda p: p.startswith(("core/parallel", "tests/")), "core/parallel"),
]

LINE_LIMIT = 100
FUNCTION_LIMIT = 60
KERNEL_LIMIT = 90
SOURCE_SUFFIXES = (".h", ".cpp", ".cu", ".cuh")
TEXT_SUFFIXES = SOURCE_SUFFIXES + (".py", ".sh", ".cmake", "CMakeLists.txt", "Makefile")
FORBIDDEN = re.compile(r"\b(" + "|".join(("TO" "DO", "FIX" "ME", "XX" "X")) + r")\b")
ENDS_PROGRAM = re.compile(r"\b(abort|exit|_Exit|_exit|quick_exit|terminate|assert)\s*\(")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def file_limit(path):
    """Longest allowed file in lines."""
    if path.startswith("tests/"):
        return 800
    return 400 if path.endswith((".h", ".cuh")) else 600


def strip_code(text):
    """The text with comments, literals and preprocessor lines blanked; line numbers stay."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s]{0,16})\(.*?\)(?P=tag)"'
        r'|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'"
        r"|^[ \t]*#(?:\\\n|[^\n])*",
        re.S | re.M)

    def blank(match):
        found = match.group(0)
        kept = "".join(c if c == "\n" else " " for c in found)
        if found[0] in "\"'R":  # a literal stays a value, so that `f("x") {` still reads as a call
            kept = '"' + kept[1:]
        return kept

    return token.sub(blank, text)


NOT_A_FUNCTION = re.compile(r"\b(if|for|while|switch|catch|namespace|class|struct|union|enum|do)\b")
FUNCTION_HEAD = re.compile(
    r"\)\s*(const|volatile|noexcept|override|final|mutable|constexpr|&&?|\s)*"
    r"(->\s*[\w:<>,&*\s]+)?$")
CONSTRUCTOR_HEAD = re.compile(r"\)\s*(noexcept\s*)?:\s*[\w:]+\s*[({]")


def is_function_head(head):
    """Whether the text before an opening brace is the head of a function or lambda."""
    head = head.strip()
    if not head or head.endswith(("=", ",", "(", "return")):
        return False
    if CONSTRUCTOR_HEAD.search(head):
        return head.endswith((")", "}"))
    first = NOT_A_FUNCTION.match(head.lstrip("} "))
    return bool(FUNCTION_HEAD.search(head)) and not first


def long_functions(code, limit):
    """(line, length) of each outermost function body longer than limit lines."""
    found, stack, head_start, line = [], [], 0, 1
    inside = 0
    for at, char in enumerate(code):
        if char == "\n":
            line += 1
        elif char == "{":
            head = code[head_start:at]
            function = not inside and is_function_head(head)
            if function:
                first = line - head.lstrip().count("\n")
            # After a braced initialiser in a constructor's list the head goes on.
            resume = head_start if CONSTRUCTOR_HEAD.search(head) and not function else None
            stack.append((function, first if function else 0, resume))
            inside += function
            head_start = at + 1
        elif char == "}":
            if not stack:
                return []  # branches of the preprocessor: the braces cannot be followed
            function, first, resume = stack.pop()
            inside -= function
            length = line - first + 1
            if function and length > limit:
                found.append((first, length))
            head_start = at + 1 if resume is None else resume
        elif char == ";":
            head_start = at + 1
    return found if not stack else []


def layer_of(path):
    return path.split("/", 1)[0]


def check_include(path, quote, target):
    """Yields (rule, text) for one include."""
    layer = layer_of(path)
    if quote == '"':
        yield "include-form", f'"{target}": write <cutaway/...>, <tests/...> or <tools/...>'
        return
    first, _, rest = target.partition("/")
    if first in LAYERS and rest:
        if first not in ("tests", "tools"):
            yield "include-form", f"<{target}>: write <cutaway/{target}>"
            return
        owner = first
    elif first == "cutaway":
        owner = rest.split("/", 1)[0]
        if owner == "cutaway.h" and path.startswith(LIBRARY) and layer != "models":
            yield "include-layer", "the umbrella header is for users, not for the library"
            return
        if owner == "cutaway.h":
            return
    else:
        for pattern, allowed, places in THIRD_PARTY:
            if pattern.search(target) and not allowed(path):
                yield "include-library", f"<{target}> belongs to {places}"
        return
    if owner != layer and owner not in LAYERS.get(layer, []):
        yield "include-layer", f"{layer} may not include <{target}>"
    if path.startswith(KERNEL_FOLDERS) and NOT_FOR_KERNELS.search(target):
        yield "include-kernel", f"kernels take plain structs, not <{target}>"


def check_text(path, lines):
    """Yields (line, rule, text): what holds for every text file."""
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_LIMIT:
            yield number, "line-length", f"{len(line)} characters, {LINE_LIMIT} allowed"
        if line.rstrip() != line:
            yield number, "trailing-space", "white space at the end of the line"
        if "\t" in line and not path.endswith("Makefile"):
            yield number, "tab", "tab character"
        word = FORBIDDEN.search(line)
        if word:
            yield number, "forbidden-word", word.group(0)


def check_source(path, text, lines):
    """Yields (line, rule, text): what holds for C++ files."""
    if len(lines) > file_limit(path):
        yield 1, "file-length", f"{len(lines)} lines, {file_limit(path)} allowed"
    if path.endswith((".h", ".cuh")) and not re.search(r"^#pragma once$", text, re.M):
        yield 1, "pragma-once", "header without #pragma once"
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match:
            for rule, what in check_include(path, *match.groups()):
                yield number, rule, what
    code = strip_code(text)
    if path.startswith(LIBRARY):
        for number, line in enumerate(code.split("\n"), 1):
            match = ENDS_PROGRAM.search(line)
            if match:
                yield number, "ends-program", f"{match.group(1)}(): throw an Error instead"
    kernel = path.startswith(("core/cpu/", "cuda/kernels/"))
    limit = KERNEL_LIMIT if kernel else FUNCTION_LIMIT
    for number, length in long_functions(code, limit):
        yield number, "function-length", f"{length} lines, {limit} allowed"


def check_file(root, path):
    """Yields (line, rule, text) for one file."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        try:
            text = file.read()
        except UnicodeDecodeError:
            yield 1, "encoding", "not UTF-8"
            return
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "final-newline", "the last line has no newline"
    lines = text.splitlines()
    yield from check_text(path, lines)
    if path.endswith(SOURCE_SUFFIXES):
        yield from check_source(path, text, lines)


def tree_files(root):
    """Files of the tree that are not ignored, samples left out."""
    try:
        listing = subprocess.run(
            ["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"],
            check=True, capture_output=True).stdout.decode()
        paths = [p for p in listing.split("\0") if p]
    except (OSError, subprocess.CalledProcessError):
        paths = []
        for folder, folders, names in os.walk(root):
            folders[:] = [f for f in folders if not f.startswith((".", "build", "runs"))]
            paths += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return sorted(p for p in paths
                  if p.endswith(TEXT_SUFFIXES) and not p.startswith("datasets/samples/")
                  and os.path.isfile(os.path.join(root, p)))


def read_exceptions(root):
    """{(path, rule): line number}; raises ValueError for an entry without a reason."""
    name = os.path.join(root, "tools/style_exceptions.txt")
    entries = {}
    if not os.path.exists(name):
        return entries
    with open(name, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.startswith("#"):
                continue
            parts = line.split(None, 2)
            if len(parts) < 3:
                raise ValueError(f"tools/style_exceptions.txt:{number}: need PATH RULE REASON")
            entries[(parts[0], parts[1])] = number
    return entries


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), ".."))
    parser.add_argument("files", nargs="*", help="paths from the root; default: all")
    options = parser.parse_args()
    root = os.path.abspath(options.root)
    try:
        exceptions = read_exceptions(root)
    except ValueError as error:
        print(error)
        return 1
    paths = options.files or tree_files(root)
    used, findings = set(), 0
    for path in paths:
        for line, rule, what in check_file(root, path):
            if (path, rule) in exceptions:
                used.add((path, rule))
                continue
            print(f"{path}:{line}: {rule}: {what}")
            findings += 1
    if not options.files:
        for key in sorted(set(exceptions) - used):
            print(f"tools/style_exceptions.txt:{exceptions[key]}: stale: {key[0]} keeps {key[1]}")
            findings += 1
    print(f"{len(paths)} files, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

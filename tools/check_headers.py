#!/usr/bin/env python3
"""Checks what is said of the installed headers, and that every public name is used somewhere.

usage: tools/check_headers.py [--root DIR] [--write]

docs/headers.md lists each installed header with one line: the first sentence of its first comment,
and what it declares. --write makes the page anew. What the headers behind cutaway.h declare, a
class, function or constant, must occur in a test, a page of docs/, or a sample of an op, which
generated tests run; a type may also occur in another declaration, since braces make it without its
name. Prints one line a finding (path:line: rule: what) and ends with status 1 when there is any.
"""
import argparse
import os
import re
import sys

FOLDERS = ["core", "autograd", "nn", "datasets", "models"]
NOT_INSTALLED = ("core/cpu/", "datasets/samples/")
PAGE = "docs/headers.md"
USES = [("tests", (".cpp", ".h")), ("docs", (".md",)), ("README.md", (".md",)),
        ("autograd", ("_samples.cpp",))]
INTRODUCTION = """# The installed headers

Made by `tools/check_headers.py --write`: the first sentence of the first comment of each, and what
it declares. A test holds the page against the headers, and asks for a test or a page about
everything that is declared behind `cutaway.h`.

`#include <cutaway/cutaway.h>` has all that programs need; a header may also be included alone, as
`<cutaway/nn/module.h>`.
"""
WORD = re.compile(r"[A-Za-z_]\w*")


def headers(root):
    found = ["cutaway.h"] if os.path.isfile(os.path.join(root, "cutaway.h")) else []
    for folder in FOLDERS:
        for place, _, files in os.walk(os.path.join(root, folder)):
            for name in files:
                path = os.path.relpath(os.path.join(place, name), root)
                if name.endswith(".h") and not path.startswith(NOT_INSTALLED):
                    found.append(path)
    order = [""] + FOLDERS
    return sorted(found, key=lambda p: (order.index(p.split("/")[0] if "/" in p else ""),
                                        os.path.dirname(p), p))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


# ---- the page

def first_sentence(text):
    """The first sentence of the first comment that is no remark behind code."""
    block = []
    for line in text.split("\n"):
        if line.startswith("//"):
            block.append(line[2:].strip())
        elif block:
            break
    words = " ".join(block).strip()
    end = re.search(r"(?<!\bal)\.(?=\s|$)", words)
    return words[:end.start()] + "." if end else words


def main_names(text):
    """What a header declares, types first, as far as a line holds it."""
    own = [(not is_type, name) for _, name, is_type, owner in public_names(text) if owner is None]
    names = list(dict.fromkeys(name for _, name in sorted(own, key=lambda n: n[0])))
    shown, width = [], 0
    for name in names:
        width += len(name) + 2
        if width > 70:
            return ", ".join(shown) + ", …"
        shown.append(f"`{name}`")
    return ", ".join(shown)


def page(root):
    lines = INTRODUCTION.split("\n")
    findings, folder = [], None
    for path in headers(root):
        text = read(root, path)
        about = first_sentence(text)
        if not about:
            findings.append(f"{path}:1: header-comment: needs a comment that says what it is for")
        here = os.path.dirname(path) or "."
        if here != folder:
            lines += ([""] if folder else []) + [f"## {'cutaway' if here == '.' else here}", ""]
            lines += ["| Header | First sentence | Declares |", "|---|---|---|"]
            folder = here
        about = about.replace("|", "\\|")
        lines.append(f"| `{os.path.basename(path)}` | {about} | {main_names(text)} |")
    return "\n".join(lines) + "\n", findings


# ---- public names

def plain(text):
    """Code without comments, strings and preprocessor lines, of the same length."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group(0))
    text = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank, text,
                  flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


KEYWORDS = {"if", "for", "while", "switch", "return", "requires", "alignas", "decltype", "noexcept",
            "sizeof", "static_assert", "throw", "explicit", "operator", "defined", "void", "bool",
            "int", "auto", "const"}


def declared(statement):
    """What a statement at namespace or class level declares: (name, whether it is a type), or
    None."""
    s = re.sub(r"\[\[.*?\]\]", " ", statement)
    s = re.sub(r"^\s*(public|private|protected)\s*:", " ", s)
    while True:
        cut = re.match(r"\s*template\s*<", s)
        if not cut:
            break
        depth, i = 1, cut.end()
        while i < len(s) and depth:
            depth += {"<": 1, ">": -1}.get(s[i], 0)
            i += 1
        s = s[i:]
    s = re.sub(r"^\s*requires\s*\(.*?\)\s*(?=\w)", " ", s, flags=re.S)
    kind = re.match(r"\s*(?:class|struct|enum\s+class|enum|union|concept)\s+"
                    r"(?:alignas\s*\(.*?\)\s*)?([A-Za-z_]\w*)", s)
    if kind:
        return kind.group(1), True
    alias = re.match(r"\s*using\s+([A-Za-z_]\w*)\s*=", s)
    if alias:
        return alias.group(1), True
    if re.match(r"\s*(using|friend|namespace|static_assert|extern\s*$)", s) or "operator" in s:
        return None
    head = s.split("(")[0] if "(" in s else None
    constant = re.search(r"\b(k[A-Z]\w*)\b\s*(?:=|\{|\[|$)", head if head else s)
    if constant and "constexpr" in s:
        return constant.group(1), False
    if head is None or "=" in head:
        return None
    words = WORD.findall(head)
    if not words or words[-1] in KEYWORDS or head.rstrip().endswith(("~" + words[-1],)):
        return None
    return words[-1], False


def public_names(text):
    """(line, name, whether a type, class it is in) of what a header declares for its users;
    constructors and namespaces called detail left out."""
    code, names = plain(text), []
    scopes = []  # (kind, name, public)
    start, i, parens = 0, 0, 0
    while i < len(code):
        c = code[i]
        if c in "([":
            parens += 1
        elif c in ")]":
            parens -= 1
        elif parens == 0 and c == ":" and scopes and scopes[-1][0] == "class":
            access = re.search(r"(public|private|protected)\s*$", code[start:i])
            if access and code[i + 1] != ":":
                scopes[-1] = ("class", scopes[-1][1], access.group(1) == "public")
                start = i + 1
        elif parens == 0 and c in ";{}":
            statement = code[start:i]
            visible = all(s[2] for s in scopes)
            name = declared(statement) if visible else None
            owner = scopes[-1][1] if scopes and scopes[-1][0] == "class" else None
            line = text.count("\n", 0, start + len(statement) - len(statement.lstrip())) + 1
            forward = c == ";" and re.match(r"\s*(class|struct|enum)\b", statement)
            if name and name[0] != owner and not forward:
                names.append((line, *name, owner))
            if c == "{":
                space = re.search(r"\bnamespace\s*([\w:]*)\s*$", statement)
                bare = re.sub(r"template\s*<.*?>\s*(?=class|struct)", "", statement, flags=re.S)
                kind = re.search(r"\b(class|struct)\s+(?:alignas\s*\(.*?\)\s*)?"
                                 r"([A-Za-z_]\w*)[^()=]*$", bare)
                if space:
                    scopes.append(("namespace", space.group(1), space.group(1) != "detail"))
                elif kind and not re.search(r"\benum\b", statement):
                    scopes.append(("class", kind.group(2), kind.group(1) == "struct"))
                else:  # a body or a list: skipped
                    depth = 1
                    while depth and i + 1 < len(code):
                        i += 1
                        depth += {"{": 1, "}": -1}.get(code[i], 0)
            elif c == "}" and scopes:
                scopes.pop()
            start = i + 1
        i += 1
    return names


def public_headers(root):
    """cutaway.h, what it includes, and what its lists of includes include."""
    found, left = set(), ["cutaway.h"]
    while left:
        path = left.pop()
        if path in found or not os.path.isfile(os.path.join(root, path)):
            continue
        found.add(path)
        text = read(root, path)
        if not re.sub(r"^\s*(#pragma once|#include.*|//.*)?$", "", text, flags=re.M).strip():
            left += re.findall(r"#include <cutaway/([^>]+)>", text)
    return found


def used_words(root):
    words = set()
    for place, endings in USES:
        top = os.path.join(root, place)
        files = [top] if os.path.isfile(top) else [
            os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names]
        for path in files:
            name = os.path.relpath(path, root)
            if name.endswith(endings) and name != PAGE:
                text = read(root, name)
                words.update(WORD.findall(text if name.endswith(".md") else plain(text)))
    return words


def untested(root):
    """Findings: public names without a use."""
    used, times, public = used_words(root), {}, public_headers(root)
    for path in headers(root):
        for word in WORD.findall(plain(read(root, path))):
            times[word] = times.get(word, 0) + 1
    for path in sorted(public):
        for line, name, is_type, _ in public_names(read(root, path)):
            if name not in used and not (is_type and times[name] > 1):
                yield f"{path}:{line}: untested-name: {name} occurs in no test and no page"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), ".."))
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    root = os.path.abspath(args.root)
    text, findings = page(root)
    path = os.path.join(root, PAGE)
    if args.write:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    elif not os.path.isfile(path) or read(root, PAGE) != text:
        findings.append(f"{PAGE}:1: header-page: differs from the headers; "
                        "tools/check_headers.py --write makes it anew")
    findings += untested(root)
    print("\n".join(findings + [f"{len(headers(root))} headers, {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

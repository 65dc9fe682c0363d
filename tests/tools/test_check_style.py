"""Every rule of tools/check_style.py: one file that breaks it, and one clean tree."""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SCRIPT = os.path.join(ROOT, "tools", "check_style.py")

BAD_WORD = "TO" + "DO"
LONG_BODY = "\n".join(f"  x += {i};" for i in range(61))

BROKEN = [
    ("include-layer", "core/a.cpp", "#include <cutaway/autograd/op.h>\n"),
    ("include-layer", "datasets/a.cpp", "#include <cutaway/nn/module.h>\n"),
    ("include-layer", "nn/a.cpp", "#include <cutaway/cutaway.h>\n"),
    ("include-form", "core/a.cpp", '#include "tensor.h"\n'),
    ("include-form", "core/a.cpp", "#include <core/tensor.h>\n"),
    ("include-kernel", "core/cpu/a.cpp", "#include <cutaway/core/tensor.h>\n"),
    ("include-library", "core/a.h", "#pragma once\n#include <fmt/format.h>\n"),
    ("include-library", "nn/a.cpp", "#include <Eigen/Dense>\n"),
    ("include-library", "core/io/a.cpp", "#include <CLI/CLI.hpp>\n"),
    ("pragma-once", "core/a.h", "int f();\n"),
    ("line-length", "core/a.cpp", "//" + "x" * 99 + "\n"),
    ("trailing-space", "core/a.cpp", "int x; \n"),
    ("tab", "core/a.cpp", "\tint x;\n"),
    ("final-newline", "core/a.cpp", "int x;"),
    ("forbidden-word", "core/a.cpp", f"// {BAD_WORD}: later\n"),
    ("file-length", "core/a.h", "#pragma once\n" * 401),
    ("file-length", "core/a.cpp", "int x;\n" * 601),
    ("ends-program", "autograd/a.cpp", "void f() { abort(); }\n"),
    ("function-length", "core/a.cpp", f"void f() {{\n{LONG_BODY}\n}}\n"),
    ("function-length", "core/a.cpp", f"A::A(int n) : n_(n), m_{{n}} {{\n{LONG_BODY}\n}}\n"),
    ("function-length", "nn/a.cpp", f"namespace n {{\nint f() const {{\n{LONG_BODY}\n}}\n}}\n"),
    ("stale", "tools/style_exceptions.txt", "core/a.cpp file-length it was long once\n"),
]

CLEAN = {
    "core/a.h": "#pragma once\n#include <cutaway/core/b.h>\nint f();\n",
    "core/a.cpp": '#include <cutaway/core/a.h>\n#include <fmt/format.h>\n\n'
                  'static_assert(1 < 2);\n// abort() is only named here\n'
                  'const char* text = "abort( {{{ }";\n' + "int x;\n" * 100,
    "core/cpu/a.cpp": "void f() {\n" + "  x += 1;\n" * 80 + "}\n",
    "models/a.cpp": "#include <cutaway/cutaway.h>\n",
    "tests/a.cpp": "#include <cutaway/nn/module.h>\n#include <tests/paths.h>\n",
}


def findings(files):
    """What the script prints and its status for a tree of these files."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            name = os.path.join(root, path)
            os.makedirs(os.path.dirname(name), exist_ok=True)
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)
        run = subprocess.run([sys.executable, SCRIPT, "--root", root], capture_output=True,
                             text=True, check=False)
        return run.stdout, run.returncode


class CheckStyle(unittest.TestCase):
    def test_clean_tree_passes(self):
        out, status = findings(CLEAN)
        self.assertEqual(status, 0, out)

    def test_each_broken_rule_is_found(self):
        for rule, path, text in BROKEN:
            with self.subTest(rule=rule, path=path):
                out, status = findings({**CLEAN, path: text})
                self.assertEqual(status, 1, out)
                self.assertIn(f": {rule}: ", out)
                self.assertIn(" 1 findings", out)

    def test_exception_with_reason_is_accepted(self):
        out, status = findings({
            "core/a.cpp": "int x;\n" * 601,
            "tools/style_exceptions.txt": "core/a.cpp file-length one table, read as a whole\n"})
        self.assertEqual(status, 0, out)

    def test_exception_without_reason_is_refused(self):
        out, status = findings({"tools/style_exceptions.txt": "core/a.cpp file-length\n"})
        self.assertEqual(status, 1)
        self.assertIn("need PATH RULE REASON", out)


if __name__ == "__main__":
    unittest.main()

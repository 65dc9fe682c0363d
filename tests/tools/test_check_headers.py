"""What tools/check_headers.py reads from headers, and that it fails for a name without a use."""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SCRIPT = os.path.join(ROOT, "tools", "check_headers.py")
sys.path.insert(0, os.path.dirname(SCRIPT))
import check_headers  # noqa: E402

HEADER = """#pragma once
#include <string>
// Things that are counted (Somebody et al. 2001). More of it.
namespace a {
class Forward;
struct Options { int width = 1; bool deep() const { return width > helper(3); } };
template <class T, class U = std::vector<T>>
class Box : public Base {
 public:
  explicit Box(const T& value);
  [[nodiscard]] const T& value() const { return value_; }
  bool operator==(const Box&) const;
 private:
  void hidden();
  T value_;
};
enum class Colour : int { red, green };
using Names = std::vector<std::string>;
inline constexpr int kMost = 3, unusual = 4;
std::string joined(const Names& names, const std::string& between = ", ");
namespace detail { void inside(); }
}  // namespace a
"""


def run(files, *options):
    """Output, status and the page for a tree of these files."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            name = os.path.join(root, path)
            os.makedirs(os.path.dirname(name), exist_ok=True)
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)
        os.makedirs(os.path.join(root, "docs"), exist_ok=True)
        command = [sys.executable, SCRIPT, "--root", root]
        subprocess.run(command + ["--write"], capture_output=True, check=False)
        if "stale" in options:
            with open(os.path.join(root, "core", "a.h"), "a", encoding="utf-8") as file:
                file.write("int f();\n")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout, done.returncode, check_headers.read(root, "docs/headers.md")


TREE = {
    "cutaway.h": "#pragma once\n// Everything.\n#include <cutaway/core/a.h>\n",
    "core/a.h": HEADER,
    "core/inner.h": "#pragma once\n// Not behind cutaway.h.\nvoid never_named();\n",
    "docs/a.md": "`Box`, `value`, `Colour` and `joined(names)`; `kMost`, `deep`",
}


class CheckHeaders(unittest.TestCase):
    def test_names(self):
        names = [name for _, name, _, _ in check_headers.public_names(HEADER)]
        self.assertEqual(names, ["Options", "deep", "Box", "value", "Colour", "Names", "kMost",
                                 "joined"])
        lines = {name: line for line, name, _, _ in check_headers.public_names(HEADER)}
        self.assertEqual((lines["Options"], lines["joined"]), (6, 20))

    def test_a_tree_in_order(self):
        # Options is a type that nothing takes: it counts where another declaration names it.
        tree = {**TREE, "tests/a_test.cpp": "Options o; f(o);"}
        text, status, page = run(tree)
        self.assertEqual((text, status), ("3 headers, 0 findings\n", 0))
        self.assertIn("| `a.h` | Things that are counted (Somebody et al. 2001). |", page)
        self.assertIn("`Options`, `Box`, `Colour`, `Names`, `kMost`, `joined`", page)

    def test_a_name_without_a_use(self):
        text, status, _ = run(TREE)
        self.assertEqual(status, 1)
        self.assertIn("core/a.h:6: untested-name: Options", text)
        # A comment is no use, nor is a text.
        text, status, _ = run({**TREE, "docs/a.md": "`Box`, `value`, `Colour`, `kMost`, `deep`",
                               "tests/a_test.cpp": 'Options o;  // joined\nf("joined");'})
        self.assertEqual((text.count("untested-name"), status), (1, 1))
        self.assertIn("core/a.h:20: untested-name: joined occurs in no test and no page", text)

    def test_the_page_must_be_that_of_the_headers(self):
        text, status, _ = run({**TREE, "tests/a_test.cpp": "Options o; f();"}, "stale")
        self.assertEqual(status, 1)
        self.assertIn("docs/headers.md:1: header-page: differs from the headers", text)

    def test_a_header_needs_a_comment(self):
        text, _, _ = run({**TREE, "nn/b.h": "#pragma once\nint f();\n"})
        self.assertIn("nn/b.h:1: header-comment", text)


if __name__ == "__main__":
    unittest.main()

#pragma once
#include <string>
#include <vector>

// The programs of the pages, as cmake/Pages.cmake writes them to generated/pages.cpp.
namespace pages {

struct Program {
  const char* page;  // "docs/tutorial/1-tensors.md"
  void (*run)();
};
const std::vector<Program>& programs();
// Called by a program after each of its pieces.
void end_of_piece();

// One fenced block of a page.
struct Block {
  std::string language;  // "cpp", "text", …
  std::string mode;      // the rest of the fence's line: "declarations", "within 0.01", …
  std::string text;
  int line = 0;  // of the fence
};
std::vector<Block> read_blocks(const std::string& page);

// Whether a page shows what a program wrote, and what differs. Modes of ```text blocks:
//   (none)       equal
//   within X     numbers may differ by X · max(1, |shown|), all else is equal
//   numbers vary numbers are only there, such as times; CPU kernels may be others than avx512
//   on VARIANT   equal where these CPU kernels run; elsewhere there is a text of as many lines
// Numbers of lines in sources ("softmax.cpp:69") are never compared.
std::string difference(const Block& shown, const std::string& written);

}  // namespace pages

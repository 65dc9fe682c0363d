#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cutaway/datasets/text/regex.h>
#include <cutaway/datasets/text/unicode.h>

namespace cutaway::data {

// Text made from a piece of source text; when tracked, every byte knows the bytes [begin,end) of
// the source that it comes from.
struct Aligned {
  std::string text;
  bool tracked = false;
  std::vector<uint32_t> begin, end;  // a value for each byte of text, when tracked

  // Source text itself, lying at byte `place`; each byte stands for its whole character.
  static Aligned of(std::string_view source, size_t place, bool tracked);
  // Adds bytes that come from bytes [from,to) of `other`.
  void add(std::string_view bytes, const Aligned& other, size_t from, size_t to);
  // The bytes [from,to).
  Aligned part(size_t from, size_t to) const;
};

// One step that changes text before it is split.
struct NormalStep {
  enum class Kind { bert, lowercase, form, strip_accents, strip, replace, prepend };
  Kind kind = Kind::lowercase;
  NormalForm form = NormalForm::nfc;
  bool clean = true, ideographs = true, lower = true;  // bert
  std::optional<bool> accents;                         // bert: strip them; unset: when lower
  bool left = true, right = true;                      // strip
  std::string from, to;                                // replace, prepend (to)
  std::optional<Regex> regex;                          // replace: in place of from
};

// The text after a step. Text is valid UTF-8 before and after.
Aligned normalized(const Aligned& text, const NormalStep& step);

// Raises ValueError when a step made much more text than there was: a hostile file could ask for
// any amount of memory.
void check_growth(size_t before, size_t after);

// Occurrences [begin,end) of a word, from left to right, not overlapping.
std::vector<std::pair<size_t, size_t>> occurrences(std::string_view text, std::string_view word);

}  // namespace cutaway::data

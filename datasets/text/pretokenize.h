#pragma once
#include <optional>
#include <string>
#include <vector>

#include <cutaway/datasets/text/normalize.h>

namespace cutaway::data {

// What becomes of the separators that a step finds.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// One step that splits text into words.
struct SplitStep {
  enum class Kind {
    byte_level,   // the words of GPT-2, white space in front of them; must be the last step
    white_space,  // runs of word characters, runs of others; white space goes
    white_space_only,
    bert,     // at white space, which goes; punctuation alone
    pattern,  // what `regex` or `word` finds
    digits,   // numbers, or every digit alone
    punctuation,
    metaspace  // white space becomes `word`, in front of words
  };
  enum class Prepend { always, first, never };
  Kind kind = Kind::white_space;
  bool prefix_space = false, words = true;  // byte_level; words: whether it splits
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;                // pattern: what it finds are the words
  std::optional<Regex> regex;         // pattern; byte_level
  std::string word;                   // pattern, metaspace
  bool individual = false;            // digits
  Prepend prepend = Prepend::always;  // metaspace
};

// The pattern of GPT-2's words (Radford et al. 2019).
extern const char kGpt2Pattern[];

// Adds the words of a piece of text; `first`: the piece begins the whole text.
void split_words(Aligned piece, const SplitStep& step, bool first, std::vector<Aligned>& words);

}  // namespace cutaway::data

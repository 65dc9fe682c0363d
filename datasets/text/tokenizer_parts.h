#pragma once
#include <string>
#include <variant>
#include <vector>

#include <cutaway/datasets/text/bpe.h>
#include <cutaway/datasets/text/normalize.h>
#include <cutaway/datasets/text/pretokenize.h>
#include <cutaway/datasets/text/tokenizer.h>

namespace cutaway::data {

// One piece of a template: a special token, or (id −1) a text.
struct TemplatePiece {
  int64_t id = -1;
  int sequence = 0;  // 0 the first text, 1 the second
  int64_t type = 0;
};

// One step from tokens to text.
struct DecodeStep {
  enum class Kind { byte_level, wordpiece, suffix, metaspace, replace, byte_fallback, fuse, strip };
  Kind kind = Kind::fuse;
  std::string from, to;         // wordpiece, suffix, strip: from; replace: both; metaspace: from
  bool cleanup = true;          // wordpiece: no blanks before . ? ! , and in contractions
  bool prefix = true;           // metaspace: the first blank goes
  int64_t start = 0, stop = 0;  // strip: how often at either end
};

// Everything a tokenizer consists of.
struct TokenizerParts {
  std::vector<AddedToken> added;
  std::vector<NormalStep> normal;
  std::vector<SplitStep> splits;
  std::variant<Bpe, WordPiece, WordLevel> model;
  std::vector<TemplatePiece> single, pair;
  bool trim_offsets = false;  // offsets leave out the blanks at the ends of a token …
  bool prefix_space = true;   // … but for one that a ByteLevel step put before the text
  std::vector<DecodeStep> decode;
  bool join_with_blanks = false;  // without decode steps: blanks between tokens
  int64_t pad = -1;
  TextMap<int64_t> pieces_by_name;  // added tokens by text
  std::vector<std::string> names;   // of all ids, added ones among them
  std::vector<uint8_t> special;     // by id

  const Vocabulary& vocabulary() const {
    return std::visit([](const auto& m) -> const Vocabulary& { return m.vocabulary; }, model);
  }
  bool byte_level() const {
    const Bpe* bpe = std::get_if<Bpe>(&model);
    return bpe && bpe->byte_level;
  }
  // Fills names, special and pieces_by_name after the rest; numbers added tokens that have none.
  void finish();
};

// The text that tokens stand for, one string a token.
std::string decoded(std::vector<std::string> tokens, const TokenizerParts& parts);

// Merges learnt from counted words (in any order; equal ones are joined).
struct BpeTraining {
  int64_t vocabulary = 8192, min_count = 2;
  std::vector<std::string> special;
  std::string prefix;       // of characters inside a word
  bool byte_level = false;  // all 256 bytes are tokens
};
// vocabulary and merges; the caller sets the rest.
Bpe train_bpe_model(const TextMap<int64_t>& words, const BpeTraining& training);

// The words of a text as encode() sees them, added tokens left out.
void count_words(const TokenizerParts& parts, std::string_view text, TextMap<int64_t>& words);

// Lines without their ends.
std::vector<std::string> lines_of(std::string_view text);

// tokenizer.json of the parts.
std::string tokenizer_json(const TokenizerParts& parts);

}  // namespace cutaway::data

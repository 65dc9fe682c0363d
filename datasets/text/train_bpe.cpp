// Byte, character, BPE and WordPiece tokenizers made from text.
#include <fmt/format.h>
#include <algorithm>
#include <queue>
#include <unordered_set>

#include <cutaway/core/error.h>
#include <cutaway/datasets/text/tokenizer_parts.h>

namespace cutaway::data {
namespace {

struct Pair {
  int32_t left, right;
  friend bool operator==(const Pair&, const Pair&) = default;
};
struct PairHash {
  size_t operator()(const Pair& p) const {
    return std::hash<uint64_t>()(uint64_t(uint32_t(p.left)) << 32 | uint32_t(p.right));
  }
};

struct CountedWord {
  std::vector<int32_t> symbols;
  int64_t count;
};

struct Seen {
  int64_t count = 0;
  std::vector<uint32_t> words;  // where it stands, or stood
};

// A pair in the queue; its count is what it was when it was put there.
struct Candidate {
  int64_t count;
  Pair pair;
  bool operator<(const Candidate& o) const {  // the greatest comes first
    if (count != o.count) return count < o.count;
    return pair.left != o.pair.left ? pair.left > o.pair.left : pair.right > o.pair.right;
  }
};

// Learns merges. Pairs are counted once; a merge changes only the words in which its pair stands.
class Learner {
 public:
  Learner(Bpe& model, std::vector<CountedWord> words, const BpeTraining& training)
      : model_(model), words_(std::move(words)), training_(training) {
    for (size_t w = 0; w < words_.size(); ++w) add_pairs(uint32_t(w), words_[w].symbols, 0);
    for (const auto& [pair, seen] : pairs_) queue_.push({seen.count, pair});
  }

  void run() {
    while (int64_t(model_.vocabulary.tokens.size()) < training_.vocabulary && !queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      Seen& seen = pairs_[top.pair];
      if (seen.count < std::max<int64_t>(training_.min_count, 1)) continue;
      if (seen.count != top.count) {
        queue_.push({seen.count, top.pair});
        continue;
      }
      merge(top.pair, std::move(seen.words));
    }
  }

 private:
  // Adds the pairs of a word; sign −1 takes them away, 0 adds without noting what changed.
  void add_pairs(uint32_t w, const std::vector<int32_t>& symbols, int sign) {
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const Pair pair{symbols[i], symbols[i + 1]};
      Seen& seen = pairs_[pair];
      seen.count += sign < 0 ? -words_[w].count : words_[w].count;
      if (sign < 0) continue;
      if (seen.words.empty() || seen.words.back() != w) seen.words.push_back(w);
      if (sign > 0) changed_.insert(pair);
    }
  }

  void merge(Pair pair, std::vector<uint32_t> places) {
    const std::string& right = model_.vocabulary.tokens[size_t(pair.right)];
    const size_t skip = right.starts_with(training_.prefix) ? training_.prefix.size() : 0;
    const int32_t id =
        model_.vocabulary.add(model_.vocabulary.tokens[size_t(pair.left)] + right.substr(skip));
    model_.merges.push_back({pair.left, pair.right});
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    changed_.clear();
    for (const uint32_t w : places) {
      std::vector<int32_t>& symbols = words_[w].symbols;
      std::vector<int32_t> merged;
      for (size_t i = 0; i < symbols.size(); ++i) {
        const bool here =
            i + 1 < symbols.size() && symbols[i] == pair.left && symbols[i + 1] == pair.right;
        merged.push_back(here ? id : symbols[i]);
        i += here;
      }
      if (merged.size() == symbols.size()) continue;  // the pair is no longer there
      add_pairs(w, symbols, -1);
      symbols = std::move(merged);
      add_pairs(w, symbols, 1);
    }
    // Only pairs with the new token can have grown; the others are found by their count.
    for (const Pair& p : changed_) {
      if (p.left == id || p.right == id) queue_.push({pairs_[p].count, p});
    }
  }

  Bpe& model_;
  std::vector<CountedWord> words_;
  const BpeTraining& training_;
  std::unordered_map<Pair, Seen, PairHash> pairs_;
  std::priority_queue<Candidate> queue_;
  std::unordered_set<Pair, PairHash> changed_;
};

// Characters of all words, in the order of Unicode.
std::vector<std::string> characters_of(const std::vector<std::pair<std::string, int64_t>>& words) {
  std::vector<char32_t> all;
  std::unordered_set<char32_t> seen;
  for (const auto& [word, count] : words) {
    for (size_t at = 0; at < word.size();) {
      const char32_t c = next_character(word, at);
      if (seen.insert(c).second) all.push_back(c);
    }
  }
  std::sort(all.begin(), all.end());
  std::vector<std::string> names(all.size());
  for (size_t i = 0; i < all.size(); ++i) append_character(names[i], all[i]);
  return names;
}

// Names of the 256 bytes in the order of Unicode, in which characters are numbered.
std::vector<std::string> sorted_byte_names() {
  std::vector<std::string> names;
  for (int b = 0; b < 256; ++b) names.push_back(byte_name(uint8_t(b)));
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<CountedWord> as_symbols(Bpe& m,
                                    const std::vector<std::pair<std::string, int64_t>>& words,
                                    const BpeTraining& training) {
  std::vector<CountedWord> list;
  for (const auto& [word, count] : words) {
    CountedWord w{{}, count};
    for (size_t at = 0; at < word.size();) {
      const size_t from = at;
      std::string name;
      if (training.byte_level) {
        name = byte_name(uint8_t(word[at++]));
      } else {
        next_character(word, at);
        name = (from > 0 ? training.prefix : std::string()) + word.substr(from, at - from);
      }
      w.symbols.push_back(m.vocabulary.add(name));
    }
    list.push_back(std::move(w));
  }
  return list;
}

void check(const TrainTokenizerOptions& o) {
  if (o.vocabulary < 1 || o.vocabulary > 1 << 24 || o.min_count < 1) {
    throw ValueError("tokenizer",
                     fmt::format("vocabulary must be 1 to 2^24 and min_count at least 1; got {} "
                                 "and {}",
                                 o.vocabulary, o.min_count));
  }
}

TextMap<int64_t> counted(const TokenizerParts& parts, const std::vector<std::string>& texts) {
  TextMap<int64_t> words;
  for (const std::string& t : texts) count_words(parts, t, words);
  if (words.empty()) throw ValueError("tokenizer", "there are no words in the text to train on");
  return words;
}

std::vector<AddedToken> as_added(const std::vector<std::string>& special, const Vocabulary& v) {
  std::vector<AddedToken> added;
  for (const std::string& s : special) added.push_back({.text = s, .id = v.find(s)});
  return added;
}

}  // namespace

Bpe train_bpe_model(const TextMap<int64_t>& counts, const BpeTraining& training) {
  std::vector<std::pair<std::string, int64_t>> words(counts.begin(), counts.end());
  std::sort(words.begin(), words.end());
  Bpe m;
  m.byte_level = training.byte_level;
  m.prefix = training.prefix;
  for (const std::string& s : training.special) m.vocabulary.add(s);
  const auto alphabet = training.byte_level ? sorted_byte_names() : characters_of(words);
  for (const std::string& c : alphabet) m.vocabulary.add(c);
  Learner(m, as_symbols(m, words, training), training).run();
  size_t bad = 0;
  m.prepare(&bad);
  return m;
}

Tokenizer Tokenizer::bytes() {
  Bpe m;
  m.byte_level = true;
  for (int b = 0; b < 256; ++b) m.vocabulary.add(byte_name(uint8_t(b)));
  size_t bad = 0;
  m.prepare(&bad);
  TokenizerParts parts;
  parts.model = std::move(m);
  parts.splits = {{.kind = SplitStep::Kind::byte_level, .words = false, .regex = {}, .word = {}}};
  parts.decode = {{.kind = DecodeStep::Kind::byte_level, .from = {}, .to = {}}};
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::characters(std::string_view text) {
  const size_t bad = find_not_utf8(text);
  if (bad != std::string_view::npos || text.empty()) {
    throw ValueError("tokenizer",
                     text.empty() ? std::string("characters need text; got none")
                                  : fmt::format("text must be UTF-8; got the byte {:#04x} at {}",
                                                uint8_t(text[bad]), bad));
  }
  Bpe m;
  for (const std::string& c : characters_of({{std::string(text), 1}})) m.vocabulary.add(c);
  size_t ignored = 0;
  m.prepare(&ignored);
  TokenizerParts parts;
  parts.model = std::move(m);
  parts.decode = {{.kind = DecodeStep::Kind::fuse, .from = {}, .to = {}}};
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::train_bpe(const std::vector<std::string>& texts,
                               const TrainTokenizerOptions& o) {
  check(o);
  TokenizerParts parts;
  if (o.byte_level) {
    parts.splits = {
        {.kind = SplitStep::Kind::byte_level, .regex = Regex(kGpt2Pattern), .word = {}}};
    parts.decode = {{.kind = DecodeStep::Kind::byte_level, .from = {}, .to = {}}};
  } else {
    parts.splits = {{.kind = SplitStep::Kind::white_space}};
    parts.join_with_blanks = true;
  }
  for (const std::string& s : o.special) parts.added.push_back({.text = s, .id = 0});
  const TextMap<int64_t> words = counted(parts, texts);
  Bpe m = train_bpe_model(words, {.vocabulary = o.vocabulary,
                                  .min_count = o.min_count,
                                  .special = o.special,
                                  .prefix = {},
                                  .byte_level = o.byte_level});
  if (!o.byte_level) m.unknown = m.vocabulary.find("<unk>");
  parts.added = as_added(o.special, m.vocabulary);
  parts.model = std::move(m);
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::train_wordpiece(const std::vector<std::string>& texts,
                                     const TrainTokenizerOptions& o) {
  check(o);
  TokenizerParts parts;
  parts.normal = {{.kind = NormalStep::Kind::bert, .lower = o.lowercase, .from = {}, .to = {}}};
  parts.splits = {{.kind = SplitStep::Kind::bert}};
  parts.decode = {{.kind = DecodeStep::Kind::wordpiece, .from = "##", .to = {}}};
  std::vector<std::string> special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  for (const std::string& s : o.special) {
    if (std::find(special.begin(), special.end(), s) == special.end()) special.push_back(s);
  }
  for (const std::string& s : special) parts.added.push_back({.text = s, .id = 0});
  const TextMap<int64_t> words = counted(parts, texts);
  Bpe m = train_bpe_model(
      words,
      {.vocabulary = o.vocabulary, .min_count = o.min_count, .special = special, .prefix = "##"});
  parts.added = as_added(special, m.vocabulary);
  parts.single = {{2, 0, 0}, {}, {3, 0, 0}};
  parts.pair = {{2, 0, 0}, {}, {3, 0, 0}, {-1, 1, 1}, {3, 0, 1}};
  parts.model = WordPiece{.vocabulary = std::move(m.vocabulary), .unknown = 1, .prefix = "##"};
  return Tokenizer(std::move(parts));
}

}  // namespace cutaway::data

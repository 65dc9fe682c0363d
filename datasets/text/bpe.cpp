#include <cutaway/datasets/text/bpe.h>

#include <fmt/format.h>
#include <algorithm>
#include <queue>

#include <cutaway/datasets/text/unicode.h>

namespace cutaway::data {
namespace {

uint64_t pair_key(int32_t left, int32_t right) {
  return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
}

// Printable bytes keep their character, the others go to U+0100 and on, in order.
struct ByteNames {
  std::array<std::string, 256> names;
  std::array<int, 0x200> bytes{};
  ByteNames() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const char32_t c = printable ? char32_t(b) : next++;
      append_character(names[size_t(b)], c);
      bytes[c] = b;
    }
  }
};
const ByteNames& byte_names() {
  static const ByteNames names;
  return names;
}

}  // namespace

const std::string& byte_name(uint8_t byte) { return byte_names().names[byte]; }
int byte_of_name(char32_t c) { return c < 0x200 ? byte_names().bytes[c] : -1; }

int32_t Vocabulary::add(const std::string& token) {
  const auto [at, fresh] = ids.emplace(token, int32_t(tokens.size()));
  if (fresh) tokens.push_back(token);
  return at->second;
}

int32_t Vocabulary::find(std::string_view token) const {
  const auto at = ids.find(token);
  return at == ids.end() ? -1 : at->second;
}

bool Bpe::prepare(size_t* bad_merge) {
  results_.clear();
  results_.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto [left, right] = merges[i];
    std::string_view tail = vocabulary.tokens[size_t(right)];
    if (!prefix.empty() && tail.starts_with(prefix)) tail.remove_prefix(prefix.size());
    const int32_t id = vocabulary.find(vocabulary.tokens[size_t(left)] + std::string(tail));
    if (id < 0) {
      *bad_merge = i;
      return false;
    }
    results_.insert_or_assign(pair_key(left, right), Result{int32_t(i), id});
  }
  for (int b = 0; b < 256; ++b) {
    byte_ids_[size_t(b)] = vocabulary.find(byte_name(uint8_t(b)));
    fallback_ids_[size_t(b)] = vocabulary.find(fmt::format("<0x{:02X}>", b));
  }
  return true;
}

void Bpe::first_symbols(std::string_view word, std::vector<Piece>& symbols) const {
  if (byte_level) {
    for (size_t i = 0; i < word.size(); ++i) {
      const int32_t id = byte_ids_[uint8_t(word[i])];
      symbols.push_back({id < 0 ? unknown : id, uint32_t(i), uint32_t(i + 1)});
    }
    return;
  }
  std::string name;
  for (size_t at = 0; at < word.size();) {
    const size_t from = at;
    next_character(word, at);
    name = from > 0 ? prefix : std::string();
    name += word.substr(from, at - from);
    if (at == word.size()) name += suffix;
    const int32_t id = vocabulary.find(name);
    if (id >= 0) {
      symbols.push_back({id, uint32_t(from), uint32_t(at)});
      continue;
    }
    const auto has_byte = [&](char c) { return fallback_ids_[uint8_t(c)] >= 0; };
    const std::string_view bytes = word.substr(from, at - from);
    if (byte_fallback && std::all_of(bytes.begin(), bytes.end(), has_byte)) {
      // Every byte stands for the whole character.
      for (const char c : bytes) {
        symbols.push_back({fallback_ids_[uint8_t(c)], uint32_t(from), uint32_t(at)});
      }
    } else if (fuse_unknown && unknown >= 0 && !symbols.empty() && symbols.back().id == unknown &&
               symbols.back().end == from) {
      symbols.back().end = uint32_t(at);
    } else {
      symbols.push_back({unknown, uint32_t(from), uint32_t(at)});
    }
  }
}

void Bpe::merge(std::vector<Piece>& symbols, std::vector<Piece>& pieces) const {
  struct Candidate {
    int32_t rank;
    uint32_t place;  // of the left symbol
    int32_t id;
    bool operator<(const Candidate& o) const {  // the greatest comes first
      return rank != o.rank ? rank > o.rank : place > o.place;
    }
  };
  const uint32_t n = uint32_t(symbols.size());
  std::vector<uint32_t> next(n), before(n);
  for (uint32_t i = 0; i < n; ++i) {
    next[i] = i + 1;
    before[i] = i - 1;  // of the first one n: none
  }
  std::priority_queue<Candidate> queue;
  const auto lookup = [&](uint32_t i) -> const Result* {
    if (next[i] >= n) return nullptr;
    const auto found = results_.find(pair_key(symbols[i].id, symbols[next[i]].id));
    return found == results_.end() ? nullptr : &found->second;
  };
  const auto consider = [&](uint32_t i) {
    if (const Result* r = lookup(i)) queue.push({r->rank, i, r->id});
  };
  for (uint32_t i = 0; i < n; ++i) consider(i);
  constexpr int32_t kGone = -2;
  while (!queue.empty()) {
    const Candidate c = queue.top();
    queue.pop();
    const uint32_t i = c.place;
    if (symbols[i].id == kGone) continue;
    const Result* now = lookup(i);
    if (!now || now->rank != c.rank) continue;  // its neighbourhood has changed
    const uint32_t right = next[i];
    symbols[i].id = c.id;
    symbols[i].end = symbols[right].end;
    symbols[right].id = kGone;
    next[i] = next[right];
    if (next[i] < n) before[next[i]] = i;
    consider(i);
    if (before[i] < n) consider(before[i]);
  }
  for (uint32_t i = 0; i < n; i = next[i]) pieces.push_back(symbols[i]);
}

void Bpe::split(std::string_view word, std::vector<Piece>& pieces) const {
  if (word.empty()) return;
  if (whole_words) {
    std::string name;
    if (byte_level) {
      for (const char c : word) name += byte_name(uint8_t(c));
    }
    const int32_t id = vocabulary.find(byte_level ? std::string_view(name) : word);
    if (id >= 0) {
      pieces.push_back({id, 0, uint32_t(word.size())});
      return;
    }
  }
  std::vector<Piece> symbols;
  first_symbols(word, symbols);
  if (merges.empty()) {
    pieces.insert(pieces.end(), symbols.begin(), symbols.end());
    return;
  }
  merge(symbols, pieces);
}

void WordPiece::split(std::string_view word, std::vector<Piece>& pieces) const {
  if (word.empty()) return;
  const size_t start = pieces.size();
  std::string name;
  bool covered = count_characters(word) <= longest_word;
  for (size_t from = 0; covered && from < word.size();) {
    size_t to = word.size();
    int32_t id = -1;
    for (; to > from; --to) {
      if (to < word.size() && (uint8_t(word[to]) & 0xC0) == 0x80) continue;  // inside a character
      name = from > 0 ? prefix : std::string();
      name += word.substr(from, to - from);
      id = vocabulary.find(name);
      if (id >= 0) break;
    }
    covered = id >= 0;
    pieces.push_back({id, uint32_t(from), uint32_t(to)});
    from = to;
  }
  if (covered) return;
  pieces.resize(start);
  pieces.push_back({unknown, 0, uint32_t(word.size())});
}

void WordLevel::split(std::string_view word, std::vector<Piece>& pieces) const {
  if (word.empty()) return;
  const int32_t id = vocabulary.find(word);
  pieces.push_back({id < 0 ? unknown : id, 0, uint32_t(word.size())});
}

}  // namespace cutaway::data

#include <cutaway/datasets/text/tokenizer.h>

#include <fmt/format.h>
#include <algorithm>
#include <mutex>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/datasets/text/tokenizer_parts.h>

namespace cutaway::data {
namespace {

constexpr size_t kLongestCached = 64;     // bytes of a word
constexpr size_t kMostCached = 1u << 17;  // words

// A stretch of source text: an added token, or (id −1) what lies between them.
struct Stretch {
  size_t begin, end;
  int64_t id = -1;
};

bool word_at(std::string_view text, size_t at) {
  if (at >= text.size()) return false;
  while (at > 0 && (uint8_t(text[at]) & 0xC0) == 0x80) --at;
  return is_word_character(next_character(text, at));
}

size_t space_before(std::string_view text, size_t at, size_t least) {
  while (at > least) {
    size_t from = at - 1, next;
    while (from > least && (uint8_t(text[from]) & 0xC0) == 0x80) --from;
    next = from;
    if (!is_white_space(next_character(text, next))) break;
    at = from;
  }
  return at;
}

size_t space_behind(std::string_view text, size_t at) {
  while (at < text.size()) {
    size_t next = at;
    if (!is_white_space(next_character(text, next))) break;
    at = next;
  }
  return at;
}

// The longest added token at a place, nullptr when there is none.
const AddedToken* added_at(const std::vector<const AddedToken*>& tokens, std::string_view text,
                           size_t at) {
  const AddedToken* best = nullptr;
  for (const AddedToken* t : tokens) {
    if (best && t->text.size() <= best->text.size()) continue;
    if (text.substr(at, t->text.size()) == t->text) best = t;
  }
  if (!best || !best->single_word) return best;
  const bool inside = (at > 0 && word_at(text, at - 1)) || word_at(text, at + best->text.size());
  return inside ? nullptr : best;
}

// Cuts text at added tokens, those for normalised text or the others.
std::vector<Stretch> stretches(const std::vector<AddedToken>& added, bool in_normalized,
                               std::string_view text) {
  std::array<std::vector<const AddedToken*>, 256> by_first;
  bool any = false;
  for (const AddedToken& t : added) {
    if (t.normalized != in_normalized || t.text.empty()) continue;
    by_first[uint8_t(t.text[0])].push_back(&t);
    any = true;
  }
  std::vector<Stretch> list;
  size_t from = 0;
  for (size_t at = 0; any && at < text.size();) {
    const auto& tokens = by_first[uint8_t(text[at])];
    const AddedToken* t = tokens.empty() ? nullptr : added_at(tokens, text, at);
    if (!t) {
      ++at;
      continue;
    }
    const size_t begin = t->lstrip ? space_before(text, at, from) : at;
    const size_t end = at + t->text.size();
    if (from < begin) list.push_back({from, begin});
    from = at = t->rstrip ? space_behind(text, end) : end;
    list.push_back({begin, from, t->id});
  }
  if (from < text.size()) list.push_back({from, text.size()});
  return list;
}

std::vector<Aligned> split_all(const TokenizerParts& parts, Aligned text, bool first) {
  std::vector<Aligned> words;
  words.push_back(std::move(text));
  bool begins = first;
  for (const SplitStep& step : parts.splits) {
    std::vector<Aligned> next;
    for (Aligned& w : words) {
      split_words(std::move(w), step, begins && &w == words.data(), next);
    }
    words = std::move(next);
  }
  std::erase_if(words, [](const Aligned& w) { return w.text.empty(); });
  return words;
}

// Calls word(Aligned) for the words of a text in order and added(id, begin, end) for added tokens.
template <class Word, class Added>
void each_word(const TokenizerParts& parts, std::string_view text, bool tracked, Word word,
               Added added) {
  for (const Stretch& s : stretches(parts.added, false, text)) {
    if (s.id >= 0) {
      added(s.id, s.begin, s.end);
      continue;
    }
    Aligned piece = Aligned::of(text.substr(s.begin, s.end - s.begin), s.begin, tracked);
    for (const NormalStep& step : parts.normal) {
      piece = normalized(piece, step);
      check_growth(s.end - s.begin, piece.text.size());
    }
    for (const Stretch& t : stretches(parts.added, true, piece.text)) {
      Aligned part = piece.part(t.begin, t.end);
      if (t.id >= 0) {
        added(t.id, tracked && !part.begin.empty() ? part.begin.front() : 0,
              tracked && !part.end.empty() ? part.end.back() : 0);
        continue;
      }
      for (const Aligned& w : split_all(parts, std::move(part), s.begin == 0 && t.begin == 0)) {
        word(w);
      }
    }
  }
}

void check_text(const TokenizerParts& parts, std::string_view text) {
  if (text.size() >= UINT32_MAX) {
    throw ValueError("tokenizer",
                     fmt::format("text must be shorter than 4 GiB; got {} bytes", text.size()));
  }
  if (parts.byte_level() && parts.splits.size() == 1 && !parts.splits[0].words &&
      parts.normal.empty()) {
    return;  // bytes
  }
  const size_t bad = find_not_utf8(text);
  if (bad == std::string_view::npos) return;
  throw ValueError(
      "tokenizer",
      fmt::format("text must be UTF-8; got the byte {:#04x} at {}", uint8_t(text[bad]), bad),
      "iconv converts other encodings; the byte tokenizer takes anything");
}

[[noreturn]] void no_token(const Aligned& word, const Piece& p) {
  throw ValueError("tokenizer",
                   fmt::format("there is no token for \"{}\" and none for unknown text",
                               word.text.substr(p.begin, p.end - p.begin)),
                   "train the tokenizer on text that has it, or use bytes");
}

}  // namespace

// Tokens of words met before; one for all threads, used by one at a time.
struct Tokenizer::Cache {
  std::mutex mutex;
  TextMap<std::vector<Piece>> words;

  const std::vector<Piece>& pieces(const TokenizerParts& parts, const std::string& word,
                                   std::vector<Piece>& own) {
    const bool keep = word.size() <= kLongestCached;
    if (keep) {
      const auto found = words.find(word);
      if (found != words.end()) return found->second;
    }
    own.clear();
    std::visit([&](const auto& m) { m.split(word, own); }, parts.model);
    if (!keep) return own;
    if (words.size() >= kMostCached) words.clear();
    return words.emplace(word, own).first->second;
  }
};

Tokenizer::Tokenizer(TokenizerParts parts)
    : parts_([&] {
        parts.finish();
        return std::make_shared<const TokenizerParts>(std::move(parts));
      }()),
      cache_(std::make_shared<Cache>()) {}

namespace {

struct Tokens {
  std::vector<int64_t> ids;
  std::vector<std::pair<int64_t, int64_t>> offsets;
};

std::pair<int64_t, int64_t> source_span(const Aligned& word, const Piece& p) {
  return {word.begin[p.begin], word.end[p.end - 1]};
}

// Takes white space off the ends of what lies behind an added token.
std::pair<int64_t, int64_t> trimmed(std::string_view text, std::pair<int64_t, int64_t> span) {
  const auto [from, to] = span;
  const std::string_view piece = text.substr(size_t(from), size_t(to - from));
  const size_t begin = space_behind(piece, 0);
  if (begin == piece.size()) return {to, to};
  return {from + int64_t(begin), from + int64_t(space_before(piece, piece.size(), begin))};
}

// Takes the blanks of a token of bytes off its span, but for one that was put before the text.
std::pair<int64_t, int64_t> without_blanks(std::string_view name, bool prefix_space, bool first,
                                           std::pair<int64_t, int64_t> span) {
  const std::string& blank = byte_name(' ');
  int64_t before = 0, behind = 0;
  for (; name.starts_with(blank); name.remove_prefix(blank.size())) ++before;
  const bool only_blanks = name.empty();
  for (; name.ends_with(blank); name.remove_suffix(blank.size())) ++behind;
  if (before == 1 && prefix_space && (first || span.first == 0)) before = 0;
  const int64_t from = std::min(span.first + before, span.second);
  return {from, only_blanks ? from : std::max(span.second - behind, from)};
}

}  // namespace

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& o) const {
  return encode_pair(text, {}, o);
}

namespace {

// Shortens two lists, the longer one first, to `most` in all.
void shorten(Tokens& a, Tokens& b, size_t most) {
  size_t na = a.ids.size(), nb = b.ids.size();
  if (na + nb <= most) return;
  const size_t less = std::min(na, nb);
  if (less * 2 >= most) {
    const size_t half = most / 2;
    (na <= nb ? na : nb) = std::min(less, half);
    (na <= nb ? nb : na) = most - std::min(less, half);
  } else {
    (na <= nb ? nb : na) = most - less;
  }
  a.ids.resize(na);
  b.ids.resize(nb);
  if (!a.offsets.empty()) a.offsets.resize(na);
  if (!b.offsets.empty()) b.offsets.resize(nb);
}

Encoding assembled(const std::vector<TemplatePiece>& pieces, const Tokens (&texts)[2],
                   bool offsets) {
  Encoding e;
  for (const TemplatePiece& p : pieces) {
    if (p.id >= 0) {
      e.ids.push_back(p.id);
      e.types.push_back(p.type);
      e.special.push_back(1);
      if (offsets) e.offsets.emplace_back(0, 0);
      continue;
    }
    const Tokens& t = texts[p.sequence];
    e.ids.insert(e.ids.end(), t.ids.begin(), t.ids.end());
    e.types.insert(e.types.end(), t.ids.size(), p.type);
    e.special.insert(e.special.end(), t.ids.size(), 0);
    e.offsets.insert(e.offsets.end(), t.offsets.begin(), t.offsets.end());
  }
  return e;
}

}  // namespace

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                const EncodeOptions& o) const {
  const TokenizerParts& parts = *parts_;
  Cache local;
  std::unique_lock lock(cache_->mutex, std::try_to_lock);
  Cache& cache = lock ? *cache_ : local;
  Tokens texts[2];
  std::vector<Piece> own;
  for (const int which : {0, 1}) {
    const std::string_view text = which ? second : first;
    Tokens& out = texts[which];
    check_text(parts, text);
    const auto word = [&](const Aligned& w) {
      for (const Piece& p : cache.pieces(parts, w.text, own)) {
        if (p.id < 0) no_token(w, p);
        out.ids.push_back(p.id);
        if (!o.offsets) continue;
        auto span = source_span(w, p);
        if (parts.trim_offsets) {
          span = without_blanks(parts.names[size_t(p.id)], parts.prefix_space, out.offsets.empty(),
                                span);
        }
        out.offsets.push_back(span);
      }
    };
    const auto added = [&](int64_t id, size_t begin, size_t end) {
      out.ids.push_back(id);
      if (!o.offsets) return;
      const std::pair<int64_t, int64_t> span(begin, end);
      out.offsets.push_back(parts.trim_offsets ? trimmed(text, span) : span);
    };
    each_word(parts, text, o.offsets, word, added);
  }
  const bool is_pair = second.data() != nullptr;
  static const std::vector<TemplatePiece> kPlain[2] = {{{}}, {{}, {-1, 1, 1}}};
  const auto& chosen = is_pair ? parts.pair : parts.single;
  const auto& pieces = o.special && !chosen.empty() ? chosen : kPlain[is_pair];
  const size_t fixed = size_t(std::count_if(pieces.begin(), pieces.end(),
                                            [](const TemplatePiece& p) { return p.id >= 0; }));
  if (o.max_length < 0 || (o.max_length > 0 && size_t(o.max_length) < fixed)) {
    throw ValueError("tokenizer", fmt::format("max_length must be 0 or at least {}, the number of "
                                              "special tokens; got {}",
                                              fixed, o.max_length));
  }
  if (o.max_length > 0) shorten(texts[0], texts[1], size_t(o.max_length) - fixed);
  return assembled(pieces, texts, o.offsets);
}

BatchEncoding Tokenizer::encode_batch(const std::vector<std::string>& texts,
                                      const BatchOptions& o) const {
  if (o.multiple < 1 || o.pad_to < 0) {
    throw ValueError("tokenizer", fmt::format("multiple must be at least 1 and pad_to at least 0; "
                                              "got {} and {}",
                                              o.multiple, o.pad_to));
  }
  std::vector<Encoding> all;
  int64_t width = o.pad_to;
  for (const std::string& t : texts) {
    all.push_back(encode(t, {.special = o.special, .max_length = o.max_length}));
    width = std::max(width, int64_t(all.back().ids.size()));
  }
  width = (width + o.multiple - 1) / o.multiple * o.multiple;
  const int64_t n = int64_t(texts.size());
  BatchEncoding b{zeros({n, width}, {.dtype = DType::i64}),
                  zeros({n, width}, {.dtype = DType::i64}),
                  zeros({n, width}, {.dtype = DType::i64})};
  for (int64_t i = 0; i < n; ++i) {
    const Encoding& e = all[size_t(i)];
    const int64_t length = int64_t(e.ids.size()), blank = width - length;
    if (blank > 0 && parts_->pad < 0) {
      throw ValueError("tokenizer", "there is no token for padding",
                       "give texts of equal length, or a tokenizer with [PAD] or <pad>");
    }
    int64_t* row = b.ids.data<int64_t>() + i * width;
    std::fill_n(row, width, parts_->pad);
    const int64_t at = o.pad_left ? blank : 0;
    std::copy(e.ids.begin(), e.ids.end(), row + at);
    std::copy(e.types.begin(), e.types.end(), b.types.data<int64_t>() + i * width + at);
    std::fill_n(b.mask.data<int64_t>() + i * width + at, length, 1);
  }
  return b;
}

std::string Tokenizer::decode(const std::vector<int64_t>& ids, const DecodeOptions& o) const {
  std::vector<std::string> tokens;
  for (const int64_t id : ids) {
    const std::string& name = token(id);
    if (!o.skip_special || !parts_->special[size_t(id)]) tokens.push_back(name);
  }
  return decoded(std::move(tokens), *parts_);
}

int64_t Tokenizer::vocabulary() const { return int64_t(parts_->names.size()); }

const std::string& Tokenizer::token(int64_t id) const {
  if (id < 0 || id >= vocabulary() || parts_->names[size_t(id)].empty()) {
    throw IndexError("tokenizer",
                     fmt::format("there is no token {}; need 0 to {}", id, vocabulary() - 1));
  }
  return parts_->names[size_t(id)];
}

std::optional<int64_t> Tokenizer::find(std::string_view token) const {
  const auto added = parts_->pieces_by_name.find(token);
  if (added != parts_->pieces_by_name.end()) return added->second;
  const int32_t id = parts_->vocabulary().find(token);
  return id < 0 ? std::nullopt : std::optional<int64_t>(id);
}

std::optional<int64_t> Tokenizer::pad() const {
  return parts_->pad < 0 ? std::nullopt : std::optional<int64_t>(parts_->pad);
}

const char* Tokenizer::model() const {
  static const char* const kNames[] = {"BPE", "WordPiece", "WordLevel"};
  return kNames[parts_->model.index()];
}

int64_t Tokenizer::merges() const {
  const Bpe* bpe = std::get_if<Bpe>(&parts_->model);
  return bpe ? int64_t(bpe->merges.size()) : 0;
}

std::string Tokenizer::to_json() const { return tokenizer_json(*parts_); }

void Tokenizer::save(const std::string& path) const { io::write_file_atomic(path, to_json()); }

void TokenizerParts::finish() {
  names = vocabulary().tokens;
  special.assign(names.size(), 0);
  for (AddedToken& t : added) {
    const int32_t known = vocabulary().find(t.text);
    if (t.id < 0) t.id = known >= 0 ? known : int64_t(names.size());
    if (size_t(t.id) >= names.size()) {
      names.resize(size_t(t.id) + 1);
      special.resize(names.size());
    }
    names[size_t(t.id)] = t.text;
    special[size_t(t.id)] = t.special;
    pieces_by_name[t.text] = t.id;
  }
  for (const char* name : {"[PAD]", "<pad>", "<|endoftext|>"}) {
    if (pad >= 0) break;
    const auto found = pieces_by_name.find(std::string_view(name));
    if (found != pieces_by_name.end()) {
      pad = found->second;
    } else if (vocabulary().find(name) >= 0) {
      pad = vocabulary().find(name);
    }
  }
}

void count_words(const TokenizerParts& parts, std::string_view text, TextMap<int64_t>& words) {
  check_text(parts, text);
  each_word(
      parts, text, false, [&](const Aligned& w) { ++words[w.text]; },
      [](int64_t, size_t, size_t) {});
}

}  // namespace cutaway::data

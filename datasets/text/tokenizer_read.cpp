// tokenizer.json, and vocab.json with merges.txt.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include <cutaway/core/error.h>
#include <cutaway/core/io/json.h>
#include <cutaway/datasets/text/tokenizer_parts.h>

namespace cutaway::data {
namespace {

using Kind = io::Json::Kind;

// A value of a file with the path to it, for messages.
struct Node {
  const io::Json* value;
  std::string path;
  const std::string* file;

  std::string shown() const {
    switch (value->kind) {
      case Kind::null:
        return "null";
      case Kind::boolean:
        return value->truth ? "true" : "false";
      case Kind::number:
        return fmt::format("{}", value->number);
      case Kind::text:
        return io::json_string(value->text.substr(0, 60));
      case Kind::list:
        return "a list";
      case Kind::object:
        break;
    }
    return "an object";
  }
  [[noreturn]] void fail(const std::string& need, std::string_view hint = {}) const {
    throw IoError("tokenizer", fmt::format("{}: {} is {}; need {}", *file, path, shown(), need),
                  hint);
  }
  std::optional<Node> get(std::string_view key) const {
    const io::Json* found = value->find(key);
    if (!found || found->is(Kind::null)) return std::nullopt;
    return Node{found, path.empty() ? std::string(key) : fmt::format("{}.{}", path, key), file};
  }
  Node at(std::string_view key) const {
    if (auto found = get(key)) return *found;
    throw IoError("tokenizer",
                  fmt::format("{}: {}{}{} is missing", *file, path, path.empty() ? "" : ".", key));
  }
  Node item(size_t i) const { return {&value->items[i], fmt::format("{}[{}]", path, i), file}; }
  std::vector<Node> list() const {
    if (!value->is(Kind::list)) fail("a list");
    std::vector<Node> all;
    for (size_t i = 0; i < value->items.size(); ++i) all.push_back(item(i));
    return all;
  }
  const std::string& text() const {
    if (!value->is(Kind::text)) fail("text");
    return value->text;
  }
  bool truth() const {
    if (!value->is(Kind::boolean)) fail("true or false");
    return value->truth;
  }
  int64_t whole(int64_t most) const {
    const double v = value->number;
    if (!value->is(Kind::number) || v != std::floor(v) || v < 0 || v > double(most)) {
      fail(fmt::format("a whole number from 0 to {}", most));
    }
    return int64_t(v);
  }
  bool truth(std::string_view key, bool otherwise) const {
    const auto found = get(key);
    return found ? found->truth() : otherwise;
  }
  std::string text(std::string_view key, const std::string& otherwise) const {
    const auto found = get(key);
    return found ? found->text() : otherwise;
  }
  const std::string& type() const { return at("type").text(); }
};

constexpr int64_t kMostTokens = 1 << 24;

// Numbers must nearly be dense: a file of a few bytes must not ask for much memory.
void require_dense(const Node& n, int64_t id, size_t tokens) {
  if (id >= int64_t(2 * tokens) + 1024) {
    n.fail(fmt::format("a number below {}: there are {} tokens", 2 * tokens + 1024, tokens));
  }
}

void put(Vocabulary& v, const Node& n, const std::string& token, int64_t id, size_t tokens) {
  require_dense(n, id, tokens);
  if (token.empty()) n.fail("tokens that are not empty");
  if (size_t(id) >= v.tokens.size()) v.tokens.resize(size_t(id) + 1);
  if (!v.tokens[size_t(id)].empty()) {
    n.fail(fmt::format("another number: \"{}\" has this one", v.tokens[size_t(id)]));
  }
  v.tokens[size_t(id)] = token;
  v.ids[token] = int32_t(id);
}

Vocabulary read_vocabulary(const Node& n) {
  if (!n.value->is(Kind::object)) n.fail("an object of tokens and numbers");
  Vocabulary v;
  for (size_t i = 0; i < n.value->items.size(); ++i) {
    const Node entry{&n.value->items[i],
                     fmt::format("{}[{}]", n.path, io::json_string(n.value->keys[i])), n.file};
    put(v, entry, n.value->keys[i], entry.whole(kMostTokens), n.value->items.size());
  }
  return v;
}

int32_t token_id(const Vocabulary& v, const Node& n) {
  const int32_t id = v.find(n.text());
  if (id < 0) n.fail("a token of the vocabulary");
  return id;
}

std::optional<Regex> read_regex(const Node& n) {
  try {
    return Regex(n.text());
  } catch (const ValueError& e) {
    n.fail(fmt::format("a regular expression: {}", e.what()));
  }
}

// {"Regex": …} or {"String": …}
void read_pattern(const Node& n, std::optional<Regex>& regex, std::string& word) {
  if (const auto r = n.get("Regex")) {
    regex = read_regex(*r);
  } else {
    word = n.at("String").text();
  }
}

// Calls f for the step, or for each of a {"type": "Sequence"} of them, whose list is `key`.
void each_step(const Node& n, std::string_view key, const std::function<void(const Node&)>& f,
               int depth = 0) {
  if (n.type() != "Sequence") return f(n);
  if (depth > 8) n.fail("sequences nested less deeply");
  for (const Node& s : n.at(key).list()) each_step(s, key, f, depth + 1);
}

std::optional<NormalForm> form_of(const std::string& type) {
  if (type == "NFC") return NormalForm::nfc;
  if (type == "NFD") return NormalForm::nfd;
  if (type == "NFKC") return NormalForm::nfkc;
  if (type == "NFKD") return NormalForm::nfkd;
  return std::nullopt;
}

NormalStep read_normal(const Node& n) {
  NormalStep s;
  const std::string& type = n.type();
  if (type == "BertNormalizer") {
    s.kind = NormalStep::Kind::bert;
    s.clean = n.truth("clean_text", true);
    s.ideographs = n.truth("handle_chinese_chars", true);
    s.lower = n.truth("lowercase", true);
    if (const auto a = n.get("strip_accents")) s.accents = a->truth();
  } else if (type == "Lowercase") {
    s.kind = NormalStep::Kind::lowercase;
  } else if (const auto form = form_of(type)) {
    s.kind = NormalStep::Kind::form;
    s.form = *form;
  } else if (type == "StripAccents") {
    s.kind = NormalStep::Kind::strip_accents;
  } else if (type == "Strip") {
    s.kind = NormalStep::Kind::strip;
    s.left = n.truth("strip_left", true);
    s.right = n.truth("strip_right", true);
  } else if (type == "Replace") {
    s.kind = NormalStep::Kind::replace;
    read_pattern(n.at("pattern"), s.regex, s.from);
    s.to = n.at("content").text();
  } else if (type == "Prepend") {
    s.kind = NormalStep::Kind::prepend;
    s.to = n.at("prepend").text();
  } else {
    n.at("type").fail(
        "BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, StripAccents, Strip, "
        "Replace, Prepend or Sequence");
  }
  return s;
}

SplitBehavior read_behavior(const Node& n) {
  const std::string& b = n.text();
  if (b == "Removed") return SplitBehavior::removed;
  if (b == "Isolated") return SplitBehavior::isolated;
  if (b == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (b == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (b == "Contiguous") return SplitBehavior::contiguous;
  n.fail("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

// Older files have "add_prefix_space".
SplitStep::Prepend read_prepend(const Node& n) {
  const auto scheme = n.get("prepend_scheme");
  if (!scheme) {
    return n.truth("add_prefix_space", true) ? SplitStep::Prepend::always
                                             : SplitStep::Prepend::never;
  }
  if (scheme->text() == "always") return SplitStep::Prepend::always;
  if (scheme->text() == "first") return SplitStep::Prepend::first;
  if (scheme->text() != "never") scheme->fail("always, first or never");
  return SplitStep::Prepend::never;
}

SplitStep read_split(const Node& n) {
  SplitStep s;
  const std::string& type = n.type();
  if (type == "ByteLevel") {
    s.kind = SplitStep::Kind::byte_level;
    s.prefix_space = n.truth("add_prefix_space", true);
    s.words = n.truth("use_regex", true);
    if (s.words) s.regex.emplace(kGpt2Pattern);
  } else if (type == "Whitespace") {
    s.kind = SplitStep::Kind::white_space;
  } else if (type == "WhitespaceSplit") {
    s.kind = SplitStep::Kind::white_space_only;
  } else if (type == "BertPreTokenizer") {
    s.kind = SplitStep::Kind::bert;
  } else if (type == "Split") {
    s.kind = SplitStep::Kind::pattern;
    read_pattern(n.at("pattern"), s.regex, s.word);
    s.behavior = read_behavior(n.at("behavior"));
    s.invert = n.truth("invert", false);
  } else if (type == "Digits") {
    s.kind = SplitStep::Kind::digits;
    s.individual = n.truth("individual_digits", false);
  } else if (type == "Punctuation") {
    s.kind = SplitStep::Kind::punctuation;
    if (const auto b = n.get("behavior")) s.behavior = read_behavior(*b);
  } else if (type == "Metaspace") {
    s.kind = SplitStep::Kind::metaspace;
    s.word = n.text("replacement", "\u2581");
    if (s.word.empty()) n.at("replacement").fail("a character");
    s.prepend = read_prepend(n);
    s.words = n.truth("split", true);
  } else {
    n.at("type").fail(
        "ByteLevel, Whitespace, WhitespaceSplit, BertPreTokenizer, Split, Digits, "
        "Punctuation, Metaspace or Sequence");
  }
  return s;
}

// "a b" or ["a", "b"]
Bpe::Merge read_merge(const Vocabulary& v, const Node& n) {
  std::string left, right;
  if (n.value->is(Kind::list)) {
    if (n.value->items.size() != 2) n.fail("two tokens");
    left = n.item(0).text();
    right = n.item(1).text();
  } else {
    const std::string& both = n.text();
    const size_t blank = both.find(' ');
    if (blank == std::string::npos || both.find(' ', blank + 1) != std::string::npos) {
      n.fail("two tokens with a blank between them");
    }
    left = both.substr(0, blank);
    right = both.substr(blank + 1);
  }
  const Bpe::Merge m{v.find(left), v.find(right)};
  if (m.left < 0 || m.right < 0) {
    n.fail(fmt::format("tokens of the vocabulary; it lacks {}",
                       io::json_string(m.left < 0 ? left : right)));
  }
  return m;
}

Bpe read_bpe(const Node& n, bool byte_level) {
  Bpe m;
  m.vocabulary = read_vocabulary(n.at("vocab"));
  if (const auto unknown = n.get("unk_token")) m.unknown = token_id(m.vocabulary, *unknown);
  m.prefix = n.text("continuing_subword_prefix", "");
  m.suffix = n.text("end_of_word_suffix", "");
  m.fuse_unknown = n.truth("fuse_unk", false);
  m.byte_fallback = n.truth("byte_fallback", false);
  m.whole_words = n.truth("ignore_merges", false);
  m.byte_level = byte_level;
  if (const auto dropout = n.get("dropout")) {
    if (!dropout->value->is(Kind::number) || dropout->value->number != 0) {
      dropout->fail("0 or null: merges are not dropped here");
    }
  }
  const Node merges = n.at("merges");
  for (const Node& merge : merges.list()) m.merges.push_back(read_merge(m.vocabulary, merge));
  size_t bad = 0;
  if (!m.prepare(&bad)) merges.item(bad).fail("a merge whose result is a token");
  return m;
}

template <class Model>
Model read_words(const Node& n) {
  Model m;
  m.vocabulary = read_vocabulary(n.at("vocab"));
  if (const auto unknown = n.get("unk_token")) {
    unknown->text();
    // A vocabulary without it leaves unknown words without a token.
    m.unknown = m.vocabulary.find(unknown->value->text);
  }
  return m;
}

std::string model_type(const Node& n) {
  if (const auto type = n.get("type")) return type->text();
  return n.get("merges") ? "BPE" : "WordPiece";  // files of early versions
}

void read_model(const Node& n, TokenizerParts& parts) {
  const std::string type = model_type(n);
  const auto is_bytes = [](const SplitStep& s) { return s.kind == SplitStep::Kind::byte_level; };
  const auto bytes = std::find_if(parts.splits.begin(), parts.splits.end(), is_bytes);
  const bool byte_level = bytes != parts.splits.end();
  if (byte_level && bytes + 1 != parts.splits.end()) {
    throw IoError("tokenizer", *n.file + ": pre_tokenizer: ByteLevel must be the last step");
  }
  if (type == "BPE") {
    parts.model = read_bpe(n, byte_level);
    return;
  }
  if (byte_level) n.at("type").fail("BPE, as the pre_tokenizer is ByteLevel");
  if (type == "WordPiece") {
    WordPiece m = read_words<WordPiece>(n);
    m.prefix = n.text("continuing_subword_prefix", "##");
    if (const auto longest = n.get("max_input_chars_per_word")) {
      m.longest_word = longest->whole(1 << 20);
    }
    parts.model = std::move(m);
  } else if (type == "WordLevel") {
    parts.model = read_words<WordLevel>(n);
  } else {
    n.at("type").fail("BPE, WordPiece or WordLevel");
  }
}

void read_added(const Node& n, TokenizerParts& parts) {
  const size_t tokens = parts.vocabulary().tokens.size() + n.list().size();
  for (const Node& t : n.list()) {
    AddedToken a;
    a.text = t.at("content").text();
    if (a.text.empty()) t.at("content").fail("text that is not empty");
    a.id = t.at("id").whole(kMostTokens);
    require_dense(t.at("id"), a.id, tokens);
    const int32_t known = parts.vocabulary().find(a.text);
    if (known >= 0 && known != a.id) {
      t.at("id").fail(fmt::format("{}, its number in the vocabulary", known));
    }
    a.special = t.truth("special", false);
    a.single_word = t.truth("single_word", false);
    a.lstrip = t.truth("lstrip", false);
    a.rstrip = t.truth("rstrip", false);
    a.normalized = t.truth("normalized", !a.special);
    parts.added.push_back(std::move(a));
  }
}

// A number that a token of the vocabulary, or an added one, has.
int64_t token_number(const TokenizerParts& parts, const Node& n) {
  const int64_t id = n.whole(kMostTokens);
  const auto& tokens = parts.vocabulary().tokens;
  bool known = size_t(id) < tokens.size() && !tokens[size_t(id)].empty();
  for (const AddedToken& a : parts.added) known |= a.id == id;
  if (!known) n.fail("the number of a token");
  return id;
}

int64_t any_token(const TokenizerParts& parts, const Node& n) {
  for (const AddedToken& a : parts.added) {
    if (a.text == n.text()) return a.id;
  }
  return token_id(parts.vocabulary(), n);
}

// One piece of TemplateProcessing, whose special tokens may stand for several.
void read_template(const Node& n, const TokenizerParts& parts, const Node& all,
                   std::vector<TemplatePiece>& pieces) {
  if (const auto s = n.get("Sequence")) {
    const Node id = s->at("id");
    if (id.text() != "A" && id.text() != "B") id.fail("A or B");
    pieces.push_back({-1, id.text() == "B", s->at("type_id").whole(1 << 20)});
    return;
  }
  const Node s = n.at("SpecialToken");
  const int64_t type = s.at("type_id").whole(1 << 20);
  const auto tokens = all.get(s.at("id").text());
  if (!tokens) {
    pieces.push_back({any_token(parts, s.at("id")), 0, type});
    return;
  }
  for (const Node& id : tokens->at("ids").list()) {
    pieces.push_back({token_number(parts, id), 0, type});
  }
}

int64_t token_and_id(const TokenizerParts& parts, const Node& n) {
  const auto both = n.list();
  if (both.size() != 2) n.fail("a token and its number");
  return any_token(parts, both[0]);
}

void read_post(const Node& n, TokenizerParts& parts) {
  const std::string& type = n.type();
  if (type == "ByteLevel") {
    parts.trim_offsets = n.truth("trim_offsets", true);
    parts.prefix_space = n.truth("add_prefix_space", true);
  } else if (type == "TemplateProcessing") {
    const Node tokens = n.at("special_tokens");
    for (const Node& p : n.at("single").list()) read_template(p, parts, tokens, parts.single);
    for (const Node& p : n.at("pair").list()) read_template(p, parts, tokens, parts.pair);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const int64_t begin = token_and_id(parts, n.at("cls")), end = token_and_id(parts, n.at("sep"));
    parts.single = {{begin, 0, 0}, {}, {end, 0, 0}};
    if (type[0] == 'B') {
      parts.pair = {{begin, 0, 0}, {}, {end, 0, 0}, {-1, 1, 1}, {end, 0, 1}};
    } else {
      parts.trim_offsets = n.truth("trim_offsets", true);
      parts.prefix_space = n.truth("add_prefix_space", true);
      parts.pair = {{begin, 0, 0}, {}, {end, 0, 0}, {end, 0, 0}, {-1, 1, 0}, {end, 0, 0}};
    }
  } else {
    n.at("type").fail(
        "ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing or "
        "Sequence");
  }
}

DecodeStep read_decode(const Node& n) {
  DecodeStep s;
  const std::string& type = n.type();
  if (type == "ByteLevel") {
    s.kind = DecodeStep::Kind::byte_level;
  } else if (type == "WordPiece") {
    s.kind = DecodeStep::Kind::wordpiece;
    s.from = n.text("prefix", "##");
    s.cleanup = n.truth("cleanup", true);
  } else if (type == "BPEDecoder") {
    s.kind = DecodeStep::Kind::suffix;
    s.from = n.text("suffix", "</w>");
  } else if (type == "Metaspace") {
    s.kind = DecodeStep::Kind::metaspace;
    s.from = n.text("replacement", "\u2581");
    s.prefix = read_prepend(n) != SplitStep::Prepend::never;
  } else if (type == "Replace") {
    s.kind = DecodeStep::Kind::replace;
    s.from = n.at("pattern").at("String").text();
    s.to = n.at("content").text();
  } else if (type == "ByteFallback") {
    s.kind = DecodeStep::Kind::byte_fallback;
  } else if (type == "Fuse") {
    s.kind = DecodeStep::Kind::fuse;
  } else if (type == "Strip") {
    s.kind = DecodeStep::Kind::strip;
    s.from = n.at("content").text();
    s.start = n.at("start").whole(1 << 20);
    s.stop = n.at("stop").whole(1 << 20);
  } else {
    n.at("type").fail(
        "ByteLevel, WordPiece, BPEDecoder, Metaspace, Replace, ByteFallback, Fuse, "
        "Strip or Sequence");
  }
  return s;
}

}  // namespace

Tokenizer Tokenizer::parse(const std::string& name, std::string_view text) {
  const io::Json json = io::parse_json(name, text);
  const Node root{&json, "", &name};
  if (!json.is(Kind::object) || !json.find("model")) {
    throw IoError("tokenizer", name + ": is no tokenizer.json: there is no \"model\" in it",
                  "vocab.json is read with merges.txt beside it");
  }
  TokenizerParts parts;
  if (const auto n = root.get("normalizer")) {
    each_step(*n, "normalizers", [&](const Node& s) { parts.normal.push_back(read_normal(s)); });
  }
  if (const auto n = root.get("pre_tokenizer")) {
    each_step(*n, "pretokenizers", [&](const Node& s) { parts.splits.push_back(read_split(s)); });
  }
  read_model(root.at("model"), parts);
  if (const auto n = root.get("added_tokens")) read_added(*n, parts);
  if (const auto n = root.get("post_processor")) {
    each_step(*n, "processors", [&](const Node& s) { read_post(s, parts); });
  }
  if (const auto n = root.get("decoder")) {
    each_step(*n, "decoders", [&](const Node& s) { parts.decode.push_back(read_decode(s)); });
  } else {
    parts.join_with_blanks = true;
  }
  if (const auto n = root.get("padding")) parts.pad = token_number(parts, n->at("pad_id"));
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::parse_gpt2(const std::string& vocabulary_name, std::string_view vocabulary,
                                const std::string& merges_name, std::string_view merges) {
  const io::Json json = io::parse_json(vocabulary_name, vocabulary);
  Bpe m;
  m.byte_level = true;
  m.vocabulary = read_vocabulary({&json, "vocabulary", &vocabulary_name});
  std::vector<int64_t> lines;
  int64_t number = 0;
  for (const std::string& line : lines_of(merges)) {
    ++number;
    if (line.empty() || line.starts_with("#version")) continue;
    io::Json value{.kind = Kind::text};
    value.text = line;
    const std::string place = fmt::format("{}:{}", merges_name, number);
    m.merges.push_back(read_merge(m.vocabulary, {&value, "the merge", &place}));
    lines.push_back(number);
  }
  size_t bad = 0;
  if (!m.prepare(&bad)) {
    throw IoError("tokenizer", fmt::format("{}:{}: the result of the merge is no token",
                                           merges_name, lines[bad]));
  }
  TokenizerParts parts;
  const int32_t end = m.vocabulary.find("<|endoftext|>");
  if (end >= 0) parts.added.push_back({.text = "<|endoftext|>", .id = end});
  parts.model = std::move(m);
  parts.splits = {{.kind = SplitStep::Kind::byte_level, .regex = Regex(kGpt2Pattern), .word = {}}};
  parts.decode = {{.kind = DecodeStep::Kind::byte_level, .from = {}, .to = {}}};
  return Tokenizer(std::move(parts));
}

}  // namespace cutaway::data

// Parts of a tokenizer as tokenizer.json.
#include <fmt/format.h>

#include <cutaway/core/io/json.h>
#include <cutaway/datasets/text/tokenizer_parts.h>

namespace cutaway::data {
namespace {

using io::json_string;
using Members = std::vector<std::string>;

const char* truth(bool b) { return b ? "true" : "false"; }

std::string member(std::string_view key, const std::string& value) {
  return json_string(key) + ": " + value;
}
std::string member(std::string_view key, bool value) {
  return member(key, std::string(truth(value)));
}

std::string object(const Members& members) {
  std::string text = "{";
  for (size_t i = 0; i < members.size(); ++i) text += (i ? ", " : "") + members[i];
  return text + "}";
}

std::string typed(const char* type, Members members = {}) {
  members.insert(members.begin(), member("type", json_string(type)));
  return object(members);
}

// null, the step, or a sequence of them.
std::string sequence(const Members& steps, const char* key) {
  if (steps.empty()) return "null";
  if (steps.size() == 1) return steps[0];
  std::string list = "[";
  for (size_t i = 0; i < steps.size(); ++i) list += (i ? ", " : "") + steps[i];
  return typed("Sequence", {member(key, list + "]")});
}

std::string pattern(const std::optional<Regex>& regex, const std::string& word) {
  return object({regex ? member("Regex", json_string(regex->pattern()))
                       : member("String", json_string(word))});
}

std::string normal_json(const NormalStep& s) {
  switch (s.kind) {
    case NormalStep::Kind::bert:
      return typed("BertNormalizer",
                   {member("clean_text", s.clean), member("handle_chinese_chars", s.ideographs),
                    member("strip_accents", s.accents ? std::string(truth(*s.accents)) : "null"),
                    member("lowercase", s.lower)});
    case NormalStep::Kind::lowercase:
      return typed("Lowercase");
    case NormalStep::Kind::form: {
      static const char* const kForms[] = {"NFC", "NFD", "NFKC", "NFKD"};
      return typed(kForms[int(s.form)]);
    }
    case NormalStep::Kind::strip_accents:
      return typed("StripAccents");
    case NormalStep::Kind::strip:
      return typed("Strip", {member("strip_left", s.left), member("strip_right", s.right)});
    case NormalStep::Kind::replace:
      return typed("Replace", {member("pattern", pattern(s.regex, s.from)),
                               member("content", json_string(s.to))});
    case NormalStep::Kind::prepend:
      break;
  }
  return typed("Prepend", {member("prepend", json_string(s.to))});
}

std::string behavior_json(SplitBehavior b) {
  static const char* const kNames[] = {"Removed", "Isolated", "MergedWithPrevious",
                                       "MergedWithNext", "Contiguous"};
  return json_string(kNames[int(b)]);
}

std::string split_json(const SplitStep& s) {
  static const char* const kPrepend[] = {"always", "first", "never"};
  switch (s.kind) {
    case SplitStep::Kind::byte_level:
      return typed("ByteLevel", {member("add_prefix_space", s.prefix_space),
                                 member("trim_offsets", true), member("use_regex", s.words)});
    case SplitStep::Kind::white_space:
      return typed("Whitespace");
    case SplitStep::Kind::white_space_only:
      return typed("WhitespaceSplit");
    case SplitStep::Kind::bert:
      return typed("BertPreTokenizer");
    case SplitStep::Kind::pattern:
      return typed("Split",
                   {member("pattern", pattern(s.regex, s.word)),
                    member("behavior", behavior_json(s.behavior)), member("invert", s.invert)});
    case SplitStep::Kind::digits:
      return typed("Digits", {member("individual_digits", s.individual)});
    case SplitStep::Kind::punctuation:
      return typed("Punctuation", {member("behavior", behavior_json(s.behavior))});
    case SplitStep::Kind::metaspace:
      break;
  }
  return typed("Metaspace", {member("replacement", json_string(s.word)),
                             member("prepend_scheme", json_string(kPrepend[int(s.prepend)])),
                             member("split", s.words)});
}

std::string decode_json(const DecodeStep& s) {
  switch (s.kind) {
    case DecodeStep::Kind::byte_level:
      return typed("ByteLevel", {member("add_prefix_space", true), member("trim_offsets", true),
                                 member("use_regex", true)});
    case DecodeStep::Kind::wordpiece:
      return typed("WordPiece",
                   {member("prefix", json_string(s.from)), member("cleanup", s.cleanup)});
    case DecodeStep::Kind::suffix:
      return typed("BPEDecoder", {member("suffix", json_string(s.from))});
    case DecodeStep::Kind::metaspace:
      return typed("Metaspace",
                   {member("replacement", json_string(s.from)),
                    member("prepend_scheme", json_string(s.prefix ? "always" : "never")),
                    member("split", true)});
    case DecodeStep::Kind::replace:
      return typed("Replace",
                   {member("pattern", pattern({}, s.from)), member("content", json_string(s.to))});
    case DecodeStep::Kind::byte_fallback:
      return typed("ByteFallback");
    case DecodeStep::Kind::fuse:
      return typed("Fuse");
    case DecodeStep::Kind::strip:
      break;
  }
  return typed("Strip",
               {member("content", json_string(s.from)), member("start", std::to_string(s.start)),
                member("stop", std::to_string(s.stop))});
}

std::string vocabulary_json(const Vocabulary& v) {
  std::string text = "{";
  bool any = false;
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    if (v.tokens[id].empty()) continue;
    text += fmt::format("{}\n      {}: {}", any ? "," : "", json_string(v.tokens[id]), id);
    any = true;
  }
  return text + "\n    }";
}

std::string unknown_json(const Vocabulary& v, int32_t id) {
  return id < 0 ? "null" : json_string(v.tokens[size_t(id)]);
}

std::string model_json(const Bpe& m) {
  const auto text_or_null = [](const std::string& t) {
    return t.empty() ? "null" : json_string(t);
  };
  std::string merges = "[";
  for (size_t i = 0; i < m.merges.size(); ++i) {
    merges += fmt::format("{}\n      [{}, {}]", i ? "," : "",
                          json_string(m.vocabulary.tokens[size_t(m.merges[i].left)]),
                          json_string(m.vocabulary.tokens[size_t(m.merges[i].right)]));
  }
  return typed(
      "BPE",
      {member("dropout", std::string("null")),
       member("unk_token", unknown_json(m.vocabulary, m.unknown)),
       member("continuing_subword_prefix", text_or_null(m.prefix)),
       member("end_of_word_suffix", text_or_null(m.suffix)), member("fuse_unk", m.fuse_unknown),
       member("byte_fallback", m.byte_fallback), member("ignore_merges", m.whole_words),
       member("vocab", vocabulary_json(m.vocabulary)), member("merges", merges + "]")});
}

std::string model_json(const WordPiece& m) {
  return typed("WordPiece", {member("unk_token", unknown_json(m.vocabulary, m.unknown)),
                             member("continuing_subword_prefix", json_string(m.prefix)),
                             member("max_input_chars_per_word", std::to_string(m.longest_word)),
                             member("vocab", vocabulary_json(m.vocabulary))});
}

std::string model_json(const WordLevel& m) {
  return typed("WordLevel", {member("vocab", vocabulary_json(m.vocabulary)),
                             member("unk_token", unknown_json(m.vocabulary, m.unknown))});
}

std::string added_json(const std::vector<AddedToken>& added) {
  std::string text = "[";
  for (const AddedToken& t : added) {
    text += (text.size() > 1 ? ",\n    " : "\n    ") +
            object({member("id", std::to_string(t.id)), member("content", json_string(t.text)),
                    member("single_word", t.single_word), member("lstrip", t.lstrip),
                    member("rstrip", t.rstrip), member("normalized", t.normalized),
                    member("special", t.special)});
  }
  return text + "]";
}

std::string pieces_json(const TokenizerParts& parts, const std::vector<TemplatePiece>& pieces) {
  std::string text = "[";
  for (const TemplatePiece& p : pieces) {
    const std::string name =
        p.id >= 0 ? parts.names[size_t(p.id)] : std::string(p.sequence ? "B" : "A");
    text +=
        (text.size() > 1 ? ", " : "") +
        object({member(
            p.id >= 0 ? "SpecialToken" : "Sequence",
            object({member("id", json_string(name)), member("type_id", std::to_string(p.type))}))});
  }
  return text + "]";
}

std::string template_json(const TokenizerParts& parts) {
  Members tokens;
  std::vector<uint8_t> seen(parts.names.size());
  for (const auto* pieces : {&parts.single, &parts.pair}) {
    for (const TemplatePiece& p : *pieces) {
      if (p.id < 0 || seen[size_t(p.id)]) continue;
      seen[size_t(p.id)] = 1;
      const std::string name = json_string(parts.names[size_t(p.id)]);
      tokens.push_back(name + ": " +
                       object({member("id", name), member("ids", fmt::format("[{}]", p.id)),
                               member("tokens", "[" + name + "]")}));
    }
  }
  return typed("TemplateProcessing", {member("single", pieces_json(parts, parts.single)),
                                      member("pair", pieces_json(parts, parts.pair)),
                                      member("special_tokens", object(tokens))});
}

}  // namespace

std::string tokenizer_json(const TokenizerParts& parts) {
  Members normal, splits, post, decode;
  for (const NormalStep& s : parts.normal) normal.push_back(normal_json(s));
  for (const SplitStep& s : parts.splits) splits.push_back(split_json(s));
  for (const DecodeStep& s : parts.decode) decode.push_back(decode_json(s));
  if (parts.trim_offsets) {
    post.push_back(typed("ByteLevel", {member("add_prefix_space", parts.prefix_space),
                                       member("trim_offsets", true), member("use_regex", true)}));
  }
  if (!parts.single.empty()) post.push_back(template_json(parts));
  std::string padding = "null";
  if (parts.pad >= 0 && size_t(parts.pad) < parts.names.size()) {
    padding = object(
        {member("strategy", json_string("BatchLongest")), member("direction", json_string("Right")),
         member("pad_to_multiple_of", std::string("null")),
         member("pad_id", std::to_string(parts.pad)), member("pad_type_id", std::string("0")),
         member("pad_token", json_string(parts.names[size_t(parts.pad)]))});
  }
  if (decode.empty() && !parts.join_with_blanks) decode.push_back(typed("Fuse"));
  const Members members = {
      member("version", json_string("1.0")),
      member("truncation", std::string("null")),
      member("padding", padding),
      member("added_tokens", added_json(parts.added)),
      member("normalizer", sequence(normal, "normalizers")),
      member("pre_tokenizer", sequence(splits, "pretokenizers")),
      member("post_processor", sequence(post, "processors")),
      member("decoder", sequence(decode, "decoders")),
      member("model", std::visit([](const auto& m) { return model_json(m); }, parts.model))};
  std::string text = "{";
  for (size_t i = 0; i < members.size(); ++i) text += (i ? ",\n  " : "\n  ") + members[i];
  return text + "\n}\n";
}

}  // namespace cutaway::data

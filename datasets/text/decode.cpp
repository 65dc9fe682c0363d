// From tokens to text.
#include <algorithm>
#include <charconv>

#include <cutaway/datasets/text/tokenizer_parts.h>

namespace cutaway::data {
namespace {

using Strings = std::vector<std::string>;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  const size_t before = text.size();
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
    check_growth(before, text.size());
  }
}

void join(Strings& tokens) {
  std::string all;
  for (const std::string& t : tokens) all += t;
  tokens = {std::move(all)};
}

// A token whose characters are not all names of bytes stands for itself.
void to_bytes(Strings& tokens) {
  for (std::string& t : tokens) {
    std::string bytes;
    bool all = true;
    for (size_t at = 0; all && at < t.size();) {
      const int byte = byte_of_name(next_character(t, at));
      all = byte >= 0;
      bytes += char(byte);
    }
    if (all) t = std::move(bytes);
  }
}

void join_wordpieces(Strings& tokens, const DecodeStep& s) {
  static const std::pair<const char*, const char*> kCleanups[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string& t = tokens[i];
    if (i > 0) {
      if (t.starts_with(s.from)) {
        t.erase(0, s.from.size());
      } else {
        t.insert(0, " ");
      }
    }
    if (!s.cleanup) continue;
    for (const auto& [from, to] : kCleanups) replace_all(t, from, to);
  }
}

// The byte of "<0x41>", −1 for other tokens.
int fallback_byte(const std::string& t) {
  if (t.size() != 6 || !t.starts_with("<0x") || t[5] != '>') return -1;
  int byte = -1;
  const auto [end, error] = std::from_chars(t.data() + 3, t.data() + 5, byte, 16);
  return error == std::errc() && end == t.data() + 5 ? byte : -1;
}

// Runs of byte tokens become their text, or, when that is not UTF-8, a sign for each byte.
void join_fallback_bytes(Strings& tokens) {
  Strings out;
  std::string run;
  const auto flush = [&] {
    if (find_not_utf8(run) == std::string_view::npos) {
      if (!run.empty()) out.push_back(run);
    } else {
      for (size_t i = 0; i < run.size(); ++i) out.push_back("\xEF\xBF\xBD");
    }
    run.clear();
  };
  for (std::string& t : tokens) {
    const int byte = fallback_byte(t);
    if (byte >= 0) {
      run += char(byte);
      continue;
    }
    flush();
    out.push_back(std::move(t));
  }
  flush();
  tokens = std::move(out);
}

void strip(std::string& t, const DecodeStep& s) {
  if (s.from.empty()) return;
  for (int64_t i = 0; i < s.start && t.starts_with(s.from); ++i) t.erase(0, s.from.size());
  for (int64_t i = 0; i < s.stop && t.ends_with(s.from); ++i) t.resize(t.size() - s.from.size());
}

void apply(Strings& tokens, const DecodeStep& s) {
  switch (s.kind) {
    case DecodeStep::Kind::byte_level:
      to_bytes(tokens);
      return join(tokens);
    case DecodeStep::Kind::wordpiece:
      return join_wordpieces(tokens, s);
    case DecodeStep::Kind::suffix:
      for (size_t i = 0; i < tokens.size(); ++i) {
        replace_all(tokens[i], s.from, i + 1 < tokens.size() ? " " : "");
      }
      return;
    case DecodeStep::Kind::metaspace:
      for (size_t i = 0; i < tokens.size(); ++i) {
        if (i == 0 && s.prefix && tokens[i].starts_with(s.from)) tokens[i].erase(0, s.from.size());
        replace_all(tokens[i], s.from, " ");
      }
      return;
    case DecodeStep::Kind::replace:
      for (std::string& t : tokens) replace_all(t, s.from, s.to);
      return;
    case DecodeStep::Kind::byte_fallback:
      return join_fallback_bytes(tokens);
    case DecodeStep::Kind::fuse:
      return join(tokens);
    case DecodeStep::Kind::strip:
      for (std::string& t : tokens) strip(t, s);
      return;
  }
}

}  // namespace

std::string decoded(Strings tokens, const TokenizerParts& parts) {
  const auto size = [&] {
    size_t bytes = 0;
    for (const std::string& t : tokens) bytes += t.size() + 1;
    return bytes;
  };
  const size_t before = size();
  for (const DecodeStep& s : parts.decode) {
    apply(tokens, s);
    check_growth(before, size());
  }
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && parts.join_with_blanks) text += ' ';
    text += tokens[i];
  }
  return text;
}

}  // namespace cutaway::data

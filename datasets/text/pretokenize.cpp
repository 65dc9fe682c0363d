#include <cutaway/datasets/text/pretokenize.h>

#include <algorithm>

namespace cutaway::data {

const char kGpt2Pattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

struct Part {
  size_t begin, end;
  bool match;
};
using Places = std::vector<std::pair<size_t, size_t>>;

// Matches and what lies between them, in order.
std::vector<Part> parts_of(size_t size, const Places& matches, bool invert) {
  std::vector<Part> parts;
  size_t at = 0;
  for (const auto& [begin, end] : matches) {
    if (at < begin) parts.push_back({at, begin, invert});
    parts.push_back({begin, end, !invert});
    at = end;
  }
  if (at < size) parts.push_back({at, size, invert});
  return parts;
}

// Separators joined to the part before them; of several in a row only the first.
std::vector<Part> joined_to_previous(const std::vector<Part>& parts) {
  std::vector<Part> out;
  bool before = false;
  for (const Part& p : parts) {
    if (p.match && !before && !out.empty()) {
      out.back().end = p.end;
    } else {
      out.push_back(p);
    }
    before = p.match;
  }
  return out;
}

std::vector<Part> joined_to_next(const std::vector<Part>& parts) {
  std::vector<Part> out;
  bool after = false;
  for (size_t i = parts.size(); i-- > 0;) {
    if (parts[i].match && !after && !out.empty()) {
      out.back().begin = parts[i].begin;
    } else {
      out.push_back(parts[i]);
    }
    after = parts[i].match;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Part> behaved(std::vector<Part> parts, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::removed:
      std::erase_if(parts, [](const Part& p) { return p.match; });
      return parts;
    case SplitBehavior::isolated:
      return parts;
    case SplitBehavior::merged_with_previous:
      return joined_to_previous(parts);
    case SplitBehavior::merged_with_next:
      return joined_to_next(parts);
    case SplitBehavior::contiguous:
      break;
  }
  std::vector<Part> out;
  for (const Part& p : parts) {
    if (!out.empty() && out.back().match == p.match) {
      out.back().end = p.end;
    } else {
      out.push_back(p);
    }
  }
  return out;
}

// Every character for which f holds.
template <class F>
Places characters(const std::string& text, F f) {
  Places places;
  for (size_t at = 0; at < text.size();) {
    const size_t from = at;
    if (f(next_character(text, at))) places.emplace_back(from, at);
  }
  return places;
}

void cut(const Aligned& piece, const Places& matches, SplitBehavior behavior, bool invert,
         std::vector<Aligned>& words) {
  for (const Part& p : behaved(parts_of(piece.text.size(), matches, invert), behavior)) {
    words.push_back(piece.part(p.begin, p.end));
  }
}

// White space goes; what remains is cut where word characters and others meet.
void cut_white_space(const Aligned& piece, bool at_signs, std::vector<Aligned>& words) {
  const std::string& t = piece.text;
  size_t begin = 0;
  int before = 0;  // 0 white space, 1 word character, 2 other
  const auto flush = [&](size_t end) {
    if (before != 0) words.push_back(piece.part(begin, end));
    begin = end;
  };
  for (size_t at = 0; at < t.size();) {
    const size_t from = at;
    const char32_t c = next_character(t, at);
    const int kind = is_white_space(c) ? 0 : !at_signs || is_word_character(c) ? 1 : 2;
    if (kind != before) flush(from);
    before = kind;
  }
  flush(t.size());
}

void cut_bert(const Aligned& piece, std::vector<Aligned>& words) {
  std::vector<Aligned> runs;
  cut_white_space(piece, false, runs);
  for (const Aligned& run : runs) {
    cut(run, characters(run.text, is_punctuation), SplitBehavior::isolated, false, words);
  }
}

void cut_metaspace(const Aligned& piece, const SplitStep& s, bool first,
                   std::vector<Aligned>& words) {
  const NormalStep mark{.kind = NormalStep::Kind::replace, .from = " ", .to = s.word, .regex = {}};
  Aligned text = normalized(piece, mark);
  const bool wanted =
      s.prepend == SplitStep::Prepend::always || (s.prepend == SplitStep::Prepend::first && first);
  if (wanted && !text.text.starts_with(s.word)) {
    text = normalized(text, {.kind = NormalStep::Kind::prepend, .from = {}, .to = s.word});
  }
  if (!s.words) {
    words.push_back(std::move(text));
    return;
  }
  cut(text, occurrences(text.text, s.word), SplitBehavior::merged_with_next, false, words);
}

}  // namespace

void split_words(Aligned piece, const SplitStep& s, bool first, std::vector<Aligned>& words) {
  switch (s.kind) {
    case SplitStep::Kind::byte_level:
      if (s.prefix_space && !piece.text.starts_with(' ')) {
        piece = normalized(piece, {.kind = NormalStep::Kind::prepend, .from = {}, .to = " "});
      }
      if (s.words && s.regex) {
        cut(piece, s.regex->matches(piece.text), SplitBehavior::isolated, false, words);
      } else {
        words.push_back(std::move(piece));
      }
      return;
    case SplitStep::Kind::white_space:
      return cut_white_space(piece, true, words);
    case SplitStep::Kind::white_space_only:
      return cut_white_space(piece, false, words);
    case SplitStep::Kind::bert:
      return cut_bert(piece, words);
    case SplitStep::Kind::pattern:
      return cut(piece, s.regex ? s.regex->matches(piece.text) : occurrences(piece.text, s.word),
                 s.behavior, s.invert, words);
    case SplitStep::Kind::digits:
      return cut(piece, characters(piece.text, is_number),
                 s.individual ? SplitBehavior::isolated : SplitBehavior::contiguous, false, words);
    case SplitStep::Kind::punctuation:
      return cut(piece, characters(piece.text, is_punctuation), s.behavior, false, words);
    case SplitStep::Kind::metaspace:
      return cut_metaspace(piece, s, first, words);
  }
}

}  // namespace cutaway::data

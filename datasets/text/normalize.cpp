#include <cutaway/datasets/text/normalize.h>

#include <fmt/format.h>
#include <algorithm>

#include <cutaway/core/error.h>

namespace cutaway::data {
namespace {

// Calls f(character, begin, end) for every character of the text.
template <class F>
void each_character(const std::string& text, F f) {
  for (size_t at = 0; at < text.size();) {
    const size_t from = at;
    const char32_t c = next_character(text, at);
    f(c, from, at);
  }
}

Aligned like(const Aligned& in) {
  Aligned out;
  out.tracked = in.tracked;
  out.text.reserve(in.text.size());
  return out;
}

void append(Aligned& out, const Aligned& more) {
  out.text += more.text;
  out.begin.insert(out.begin.end(), more.begin.begin(), more.begin.end());
  out.end.insert(out.end.end(), more.end.begin(), more.end.end());
}

Aligned in_form(const Aligned& in, NormalForm form) {
  Aligned out = like(in);
  size_t from = 0;
  const auto flush = [&](size_t to) {
    if (from < to) {
      const std::string_view piece(in.text.data() + from, to - from);
      const std::string made = to - from == 1 ? std::string(piece) : normal_form(piece, form);
      if (made == piece) {
        append(out, in.part(from, to));
      } else {
        out.add(made, in, from, to);
      }
    }
    from = to;
  };
  each_character(in.text, [&](char32_t c, size_t begin, size_t) {
    if (begins_segment(c)) flush(begin);
  });
  flush(in.text.size());
  return out;
}

Aligned clean(const Aligned& in) {
  Aligned out = like(in);
  each_character(in.text, [&](char32_t c, size_t from, size_t to) {
    const bool blank = c == '\t' || c == '\n' || c == '\r' || is_white_space(c);
    const bool other = c == 0 || c == 0xFFFD || (is_other(c) && !blank);
    // White_Space has controls (such as U+0085) that count as controls, except the three.
    const bool control = is_other(c) && c != '\t' && c != '\n' && c != '\r';
    if (other || control) return;
    out.add(blank ? std::string_view(" ") : std::string_view(in.text).substr(from, to - from), in,
            from, to);
  });
  return out;
}

Aligned with_spaced_ideographs(const Aligned& in) {
  Aligned out = like(in);
  each_character(in.text, [&](char32_t c, size_t from, size_t to) {
    const std::string_view bytes = std::string_view(in.text).substr(from, to - from);
    if (is_ideograph(c)) out.add(" ", in, from, to);
    out.add(bytes, in, from, to);
    if (is_ideograph(c)) out.add(" ", in, from, to);
  });
  return out;
}

template <class Drop>
Aligned without(const Aligned& in, Drop drop) {
  Aligned out = like(in);
  each_character(in.text, [&](char32_t c, size_t from, size_t to) {
    if (!drop(c)) out.add(std::string_view(in.text).substr(from, to - from), in, from, to);
  });
  return out;
}

Aligned lower(const Aligned& in) {
  Aligned out = like(in);
  std::string bytes;
  each_character(in.text, [&](char32_t c, size_t from, size_t to) {
    bytes.clear();
    append_lower(bytes, c);
    out.add(bytes, in, from, to);
  });
  return out;
}

Aligned bert(const Aligned& in, const NormalStep& s) {
  Aligned t = s.clean ? clean(in) : in;
  if (s.ideographs) t = with_spaced_ideographs(t);
  if (s.accents.value_or(s.lower)) t = without(in_form(t, NormalForm::nfd), is_nonspacing_mark);
  return s.lower ? lower(t) : t;
}

Aligned stripped(const Aligned& in, bool left, bool right) {
  size_t from = in.text.size(), to = 0;
  each_character(in.text, [&](char32_t c, size_t begin, size_t end) {
    if (is_white_space(c)) return;
    from = std::min(from, begin);
    to = end;
  });
  if (from > to) return like(in);  // white space only
  return in.part(left ? from : 0, right ? to : in.text.size());
}

Aligned replaced(const Aligned& in, const NormalStep& s) {
  const auto places = s.regex ? s.regex->matches(in.text) : occurrences(in.text, s.from);
  Aligned out = like(in);
  size_t from = 0;
  for (const auto& [begin, end] : places) {
    append(out, in.part(from, begin));
    out.add(s.to, in, begin, end);
    check_growth(in.text.size(), out.text.size());
    from = end;
  }
  append(out, in.part(from, in.text.size()));
  return out;
}

Aligned prepended(const Aligned& in, const std::string& word) {
  if (in.text.empty()) return in;
  Aligned out = like(in);
  size_t first = 0;
  next_character(in.text, first);
  out.add(word, in, 0, first);
  append(out, in);
  return out;
}

}  // namespace

Aligned Aligned::of(std::string_view source, size_t place, bool tracked) {
  Aligned a;
  a.text = source;
  a.tracked = tracked;
  if (!tracked) return a;
  for (size_t at = 0; at < source.size();) {
    const size_t from = at;
    next_character(source, at);
    a.begin.insert(a.begin.end(), at - from, uint32_t(place + from));
    a.end.insert(a.end.end(), at - from, uint32_t(place + at));
  }
  return a;
}

void Aligned::add(std::string_view bytes, const Aligned& other, size_t from, size_t to) {
  text += bytes;
  if (!tracked || from >= to) return;
  begin.insert(begin.end(), bytes.size(), other.begin[from]);
  end.insert(end.end(), bytes.size(), other.end[to - 1]);
}

Aligned Aligned::part(size_t from, size_t to) const {
  Aligned a;
  a.text = text.substr(from, to - from);
  a.tracked = tracked;
  if (tracked) {
    a.begin.assign(begin.begin() + int64_t(from), begin.begin() + int64_t(to));
    a.end.assign(end.begin() + int64_t(from), end.begin() + int64_t(to));
  }
  return a;
}

void check_growth(size_t before, size_t after) {
  constexpr size_t kTimes = 64, kFree = 1u << 20;
  if (after <= before * kTimes + kFree) return;
  throw ValueError("tokenizer", fmt::format("a step may make text {} times as long; got {} bytes "
                                            "from {}",
                                            kTimes, after, before));
}

std::vector<std::pair<size_t, size_t>> occurrences(std::string_view text, std::string_view word) {
  std::vector<std::pair<size_t, size_t>> found;
  if (word.empty()) return found;
  for (size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + word.size())) {
    found.emplace_back(at, at + word.size());
  }
  return found;
}

Aligned normalized(const Aligned& text, const NormalStep& s) {
  switch (s.kind) {
    case NormalStep::Kind::bert:
      return bert(text, s);
    case NormalStep::Kind::lowercase:
      return lower(text);
    case NormalStep::Kind::form:
      return in_form(text, s.form);
    case NormalStep::Kind::strip_accents:
      return without(text, is_mark);
    case NormalStep::Kind::strip:
      return stripped(text, s.left, s.right);
    case NormalStep::Kind::replace:
      return replaced(text, s);
    case NormalStep::Kind::prepend:
      return prepended(text, s.to);
  }
  return text;
}

}  // namespace cutaway::data

#include <cutaway/datasets/text/unicode.h>

#include <utf8proc.h>
#include <vector>

#include <cutaway/core/error.h>

namespace cutaway::data {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(utf8proc_int32_t(c)); }

// Bytes of the character that begins at `at`, 0 when it is not valid.
size_t valid_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return uint8_t(text[at + i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t n = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + n > text.size()) return 0;
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) > 0x9F;
  const bool too_large = first == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || too_large ? 0 : n;
}

}  // namespace

size_t find_not_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t n = valid_length(text, at);
    if (n == 0) return at;
    at += n;
  }
  return std::string_view::npos;
}

char32_t next_character(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return char32_t(uint8_t(text[i])); };
  const char32_t first = byte(at);
  if (first < 0x80) return byte(at++);
  const size_t n = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  char32_t c = first & (0x7Fu >> n);
  for (size_t i = 1; i < n; ++i) c = c << 6 | (byte(at + i) & 0x3F);
  at += n;
  return c;
}

void append_character(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += char(c);
  } else if (c < 0x800) {
    text += char(0xC0 | c >> 6);
    text += char(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    text += char(0xE0 | c >> 12);
    text += char(0x80 | (c >> 6 & 0x3F));
    text += char(0x80 | (c & 0x3F));
  } else {
    text += char(0xF0 | c >> 18);
    text += char(0x80 | (c >> 12 & 0x3F));
    text += char(0x80 | (c >> 6 & 0x3F));
    text += char(0x80 | (c & 0x3F));
  }
}

int64_t count_characters(std::string_view text) {
  int64_t n = 0;
  for (const char c : text) n += (uint8_t(c) & 0xC0) != 0x80;
  return n;
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_number(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
           (c >= 123 && c <= 126);
  }
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

bool is_other(char32_t c) {
  if (c < 0x80) return c < 32 || c == 127;
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO;
}

bool is_nonspacing_mark(char32_t c) { return c >= 0x300 && category(c) == UTF8PROC_CATEGORY_MN; }

bool is_mark(char32_t c) {
  const auto k = category(c);
  return c >= 0x300 && k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME;
}

bool is_letter_or_mark(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_ME;
}

bool is_word_character(char32_t c) {
  if (c < 0x80) return is_letter_or_mark(c) || is_number(c) || c == '_';
  const auto k = category(c);
  const bool letters_in_signs = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                                (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  return is_letter_or_mark(c) || k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL ||
         k == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D || letters_in_signs;
}

bool is_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

bool begins_segment(char32_t c) {
  if (c < 0x300) return true;
  if (c >= 0x1160 && c <= 0x11FF) return false;  // parts of Korean syllables
  const auto k = category(c);
  return k < UTF8PROC_CATEGORY_MN || k > UTF8PROC_CATEGORY_ME;
}

void append_lower(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += char(c >= 'A' && c <= 'Z' ? c + 32 : c);
  } else if (c == 0x130) {  // I with a dot: the only one that becomes two
    text += "i\xCC\x87";
  } else {
    append_character(text, char32_t(utf8proc_tolower(utf8proc_int32_t(c))));
  }
}

std::string normal_form(std::string_view text, NormalForm form) {
  int options = UTF8PROC_STABLE;
  if (form == NormalForm::nfc || form == NormalForm::nfkc) options |= UTF8PROC_COMPOSE;
  if (form == NormalForm::nfd || form == NormalForm::nfkd) options |= UTF8PROC_DECOMPOSE;
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto n = utf8proc_ssize_t(text.size());
  const auto option = utf8proc_option_t(options);
  std::vector<utf8proc_int32_t> points(text.size() + 1);
  utf8proc_ssize_t need =
      utf8proc_decompose(bytes, n, points.data(), utf8proc_ssize_t(points.size()) - 1, option);
  if (need >= utf8proc_ssize_t(points.size())) {
    points.resize(size_t(need) + 1);
    need = utf8proc_decompose(bytes, n, points.data(), need, option);
  }
  if (need >= 0) need = utf8proc_normalize_utf32(points.data(), need, option);
  if (need < 0) throw ValueError("text", "cannot be normalised: it is not UTF-8");
  std::string out;
  for (utf8proc_ssize_t i = 0; i < need; ++i) append_character(out, char32_t(points[size_t(i)]));
  return out;
}

}  // namespace cutaway::data

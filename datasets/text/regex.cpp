#define PCRE2_CODE_UNIT_WIDTH 8
#include <cutaway/datasets/text/regex.h>

#include <fmt/format.h>
#include <pcre2.h>

#include <cutaway/core/error.h>

namespace cutaway::data {
namespace {

std::string message_of(int code) {
  PCRE2_UCHAR text[200] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

struct MatchDataDeleter {
  void operator()(pcre2_match_data* d) const { pcre2_match_data_free(d); }
};

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  pcre2_match_context* limits = nullptr;
  ~Code() {
    pcre2_code_free(code);
    pcre2_match_context_free(limits);
  }
};

Regex::Regex(const std::string& pattern) : pattern_(pattern) {
  auto made = std::make_shared<Code>();
  int error = 0;
  PCRE2_SIZE at = 0;
  made->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr);
  if (!made->code) {
    throw ValueError("regex", fmt::format("\"{}\" is no regular expression: {} at byte {}", pattern,
                                          message_of(error), at));
  }
  // Without just-in-time code, as where memory cannot be made executable, matching is slower only.
  pcre2_jit_compile(made->code, PCRE2_JIT_COMPLETE);
  made->limits = pcre2_match_context_create(nullptr);
  if (!made->limits) throw MemoryError("regex", "no memory for a regular expression");
  pcre2_set_match_limit(made->limits, 1'000'000);
  pcre2_set_heap_limit(made->limits, 64 * 1024);  // KiB
  code_ = std::move(made);
}

std::vector<std::pair<size_t, size_t>> Regex::matches(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, MatchDataDeleter> data(
      pcre2_match_data_create_from_pattern(code_->code, nullptr));
  if (!data) throw MemoryError("regex", "no memory for a match");
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data.get());
  std::vector<std::pair<size_t, size_t>> found;
  for (size_t from = 0; from < text.size();) {
    int rc = pcre2_match(code_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data.get(),
                         code_->limits);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
      rc = pcre2_match(code_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       data.get(), code_->limits);
    }
    if (rc == PCRE2_ERROR_NOMATCH) break;
    if (rc < 0) {
      throw ValueError("regex",
                       fmt::format("\"{}\" cannot be applied: {}", pattern_, message_of(rc)));
    }
    const size_t begin = span[0], end = span[1];
    if (end > begin && begin >= from) {
      found.emplace_back(begin, end);
      from = end;
      continue;
    }
    // An empty match: go on behind the next character.
    from = std::max(from, end) + 1;
    while (from < text.size() && (uint8_t(text[from]) & 0xC0) == 0x80) ++from;
  }
  return found;
}

}  // namespace cutaway::data

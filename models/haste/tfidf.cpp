// tf-idf weights that are kept, so that raw text can be predicted later.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/models/haste/data.h>
#include <cutaway/models/haste/text_lines.h>

namespace cutaway::haste {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || u > 127) {
      word += upper ? char(c + 32) : c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

void Vectorizer::weigh(Csr& counts) const {
  if (counts.cols != int64_t(idf.size())) {
    throw ValueError("tf-idf",
                     fmt::format("the counts have {} columns, need {}", counts.cols, idf.size()));
  }
  if (counts.value.empty()) counts.value.assign(counts.index.size(), 1.f);
  for (int64_t r = 0; r < counts.rows(); ++r) {
    const int64_t begin = counts.start[size_t(r)], end = counts.start[size_t(r) + 1];
    double squares = 0;
    for (int64_t at = begin; at < end; ++at) {
      const double w = double(counts.value[size_t(at)]) * idf[size_t(counts.index[size_t(at)])];
      squares += w * w;
    }
    if (squares <= 0) continue;
    const double scale = 1.0 / std::sqrt(squares);
    for (int64_t at = begin; at < end; ++at) {
      float& v = counts.value[size_t(at)];
      v = float(double(v) * idf[size_t(counts.index[size_t(at)])] * scale);
    }
  }
}

Csr Vectorizer::vectors(const std::vector<std::string>& texts) const {
  if (words.empty() && !idf.empty()) {
    throw ValueError("tf-idf", "this set has no words: its features cannot be read from text");
  }
  std::unordered_map<std::string_view, int32_t> places;
  for (size_t w = 0; w < words.size(); ++w) places.emplace(words[w], int32_t(w));
  Csr out;
  out.cols = int64_t(words.size());
  std::vector<std::pair<int32_t, float>> entries;
  for (const std::string& text : texts) {
    entries.clear();
    for (const std::string& word : words_of(text)) {
      if (const auto at = places.find(word); at != places.end()) {
        entries.emplace_back(at->second, 1.f);
      }
    }
    add_row(out, entries);
  }
  weigh(out);
  return out;
}

Vectorizer fit_vectorizer(const Csr& counts, std::vector<std::string> words) {
  if (!words.empty() && int64_t(words.size()) != counts.cols) {
    throw ValueError("tf-idf", fmt::format("{} words for {} columns", words.size(), counts.cols));
  }
  std::vector<int64_t> samples(static_cast<size_t>(counts.cols));
  for (const int32_t c : counts.index) ++samples[size_t(c)];
  Vectorizer v;
  v.words = std::move(words);
  for (const int64_t n : samples) {
    v.idf.push_back(float(
        std::log(std::max(1.0, double(counts.rows())) / double(std::max<int64_t>(n, 1))) + 1.0));
  }
  return v;
}

Vectorizer fit_vectorizer(const std::vector<std::string>& texts, int64_t min_count) {
  std::unordered_map<std::string, int64_t> samples;
  for (const std::string& text : texts) {
    std::vector<std::string> words = words_of(text);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    for (std::string& word : words) ++samples[std::move(word)];
  }
  std::vector<std::pair<int64_t, std::string>> kept;
  for (const auto& [word, n] : samples) {
    if (n >= min_count) kept.emplace_back(-n, word);
  }
  std::sort(kept.begin(), kept.end());
  Vectorizer v;
  for (auto& [n, word] : kept) {
    v.idf.push_back(float(std::log(double(texts.size()) / double(-n)) + 1.0));
    v.words.push_back(std::move(word));
  }
  return v;
}

void save_vectorizer(const Vectorizer& v, const std::string& path) {
  std::string text;
  for (size_t w = 0; w < v.idf.size(); ++w) {
    text += fmt::format("{}\t{}\n", v.words.empty() ? "" : v.words[w], v.idf[w]);
  }
  io::write_file_atomic(path, text);
}

Vectorizer load_vectorizer(const std::string& path) {
  const io::Bytes bytes = io::read_maybe_gzip(path);
  Lines lines(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  Vectorizer v;
  int64_t named = 0;
  for (std::string_view line; lines.next(line);) {
    const std::string_view word = cut(line, '\t');
    float idf = 0;
    if (!Lines::number(line, idf) || !std::isfinite(idf)) {
      lines.fail("need \"word<TAB>idf\"; got " + Lines::shown(line));
    }
    named += !word.empty();
    v.words.emplace_back(word);
    v.idf.push_back(idf);
  }
  if (named == 0) v.words.clear();
  if (named != 0 && named != int64_t(v.idf.size())) {
    throw IoError("xmc",
                  fmt::format("{}: {} of {} features have a word", path, named, v.idf.size()));
  }
  return v;
}

}  // namespace cutaway::haste

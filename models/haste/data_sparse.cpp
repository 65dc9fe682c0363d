// The sparse text format of the Extreme Classification Repository.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>

#include <cutaway/core/io/pack.h>
#include <cutaway/models/haste/data.h>
#include <cutaway/models/haste/text_lines.h>

namespace cutaway::haste {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

struct Header {
  int64_t rows = 0, features = 0, labels = 0;
};

Header read_header(Lines& lines, std::string_view line) {
  Header h;
  int64_t* const fields[] = {&h.rows, &h.features, &h.labels};
  for (int64_t* field : fields) {
    while (line.starts_with(' ')) line.remove_prefix(1);
    const std::string_view piece = cut(line, ' ');
    if (!Lines::number(piece, *field) || *field < 0 || *field > kMost) {
      lines.fail("the first line needs three counts \"samples features labels\"; got " +
                 Lines::shown(piece));
    }
  }
  // A header alone must not ask for more memory than there is.
  if (std::max(h.features, h.labels) > kMostColumns) {
    lines.fail(fmt::format("{} features and {} labels; need at most {} of each", h.features,
                           h.labels, kMostColumns));
  }
  if (line.find_first_not_of(' ') != std::string_view::npos) {
    lines.fail("the first line has more than three counts: " + Lines::shown(line));
  }
  return h;
}

// An index below `count`.
int32_t read_index(const Lines& lines, std::string_view text, int64_t count, const char* what) {
  int64_t index = -1;
  if (!Lines::number(text, index)) {
    lines.fail(fmt::format("{} {} is not a whole number", what, Lines::shown(text)));
  }
  if (index < 0 || index >= count) {
    lines.fail(fmt::format("{} {} is out of range; the header gives {}", what, index, count));
  }
  return int32_t(index);
}

void add_labels(const Lines& lines, std::string_view list, Csr& labels) {
  const int64_t first = labels.entries();
  while (!list.empty()) {
    labels.index.push_back(read_index(lines, cut(list, ','), labels.cols, "label"));
  }
  const auto begin = labels.index.begin() + first;
  std::sort(begin, labels.index.end());
  const auto twice = std::adjacent_find(begin, labels.index.end());
  if (twice != labels.index.end()) lines.fail(fmt::format("label {} is there twice", *twice));
  labels.start.push_back(labels.entries());
}

void add_features(const Lines& lines, std::string_view list, Csr& features,
                  std::vector<std::pair<int32_t, float>>& entries) {
  entries.clear();
  while (!list.empty()) {
    std::string_view piece = cut(list, ' ');
    if (piece.empty()) continue;
    const std::string_view whole = piece;
    const int32_t index = read_index(lines, cut(piece, ':'), features.cols, "feature");
    float value = 0;
    if (!Lines::number(piece, value) || !std::isfinite(value)) {
      lines.fail(fmt::format("feature {} needs a finite value index:value; got {}", index,
                             Lines::shown(whole)));
    }
    entries.emplace_back(index, value);
  }
  std::sort(entries.begin(), entries.end());
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].first == entries[i - 1].first) {
      lines.fail(fmt::format("feature {} is there twice", entries[i].first));
    }
  }
  add_row(features, entries);
}

}  // namespace

XmcData parse_sparse(const std::string& name, std::string_view text) {
  Lines lines(name, text);
  std::string_view line;
  if (!lines.next(line))
    throw IoError("xmc", name + ": is empty; need \"samples features labels\"");
  const Header h = read_header(lines, line);
  XmcData data;
  data.features.cols = h.features;
  data.labels.cols = h.labels;
  std::vector<std::pair<int32_t, float>> entries;
  while (lines.next(line)) {
    if (data.rows() == h.rows) {
      lines.fail(fmt::format("more lines than the {} samples of the header", h.rows));
    }
    // The labels end at the first blank; a list without a blank is one of labels only, unless it
    // holds a colon: a line whose blank for "no labels" was lost.
    const std::string_view labels = cut(line, ' ');
    if (labels.find(':') != std::string_view::npos) {
      lines.fail("begins with a feature; a sample without labels begins with a blank; got " +
                 Lines::shown(labels));
    }
    add_labels(lines, labels, data.labels);
    add_features(lines, line, data.features, entries);
  }
  if (data.rows() != h.rows) {
    lines.fail(
        fmt::format("the file ends after {} samples, the header gives {}", data.rows(), h.rows));
  }
  return data;
}

XmcData read_sparse(const std::string& path) {
  const io::Bytes bytes = io::read_unpacked(path);
  return parse_sparse(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void write_sparse(const XmcData& data, const std::string& path) {
  check_data(data, path);
  std::string text = fmt::format("{} {} {}\n", data.rows(), data.num_features(), data.num_labels());
  for (int64_t r = 0; r < data.rows(); ++r) {
    text += fmt::format("{}", fmt::join(data.labels.row(r), ","));
    const auto index = data.features.row(r);
    for (size_t i = 0; i < index.size(); ++i) {
      const bool ones = data.features.value.empty();
      text += fmt::format(" {}:{}", index[i], ones ? 1.f : data.features.values(r)[i]);
    }
    // Without features too, a line without labels begins with a blank.
    text += index.empty() && data.labels.row(r).empty() ? " \n" : "\n";
  }
  io::write_text(path, text);
}

}  // namespace cutaway::haste

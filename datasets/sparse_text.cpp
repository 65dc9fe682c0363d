#include <cutaway/datasets/sparse_text.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>

#include <cutaway/core/error.h>
#include <cutaway/core/io/pack.h>
#include <cutaway/datasets/text_lines.h>

namespace cutaway::data {
namespace {

using Entries = std::vector<std::pair<int32_t, float>>;

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// Takes the piece up to the next blank off the front of `text`.
std::string_view cut_blank(std::string_view& text) {
  const size_t end = text.find_first_of(" \t");
  const std::string_view piece = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return piece;
}

// A whole number from 0 to below `count`; `limit` says where the count is from.
int32_t read_index(const TextLines& lines, std::string_view text, int64_t count, const char* what,
                   const char* limit) {
  int64_t index = -1;
  if (!TextLines::number(text, index)) {
    lines.fail(fmt::format("{} {} is not a whole number", what, TextLines::shown(text)));
  }
  if (index < 0 || index >= count) {
    lines.fail(fmt::format("{} {} is out of range; {} {}", what, index, limit, count));
  }
  return int32_t(index);
}

// Numbers between commas, ascending, added as a row.
void add_labels(const TextLines& lines, std::string_view list, const char* limit, Csr& labels) {
  const int64_t first = labels.entries();
  while (!list.empty()) {
    labels.index.push_back(read_index(lines, cut(list, ','), labels.cols, "label", limit));
  }
  const auto begin = labels.index.begin() + first;
  std::sort(begin, labels.index.end());
  const auto twice = std::adjacent_find(begin, labels.index.end());
  if (twice != labels.index.end()) lines.fail(fmt::format("label {} is there twice", *twice));
  labels.start.push_back(labels.entries());
}

// "index:value" between blanks, as a row.
void add_features(const TextLines& lines, std::string_view list, const char* limit, Csr& features,
                  Entries& entries) {
  entries.clear();
  while (!list.empty()) {
    std::string_view piece = cut_blank(list);
    if (piece.empty()) continue;
    const std::string_view whole = piece;
    const int32_t index = read_index(lines, cut(piece, ':'), features.cols, "feature", limit);
    float value = 0;
    if (!TextLines::number(piece, value) || !std::isfinite(value)) {
      lines.fail(fmt::format("feature {} needs a finite value index:value; got {}", index,
                             TextLines::shown(whole)));
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

struct Header {
  int64_t rows = 0, features = 0, labels = 0;
};

Header read_header(TextLines& lines, std::string_view line) {
  Header h;
  int64_t* const fields[] = {&h.rows, &h.features, &h.labels};
  for (int64_t* field : fields) {
    while (line.starts_with(' ')) line.remove_prefix(1);
    const std::string_view piece = cut(line, ' ');
    if (!TextLines::number(piece, *field) || *field < 0 ||
        *field > std::numeric_limits<int32_t>::max()) {
      lines.fail("the first line needs three counts \"samples features labels\"; got " +
                 TextLines::shown(piece));
    }
  }
  // A header alone must not ask for more memory than there is.
  if (std::max(h.features, h.labels) > kMostColumns) {
    lines.fail(fmt::format("{} features and {} labels; need at most {} of each", h.features,
                           h.labels, kMostColumns));
  }
  if (line.find_first_not_of(' ') != std::string_view::npos) {
    lines.fail("the first line has more than three counts: " + TextLines::shown(line));
  }
  return h;
}

constexpr char kOfHeader[] = "the header gives";

// A line of LIBSVM's format before it is known what all lines have in common.
struct SvmLine {
  int64_t number;
  std::string_view labels;
};

// Takes "qid:number" off the front of `rest`; whether it was there.
bool take_query(const TextLines& lines, std::string_view& rest, int64_t& query) {
  rest = trimmed(rest);
  if (!rest.starts_with("qid:")) return false;
  std::string_view piece = cut_blank(rest);
  piece.remove_prefix(4);
  if (!TextLines::number(piece, query)) {
    lines.fail("qid " + TextLines::shown(piece) + " is not a whole number");
  }
  return true;
}

// Columns as they are counted from 0: those of a file that counts from 1 move down.
void count_from_zero(const std::string& name, const LibsvmOptions& options, Csr& features) {
  using First = LibsvmOptions::First;
  const bool zero =
      std::find(features.index.begin(), features.index.end(), 0) != features.index.end();
  if (options.first == First::one && zero) {
    throw IoError("libsvm", name + ": has a feature 0; features were said to begin at 1");
  }
  if (options.first == First::one || (options.first == First::automatic && !zero)) {
    for (int32_t& i : features.index) --i;
  }
  const auto most = std::max_element(features.index.begin(), features.index.end());
  const int64_t seen = most == features.index.end() ? 0 : *most + 1;
  if (options.features > 0 && seen > options.features) {
    throw IoError("libsvm", fmt::format("{}: has {} features; {} were said to be there", name, seen,
                                        options.features));
  }
  features.cols = std::max(options.features, seen);
}

// Targets or sets of labels, whichever all lines are.
void read_targets(const std::string& name, const std::vector<SvmLine>& rows, bool several,
                  LibsvmRows& out) {
  out.labels.cols = kMostColumns;
  for (const SvmLine& row : rows) {
    const TextLines at("libsvm", name, {}, row.number);
    double target = 0;
    if (several) {
      add_labels(at, row.labels, "need one below", out.labels);
    } else if (row.labels.starts_with("+-") ||
               !TextLines::number(row.labels.substr(row.labels.starts_with('+')), target) ||
               !std::isfinite(target)) {
      at.fail("the target " + TextLines::shown(row.labels) + " is not a finite number");
    } else {
      out.targets.push_back(target);
    }
  }
  const auto most = std::max_element(out.labels.index.begin(), out.labels.index.end());
  out.labels.cols = most == out.labels.index.end() ? 0 : *most + 1;
}

std::string unpacked_text(const std::string& path) {
  const io::Bytes bytes = io::read_unpacked(path);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

MultiLabelRows parse_xmc(const std::string& name, std::string_view text) {
  TextLines lines("xmc", name, text);
  std::string_view line;
  if (!lines.next(line))
    throw IoError("xmc", name + ": is empty; need \"samples features labels\"");
  const Header h = read_header(lines, line);
  MultiLabelRows rows;
  rows.features.cols = h.features;
  rows.labels.cols = h.labels;
  Entries entries;
  while (lines.next(line)) {
    if (rows.rows() == h.rows) {
      lines.fail(fmt::format("more lines than the {} samples of the header", h.rows));
    }
    // The labels end at the first blank; a list without a blank is one of labels only, unless it
    // holds a colon: a line whose blank for "no labels" was lost.
    const std::string_view labels = cut(line, ' ');
    if (labels.find(':') != std::string_view::npos) {
      lines.fail("begins with a feature; a sample without labels begins with a blank; got " +
                 TextLines::shown(labels));
    }
    add_labels(lines, labels, kOfHeader, rows.labels);
    add_features(lines, line, kOfHeader, rows.features, entries);
  }
  if (rows.rows() != h.rows) {
    lines.fail(
        fmt::format("the file ends after {} samples, the header gives {}", rows.rows(), h.rows));
  }
  return rows;
}

MultiLabelRows load_xmc(const std::string& path) { return parse_xmc(path, unpacked_text(path)); }

void save_xmc(const MultiLabelRows& rows, const std::string& path) {
  check_csr(rows.features, path + ": features");
  check_csr(rows.labels, path + ": labels");
  if (rows.labels.rows() != rows.rows()) {
    throw ValueError("xmc", fmt::format("{}: {} rows of features, {} of labels", path, rows.rows(),
                                        rows.labels.rows()));
  }
  std::string text = fmt::format("{} {} {}\n", rows.rows(), rows.features.cols, rows.labels.cols);
  for (int64_t r = 0; r < rows.rows(); ++r) {
    text += fmt::format("{}", fmt::join(rows.labels.row(r), ","));
    const auto index = rows.features.row(r);
    for (size_t i = 0; i < index.size(); ++i) {
      const bool ones = rows.features.value.empty();
      text += fmt::format(" {}:{}", index[i], ones ? 1.f : rows.features.values(r)[i]);
    }
    // Without features too, a line without labels begins with a blank.
    text += index.empty() && rows.labels.row(r).empty() ? " \n" : "\n";
  }
  io::write_text(path, text);
}

LibsvmRows parse_libsvm(const std::string& name, std::string_view text,
                        const LibsvmOptions& options) {
  TextLines lines("libsvm", name, text);
  LibsvmRows out;
  out.features.cols = kMostColumns;
  std::vector<SvmLine> rows;
  bool several = false;
  Entries entries;
  for (std::string_view line; lines.next(line);) {
    line = line.substr(0, line.find('#'));
    if (trimmed(line).empty()) continue;
    const std::string_view labels = cut_blank(line);
    if (labels.find(':') != std::string_view::npos) {
      lines.fail("begins with a feature; a row without labels begins with a blank; got " +
                 TextLines::shown(labels));
    }
    several = several || labels.empty() || labels.find(',') != std::string_view::npos;
    int64_t query = 0;
    const bool asked = take_query(lines, line, query);
    if (!rows.empty() && asked == out.queries.empty()) {
      lines.fail("some rows have a qid, others none");
    }
    if (asked) out.queries.push_back(query);
    rows.push_back({lines.number(), labels});
    add_features(lines, line, "need one below", out.features, entries);
  }
  if (rows.empty()) throw IoError("libsvm", name + ": has no rows");
  read_targets(name, rows, several, out);
  count_from_zero(name, options, out.features);
  return out;
}

LibsvmRows load_libsvm(const std::string& path, const LibsvmOptions& options) {
  return parse_libsvm(path, unpacked_text(path), options);
}

}  // namespace cutaway::data

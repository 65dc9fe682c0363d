// The Debian package index as a set of samples: what a package says of itself, what it depends on.
#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <cutaway/core/error.h>
#include <cutaway/core/io/pack.h>
#include <cutaway/models/haste/hash.h>
#include <cutaway/models/haste/sets.h>
#include <cutaway/models/haste/text_lines.h>

namespace cutaway::haste {
namespace {
namespace fs = std::filesystem;

constexpr char kIndexFolder[] = "/var/lib/apt/lists";
constexpr uint64_t kExtract = 1, kLimit = 2;  // salts

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// "libc6 (>= 2.34) | libc6.1:any" → "libc6".
std::string first_alternative(std::string_view text) {
  text = trimmed(text.substr(0, text.find('|')));
  return std::string(trimmed(text.substr(0, text.find_first_of(" (:[<"))));
}

void add_once(std::vector<std::string>& to, std::string name) {
  if (!name.empty() && std::find(to.begin(), to.end(), name) == to.end()) {
    to.push_back(std::move(name));
  }
}

void add_list(std::vector<std::string>& to, std::string_view value) {
  while (!value.empty()) add_once(to, first_alternative(cut(value, ',')));
}

// "a::b, a::{c,d}": the braces are short for a::c, a::d.
void add_tags(std::vector<std::string>& to, std::string_view value) {
  std::string facet;
  while (!value.empty()) {
    std::string_view piece = trimmed(cut(value, ','));
    if (const size_t brace = piece.find('{'); brace != std::string_view::npos && facet.empty()) {
      facet = piece.substr(0, brace);
      piece.remove_prefix(brace + 1);
    }
    const bool last = piece.ends_with('}');
    if (last) piece.remove_suffix(1);
    if (!piece.empty()) add_once(to, facet + std::string(piece));
    if (last) facet.clear();
  }
}

class Reader {
 public:
  Reader(const std::string& name, std::string_view text) : lines_(name, text) {}

  std::vector<DebianRecord> read() {
    for (std::string_view line; lines_.next(line);) {
      if (line.empty()) {
        finish();
      } else if (line[0] == ' ' || line[0] == '\t') {
        if (fields_.empty()) lines_.fail("continues no field: " + Lines::shown(line));
        value_ += ' ';
        value_ += trimmed(line);
      } else {
        begin(line);
      }
    }
    finish();
    return std::move(records_);
  }

 private:
  void begin(std::string_view line) {
    store();
    const size_t colon = line.find(':');
    if (colon == 0 || colon == std::string_view::npos) {
      lines_.fail("need \"Field: value\"; got " + Lines::shown(line));
    }
    field_ = line.substr(0, colon);
    if (!fields_.insert(field_).second) lines_.fail("the field is there twice: " + field_);
    value_ = trimmed(line.substr(colon + 1));
  }

  void store() {
    if (field_ == "Package") {
      record_.package = value_;
    } else if (field_ == "Source") {
      record_.source = trimmed(std::string_view(value_).substr(0, value_.find('(')));
    } else if (field_ == "Description") {
      record_.description = value_;
    } else if (field_ == "Depends" || field_ == "Pre-Depends") {
      add_list(record_.depends, value_);
    } else if (field_ == "Tag") {
      add_tags(record_.tags, value_);
    }
    field_.clear();
  }

  void finish() {
    store();
    if (fields_.empty()) return;
    if (record_.package.empty()) lines_.fail("the paragraph before has no Package");
    if (record_.source.empty()) record_.source = record_.package;
    records_.push_back(std::move(record_));
    record_ = {};
    fields_.clear();
  }

  Lines lines_;
  std::set<std::string> fields_;
  std::string field_, value_;
  DebianRecord record_;
  std::vector<DebianRecord> records_;
};

std::vector<std::string> index_files() {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(kIndexFolder, ignored)) {
    const std::string file = entry.path().filename().string();
    const size_t at = file.rfind("_Packages");
    if (at == std::string::npos || !entry.is_regular_file(ignored)) continue;
    const std::string end = file.substr(at + 9);
    if (end.empty() || end == ".gz" || end == ".lz4") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<DebianRecord> parse_packages(const std::string& name, std::string_view text) {
  return Reader(name, text).read();
}

std::vector<DebianRecord> read_packages(const std::string& path) {
  const std::vector<std::string> files = path.empty() ? index_files() : std::vector{path};
  if (files.empty()) {
    throw IoError("xmc", fmt::format("there is no package index in {}", kIndexFolder),
                  "apt-get update, or --data debian-deps:FILE with a Packages file, or --data "
                  "debian-sample");
  }
  std::vector<DebianRecord> all;
  std::unordered_set<std::string> names;
  for (const std::string& file : files) {
    const io::Bytes bytes = io::read_unpacked(file);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (DebianRecord& r : parse_packages(file, text)) {
      if (names.insert(r.package).second) all.push_back(std::move(r));
    }
  }
  return all;
}

std::string packages_text(const std::vector<DebianRecord>& records) {
  std::string text;
  for (const DebianRecord& r : records) {
    text += fmt::format("Package: {}\n", r.package);
    if (r.source != r.package) text += fmt::format("Source: {}\n", r.source);
    if (!r.depends.empty()) text += fmt::format("Depends: {}\n", fmt::join(r.depends, ", "));
    if (!r.description.empty()) text += fmt::format("Description: {}\n", r.description);
    if (!r.tags.empty()) text += fmt::format("Tag: {}\n", fmt::join(r.tags, ", "));
    text += '\n';
  }
  return text;
}

std::vector<DebianRecord> extract(const std::vector<DebianRecord>& records, int64_t count) {
  std::vector<std::pair<uint64_t, size_t>> order;
  for (size_t i = 0; i < records.size(); ++i)
    order.emplace_back(hash_of(records[i].source, kExtract), i);
  std::sort(order.begin(), order.end());
  std::vector<size_t> kept;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool new_source = i == 0 || order[i].first != order[i - 1].first;
    if (new_source && int64_t(i) >= count) break;
    kept.push_back(order[i].second);
  }
  std::sort(kept.begin(), kept.end());
  std::vector<DebianRecord> out;
  for (const size_t i : kept) out.push_back(records[i]);
  return out;
}

std::vector<Document> debian_documents(const std::vector<DebianRecord>& records,
                                       const DebianOptions& options) {
  if (!(options.test > 0 && options.test < 1)) {
    throw ValueError("xmc", fmt::format("need a test share in (0, 1); got {}", options.test));
  }
  std::vector<std::pair<uint64_t, Document>> kept;
  for (const DebianRecord& r : records) {
    const std::vector<std::string>& labels = options.tags ? r.tags : r.depends;
    if (labels.empty()) continue;
    Document d;
    d.name = r.package;
    // The words of a name: its parts without version numbers.
    for (const char c : r.package) {
      d.text += c == '-' || c == '.' || c == '+' || (c >= '0' && c <= '9') ? ' ' : c;
    }
    d.text += ' ' + r.description;
    d.labels = labels;
    const bool by_source = options.split == Split::source;
    d.test = share_of(by_source ? r.source : r.package) < options.test;
    kept.emplace_back(hash_of(r.package, kLimit), std::move(d));
  }
  if (options.limit > 0 && int64_t(kept.size()) > options.limit) {
    std::vector<uint64_t> hashes;
    for (const auto& k : kept) hashes.push_back(k.first);
    std::nth_element(hashes.begin(), hashes.begin() + options.limit, hashes.end());
    const uint64_t border = hashes[size_t(options.limit)];
    std::erase_if(kept, [&](const auto& k) { return k.first >= border; });
  }
  std::vector<Document> out;
  for (auto& k : kept) out.push_back(std::move(k.second));
  return out;
}

}  // namespace cutaway::haste

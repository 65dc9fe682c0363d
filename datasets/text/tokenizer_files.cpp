// Tokenizers by path, and vocab.txt.
#include <fmt/format.h>
#include <algorithm>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/datasets/text/tokenizer_parts.h>

namespace cutaway::data {
namespace {

std::string text_of(const std::string& path) {
  const io::Bytes bytes = io::read_maybe_gzip(path);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Tokenizer Tokenizer::parse_vocabulary(const std::string& name, std::string_view text, bool lower) {
  const size_t bad = find_not_utf8(text);
  if (bad != std::string_view::npos) {
    throw IoError("tokenizer", fmt::format("{}: is not UTF-8 at byte {}", name, bad));
  }
  WordPiece m;
  int64_t line = 0;
  for (const std::string& token : lines_of(text)) {
    ++line;
    if (token.empty()) throw IoError("tokenizer", fmt::format("{}:{}: is empty", name, line));
    if (m.vocabulary.add(token) != line - 1) {
      throw IoError("tokenizer",
                    fmt::format("{}:{}: \"{}\" stands there twice", name, line, token));
    }
  }
  m.unknown = m.vocabulary.find("[UNK]");
  if (m.unknown < 0) throw IoError("tokenizer", name + ": has no line [UNK]");
  TokenizerParts parts;
  const int32_t begin = m.vocabulary.find("[CLS]"), end = m.vocabulary.find("[SEP]");
  for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    const int32_t id = m.vocabulary.find(special);
    if (id >= 0) parts.added.push_back({.text = special, .id = id});
  }
  parts.model = std::move(m);
  parts.normal = {{.kind = NormalStep::Kind::bert, .lower = lower, .from = {}, .to = {}}};
  parts.splits = {{.kind = SplitStep::Kind::bert}};
  parts.decode = {{.kind = DecodeStep::Kind::wordpiece, .from = "##", .to = {}}};
  if (begin >= 0 && end >= 0) {
    parts.single = {{begin, 0, 0}, {}, {end, 0, 0}};
    parts.pair = {{begin, 0, 0}, {}, {end, 0, 0}, {-1, 1, 1}, {end, 0, 1}};
  }
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::load(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    for (const char* name : {"tokenizer.json", "vocab.json", "vocab.txt"}) {
      const std::string file = (fs::path(path) / name).string();
      if (fs::is_regular_file(file, ignored)) return load(file);
    }
    throw IoError("tokenizer", path + ": holds no tokenizer.json, vocab.json or vocab.txt");
  }
  const std::string text = text_of(path);
  const fs::path merges = fs::path(path).parent_path() / "merges.txt";
  if (path.ends_with(".txt")) return parse_vocabulary(path, text);
  if (fs::path(path).filename() == "vocab.json" && fs::is_regular_file(merges, ignored)) {
    return parse_gpt2(path, text, merges.string(), text_of(merges.string()));
  }
  return parse(path, text);
}

}  // namespace cutaway::data

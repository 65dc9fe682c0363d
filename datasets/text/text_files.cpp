#include <cutaway/datasets/text/text_files.h>

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/json.h>
#include <cutaway/datasets/text/unicode.h>

namespace cutaway::data {
namespace {
namespace fs = std::filesystem;

using io::Json;

std::string_view without_mark(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

// "a.b" in an object: first as a name of its own, then b inside a.
const Json* field_of(const Json& object, std::string_view path) {
  if (const Json* whole = object.find(path)) return whole;
  const size_t dot = path.find('.');
  if (dot == std::string_view::npos) return nullptr;
  const Json* inner = object.find(path.substr(0, dot));
  return inner ? field_of(*inner, path.substr(dot + 1)) : nullptr;
}

bool is_number(const Json& v) { return v.is(Json::Kind::number) || v.is(Json::Kind::boolean); }
bool is_plain(const Json& v) { return is_number(v) || v.is(Json::Kind::text); }

// Columns being filled.
class LineReader {
 public:
  LineReader(const std::string& name, const std::vector<std::string>& fields) : name_(name) {
    for (const std::string& f : fields) out_.columns.push_back({f, {}, {}});
    numbers_.resize(fields.size());
    chosen_ = !fields.empty();
  }

  void add(int64_t line, std::string_view text) {
    const std::string where = fmt::format("{}:{}", name_, line);
    const Json object = io::parse_json(where, text);
    if (!object.is(Json::Kind::object)) fail(where, "is not a JSON object");
    if (!chosen_) choose(object, where);
    for (size_t c = 0; c < out_.columns.size(); ++c) add_value(c, object, where);
    ++out_.lines;
  }

  JsonLines finish() {
    for (size_t c = 0; c < out_.columns.size(); ++c) {
      JsonColumn& column = out_.columns[c];
      if (!column.texts.empty()) continue;
      column.values = empty({int64_t(numbers_[c].size())}, {.dtype = DType::f64});
      std::copy(numbers_[c].begin(), numbers_[c].end(), column.values.data<double>());
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] static void fail(const std::string& where, const std::string& what) {
    throw IoError("json lines", where + ": " + what);
  }

  void choose(const Json& object, const std::string& where) {
    for (size_t i = 0; i < object.items.size(); ++i) {
      if (is_plain(object.items[i])) out_.columns.push_back({object.keys[i], {}, {}});
    }
    if (out_.columns.empty()) fail(where, "has no field that is a number or text");
    numbers_.resize(out_.columns.size());
    chosen_ = true;
  }

  void add_value(size_t c, const Json& object, const std::string& where) {
    JsonColumn& column = out_.columns[c];
    const Json* v = field_of(object, column.name);
    if (!v) fail(where, fmt::format("has no field \"{}\"", column.name));
    if (!is_plain(*v)) fail(where, fmt::format("field \"{}\" is no number or text", column.name));
    const bool text = v->is(Json::Kind::text);
    if (out_.lines > 0 && text == column.texts.empty()) {
      fail(where, fmt::format("field \"{}\" is {}, in the first line it is {}", column.name,
                              text ? "text" : "a number", text ? "a number" : "text"));
    }
    if (text) {
      column.texts.push_back(v->text);
    } else {
      numbers_[c].push_back(v->is(Json::Kind::boolean) ? double(v->truth) : v->number);
    }
  }

  const std::string& name_;
  JsonLines out_;
  std::vector<std::vector<double>> numbers_;
  bool chosen_;
};

const std::pair<const char*, std::vector<const char*>> kCorpora[] = {
    {"austen", {"text/austen_northangerabbey.txt.gz", "text/austen_persuasion.txt.gz"}}};

bool is_text_file(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".txt") || name.ends_with(".txt.gz") || name.ends_with(".text");
}

std::vector<std::string> text_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored) && is_text_file(entry.path())) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Tensor as_tensor(const std::vector<int64_t>& ids) {
  Tensor t = empty({int64_t(ids.size())}, {.dtype = DType::i64});
  std::copy(ids.begin(), ids.end(), t.data<int64_t>());
  return t;
}

}  // namespace

std::string parse_text(const std::string& name, std::string_view bytes) {
  const std::string_view text = without_mark(bytes);
  const size_t bad = find_not_utf8(text);
  if (bad == std::string_view::npos) return std::string(text);
  const int64_t line = 1 + std::count(text.begin(), text.begin() + int64_t(bad), '\n');
  throw IoError("text",
                fmt::format("{}:{}: is not UTF-8; got the byte {:#04x} at {} of the file", name,
                            line, uint8_t(text[bad]), bad + (bytes.size() - text.size())),
                "convert it with iconv");
}

std::string load_text(const std::string& path) {
  const io::Bytes bytes = io::read_maybe_gzip(path);
  return parse_text(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

const JsonColumn& JsonLines::column(std::string_view name) const {
  std::string known;
  for (const JsonColumn& c : columns) {
    if (c.name == name) return c;
    known += " " + c.name;
  }
  throw ValueError("json lines",
                   fmt::format("there is no column \"{}\"; there are:{}", name, known));
}

JsonLines parse_json_lines(const std::string& name, std::string_view text,
                           const std::vector<std::string>& fields) {
  LineReader reader(name, fields);
  text = without_mark(text);
  int64_t line = 0, objects = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line;
    if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    reader.add(line, row);
    ++objects;
  }
  if (objects == 0) throw IoError("json lines", name + ": has no lines");
  return reader.finish();
}

JsonLines load_json_lines(const std::string& path, const std::vector<std::string>& fields) {
  const io::Bytes bytes = io::read_maybe_gzip(path);
  return parse_json_lines(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                          fields);
}

bool is_corpus(const std::string& name) {
  for (const auto& [known, files] : kCorpora) {
    if (name == known) return true;
  }
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) return !text_files(name).empty();
  return fs::is_regular_file(name, ignored) && is_text_file(name);
}

Corpus open_corpus(const std::string& name) {
  Corpus corpus{name, {}};
  std::vector<std::string> paths;
  for (const auto& [known, files] : kCorpora) {
    if (name != known) continue;
    for (const char* file : files) paths.push_back(samples_folder() + "/" + file);
  }
  std::error_code ignored;
  if (paths.empty() && fs::is_directory(name, ignored)) paths = text_files(name);
  if (paths.empty() && fs::is_regular_file(name, ignored) && is_text_file(name)) paths = {name};
  if (paths.empty()) {
    std::string known;
    for (const auto& [n, files] : kCorpora) known += std::string(n) + ", ";
    throw ValueError("data", fmt::format("there is no text \"{}\"; need {}a file ending in .txt or "
                                         ".txt.gz, or a folder of such files",
                                         name, known));
  }
  for (const std::string& p : paths) corpus.files.emplace_back(p, load_text(p));
  return corpus;
}

CorpusTokens corpus_tokens(const Corpus& corpus, const Tokenizer& tokenizer) {
  std::vector<int64_t> train, validation;
  CorpusTokens out;
  for (const auto& [name, text] : corpus.files) {
    size_t cut = text.size() - text.size() / 10;
    while (cut < text.size() && (uint8_t(text[cut]) & 0xC0) == 0x80) ++cut;
    const std::string_view all(text);
    const auto add = [&](std::string_view part, std::vector<int64_t>& ids) {
      const Encoding e = tokenizer.encode(part, {.special = false});
      ids.insert(ids.end(), e.ids.begin(), e.ids.end());
    };
    add(all.substr(0, cut), train);
    add(all.substr(cut), validation);
    out.validation_characters += count_characters(all.substr(cut));
  }
  out.train = as_tensor(train);
  out.validation = as_tensor(validation);
  return out;
}

Dataset token_windows(const std::string& name, const Tensor& tokens, int64_t context,
                      int64_t vocabulary) {
  const int64_t n = (tokens.numel() - 1) / std::max<int64_t>(context, 1);
  if (context < 1 || tokens.numel() < 1 || n < 1) {
    throw ValueError("data", fmt::format("{}: context must be 1 to the number of tokens less one; "
                                         "got {} and {} tokens",
                                         name, context, tokens.numel()));
  }
  Dataset d;
  d.name = name;
  d.vocabulary = vocabulary;
  d.inputs = empty({n, context}, {.dtype = DType::i64});
  d.targets = empty({n, context}, {.dtype = DType::i64});
  const int64_t* from = tokens.data<int64_t>();
  std::copy_n(from, n * context, d.inputs.data<int64_t>());
  std::copy_n(from + 1, n * context, d.targets.data<int64_t>());
  return d;
}

}  // namespace cutaway::data

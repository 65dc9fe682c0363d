#include <cutaway/core/io/safetensors.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway::io {
namespace {

constexpr int64_t kMaxHeader = 100'000'000;  // the format's own bound

struct TypeName {
  const char* name;
  DType dtype;
};
constexpr TypeName kTypes[] = {{"F64", DType::f64}, {"F32", DType::f32}, {"BF16", DType::bf16},
                               {"F16", DType::f16}, {"I64", DType::i64}, {"I32", DType::i32},
                               {"U8", DType::u8},   {"I8", DType::i8},   {"BOOL", DType::boolean}};

struct Entry {
  std::string name;
  DType dtype = DType::f32;
  Shape sizes;
  int64_t begin = 0, end = 0;
};

[[noreturn]] void fail(const std::string& file, const std::string& rule) {
  throw IoError("safetensors", file + ": " + rule);
}

// A JSON reader that refuses duplicate keys and deep nesting, which a plain parse would accept.
struct StrictSax : nlohmann::json_sax<nlohmann::json> {
  std::vector<std::set<std::string>> keys;
  int depth = 0;
  std::string problem;
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool deeper() {
    if (++depth > 8) problem = "the header is nested too deeply";
    return problem.empty();
  }
  bool start_object(size_t) override {
    keys.emplace_back();
    return deeper();
  }
  bool end_object() override {
    keys.pop_back();
    --depth;
    return true;
  }
  bool start_array(size_t) override { return deeper(); }
  bool end_array() override {
    --depth;
    return true;
  }
  bool key(string_t& name) override {
    if (!keys.back().insert(name).second) {
      problem = keys.size() == 1 ? "duplicate tensor name " + name : "duplicate key " + name;
    }
    return problem.empty();
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) override {
    problem = fmt::format("the header is not JSON (byte {})", at);
    return false;
  }
};

int64_t whole_number(const nlohmann::json& j, const std::string& file, const std::string& tensor) {
  if (!j.is_number_unsigned() || j.get<uint64_t>() > uint64_t(INT64_MAX)) {
    fail(file, fmt::format("tensor {}: sizes and offsets must be whole numbers ≥ 0; got {}", tensor,
                           j.dump()));
  }
  return j.get<int64_t>();
}

Entry parse_entry(const std::string& file, const std::string& name, const nlohmann::json& j,
                  int64_t data_bytes) {
  if (!j.is_object() || !j.contains("dtype") || !j.contains("shape") ||
      !j.contains("data_offsets") || !j["dtype"].is_string() || !j["shape"].is_array() ||
      !j["data_offsets"].is_array()) {
    fail(file, fmt::format("tensor {} needs dtype, shape and data_offsets", name));
  }
  Entry e{.name = name};
  const auto& offsets = j["data_offsets"];
  if (offsets.size() != 2)
    fail(file, fmt::format("tensor {} needs two data_offsets; got {}", name, offsets.size()));
  e.begin = whole_number(offsets[0], file, name);
  e.end = whole_number(offsets[1], file, name);
  if (e.begin > e.end || e.end > data_bytes) {
    fail(file, fmt::format("tensor {}: data_offsets [{},{}] do not lie in the {} data bytes", name,
                           e.begin, e.end, data_bytes));
  }
  if (j["shape"].size() > size_t(kMaxRank)) {
    fail(file, fmt::format("tensor {} has {} dimensions; at most 8 are supported", name,
                           j["shape"].size()));
  }
  const std::string type = j["dtype"].get<std::string>();
  const auto* found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& t) { return type == t.name; });
  if (found == std::end(kTypes))
    fail(file, fmt::format("tensor {} has the unsupported type {}", name, type));
  e.dtype = found->dtype;
  int64_t bytes = size_of(e.dtype);
  bool overflow = false;
  for (const auto& n : j["shape"]) {
    e.sizes.push_back(whole_number(n, file, name));
    // Zeros aside: no product of sizes may wrap, whatever their order.
    const int64_t factor = std::max<int64_t>(e.sizes.back(), 1);
    overflow = __builtin_mul_overflow(bytes, factor, &bytes) || overflow;
  }
  if (e.sizes.contains(0)) bytes = 0;
  if (overflow || bytes != e.end - e.begin) {
    fail(file, fmt::format("tensor {}: {} {} needs {} bytes, data_offsets give {}", name, type,
                           to_string(e.sizes), overflow ? "too many" : std::to_string(bytes),
                           e.end - e.begin));
  }
  return e;
}

// Data must be covered once, without holes, overlaps or a rest.
void check_cover(const std::string& file, const std::vector<Entry>& entries, int64_t data_bytes) {
  int64_t at = 0;
  for (const Entry& e : entries) {
    if (e.begin != at) {
      fail(file, fmt::format("tensor {} begins at {}, the data before it end at {} ({})", e.name,
                             e.begin, at, e.begin < at ? "overlap" : "hole"));
    }
    at = e.end;
  }
  if (at != data_bytes)
    fail(file, fmt::format("{} bytes after the last tensor belong to none", data_bytes - at));
}

}  // namespace

const Tensor& TensorFile::at(const std::string& name) const {
  std::string names;
  for (const auto& [n, t] : tensors) {
    if (n == name) return t;
    names += " " + n;
  }
  throw IoError("safetensors",
                fmt::format("there is no tensor \"{}\"; the file has:{}", name, names));
}

TensorFile parse_safetensors(const std::string& file, const uint8_t* data, int64_t bytes) {
  if (bytes < 8) fail(file, fmt::format("needs at least 8 bytes; got {}", bytes));
  uint64_t header = 0;
  std::memcpy(&header, data, 8);
  if (header > uint64_t(kMaxHeader))
    fail(file, fmt::format("header length {} exceeds {}", header, kMaxHeader));
  if (int64_t(header) > bytes - 8)
    fail(file, fmt::format("header length {} exceeds the file of {} bytes", header, bytes));
  const char* text = reinterpret_cast<const char*>(data) + 8;
  if (header == 0 || text[0] != '{') fail(file, "the header must begin with {");
  StrictSax sax;
  const bool parsed = nlohmann::json::sax_parse(text, text + header, &sax);
  if (!parsed || !sax.problem.empty())
    fail(file, sax.problem.empty() ? "the header is not JSON" : sax.problem);
  const auto json = nlohmann::json::parse(text, text + header);
  const int64_t data_bytes = bytes - 8 - int64_t(header);
  TensorFile out;
  std::vector<Entry> entries;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) fail(file, "__metadata__ must be an object of strings");
      for (const auto& [key, v] : value.items()) {
        if (!v.is_string()) fail(file, fmt::format("__metadata__ {} must be a string", key));
        out.metadata[key] = v.get<std::string>();
      }
      continue;
    }
    entries.push_back(parse_entry(file, name, value, data_bytes));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  check_cover(file, entries, data_bytes);
  const uint8_t* payload = data + 8 + header;
  for (const Entry& e : entries) {
    Tensor t = empty(e.sizes, {.dtype = e.dtype});
    if (e.end > e.begin) std::memcpy(t.raw(), payload + e.begin, size_t(e.end - e.begin));
    if (e.dtype == DType::boolean) {  // any other byte would be an invalid bool
      for (uint8_t *b = static_cast<uint8_t*>(t.raw()), *end = b + t.numel(); b != end; ++b)
        *b = *b != 0;
    }
    out.tensors.emplace_back(e.name, std::move(t));
  }
  return out;
}

TensorFile load_safetensors(const std::string& path) {
  const Bytes bytes = read_file(path);
  return parse_safetensors(path, bytes.data(), int64_t(bytes.size()));
}

void save_safetensors(const std::string& path, const TensorFile& file) {
  nlohmann::json header = nlohmann::json::object();
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  std::vector<Tensor> dense;
  int64_t at = 0;
  for (const auto& [name, tensor] : file.tensors) {
    if (name == "__metadata__" || header.contains(name)) {
      throw IoError("safetensors",
                    fmt::format("{}: the name \"{}\" cannot be used twice", path, name));
    }
    dense.push_back(contiguous_raw(tensor.device() == kCpu ? tensor.detach() : tensor.to(kCpu)));
    const int64_t bytes = tensor.numel() * size_of(tensor.dtype());
    const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](auto& t) { return t.dtype == tensor.dtype(); });
    header[name] = {{"dtype", type->name},
                    {"shape", std::vector<int64_t>(tensor.sizes().begin(), tensor.sizes().end())},
                    {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    throw IoError("safetensors", path + ": a name or a metadata text is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  AtomicFile out(path);
  out.write(&length, 8);
  out.write(text);
  for (const Tensor& t : dense) out.write(t.raw(), t.numel() * size_of(t.dtype()));
  out.commit();
}

}  // namespace cutaway::io

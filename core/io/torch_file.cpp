#include <cutaway/core/io/torch_file.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/pickle.h>
#include <cutaway/core/io/zip.h>

namespace cutaway::io {
namespace {

using pickle::Kind;
using pickle::Value;
using Values = pickle::Machine::Values;

constexpr uint64_t kMaxPickle = 64 << 20;
constexpr int kMaxDepth = 32;
constexpr int64_t kMaxVisits = 1 << 21;
constexpr size_t kMaxName = 1000;

struct StorageType {
  const char* name;
  DType dtype;
};
constexpr StorageType kTypes[] = {
    {"DoubleStorage", DType::f64}, {"FloatStorage", DType::f32}, {"BFloat16Storage", DType::bf16},
    {"HalfStorage", DType::f16},   {"LongStorage", DType::i64},  {"IntStorage", DType::i32},
    {"ByteStorage", DType::u8},    {"CharStorage", DType::i8},   {"BoolStorage", DType::boolean}};

[[noreturn]] void fail(const std::string& file, const std::string& rule, const char* hint = "") {
  throw IoError("torch", file + ": " + rule, hint);
}

bool begins_like_pickle(const uint8_t* data, int64_t bytes) {
  return bytes >= 2 && data[0] == 0x80 && data[1] >= 1 && data[1] <= 5;
}

class Reader {
 public:
  Reader(const std::string& file, const uint8_t* data, int64_t bytes)
      : file_(file), zip_(file, {data, size_t(bytes)}), room_(uint64_t(unpack_limit())) {}

  NamedArrays read();

 private:
  const ZipReader::Member* find(const std::string& name) const;
  void find_folder();
  Tensor storage(const Values& values, const Value& id);
  void collect(const Values& values, uint32_t id, const std::string& name, int depth);
  void collect_child(const Values& values, uint32_t id, const std::string& name,
                     const std::string& key, int depth);

  std::string file_;
  ZipReader zip_;
  uint64_t room_;
  std::string folder_;  // of all members, with its slash
  std::map<std::string, const ZipReader::Member*> members_;
  std::map<std::pair<std::string, DType>, Tensor> storages_;
  std::set<std::string> names_;
  NamedArrays out_;
  int64_t visits_ = 0;
};

const ZipReader::Member* Reader::find(const std::string& name) const {
  const auto found = members_.find(name);
  return found == members_.end() ? nullptr : found->second;
}

void Reader::find_folder() {
  constexpr std::string_view kPickle = "data.pkl";
  int found = 0;
  for (const ZipReader::Member& m : zip_.members()) {
    if (!members_.emplace(m.name, &m).second) fail(file_, "member " + m.name + " is there twice");
    if (m.name != kPickle && !m.name.ends_with("/data.pkl")) continue;
    folder_ = m.name.substr(0, m.name.size() - kPickle.size());
    ++found;
  }
  if (found != 1) fail(file_, fmt::format("needs one member data.pkl; got {}", found));
  if (const auto* order = find(folder_ + "byteorder")) {
    const Bytes text = zip_.read(*order, 64);
    if (std::string(text.begin(), text.end()) != "little") {
      fail(file_, "is not in little-endian byte order");
    }
  }
  if (find(folder_ + "constants.pkl")) {
    fail(file_, "is a TorchScript program", "save its state_dict() with torch.save");
  }
}

NamedArrays Reader::read() {
  find_folder();
  const Bytes bytes = zip_.read(*find(folder_ + "data.pkl"), std::min(kMaxPickle, room_));
  pickle::Machine machine(
      bytes, {.storage = [this](const Values& v, const Value& id) { return storage(v, id); },
              .fail = [this](const std::string& rule) { fail(file_, rule); }});
  const uint32_t root = machine.run();
  collect(machine.values(), root, "", 0);
  return std::move(out_);
}

// The persistent id is ("storage", type, key, device, elements).
Tensor Reader::storage(const Values& values, const Value& id) {
  const auto is = [&](size_t i, Kind kind) { return values[id.items[i]].kind == kind; };
  if (id.kind != Kind::tuple || id.items.size() != 5 || !is(0, Kind::text) ||
      !is(1, Kind::global) || !is(2, Kind::text) || !is(4, Kind::number) ||
      values[id.items[0]].text != "storage") {
    fail(file_,
         "has a storage that is not described as (\"storage\", type, key, device, elements)");
  }
  const std::string_view type = values[id.items[1]].text;
  const auto* found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& t) { return type == t.name; });
  if (found == std::end(kTypes)) fail(file_, fmt::format("has elements of torch.{}", type));
  const std::string key(values[id.items[2]].text.substr(0, 200));
  Tensor& kept = storages_[{key, found->dtype}];
  if (kept.defined()) return kept;
  const ZipReader::Member* member = find(folder_ + "data/" + key);
  if (!member) fail(file_, fmt::format("has no member data/{}", key));
  const int64_t elements = values[id.items[4]].number, width = size_of(found->dtype);
  if (elements < 0 || uint64_t(elements) != member->size / uint64_t(width)) {
    fail(file_, fmt::format("member data/{} has {} bytes; got {} elements of {} bytes", key,
                            member->size, elements, width));
  }
  const Bytes bytes = zip_.read(*member, room_);
  room_ -= bytes.size();
  kept = empty({elements}, {.dtype = found->dtype});
  if (elements > 0) std::memcpy(kept.raw(), bytes.data(), size_t(elements * width));
  if (found->dtype == DType::boolean) {  // any other byte would be an invalid bool
    for (auto *b = static_cast<uint8_t*>(kept.raw()), *end = b + elements; b != end; ++b) {
      *b = *b != 0;
    }
  }
  return kept;
}

void Reader::collect_child(const Values& values, uint32_t id, const std::string& name,
                           const std::string& key, int depth) {
  const Kind kind = values[id].kind;
  if (kind != Kind::tensor && kind != Kind::dict && kind != Kind::list && kind != Kind::tuple) {
    return;
  }
  const std::string full = name.empty() ? key : name + "." + key;
  if (full.size() > kMaxName) fail(file_, fmt::format("has a name of {} bytes", full.size()));
  collect(values, id, full, depth + 1);
}

void Reader::collect(const Values& values, uint32_t id, const std::string& name, int depth) {
  const Value& v = values[id];
  if (depth > kMaxDepth) fail(file_, fmt::format("is nested more than {} deep", kMaxDepth));
  // Values may stand in many places: what few bytes describe can be endless.
  visits_ += 1 + int64_t(v.items.size() + name.size() / 16);
  if (visits_ > kMaxVisits) fail(file_, fmt::format("holds more than {} values", kMaxVisits));
  if (v.kind == Kind::tensor) {
    if (!names_.insert(name).second) fail(file_, "the name " + name + " is there twice");
    out_.emplace_back(name, v.tensor);
  } else if (v.kind == Kind::dict) {
    for (size_t i = 0; i + 1 < v.items.size(); i += 2) {
      const Value& key = values[v.items[i]];
      if (key.kind != Kind::text && key.kind != Kind::number) {
        fail(file_, "has a dictionary whose keys are neither texts nor whole numbers");
      }
      if (key.text.size() > kMaxName) {
        fail(file_, fmt::format("has a name of {} bytes", key.text.size()));
      }
      collect_child(values, v.items[i + 1], name,
                    key.kind == Kind::text ? std::string(key.text) : std::to_string(key.number),
                    depth);
    }
  } else if (v.kind == Kind::list || v.kind == Kind::tuple) {
    for (size_t i = 0; i < v.items.size(); ++i) {
      collect_child(values, v.items[i], name, std::to_string(i), depth);
    }
  }
}

}  // namespace

bool is_torch_file(const uint8_t* data, int64_t bytes) {
  constexpr uint8_t kZip[] = {'P', 'K', 3, 4};
  if (bytes > 8 && data[8] == '{') return false;  // the header of safetensors
  return begins_like_pickle(data, bytes) || (bytes >= 4 && std::memcmp(data, kZip, 4) == 0);
}

NamedArrays parse_torch(const std::string& name, const uint8_t* data, int64_t bytes) {
  if (begins_like_pickle(data, bytes)) {
    fail(name, "is in PyTorch's old format without zip",
         "save it again with PyTorch 1.6 or later: torch.save(torch.load(path), path)");
  }
  return Reader(name, data, bytes).read();
}

NamedArrays load_torch(const std::string& path) {
  const Bytes bytes = read_file(path);
  return parse_torch(path, bytes.data(), int64_t(bytes.size()));
}

}  // namespace cutaway::io

#include <cutaway/core/io/onnx_file.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/protobuf.h>
#include <cutaway/core/tensor_ops.h>

// Numbers of fields: onnx/onnx, onnx/onnx.proto.
namespace cutaway::onnx {
namespace {

using io::ProtoReader;
using io::ProtoWriter;

struct TypeEntry {
  const char* name;
  DType dtype;  // of the values here
  bool held;    // false: not at all
  int64_t raw;  // bytes of an element in raw_data
};
constexpr TypeEntry kTypes[] = {
    {"undefined", DType::f32, false, 0}, {"float", DType::f32, true, 4},
    {"uint8", DType::u8, true, 1},       {"int8", DType::i8, true, 1},
    {"uint16", DType::i32, true, 2},     {"int16", DType::i32, true, 2},
    {"int32", DType::i32, true, 4},      {"int64", DType::i64, true, 8},
    {"string", DType::f32, false, 0},    {"bool", DType::boolean, true, 1},
    {"float16", DType::f16, true, 2},    {"double", DType::f64, true, 8},
    {"uint32", DType::i64, true, 4},     {"uint64", DType::i64, true, 8},
    {"complex64", DType::f32, false, 0}, {"complex128", DType::f32, false, 0},
    {"bfloat16", DType::bf16, true, 2}};
enum { kUint16 = 4, kInt16 = 5, kUint32 = 12, kUint64 = 13 };
constexpr int64_t kLargest = int64_t(1) << 31;

// ---- reading

struct TensorParts {
  std::string name;
  std::vector<int64_t> dims, int32s, int64s, uint64s;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::span<const uint8_t> raw;
  bool has_raw = false;
  int64_t type = 0;
};

TensorParts read_parts(ProtoReader& r) {
  TensorParts p;
  while (r.next()) {
    switch (r.field()) {
      case 1:
        r.integers(p.dims);
        break;
      case 2:
        p.type = r.integer();
        break;
      case 4:
        r.reals32(p.floats);
        break;
      case 5:
        r.integers(p.int32s);
        break;
      case 7:
        r.integers(p.int64s);
        break;
      case 8:
        p.name = r.text();
        break;
      case 9:
        p.raw = r.bytes();
        p.has_raw = true;
        break;
      case 10:
        r.reals64(p.doubles);
        break;
      case 11:
        r.integers(p.uint64s);
        break;
      case 14:
        if (r.integer() == 1) r.fail(fmt::format("tensor '{}' lies in another file", p.name));
        break;
      default:
        break;
    }
  }
  return p;
}

int64_t checked_numel(const ProtoReader& r, const TensorParts& p) {
  int64_t n = 1;
  bool overflow = false, empty = false;
  for (const int64_t d : p.dims) {
    if (d < 0) r.fail(fmt::format("tensor '{}' has a size of {}", p.name, d));
    empty |= d == 0;
    if (d > 0) overflow |= __builtin_mul_overflow(n, d, &n);
  }
  if (p.dims.size() > size_t(kMaxRank)) {
    r.fail(fmt::format("tensor '{}' has {} dimensions, at most {} are possible here", p.name,
                       p.dims.size(), kMaxRank));
  }
  if (overflow) r.fail(fmt::format("tensor '{}' has too many elements", p.name));
  return empty ? 0 : n;
}

void need_values(const ProtoReader& r, const TensorParts& p, size_t got, int64_t need) {
  if (got != size_t(need)) {
    r.fail(fmt::format("tensor '{}' has {} values, its sizes need {}", p.name, got, need));
  }
}

// Widens `n` elements of type From to To.
template <class From, class To>
void widen(const ProtoReader& r, const TensorParts& p, To* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    From v;
    std::memcpy(&v, p.raw.data() + size_t(i) * sizeof v, sizeof v);
    to[i] = To(v);
    if (std::is_same_v<From, uint64_t> && to[i] < 0) {
      r.fail(fmt::format("tensor '{}' holds a number above 2⁶³", p.name));
    }
  }
}

void fill_raw(const ProtoReader& r, const TensorParts& p, const Tensor& t) {
  const int64_t n = t.numel();
  switch (p.type) {
    case kUint16:
      return widen<uint16_t>(r, p, static_cast<int32_t*>(t.raw()), n);
    case kInt16:
      return widen<int16_t>(r, p, static_cast<int32_t*>(t.raw()), n);
    case kUint32:
      return widen<uint32_t>(r, p, static_cast<int64_t*>(t.raw()), n);
    case kUint64:
      return widen<uint64_t>(r, p, static_cast<int64_t*>(t.raw()), n);
    default:
      break;
  }
  if (t.dtype() == DType::boolean) {
    auto* to = static_cast<uint8_t*>(t.raw());
    for (int64_t i = 0; i < n; ++i) to[i] = p.raw[size_t(i)] != 0;
  } else if (n > 0) {
    std::memcpy(t.raw(), p.raw.data(), p.raw.size());
  }
}

template <class To, class From>
void copy_values(const Tensor& t, const std::vector<From>& from) {
  auto* to = static_cast<To*>(t.raw());
  for (size_t i = 0; i < from.size(); ++i) to[i] = To(from[i]);
}

void fill_lists(const ProtoReader& r, const TensorParts& p, const Tensor& t) {
  const int64_t n = t.numel();
  if (p.type == kUint32 || p.type == kUint64) {
    need_values(r, p, p.uint64s.size(), n);
    for (const int64_t v : p.uint64s) {
      if (v < 0) r.fail(fmt::format("tensor '{}' holds a number above 2⁶³", p.name));
    }
    return copy_values<int64_t>(t, p.uint64s);
  }
  switch (t.dtype()) {
    case DType::f32:
      need_values(r, p, p.floats.size(), n);
      return copy_values<float>(t, p.floats);
    case DType::f64:
      need_values(r, p, p.doubles.size(), n);
      return copy_values<double>(t, p.doubles);
    case DType::i64:
      need_values(r, p, p.int64s.size(), n);
      return copy_values<int64_t>(t, p.int64s);
    default:
      break;
  }
  need_values(r, p, p.int32s.size(), n);
  switch (size_of(t.dtype())) {
    case 4:
      return copy_values<int32_t>(t, p.int32s);
    case 2:
      return copy_values<uint16_t>(t, p.int32s);
    default:
      break;
  }
  copy_values<uint8_t>(t, p.int32s);
  if (t.dtype() == DType::boolean) {
    auto* to = static_cast<uint8_t*>(t.raw());
    for (int64_t i = 0; i < n; ++i) to[i] = p.int32s[size_t(i)] != 0;
  }
}

NamedTensor read_tensor(ProtoReader r) {
  const TensorParts p = read_parts(r);
  if (p.type < 0 || p.type >= int64_t(std::size(kTypes)) || !kTypes[p.type].held) {
    r.fail(fmt::format("tensor '{}' has the type {}, which no tensor here can hold", p.name,
                       type_name(int(std::clamp<int64_t>(p.type, -1, 1000)))));
  }
  const int64_t n = checked_numel(r, p);
  const TypeEntry& type = kTypes[p.type];
  if (p.has_raw && (n > kLargest || int64_t(p.raw.size()) != n * type.raw)) {
    r.fail(fmt::format("tensor '{}' has {} bytes, its sizes need {} of {} each", p.name,
                       p.raw.size(), n, type.raw));
  }
  const size_t listed =
      p.floats.size() + p.doubles.size() + p.int32s.size() + p.int64s.size() + p.uint64s.size();
  if (!p.has_raw && n > int64_t(listed)) need_values(r, p, listed, n);
  NamedTensor out{p.name, empty(Shape(std::span<const int64_t>(p.dims)), {.dtype = type.dtype})};
  p.has_raw ? fill_raw(r, p, out.value) : fill_lists(r, p, out.value);
  return out;
}

Graph read_graph(ProtoReader r);

void read_texts(const ProtoReader& r, std::vector<std::string>& to) {
  const auto b = r.bytes();
  to.emplace_back(b.begin(), b.end());
}

// Fields 2 to 9 hold values of the types 1 to 8.
void read_attribute_value(const ProtoReader& r, Attribute& a) {
  a.type = Attribute::Type(r.field() - 1);
  switch (a.type) {
    case Attribute::Type::real:
      a.f = r.real32();
      break;
    case Attribute::Type::integer:
      a.i = r.integer();
      break;
    case Attribute::Type::text: {
      const auto b = r.bytes();
      a.s.assign(b.begin(), b.end());
      break;
    }
    case Attribute::Type::tensor:
      a.t = read_tensor(r.message("TensorProto")).value;
      break;
    case Attribute::Type::graph:
      a.g = std::make_shared<Graph>(read_graph(r.message("GraphProto")));
      break;
    case Attribute::Type::reals:
      r.reals32(a.floats);
      break;
    case Attribute::Type::integers:
      r.integers(a.ints);
      break;
    default:
      read_texts(r, a.strings);
  }
}

Attribute read_attribute(ProtoReader r) {
  using Type = Attribute::Type;
  Attribute a;
  int64_t declared = 0;
  while (r.next()) {
    const int field = r.field();
    if (field == 1) {
      a.name = r.text();
    } else if (field <= 9) {
      read_attribute_value(r, a);
    } else if (field == 20) {
      declared = r.integer();
    } else if (field != 13) {  // a comment
      a.type = Type::other;
    }
  }
  // A declared type says what an empty list or a default value is.
  if (declared > 0 && declared <= int64_t(Type::texts)) {
    const bool missing = (declared == int64_t(Type::tensor) && !a.t.defined()) ||
                         (declared == int64_t(Type::graph) && !a.g);
    if (missing) r.fail(fmt::format("attribute '{}' has no value", a.name));
    a.type = Type(declared);
  } else if (declared != 0) {
    a.type = Type::other;
  }
  return a;
}

Node read_node(ProtoReader r) {
  Node n;
  while (r.next()) {
    switch (r.field()) {
      case 1:
        n.inputs.push_back(r.text());
        break;
      case 2:
        n.outputs.push_back(r.text());
        break;
      case 3:
        n.name = r.text();
        break;
      case 4:
        n.op_type = r.text();
        break;
      case 5:
        n.attributes.push_back(read_attribute(r.message("AttributeProto")));
        break;
      case 7:
        n.domain = r.text();
        break;
      default:
        break;
    }
  }
  if (n.domain == "ai.onnx") n.domain.clear();
  return n;
}

Dim read_dim(ProtoReader r) {
  Dim d;
  while (r.next()) {
    if (r.field() == 1) d.value = r.integer();
    if (r.field() == 2) d.name = r.text();
  }
  if (d.value < -1) r.fail(fmt::format("a size of {}", d.value));
  return d;
}

void read_tensor_type(ProtoReader r, ValueInfo& v) {
  while (r.next()) {
    if (r.field() == 1) {
      const int64_t type = r.integer();
      v.type = type < 0 || type > 1000 ? -1 : int(type);
    }
    if (r.field() != 2) continue;
    v.has_shape = true;
    for (ProtoReader shape = r.message("TensorShapeProto"); shape.next();) {
      if (shape.field() == 1) v.dims.push_back(read_dim(shape.message("Dimension")));
    }
  }
}

ValueInfo read_value(ProtoReader r) {
  ValueInfo v;
  while (r.next()) {
    if (r.field() == 1) v.name = r.text();
    if (r.field() != 2) continue;
    for (ProtoReader type = r.message("TypeProto"); type.next();) {
      if (type.field() == 1) read_tensor_type(type.message("TypeProto.Tensor"), v);
    }
  }
  return v;
}

Graph read_graph(ProtoReader r) {
  Graph g;
  while (r.next()) {
    switch (r.field()) {
      case 1:
        g.nodes.push_back(read_node(r.message("NodeProto")));
        break;
      case 2:
        g.name = r.text();
        break;
      case 5:
        g.initializers.push_back(read_tensor(r.message("TensorProto")));
        break;
      case 11:
        g.inputs.push_back(read_value(r.message("ValueInfoProto")));
        break;
      case 12:
        g.outputs.push_back(read_value(r.message("ValueInfoProto")));
        break;
      case 13:
        g.values.push_back(read_value(r.message("ValueInfoProto")));
        break;
      case 15:
        r.fail("sparse weights cannot be read");
        break;
      default:
        break;
    }
  }
  return g;
}

void read_opset(ProtoReader r, std::map<std::string, int64_t>& to) {
  std::string domain;
  int64_t version = 0;
  while (r.next()) {
    if (r.field() == 1) domain = r.text();
    if (r.field() == 2) version = r.integer();
  }
  to[domain == "ai.onnx" ? "" : domain] = version;
}

void read_property(ProtoReader r, std::map<std::string, std::string>& to) {
  std::string key, value;
  while (r.next()) {
    if (r.field() == 1) key = r.text();
    if (r.field() == 2) value = r.text();
  }
  to[key] = value;
}

// ---- writing

ProtoWriter write_tensor(const std::string& name, const Tensor& given) {
  const Tensor t = host_copy("onnx", given);
  ProtoWriter w;
  w.integers(1, t.sizes());
  w.integer(2, type_number(t.dtype()));
  if (!name.empty()) w.bytes(8, name);
  w.bytes(9, {static_cast<const char*>(t.raw()), size_t(t.numel() * size_of(t.dtype()))});
  return w;
}

ProtoWriter write_graph(const Graph& g);

ProtoWriter write_attribute(const Attribute& a) {
  using Type = Attribute::Type;
  ProtoWriter w;
  w.bytes(1, a.name);
  switch (a.type) {
    case Type::real:
      w.real32(2, a.f);
      break;
    case Type::integer:
      w.integer(3, a.i);
      break;
    case Type::text:
      w.bytes(4, a.s);
      break;
    case Type::tensor:
      w.message(5, write_tensor("", a.t));
      break;
    case Type::graph:
      w.message(6, write_graph(*a.g));
      break;
    case Type::reals:
      for (const float v : a.floats) w.real32(7, v);
      break;
    case Type::integers:
      for (const int64_t v : a.ints) w.integer(8, v);
      break;
    case Type::texts:
      for (const std::string& v : a.strings) w.bytes(9, v);
      break;
    default:
      throw ValueError("onnx", fmt::format("attribute '{}' cannot be written", a.name));
  }
  w.integer(20, int64_t(a.type));
  return w;
}

ProtoWriter write_node(const Node& n) {
  ProtoWriter w;
  for (const std::string& s : n.inputs) w.bytes(1, s);
  for (const std::string& s : n.outputs) w.bytes(2, s);
  if (!n.name.empty()) w.bytes(3, n.name);
  w.bytes(4, n.op_type);
  for (const Attribute& a : n.attributes) w.message(5, write_attribute(a));
  if (!n.domain.empty()) w.bytes(7, n.domain);
  return w;
}

ProtoWriter write_value(const ValueInfo& v) {
  ProtoWriter tensor, type, w;
  tensor.integer(1, v.type);
  if (v.has_shape) {
    ProtoWriter shape;
    for (const Dim& d : v.dims) {
      ProtoWriter dim;
      if (d.value >= 0) {
        dim.integer(1, d.value);
      } else if (!d.name.empty()) {
        dim.bytes(2, d.name);
      }
      shape.message(1, dim);
    }
    tensor.message(2, shape);
  }
  type.message(1, tensor);
  w.bytes(1, v.name);
  w.message(2, type);
  return w;
}

ProtoWriter write_graph(const Graph& g) {
  ProtoWriter w;
  for (const Node& n : g.nodes) w.message(1, write_node(n));
  w.bytes(2, g.name);
  for (const NamedTensor& t : g.initializers) w.message(5, write_tensor(t.name, t.value));
  for (const ValueInfo& v : g.inputs) w.message(11, write_value(v));
  for (const ValueInfo& v : g.outputs) w.message(12, write_value(v));
  for (const ValueInfo& v : g.values) w.message(13, write_value(v));
  return w;
}

}  // namespace

int type_number(DType dtype) {
  constexpr int kNumbers[kNumDTypes] = {11, 1, 16, 10, 7, 6, 2, 3, 9};
  return kNumbers[int(dtype)];
}
std::string type_name(int number) {
  if (number >= 0 && number < int(std::size(kTypes))) return kTypes[number].name;
  return fmt::format("number {}", number);
}
DType engine_type(int number) {
  if (number < 0 || number >= int(std::size(kTypes)) || !kTypes[number].held) {
    throw DTypeError("onnx", fmt::format("no tensor here can hold type {}", type_name(number)));
  }
  return kTypes[number].dtype;
}

File parse_file(const std::string& name, std::span<const uint8_t> data) {
  File f;
  bool graph = false;
  f.ir_version = 0;
  ProtoReader r(name, "ModelProto", data);
  while (r.next()) {
    switch (r.field()) {
      case 1:
        f.ir_version = r.integer();
        break;
      case 2:
        f.producer = r.text();
        break;
      case 3:
        f.producer_version = r.text();
        break;
      case 6:
        f.description = r.text();
        break;
      case 7:
        f.graph = read_graph(r.message("GraphProto"));
        graph = true;
        break;
      case 8:
        read_opset(r.message("OperatorSetIdProto"), f.opsets);
        break;
      case 14:
        read_property(r.message("StringStringEntryProto"), f.metadata);
        break;
      default:
        break;
    }
  }
  if (!graph) r.fail("there is no graph; not an ONNX model");
  return f;
}

File load_file(const std::string& path) { return parse_file(path, io::read_file(path)); }

NamedTensor parse_tensor(const std::string& name, std::span<const uint8_t> data) {
  return read_tensor(ProtoReader(name, "TensorProto", data));
}

std::string file_bytes(const File& file) {
  int64_t weights = 0;
  for (const NamedTensor& t : file.graph.initializers) {
    weights += t.value.numel() * size_of(t.value.dtype());
  }
  if (weights >= kLargest) {
    throw IoError("onnx", fmt::format("a file holds less than 2 GiB; the weights take {:.1f} GiB",
                                      double(weights) / (1 << 30)));
  }
  ProtoWriter w;
  w.integer(1, file.ir_version);
  w.bytes(2, file.producer);
  w.bytes(3, file.producer_version);
  if (!file.description.empty()) w.bytes(6, file.description);
  w.message(7, write_graph(file.graph));
  for (const auto& [domain, version] : file.opsets) {
    ProtoWriter opset;
    opset.bytes(1, domain);
    opset.integer(2, version);
    w.message(8, opset);
  }
  for (const auto& [key, value] : file.metadata) {
    ProtoWriter property;
    property.bytes(1, key);
    property.bytes(2, value);
    w.message(14, property);
  }
  if (int64_t(w.text().size()) >= kLargest) throw IoError("onnx", "a file holds less than 2 GiB");
  return w.text();
}

void save_file(const std::string& path, const File& file) {
  io::write_file_atomic(path, file_bytes(file));
}

}  // namespace cutaway::onnx

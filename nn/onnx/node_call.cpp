#include <cutaway/nn/onnx/node_call.h>

#include <fmt/format.h>

#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway::onnx {
namespace {

const char* type_text(Attribute::Type t) {
  constexpr const char* kNames[] = {"nothing", "a float", "an int", "a string", "a tensor",
                                    "a graph", "floats",  "ints",   "strings",  "another type"};
  return kNames[int(t)];
}

}  // namespace

void NodeCall::fail(const std::string& why) const { throw ValueError("onnx", why); }

const Tensor& NodeCall::in(int i) const {
  if (!has(i)) fail(fmt::format("input {} is missing", i));
  return inputs_[size_t(i)];
}

Ints NodeCall::ints_in(int i) const {
  const Tensor& t = in(i);
  if (t.is_floating())
    fail(fmt::format("input {} must be integers; got {}", i, name_of(t.dtype())));
  const Tensor host = host_copy("onnx", cast_raw(t, DType::i64));
  const int64_t* p = host.data<int64_t>();
  return {p, p + host.numel()};
}

double NodeCall::number_in(int i) const {
  if (in(i).numel() != 1) {
    fail(fmt::format("input {} must be one number; got {}", i, to_string(in(i).sizes())));
  }
  return in(i).item();
}

bool NodeCall::given(const char* name) const {
  for (const Attribute& a : node.attributes) {
    if (a.name == name) return true;
  }
  return false;
}

const Attribute* NodeCall::attribute(const char* name, Attribute::Type type) {
  for (size_t k = 0; k < node.attributes.size(); ++k) {
    const Attribute& a = node.attributes[k];
    if (a.name != name) continue;
    used_[k] = true;
    if (a.type != type) {
      fail(fmt::format("attribute '{}' must be {}; got {}", name, type_text(type),
                       type_text(a.type)));
    }
    return &a;
  }
  return nullptr;
}

int64_t NodeCall::integer(const char* name, int64_t otherwise) {
  const Attribute* a = attribute(name, Attribute::Type::integer);
  return a ? a->i : otherwise;
}
double NodeCall::real(const char* name, double otherwise) {
  const Attribute* a = attribute(name, Attribute::Type::real);
  return a ? double(a->f) : otherwise;
}
std::string NodeCall::text(const char* name, const std::string& otherwise) {
  const Attribute* a = attribute(name, Attribute::Type::text);
  return a ? a->s : otherwise;
}
Ints NodeCall::integers(const char* name, const Ints& otherwise) {
  const Attribute* a = attribute(name, Attribute::Type::integers);
  return a ? a->ints : otherwise;
}
void NodeCall::ignore(const char* name) {
  for (size_t k = 0; k < node.attributes.size(); ++k) {
    if (node.attributes[k].name == name) used_[k] = true;
  }
}

std::optional<Ints> NodeCall::axes(int64_t opset_of_input, int rank) {
  std::optional<Ints> list;
  if (opset >= opset_of_input) {
    if (has(1)) list = ints_in(1);
  } else if (given("axes")) {
    list = integers("axes");
  }
  if (list) {
    for (int64_t& d : *list) d = from_front(*this, d, rank);
  }
  return list;
}

void NodeCall::check_attributes() const {
  for (size_t k = 0; k < used_.size(); ++k) {
    if (!used_[k]) fail(fmt::format("attribute '{}' is not known", node.attributes[k].name));
  }
}

int64_t from_front(NodeCall& c, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    c.fail(fmt::format("axis {} is out of range for {} dimensions", axis, rank));
  }
  return axis < 0 ? axis + rank : axis;
}

Shape shape_of(NodeCall& c, const Ints& values) {
  if (values.size() > size_t(kMaxRank)) {
    c.fail(fmt::format("{} dimensions; at most {} are possible", values.size(), kMaxRank));
  }
  return Shape(std::span<const int64_t>(values));
}

const Operator* find_operator(const std::string& name) {
  using Table = std::map<std::string, const Operator*, std::less<>>;
  static const Table all = [] {
    Table t;
    for (const auto& list :
         {math_operators(), reduce_operators(), shape_operators(), index_operators(),
          layer_operators(), pool_operators(), recurrent_operators(), resize_operators()}) {
      for (const Operator& o : list) t[o.name] = &o;
    }
    return t;
  }();
  const auto it = all.find(name);
  return it == all.end() ? nullptr : it->second;
}

}  // namespace cutaway::onnx

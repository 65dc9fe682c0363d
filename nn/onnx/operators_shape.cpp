#include <cmath>

#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/nn/onnx/node_call.h>

// Operators that make constants, or move elements without computing.
namespace cutaway::onnx {
namespace {

// ---- constants

void constant(NodeCall& c) {
  using Type = Attribute::Type;
  if (const Attribute* a = c.attribute("value", Type::tensor); a) return c.give(a->t);
  if (c.given("value_float")) return c.give(scalar_tensor(c.real("value_float", 0)));
  if (c.given("value_int")) {
    return c.give(scalar_tensor(c.integer("value_int", 0), {.dtype = DType::i64}));
  }
  if (c.given("value_ints")) return c.give(index_tensor(c.integers("value_ints")));
  if (const Attribute* a = c.attribute("value_floats", Type::reals); a) {
    const std::vector<double> v(a->floats.begin(), a->floats.end());
    return c.give(tensor(v));
  }
  c.fail("has no value that is a tensor");
}

void constant_of_shape(NodeCall& c) {
  const Attribute* a = c.attribute("value", Attribute::Type::tensor);
  const Tensor value = a ? a->t.reshape({}) : zeros({});
  c.give(value.expand(shape_of(c, c.ints_in(0))).contiguous());
}

void range(NodeCall& c) {
  const DType t = c.in(0).dtype();
  if (t == DType::i64 || t == DType::i32) {
    const int64_t a = c.ints_in(0).at(0), b = c.ints_in(1).at(0), s = c.ints_in(2).at(0);
    return c.give(arange(a, b, s, {.dtype = t}));
  }
  c.give(arange(c.number_in(0), c.number_in(1), c.number_in(2), {.dtype = t}));
}

DType type_attribute(NodeCall& c, DType otherwise) {
  const int64_t number = c.integer("dtype", 0);
  return number == 0 ? otherwise : engine_type(int(std::clamp<int64_t>(number, -1, 1000)));
}

void eye_like(NodeCall& c) {
  const Tensor& x = c.in(0);
  if (x.dim() != 2) c.fail("needs a matrix; got " + to_string(x.sizes()));
  const int64_t k = c.integer("k", 0);
  const Tensor rows = reshape(arange(0, x.size(0)), {x.size(0), 1}) + k;
  const Tensor columns = reshape(arange(0, x.size(1)), {1, x.size(1)});
  c.give(eq(rows, columns).to(type_attribute(c, x.dtype())));
}

// ---- sizes

void shape_op(NodeCall& c) {
  const Shape& s = c.in(0).sizes();
  const int64_t n = s.rank(), a = c.integer("start", 0), b = c.integer("end", n);
  const auto bound = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  c.give(index_tensor(s.slice(int(bound(a)), int(std::max(bound(a), bound(b))))));
}
void size_op(NodeCall& c) { c.give(scalar_tensor(c.in(0).numel(), {.dtype = DType::i64})); }

void reshape_op(NodeCall& c) {
  c.ignore("consumed_inputs");
  const Tensor& x = c.in(0);
  Ints sizes = c.opset < 5 ? c.integers("shape") : c.ints_in(1);
  const bool zero = c.integer("allowzero", 0) != 0;
  for (size_t d = 0; d < sizes.size() && !zero; ++d) {
    if (sizes[d] != 0) continue;
    if (int(d) >= x.dim()) c.fail(fmt::format("size {} is to be kept, but x has none there", d));
    sizes[d] = x.sizes()[int(d)];
  }
  c.give(reshape(x, shape_of(c, sizes)));
}

void flatten_op(NodeCall& c) {
  const Tensor& x = c.in(0);
  const int64_t axis = c.integer("axis", 1);
  if (axis < -x.dim() || axis > x.dim()) c.fail(fmt::format("axis {} is out of range", axis));
  const int from = int(axis < 0 ? axis + x.dim() : axis);
  c.give(reshape(x, {x.sizes().slice(0, from).numel(), x.sizes().slice(from, x.dim()).numel()}));
}

void squeeze_op(NodeCall& c) {
  const Tensor& x = c.in(0);
  const auto axes = c.axes(13, x.dim());
  Shape sizes;
  for (int d = 0; d < x.dim(); ++d) {
    const bool named = axes && std::find(axes->begin(), axes->end(), d) != axes->end();
    if (named && x.sizes()[d] != 1) c.fail(fmt::format("dimension {} is not 1", d));
    if (axes ? !named : x.sizes()[d] != 1) sizes.push_back(x.sizes()[d]);
  }
  c.give(reshape(x, sizes));
}

void unsqueeze_op(NodeCall& c) {
  const Tensor& x = c.in(0);
  const Ints given = c.opset < 13 ? c.integers("axes") : c.ints_in(1);
  const int rank = x.dim() + int(given.size());
  if (rank > kMaxRank) c.fail(fmt::format("at most {} dimensions are possible", kMaxRank));
  bool added[kMaxRank] = {};
  for (const int64_t d : given) {
    bool& here = added[from_front(c, d, rank)];
    if (here) c.fail(fmt::format("axis {} is named twice", d));
    here = true;
  }
  Shape sizes;
  for (int d = 0, k = 0; d < rank; ++d) sizes.push_back(added[d] ? 1 : x.sizes()[k++]);
  c.give(reshape(x, sizes));
}

void expand_op(NodeCall& c) {
  const Tensor& x = c.in(0);
  const Shape to = broadcast("Expand", x.sizes(), shape_of(c, c.ints_in(1)));
  c.give(broadcast_to(x, to));
}

void transpose_op(NodeCall& c) {
  Ints order;
  for (int d = c.in(0).dim(); d-- > 0;) order.push_back(d);
  c.give(permute(c.in(0), shape_of(c, c.integers("perm", order))));
}

// ---- pieces

void concat(NodeCall& c) {
  Tensors all;
  for (int i = 0; i < c.inputs(); ++i) all.push_back(c.in(i));
  c.give(cat(all, c.integer("axis", 1)));
}

void split_op(NodeCall& c) {
  const Tensor& x = c.in(0);
  const int64_t axis = from_front(c, c.integer("axis", 0), x.dim());
  Ints sizes = c.opset < 13 ? c.integers("split") : c.has(1) ? c.ints_in(1) : Ints{};
  const int64_t parts = c.integer("num_outputs", c.outputs());
  if (sizes.empty()) {
    if (parts < 1) c.fail("needs at least one result");
    const int64_t n = x.size(axis), each = (n + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp(n - i * each, int64_t(0), each));
  }
  c.results = split_sizes(x, sizes, axis);
}

Tensor slice_step(NodeCall& c, const Tensor& x, int64_t axis, int64_t begin, int64_t end,
                  int64_t step) {
  const int64_t n = x.size(axis);
  if (step == 0) c.fail("a step of 0");
  if (step > 0) {
    const auto at = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
    return slice(x, axis, at(begin), std::max(at(begin), at(end)), step);
  }
  // From the end: the same places counted in the reversed dimension.
  const auto at = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, -1, n - 1); };
  const int64_t from = n - 1 - at(begin), to = n - 1 - (end < -n ? -1 : at(end));
  return slice(flip(x, {axis}), axis, from, std::max(from, to),
               step == INT64_MIN ? INT64_MAX : -step);
}

void slice_op(NodeCall& c) {
  Tensor x = c.in(0);
  const bool old = c.opset < 10;
  const Ints starts = old ? c.integers("starts") : c.ints_in(1);
  const Ints ends = old ? c.integers("ends") : c.ints_in(2);
  Ints axes = old ? c.integers("axes") : c.has(3) ? c.ints_in(3) : Ints{};
  const Ints steps = !old && c.has(4) ? c.ints_in(4) : Ints(starts.size(), 1);
  if (axes.empty()) {
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(int64_t(i));
  }
  if (starts.size() != ends.size() || starts.size() != axes.size() ||
      starts.size() != steps.size()) {
    c.fail("starts, ends, axes and steps must be equally many");
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    x = slice_step(c, x, from_front(c, axes[i], x.dim()), starts[i], ends[i], steps[i]);
  }
  c.give(x);
}

void pad_op(NodeCall& c) {
  const Tensor& x = c.in(0);
  const std::string mode = c.text("mode", "constant");
  Ints pads = c.opset >= 11 ? c.ints_in(1) : c.integers(c.given("paddings") ? "paddings" : "pads");
  double value = c.opset >= 11 ? (c.has(2) ? c.number_in(2) : 0) : c.real("value", 0);
  Ints axes;
  for (int d = 0; d < x.dim(); ++d) axes.push_back(d);
  if (c.has(3)) axes = c.ints_in(3);
  if (pads.size() != 2 * axes.size()) {
    c.fail(fmt::format("{} pads for {} dimensions", pads.size(), axes.size()));
  }
  PadOptions o{.value = value};
  if (mode == "reflect") {
    o.mode = PadMode::reflect;
  } else if (mode == "edge") {
    o.mode = PadMode::replicate;
  } else if (mode != "constant") {
    c.fail(fmt::format("attribute 'mode' must be constant, reflect or edge; got {}", mode));
  }
  // One dimension at a time: a list for all of them may be too long for the engine's own.
  Tensor y = x;
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t d = from_front(c, axes[k], x.dim()), a = pads[k], b = pads[k + axes.size()];
    if (a == 0 && b == 0) continue;
    y = movedim(pad(movedim(y, d, x.dim() - 1), {a, b}, o), x.dim() - 1, d);
  }
  c.give(y);
}

void tile_op(NodeCall& c) {
  if (c.opset < 6) c.fail("the form before opset 6 cannot be run");
  c.give(repeat(c.in(0), shape_of(c, c.ints_in(1))));
}

void trilu(NodeCall& c) {
  const int64_t k = c.has(1) ? int64_t(c.number_in(1)) : 0;
  c.give(c.integer("upper", 1) ? triu(c.in(0), k) : tril(c.in(0), k));
}

// ---- channels and pixels

void depth_to_space(NodeCall& c) {
  const Tensor& x = c.in(0);
  const int64_t b = c.integer("blocksize", 0);
  const bool crd = c.text("mode", "DCR") == "CRD";
  if (x.dim() != 4 || b < 1) c.fail("needs x [N,C,H,W] and a blocksize ≥ 1");
  const int64_t n = x.size(0), k = x.size(1) / (b * b), h = x.size(2), w = x.size(3);
  const Tensor parts = crd ? permute(reshape(x, {n, k, b, b, h, w}), {0, 1, 4, 2, 5, 3})
                           : permute(reshape(x, {n, b, b, k, h, w}), {0, 3, 4, 1, 5, 2});
  c.give(reshape(parts, {n, k, h * b, w * b}));
}
void space_to_depth(NodeCall& c) {
  const Tensor& x = c.in(0);
  const int64_t b = c.integer("blocksize", 0);
  if (x.dim() != 4 || b < 1) c.fail("needs x [N,C,H,W] and a blocksize ≥ 1");
  const int64_t n = x.size(0), k = x.size(1), h = x.size(2) / b, w = x.size(3) / b;
  const Tensor parts = permute(reshape(x, {n, k, h, b, w, b}), {0, 3, 5, 1, 2, 4});
  c.give(reshape(parts, {n, k * b * b, h, w}));
}

constexpr Operator kOperators[] = {{"Concat", concat, "cat"},
                                   {"Constant", constant, "(constant)"},
                                   {"ConstantOfShape", constant_of_shape, "expand"},
                                   {"DepthToSpace", depth_to_space, "reshape, permute"},
                                   {"Expand", expand_op, "broadcast_to"},
                                   {"EyeLike", eye_like, "eq"},
                                   {"Flatten", flatten_op, "reshape"},
                                   {"Pad", pad_op, "pad"},
                                   {"Range", range, "(constant)"},
                                   {"Reshape", reshape_op, "reshape"},
                                   {"Shape", shape_op, "(constant)"},
                                   {"Size", size_op, "(constant)"},
                                   {"Slice", slice_op, "slice, flip"},
                                   {"SpaceToDepth", space_to_depth, "reshape, permute"},
                                   {"Split", split_op, "split"},
                                   {"Squeeze", squeeze_op, "reshape"},
                                   {"Tile", tile_op, "repeat"},
                                   {"Transpose", transpose_op, "permute"},
                                   {"Trilu", trilu, "tril, triu"},
                                   {"Unsqueeze", unsqueeze_op, "reshape"}};

}  // namespace

std::span<const Operator> shape_operators() { return kOperators; }

}  // namespace cutaway::onnx

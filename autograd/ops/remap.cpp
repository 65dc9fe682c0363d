#include <fmt/format.h>

#include <algorithm>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/arrange.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/rearrange.h>
#include <cutaway/core/tensor_ops.h>

// Note: maps. flip, roll, pad and the repeats say for each dimension on its own which element of x
// an element of y shows. One kernel reads such maps, and one sums along them backwards.
namespace cutaway {

// Samples: remap_samples.cpp.
void flip_samples(SampleList&);
void roll_samples(SampleList&);
void pad_samples(SampleList&);
void repeat_samples(SampleList&);
void repeat_interleave_samples(SampleList&);
void remap_adjoint_samples(SampleList&);

namespace {

enum class Remap : uint8_t { flip, roll, pad, repeat, interleave };

struct RemapAttrs {
  Remap kind;
  PadMode mode = PadMode::constant;
  double value = 0;
  Shape a = {};      // dims, shifts, pads or repeats
  Shape b = {};      // roll: dims
  Shape sizes = {};  // of x; for the adjoint only
};

using Map = std::vector<int64_t>;  // empty: the identity
struct Plan {
  Shape in, out;  // of one rank; `in` has leading ones where dimensions are added
  Map maps[kMaxRank];
};

Plan identity_plan(const Shape& sizes) { return {sizes, sizes, {}}; }

[[noreturn, gnu::cold]] void fail(const char* op, const std::string& rule, const Shape& given,
                                  const Shape& x, const char* hint = "") {
  throw ShapeError(op, fmt::format("{}; got {} for x {}", rule, to_string(given), to_string(x)),
                   hint);
}

Plan flip_plan(const char* op, const Shape& sizes, const RemapAttrs& r, bool maps) {
  Plan p = identity_plan(sizes);
  bool seen[kMaxRank] = {};
  for (int64_t dim : r.a) {
    const int d = normalize_dim(op, dim, sizes.rank());
    if (seen[d]) fail(op, "a dimension is named twice", r.a, sizes);
    seen[d] = true;
    if (sizes.rank() == 0 || !maps) continue;
    for (int64_t i = sizes[d] - 1; i >= 0; --i) p.maps[d].push_back(i);
  }
  return p;
}

Plan roll_plan(const char* op, const Shape& sizes, const RemapAttrs& r, bool maps) {
  if (r.a.rank() != r.b.rank()) {
    fail(op, "needs one shift for each dimension; dims are " + to_string(r.b), r.a, sizes);
  }
  Plan p = identity_plan(sizes);
  Shape shift = Shape::filled(std::max(sizes.rank(), 1), 0);
  for (int k = 0; k < r.a.rank(); ++k) {
    const int d = normalize_dim(op, r.b[k], sizes.rank());
    const int64_t n = sizes.rank() ? sizes[d] : 1;
    if (n > 0) shift[d] = (shift[d] + r.a[k] % n) % n;
  }
  for (int d = 0; d < sizes.rank(); ++d) {
    const int64_t n = sizes[d], s = shift[d] < 0 ? shift[d] + n : shift[d];
    for (int64_t i = 0; maps && s != 0 && i < n; ++i)
      p.maps[d].push_back(i < s ? i - s + n : i - s);
  }
  return p;
}

// Where element i (counted from the first of x; it may lie outside) of a padded dimension comes
// from.
int64_t padded_from(PadMode mode, int64_t i, int64_t n) {
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case PadMode::constant:
      return -1;
    case PadMode::reflect:
      return i < 0 ? -i : 2 * (n - 1) - i;
    case PadMode::replicate:
      return i < 0 ? 0 : n - 1;
    case PadMode::circular:
      return i < 0 ? i + n : i - n;
  }
  return -1;
}

Plan pad_plan(const char* op, const Shape& sizes, const RemapAttrs& r, bool maps) {
  const Shape& pads = r.a;
  if (pads.rank() % 2 || pads.rank() > 2 * sizes.rank()) {
    fail(op, "pads come in pairs {before, after}, at most one for each dimension", pads, sizes);
  }
  Plan p = identity_plan(sizes);
  for (int k = 0; k < pads.rank(); k += 2) {
    const int d = sizes.rank() - 1 - k / 2;
    const int64_t before = pads[k], after = pads[k + 1], n = sizes[d];
    const int64_t most = std::max(before, after);
    if (r.mode == PadMode::reflect && most >= std::max<int64_t>(n, 1)) {
      fail(op, "reflect needs pads smaller than the size", pads, sizes,
           "use replicate or circular");
    }
    if (r.mode == PadMode::circular && most > n) {
      fail(op, "circular needs pads of at most the size", pads, sizes, "use repeat()");
    }
    if (r.mode == PadMode::replicate && n == 0 && most > 0) {
      fail(op, "replicate needs an edge to repeat", pads, sizes);
    }
    int64_t size = n;
    if (__builtin_add_overflow(size, before, &size) || __builtin_add_overflow(size, after, &size) ||
        size < 0) {
      fail(op, "nothing may be cut away twice: size + before + after must not be negative", pads,
           sizes);
    }
    p.out[d] = size;
    if (!maps || (before == 0 && after == 0)) continue;
    p.maps[d].resize(size_t(size));
    for (int64_t i = 0; i < size; ++i) {
      p.maps[d][size_t(i)] = padded_from(r.mode, i - before, n);
    }
  }
  return p;
}

Plan repeat_plan(const char* op, const Shape& sizes, const RemapAttrs& r, bool maps) {
  const Shape& repeats = r.a;
  if (repeats.rank() < sizes.rank()) {
    fail(op, "needs a number for every dimension", repeats, sizes, "tile() takes shorter lists");
  }
  Shape in = sizes;
  while (in.rank() < repeats.rank()) in.insert(0, 1);
  Plan p = identity_plan(in);
  for (int d = 0; d < in.rank(); ++d) {
    if (repeats[d] < 0 || __builtin_mul_overflow(in[d], repeats[d], &p.out[d])) {
      fail(op, "numbers of repeats must not be negative, and sizes must fit", repeats, sizes);
    }
    for (int64_t i = 0; maps && repeats[d] != 1 && i < p.out[d]; ++i)
      p.maps[d].push_back(i % in[d]);
    if (repeats[d] == 0) p.maps[d].clear();
  }
  return p;
}

// a = {dim, n}.
Plan interleave_plan(const char* op, const Shape& sizes, const RemapAttrs& r, bool maps) {
  const int64_t n = r.a[1];
  const int d = normalize_dim(op, r.a[0], sizes.rank());
  if (sizes.rank() == 0) fail(op, "a 0-d tensor has no dimension to repeat along", r.a, sizes);
  Plan p = identity_plan(sizes);
  if (n < 0 || __builtin_mul_overflow(sizes[d], n, &p.out[d])) {
    fail(op, "the number of repeats must not be negative, and sizes must fit", {n}, sizes);
  }
  for (int64_t i = 0; maps && n != 1 && i < p.out[d]; ++i) p.maps[d].push_back(i / n);
  return p;
}

// Sizes come first and maps only when the result is known to fit into memory.
Plan plan(const char* op, const Shape& sizes, const RemapAttrs& r, bool maps) {
  switch (r.kind) {
    case Remap::flip:
      return flip_plan(op, sizes, r, maps);
    case Remap::roll:
      return roll_plan(op, sizes, r, maps);
    case Remap::pad:
      return pad_plan(op, sizes, r, maps);
    case Remap::repeat:
      return repeat_plan(op, sizes, r, maps);
    case Remap::interleave:
      break;
  }
  return interleave_plan(op, sizes, r, maps);
}

// Dimensions of the kernel: trailing ones that are walked alike become a single one.
struct Dims {
  int rank = 0;
  int64_t in[kMaxRank], out[kMaxRank];
  const Map* map[kMaxRank];
};

Dims joined_dims(const Plan& p) {
  Dims d;
  for (int k = 0; k < p.in.rank(); ++k) {
    const bool plain = p.maps[k].empty();
    if (plain && d.rank > 0 && d.map[d.rank - 1]->empty()) {
      d.in[d.rank - 1] *= p.in[k];
      d.out[d.rank - 1] *= p.out[k];
      continue;
    }
    d.in[d.rank] = p.in[k];
    d.out[d.rank] = p.out[k];
    d.map[d.rank++] = &p.maps[k];
  }
  if (d.rank == 0) {
    static const Map none;
    d.in[0] = d.out[0] = 1;
    d.map[d.rank++] = &none;
  }
  return d;
}

void remap_forward(Call& c) {
  const Tensor& x = c.in(0);
  const auto& r = c.attrs<RemapAttrs>();
  Tensor& out = c.out(0, plan(c.op.name, x.sizes(), r, false).out, x.dtype());
  if (c.meta() || out.numel() == 0) return;
  const Plan p = plan(c.op.name, x.sizes(), r, true);
  const Tensor dense = contiguous_raw(x);
  const Tensor fill = full({1}, r.value, {.dtype = x.dtype(), .device = x.device()});
  RemapArgs a;
  const Dims d = joined_dims(p);
  a.rank = d.rank;
  for (int k = 0; k < d.rank; ++k) {
    a.in_sizes[k] = d.in[k];
    a.out_sizes[k] = d.out[k];
    a.map[k] = d.map[k]->empty() ? nullptr : d.map[k]->data();
  }
  a.in = dense.raw();
  a.out = out.raw();
  a.fill = fill.raw();
  kernels::remap(x.device(), x.dtype(), a);
}

// The elements that show element i of x, for all i, in order.
struct Inverse {
  std::vector<int64_t> starts, places;
  Inverse(const Map& map, int64_t n) : starts(size_t(n) + 1), places(map.size()) {
    for (int64_t from : map) {
      if (from >= 0) ++starts[size_t(from) + 1];
    }
    for (size_t i = 0; i < size_t(n); ++i) starts[i + 1] += starts[i];
    std::vector<int64_t> next(starts.begin(), starts.end() - 1);
    for (size_t j = 0; j < map.size(); ++j) {
      if (map[j] >= 0) places[size_t(next[size_t(map[j])]++)] = int64_t(j);
    }
  }
};

void remap_adjoint_forward(Call& c) {
  const Tensor& g = c.in(0);
  const auto& r = c.attrs<RemapAttrs>();
  const Plan p = plan(c.op.name, r.sizes, r, !g.is_meta());
  if (g.sizes() != p.out) {
    throw ShapeError(c.op.name, fmt::format("needs the sizes of the result; got {}, need {}",
                                            to_string(g.sizes()), to_string(p.out)));
  }
  Tensor& out = c.out(0, r.sizes, g.dtype());
  if (c.meta() || out.numel() == 0) return;
  if (g.numel() == 0) {
    out = zeros(r.sizes, {.dtype = g.dtype(), .device = g.device()});
    return;
  }
  const Tensor dense = contiguous_raw(g);
  const Dims d = joined_dims(p);
  std::vector<Inverse> inverses;
  inverses.reserve(size_t(d.rank));
  RemapSumArgs a;
  a.rank = d.rank;
  for (int k = 0; k < d.rank; ++k) {
    a.in_sizes[k] = d.in[k];
    a.out_sizes[k] = d.out[k];
    if (d.map[k]->empty()) continue;
    const Inverse& inverse = inverses.emplace_back(*d.map[k], d.in[k]);
    a.starts[k] = inverse.starts.data();
    a.places[k] = inverse.places.data();
  }
  a.in = out.raw();
  a.out = dense.raw();
  kernels::remap_sum(g.device(), g.dtype(), a);
}

Tensor adjoint(Backward& b, const RemapAttrs& r);  // runs kRemapAdjoint

void general_backward(Backward& b) { b.set(0, adjoint(b, b.attrs<RemapAttrs>())); }

void flip_backward(Backward& b) { b.set(0, flip(b.upstream(), b.attrs<RemapAttrs>().a)); }

void roll_backward(Backward& b) {
  const auto& r = b.attrs<RemapAttrs>();
  Shape back = r.a;
  // A shift of the smallest integer has no opposite: its remainder is all that matters.
  const Shape& sizes = b.input_sizes(0);
  for (int k = 0; k < back.rank(); ++k) {
    const int d = normalize_dim("roll", r.b[k], sizes.rank());
    const int64_t n = sizes.rank() ? sizes[d] : 1;
    back[k] = n > 0 ? -(back[k] % n) : 0;
  }
  b.set(0, roll(b.upstream(), back, r.b));
}

void pad_backward(Backward& b) {
  const auto& r = b.attrs<RemapAttrs>();
  if (r.mode != PadMode::constant) return general_backward(b);
  Shape cut = r.a;
  for (int64_t& n : cut) n = -n;
  b.set(0, pad(b.upstream(), cut));
}

void remap_adjoint_backward(Backward& b);

// ---- as nodes of ONNX

void onnx_flip(OnnxCall& c) {
  const Shape& dims = c.attrs<RemapAttrs>().a;
  if (dims.empty()) return c.result(c.node("Identity", {c.name(0)}));
  const auto all = [&](int64_t v) { return c.list(Shape::filled(dims.rank(), v)); };
  c.result(c.node("Slice", {c.name(0), all(-1), all(INT64_MIN), c.list(dims), all(-1)}));
}
void onnx_roll(OnnxCall& c) {
  const auto& r = c.attrs<RemapAttrs>();
  std::string y = c.name(0);
  for (int k = 0; k < r.b.rank(); ++k) {
    const int64_t axis = c.dim(r.b[k]), n = c.in().size(axis);
    const int64_t cut =
        n > 0 ? -(r.a[k] % n) : 0;  // where the result starts; negative: from the end
    if (cut == 0) continue;
    const auto part = [&](int64_t begin, int64_t end) {
      return c.node("Slice", {y, c.list({begin}), c.list({end}), c.list({axis})});
    };
    y = c.node("Concat", {part(cut, INT64_MAX), part(0, cut)}, {{"axis", axis}});
  }
  c.result(c.node("Identity", {y}));
}
void onnx_pad(OnnxCall& c) {
  const auto& r = c.attrs<RemapAttrs>();
  if (r.mode == PadMode::circular) c.refuse("in mode circular has no equivalent in ONNX");
  const int rank = c.in().dim();
  std::vector<int64_t> pads(size_t(2 * rank), 0);
  for (int k = 0; 2 * k + 1 < r.a.rank(); ++k) {
    pads[size_t(rank - 1 - k)] = r.a[2 * k];
    pads[size_t(2 * rank - 1 - k)] = r.a[2 * k + 1];
  }
  const bool constant = r.mode == PadMode::constant;
  const char* mode = constant ? "constant" : r.mode == PadMode::reflect ? "reflect" : "edge";
  c.result(c.node("Pad",
                  {c.name(0), c.constant(index_tensor(pads)), constant ? c.number(r.value) : ""},
                  {{"mode", mode}}));
}
void onnx_repeat(OnnxCall& c) {
  const Shape& times = c.attrs<RemapAttrs>().a;
  std::string x = c.name(0);
  Shape front;
  for (int d = c.in().dim(); d < times.rank(); ++d) front.push_back(d - c.in().dim());
  if (!front.empty()) x = c.node("Unsqueeze", {x, c.list(front)});
  c.result(c.node("Tile", {x, c.list(times)}));
}

const OpRecord kFlip{.name = "flip",
                     .signature = "flip(x, dims) → y",
                     .meaning = "Reverses the order along dimensions.",
                     .formula = "y[…, i, …] = x[…, n-1-i, …]",
                     .shapes = "x [...]   y [...]",
                     .dtypes = kAllTypes,
                     .forward = remap_forward,
                     .backward_text = "dx = flip(g, dims)",
                     .backward = flip_backward,
                     .samples = flip_samples,
                     .onnx = onnx_flip};

const OpRecord kRoll{.name = "roll",
                     .signature = "roll(x, shifts, dims) → y",
                     .meaning = "Moves elements along dimensions, around the end.",
                     .formula = "y[…, (i + shift) mod n, …] = x[…, i, …]",
                     .shapes = "x [...]   y [...]",
                     .dtypes = kAllTypes,
                     .forward = remap_forward,
                     .backward_text = "dx = roll(g, -shifts, dims)",
                     .backward = roll_backward,
                     .samples = roll_samples,
                     .onnx = onnx_roll};

const OpRecord kPad{.name = "pad",
                    .signature = "pad(x, pads, {mode, value}) → y",
                    .meaning = "Adds elements around the last dimensions, or cuts them off.",
                    .formula = "y[…, i + before, …] = x[…, i, …], outside by mode",
                    .shapes = "x [..., n]   y [..., before + n + after]",
                    .dtypes = kAllTypes,
                    .forward = remap_forward,
                    .backward_text = "dx_i = Σ g_j over the elements j that show x_i",
                    .backward = pad_backward,
                    .samples = pad_samples,
                    .onnx = onnx_pad};

const OpRecord kRepeat{.name = "repeat",
                       .signature = "repeat(x, repeats) → y",
                       .meaning = "Lays copies of x side by side.",
                       .formula = "y[i_0, i_1, …] = x[i_0 mod n_0, i_1 mod n_1, …]",
                       .shapes = "x [n_0, ...]   y [r_0·n_0, ...]",
                       .dtypes = kAllTypes,
                       .forward = remap_forward,
                       .backward_text = "dx = sum of g over the copies",
                       .backward = general_backward,
                       .samples = repeat_samples,
                       .onnx = onnx_repeat};

const OpRecord kRepeatInterleave{.name = "repeat_interleave",
                                 .signature = "repeat_interleave(x, n, dim) → y",
                                 .meaning = "Every element n times in a row.",
                                 .formula = "y[…, i, …] = x[…, floor(i / n), …]",
                                 .shapes = "x [..., m, ...]   y [..., n·m, ...]",
                                 .dtypes = kAllTypes,
                                 .forward = remap_forward,
                                 .backward_text = "dx = sum of g over the copies",
                                 .backward = general_backward,
                                 .samples = repeat_interleave_samples};

const OpRecord kRemapAdjoint{.name = "remap_adjoint",
                             .signature = "(backward of pad, repeat, repeat_interleave)",
                             .meaning = "Sums every element over the places it was copied to.",
                             .formula = "y_i = Σ_j x_j over the places j that show element i",
                             .shapes = "x: sizes of the result   y: sizes of the operand",
                             .dtypes = kNumbers,
                             .forward = remap_adjoint_forward,
                             .backward_text = "dx = the op whose adjoint this is, of g",
                             .backward = remap_adjoint_backward,
                             .samples = remap_adjoint_samples};

const OpRecord& record_of(Remap kind) {
  switch (kind) {
    case Remap::flip:
      return kFlip;
    case Remap::roll:
      return kRoll;
    case Remap::pad:
      return kPad;
    case Remap::repeat:
      return kRepeat;
    case Remap::interleave:
      break;
  }
  return kRepeatInterleave;
}

Tensor adjoint(Backward& b, const RemapAttrs& r) {
  RemapAttrs with_sizes = r;
  with_sizes.sizes = b.input_sizes(0);
  return run(kRemapAdjoint, {b.upstream()}, with_sizes);
}

void remap_adjoint_backward(Backward& b) {
  RemapAttrs r = b.attrs<RemapAttrs>();
  r.value = 0;
  b.set(0, run(record_of(r.kind), {b.upstream()}, r));
}

}  // namespace

Tensor flip(TensorArg x, const Shape& dims) {
  return run(kFlip, {x}, RemapAttrs{.kind = Remap::flip, .a = dims});
}
Tensor roll(TensorArg x, const Shape& shifts, const Shape& dims) {
  if (!dims.empty() || shifts.rank() != 1) {
    return run(kRoll, {x}, RemapAttrs{.kind = Remap::roll, .a = shifts, .b = dims});
  }
  const CallScope scope(x.site);
  return reshape(roll(flatten(x), shifts, {0}), x->sizes());
}
Tensor pad(TensorArg x, const Shape& pads, PadOptions options) {
  return run(
      kPad, {x},
      RemapAttrs{.kind = Remap::pad, .mode = options.mode, .value = options.value, .a = pads});
}
Tensor repeat(TensorArg x, const Shape& repeats) {
  return run(kRepeat, {x}, RemapAttrs{.kind = Remap::repeat, .a = repeats});
}
Tensor tile(TensorArg x, const Shape& repeats) {
  Shape full = repeats;
  while (full.rank() < x->dim()) full.insert(0, 1);
  return repeat(x, full);
}
Tensor repeat_interleave(TensorArg x, int64_t n, int64_t dim) {
  return run(kRepeatInterleave, {x}, RemapAttrs{.kind = Remap::interleave, .a = {dim, n}});
}

void register_remap_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kFlip, &kRoll, &kPad, &kRepeat, &kRepeatInterleave, &kRemapAdjoint});
}

}  // namespace cutaway

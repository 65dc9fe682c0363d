#include <cmath>

#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/nn/onnx/windows.h>

namespace cutaway::onnx {

void require_images(NodeCall& c, const Tensor& x) {
  if (x.dim() < 3 || x.dim() > 5) {
    c.fail("needs x [N,C,spatial…] with 1 to 3 spatial sizes; got " + to_string(x.sizes()));
  }
}

Window read_window(NodeCall& c, const Tensor& x, Shape kernel) {
  const int n = x.dim() - 2;
  const Ints ones_(size_t(n), 1);
  Window w;
  const Ints given = c.integers("kernel_shape");
  if (!given.empty()) kernel = shape_of(c, given);
  const Ints pads = c.integers("pads", Ints(size_t(2 * n), 0));
  const Ints strides = c.integers("strides", ones_), dilations = c.integers("dilations", ones_);
  const std::string mode = c.text("auto_pad", "NOTSET");
  if (kernel.rank() != n || int(strides.size()) != n || int(dilations.size()) != n ||
      int(pads.size()) != 2 * n) {
    c.fail(fmt::format("kernel_shape, strides, dilations and pads must fit {} spatial sizes", n));
  }
  w.kernel = kernel;
  w.stride = shape_of(c, strides);
  w.dilation = shape_of(c, dilations);
  for (int d = 0; d < n; ++d) {
    if (w.kernel[d] < 1 || w.stride[d] < 1 || w.dilation[d] < 1) {
      c.fail("kernel_shape, strides and dilations must be ≥ 1");
    }
    int64_t a = pads[size_t(d)], b = pads[size_t(d + n)];
    if (mode == "VALID") {
      a = b = 0;
    } else if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      const int64_t size = x.size(2 + d), out = (size + w.stride[d] - 1) / w.stride[d];
      const int64_t reach = w.dilation[d] * (w.kernel[d] - 1) + 1;
      const int64_t total = std::max<int64_t>((out - 1) * w.stride[d] + reach - size, 0);
      a = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      b = total - a;
    } else if (mode != "NOTSET") {
      c.fail("attribute 'auto_pad' is unknown: " + mode);
    }
    if (a < 0 || b < 0) c.fail("attribute 'pads' must not be negative");
    w.begin.push_back(a);
    w.end.push_back(b);
  }
  return w;
}

Tensor pad_window(const Tensor& x, const Window& w, double value) {
  Shape pads;
  bool any = false;
  for (int d = w.begin.rank(); d-- > 0;) {
    pads.push_back(w.begin[d]);
    pads.push_back(w.end[d]);
    any |= w.begin[d] != 0 || w.end[d] != 0;
  }
  return any ? pad(x, pads, {.value = value}) : x;
}

namespace {

// Behind the padding, as many elements as the last window needs in ceil mode.
Shape ceil_extra(const Tensor& x, const Window& w, bool ceil_mode) {
  Shape extra = Shape::filled(w.kernel.rank(), 0);
  for (int d = 0; ceil_mode && d < w.kernel.rank(); ++d) {
    const int64_t reach = w.dilation[d] * (w.kernel[d] - 1) + 1;
    const int64_t span = x.size(2 + d) + w.begin[d] + w.end[d] - reach;
    if (span >= 0) extra[d] = (w.stride[d] - span % w.stride[d]) % w.stride[d];
  }
  return extra;
}

Window wider(Window w, const Shape& extra) {
  for (int d = 0; d < extra.rank(); ++d) w.end[d] += extra[d];
  return w;
}

// Places in the padded planes as places in the whole unpadded tensor.
Tensor unpadded_places(const Tensor& places, const Tensor& x, const Window& w, bool columns) {
  const Tensor out = places.clone();
  int64_t* p = out.data<int64_t>();
  const int n = w.kernel.rank();
  const int64_t plane = x.sizes().slice(2, x.dim()).numel();
  const int64_t each = out.sizes().slice(2, out.dim()).numel();
  for (int64_t k = 0; k < out.numel(); ++k) {
    int64_t rest = p[k], at[3] = {}, flat = 0;
    for (int d = n; d-- > 0;) {
      const int64_t size = x.size(2 + d) + w.begin[d] + w.end[d];
      at[d] = rest % size - w.begin[d];
      rest /= size;
    }
    if (columns) {
      for (int d = n; d-- > 0;) flat = flat * x.size(2 + d) + at[d];
    } else {
      for (int d = 0; d < n; ++d) flat = flat * x.size(2 + d) + at[d];
    }
    p[k] = k / each * plane + flat;
  }
  return out;
}

void max_pool(NodeCall& c) {
  const Tensor& x = c.in(0);
  require_images(c, x);
  const bool ceil_mode = c.integer("ceil_mode", 0) != 0,
             columns = c.integer("storage_order", 0) != 0;
  const Window plain = read_window(c, x, {});
  const Window w = wider(plain, ceil_extra(x, plain, ceil_mode));
  const bool whole = !x.is_floating();  // pooled as f32, which holds all values of 8 bits
  if (whole && size_of(x.dtype()) > 1) c.fail("pools floats and 8-bit integers only");
  const Tensor padded = pad_window(whole ? x.to(DType::f32) : x, w, -INFINITY);
  const Tensors r = max_pool_with_indices(
      padded, {.kernel = w.kernel, .stride = w.stride, .dilation = w.dilation}, w.kernel.rank());
  c.give(whole ? r[0].to(x.dtype()) : r[0]);
  if (c.outputs() > 1) c.give(unpadded_places(r[1], x, w, columns));
}

Tensor average(const Tensor& x, const Window& w) {
  const PoolOptions o{.kernel = w.kernel, .stride = w.stride};
  const int n = w.kernel.rank();
  return n == 1 ? avg_pool1d(x, o) : n == 2 ? avg_pool2d(x, o) : avg_pool3d(x, o);
}

// Padding that does not count is averaged beside: the mean of a mask says how much did.
void average_pool(NodeCall& c) {
  const Tensor& x = c.in(0);
  require_images(c, x);
  const bool ceil_mode = c.integer("ceil_mode", 0) != 0;
  const bool count_pads = c.integer("count_include_pad", 0) != 0;
  const Window plain = read_window(c, x, {});
  if (plain.dilation != Shape::filled(x.dim() - 2, 1)) c.fail("attribute 'dilations' must be 1");
  const Shape extra = ceil_extra(x, plain, ceil_mode);
  const Window w = wider(plain, extra);
  Shape sizes = x.sizes();
  sizes[0] = sizes[1] = 1;
  Tensor mask = ones(sizes, {.dtype = x.dtype()});
  if (count_pads) {
    mask = pad_window(mask, plain, 1);
    Window rest = plain;
    for (int d = 0; d < extra.rank(); ++d) {
      rest.begin[d] = 0;
      rest.end[d] = extra[d];
    }
    mask = pad_window(mask, rest, 0);
  } else {
    mask = pad_window(mask, w, 0);
  }
  c.give(average(pad_window(x, w, 0), w) / average(mask, w));
}

void global_average(NodeCall& c) {
  Shape dims;
  for (int d = 2; d < c.in(0).dim(); ++d) dims.push_back(d);
  c.give(mean(c.in(0), dims, {.keepdim = true}));
}
void global_max(NodeCall& c) {
  Shape dims;
  for (int d = 2; d < c.in(0).dim(); ++d) dims.push_back(d);
  c.give(amax(c.in(0), dims, {.keepdim = true}));
}

// Indices are places in the whole result without output_shape.
void max_unpool_op(NodeCall& c) {
  const Tensor &x = c.in(0), &index = c.in(1);
  require_images(c, x);
  const Window w = read_window(c, x, {});
  Shape sizes = x.sizes();
  for (int d = 0; d < w.kernel.rank(); ++d) {
    sizes[2 + d] = (x.size(2 + d) - 1) * w.stride[d] + w.kernel[d] - w.begin[d] - w.end[d];
  }
  const Tensor flat = scatter(zeros({sizes.numel()}, {.dtype = x.dtype()}), 0, reshape(index, {-1}),
                              reshape(x, {-1}));
  const Tensor y = reshape(flat, sizes);
  if (!c.has(2)) return c.give(y);
  const Shape asked = shape_of(c, c.ints_in(2));
  if (asked.rank() != sizes.rank()) c.fail("input 2 must hold a size for each dimension");
  Shape pads;
  for (int d = sizes.rank(); d-- > 0;) {
    pads.push_back(0);
    pads.push_back(asked[d] - sizes[d]);
  }
  c.give(pad(y, pads.slice(0, 2 * w.kernel.rank())));
}

constexpr Operator kOperators[] = {{"AveragePool", average_pool, "avg_pool"},
                                   {"GlobalAveragePool", global_average, "mean"},
                                   {"GlobalMaxPool", global_max, "amax"},
                                   {"MaxPool", max_pool, "max_pool"},
                                   {"MaxUnpool", max_unpool_op, "scatter"}};

}  // namespace

std::span<const Operator> pool_operators() { return kOperators; }

}  // namespace cutaway::onnx

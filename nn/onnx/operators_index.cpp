#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/nn/onnx/node_call.h>

// Operators that read or write at indices. Negative indices count from the end.
namespace cutaway::onnx {
namespace {

Tensor from_zero(const Tensor& index, int64_t n) {
  const Tensor i = cast(index, DType::i64);
  return where(lt(i, 0), i + n, i);
}

void gather_op(NodeCall& c) {
  const Tensor& x = c.in(0);
  const int64_t axis = from_front(c, c.integer("axis", 0), x.dim());
  const Tensor index = from_zero(c.in(1), x.size(axis));
  Shape sizes = x.sizes().slice(0, int(axis));
  for (const int64_t n : index.sizes()) sizes.push_back(n);
  for (int d = int(axis) + 1; d < x.dim(); ++d) sizes.push_back(x.sizes()[d]);
  c.give(reshape(index_select(x, axis, reshape(index, {-1})), sizes));
}

void gather_elements(NodeCall& c) {
  const int64_t axis = c.integer("axis", 0);
  c.give(gather(c.in(0), axis, from_zero(c.in(1), c.in(0).size(axis))));
}

// Indices of the last dimension as places in x with its dimensions [from, from + k) joined.
Tensor joined_index(NodeCall& c, const Tensor& index, const Shape& sizes, int from) {
  const int64_t k = index.dim() ? index.sizes().back() : 0;
  if (k < 1 || from + k > sizes.rank()) {
    c.fail(fmt::format("indices {} do not fit x {}", to_string(index.sizes()), to_string(sizes)));
  }
  Tensor place;
  for (int64_t d = 0; d < k; ++d) {
    const int64_t n = sizes[from + int(d)];
    const Tensor i = from_zero(select(index, -1, d), n);
    if (i.numel() > 0 && (amin(i).item<int64_t>() < 0 || amax(i).item<int64_t>() >= n)) {
      c.fail(fmt::format("an index is out of range for dimension {} of x {}", from + d,
                         to_string(sizes)));
    }
    place = place.defined() ? place * n + i : i;
  }
  return place;
}

void gather_nd(NodeCall& c) {
  const Tensor &x = c.in(0), &index = c.in(1);
  const int64_t b = c.integer("batch_dims", 0);
  if (b < 0 || b >= index.dim()) c.fail("attribute 'batch_dims' is out of range");
  const int k = int(index.sizes().back()), from = int(b);
  Tensor place = joined_index(c, index, x.sizes(), from);
  const int64_t batch = x.sizes().slice(0, from).numel();
  const int64_t inner = x.sizes().slice(from, from + k).numel();
  const Shape rest = x.sizes().slice(from + k, x.dim());
  Shape sizes = index.sizes().slice(0, index.dim() - 1);
  for (const int64_t n : rest) sizes.push_back(n);
  const Tensor offsets = reshape(arange(0, batch) * inner, {batch, 1});
  place = reshape(reshape(place, {batch, -1}) + offsets, {-1});
  const Tensor rows = index_select(reshape(x, {batch * inner, rest.numel()}), 0, place);
  c.give(reshape(rows, sizes));
}

void scatter_elements(NodeCall& c) {
  const int64_t axis = c.integer("axis", 0);
  const std::string way = c.text("reduction", "none");
  const Tensor& x = c.in(0);
  const Tensor index = from_zero(c.in(1), x.size(axis));
  if (way == "none") return c.give(scatter(x, axis, index, c.in(2)));
  if (way == "add") return c.give(scatter_add(x, axis, index, c.in(2)));
  const std::pair<const char*, ScatterMode> modes[] = {
      {"mul", ScatterMode::prod}, {"max", ScatterMode::amax}, {"min", ScatterMode::amin}};
  for (const auto& [name, mode] : modes) {
    if (way == name) return c.give(scatter_reduce(x, axis, index, c.in(2), {.mode = mode}));
  }
  c.fail(fmt::format("attribute 'reduction' is unknown: {}", way));
}

void scatter_nd(NodeCall& c) {
  const Tensor &x = c.in(0), &index = c.in(1);
  const std::string way = c.text("reduction", "none");
  const Tensor place = reshape(joined_index(c, index, x.sizes(), 0), {-1, 1});
  const int k = int(index.sizes().back());
  const Shape rest = x.sizes().slice(k, x.dim());
  const Tensor rows = reshape(x, {x.sizes().slice(0, k).numel(), rest.numel()});
  const Tensor where_to = expand(place, {place.size(0), rest.numel()});
  const Tensor source = reshape(c.in(2), {place.size(0), rest.numel()});
  Tensor y;
  if (way == "none") {
    y = scatter(rows, 0, where_to, source);
  } else if (way == "add") {
    y = scatter_add(rows, 0, where_to, source);
  } else if (way == "mul") {
    y = scatter_reduce(rows, 0, where_to, source, {.mode = ScatterMode::prod});
  } else {
    c.fail(fmt::format("attribute 'reduction' is unknown: {}", way));
  }
  c.give(reshape(y, x.sizes()));
}

void one_hot_op(NodeCall& c) {
  const int64_t axis = c.integer("axis", -1), classes = int64_t(c.number_in(1));
  const Tensor index = from_zero(c.in(0), classes);
  const Tensor range = arange(0, classes);
  const int64_t at = from_front(c, axis, index.dim() + 1);
  Shape sizes = Shape::filled(index.dim() + 1, 1);
  sizes[int(at)] = classes;
  const Tensor hot = eq(unsqueeze(index, at), reshape(range, sizes));
  const Tensor &off = select(c.in(2), 0, 0), on = select(c.in(2), 0, 1);
  c.give(where(hot, on, off));
}

void non_zero(NodeCall& c) {
  const Tensor& x = c.in(0);
  c.give(transpose(nonzero(x.dim() ? x : reshape(x, {1})), 0, 1));
}

void compress(NodeCall& c) {
  const bool flat = !c.given("axis");
  const Tensor x = flat ? reshape(c.in(0), {-1}) : c.in(0);
  const int64_t axis = flat ? 0 : c.integer("axis", 0);
  c.give(index_select(x, axis, reshape(nonzero(c.in(1)), {-1})));
}

// Values, where each stands first, which value each element is, and how often each occurs.
void unique_op(NodeCall& c) {
  if (c.given("axis")) c.fail("attribute 'axis': only the different elements of all can be found");
  const bool sorted = c.integer("sorted", 1) != 0;
  const Tensor x = reshape(c.in(0), {-1});
  const UniqueResult u = unique(x);
  const int64_t groups = u.values.numel();
  const Tensor places = arange(0, x.numel());
  Tensor first = scatter_reduce(full({groups}, x.numel(), {.dtype = DType::i64}), 0, u.inverse,
                                places, {.mode = ScatterMode::amin});
  Tensor values = u.values, inverse = u.inverse, counts = u.counts;
  if (!sorted) {
    const Tensor order = argsort(first, 0);
    values = index_select(values, 0, order);
    counts = index_select(counts, 0, order);
    first = index_select(first, 0, order);
    inverse = index_select(argsort(order, 0), 0, inverse);
  }
  c.results = {values, first, inverse, counts};
}

void where_op(NodeCall& c) { c.give(where(c.in(0), c.in(1), c.in(2))); }

void reverse_sequence(NodeCall& c) {
  const int64_t batch = c.integer("batch_axis", 1), time = c.integer("time_axis", 0);
  const Tensor& x = c.in(0);
  if (batch + time != 1 || batch < 0 || batch > 1) c.fail("the axes must be 0 and 1");
  const int64_t steps = x.size(time), count = x.size(batch);
  const Tensor at = reshape(arange(0, steps), {steps, 1});
  const Tensor length = reshape(c.in(1), {1, count});
  Tensor index = where(lt(at, length), length - 1 - at, at);
  if (batch == 0) index = transpose(index, 0, 1);
  for (int d = 2; d < x.dim(); ++d) index = unsqueeze(index, -1);
  c.give(gather(x, time, expand(index, x.sizes())));
}

constexpr Operator kOperators[] = {{"Compress", compress, "index_select"},
                                   {"Gather", gather_op, "index_select"},
                                   {"GatherElements", gather_elements, "gather"},
                                   {"GatherND", gather_nd, "index_select"},
                                   {"NonZero", non_zero, "nonzero"},
                                   {"OneHot", one_hot_op, "eq, where"},
                                   {"ReverseSequence", reverse_sequence, "gather"},
                                   {"Scatter", scatter_elements, "scatter"},
                                   {"ScatterElements", scatter_elements, "scatter, scatter_add"},
                                   {"ScatterND", scatter_nd, "scatter, scatter_add"},
                                   {"Unique", unique_op, "unique"},
                                   {"Where", where_op, "where"}};

}  // namespace

std::span<const Operator> index_operators() { return kOperators; }

}  // namespace cutaway::onnx

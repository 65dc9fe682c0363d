#include <cutaway/core/layout.h>

#include <algorithm>

#include <cutaway/core/error.h>

namespace cutaway {

namespace {

// In place: copies of a just written Shape are slow (see Shape::assign).
void set_contiguous_strides(const Shape& sizes, Shape& strides) {
  strides.assign(sizes);  // for the rank
  int64_t step = 1;
  for (int i = sizes.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step = int64_t(uint64_t(step) * uint64_t(std::max<int64_t>(sizes[i], 1)));  // wraps beside a 0
  }
}

}  // namespace

Shape contiguous_strides(const Shape& sizes) {
  Shape strides;
  set_contiguous_strides(sizes, strides);
  return strides;
}

Layout Layout::contiguous(const Shape& sizes) {
  Layout out;
  out.sizes.assign(sizes);
  set_contiguous_strides(sizes, out.strides);
  return out;
}

bool Layout::is_contiguous() const {
  bool gaps = false;
  int64_t step = 1;
  for (int i = sizes.rank() - 1; i >= 0; --i) {
    const int64_t n = sizes[i];
    if (n == 0) return true;
    gaps |= n != 1 && strides[i] != step;
    step = int64_t(uint64_t(step) * uint64_t(n));  // may wrap where elements repeat: gaps then
  }
  return !gaps;
}

bool Layout::is_dense() const {
  if (sizes.contains(0)) return true;
  // Dense: a walk that takes the dimension of the next stride each time uses them all.
  int left = 0;
  for (int64_t n : sizes) left += n != 1;
  int64_t step = 1;
  while (left > 0) {
    int found = -1;
    for (int i = 0; i < sizes.rank(); ++i) {
      if (sizes[i] != 1 && strides[i] == step) found = i;
    }
    if (found < 0) return false;
    step *= sizes[found];
    --left;
  }
  return true;
}

Layout Layout::permute(const Shape& dims) const {
  Layout out = *this;
  for (int i = 0; i < dims.rank(); ++i) {
    out.sizes[i] = sizes[int(dims[i])];
    out.strides[i] = strides[int(dims[i])];
  }
  return out;
}

Layout Layout::transpose(int a, int b) const {
  Layout out = *this;
  std::swap(out.sizes[a], out.sizes[b]);
  std::swap(out.strides[a], out.strides[b]);
  return out;
}

Layout Layout::slice(int dim, int64_t begin, int64_t end, int64_t step) const {
  Layout out = *this;
  const int64_t n = end > begin ? (end - begin - 1) / step + 1 : 0;
  out.sizes[dim] = n;
  if (n > 1) out.strides[dim] = strides[dim] * step;  // a huge step would not fit
  if (n > 0) out.offset += begin * strides[dim];
  return out;
}

Layout Layout::select(int dim, int64_t index) const {
  Layout out = *this;
  out.offset += index * strides[dim];
  out.sizes.erase(dim);
  out.strides.erase(dim);
  return out;
}

Layout Layout::expand(const Shape& to) const {
  Layout out{to, Shape::filled(to.rank(), 0), offset};
  const int shift = to.rank() - sizes.rank();
  for (int i = 0; i < sizes.rank(); ++i) {
    out.strides[shift + i] = sizes[i] == 1 && to[shift + i] != 1 ? 0 : strides[i];
  }
  return out;
}

std::optional<Layout> Layout::reshape(const Shape& to) const {
  Layout out{to, contiguous_strides(to), offset};
  if (sizes.contains(0) || is_contiguous()) return out;
  // Runs of old dimensions that can be walked as one must be cut into runs of new ones.
  int old_dim = sizes.rank() - 1, new_dim = to.rank() - 1;
  while (new_dim >= 0 || old_dim >= 0) {
    while (old_dim >= 0 && sizes[old_dim] == 1) --old_dim;
    if (old_dim < 0) {
      for (; new_dim >= 0; --new_dim) out.strides[new_dim] = 1;  // only size-1 ones are left
      break;
    }
    int64_t run = sizes[old_dim], got = 1;
    const int64_t step = strides[old_dim];
    int first = old_dim;
    int64_t next = step;
    while (new_dim >= 0 && got < run) {
      out.strides[new_dim] = next;
      next *= to[new_dim];
      got *= to[new_dim];
      --new_dim;
      while (got > run && first > 0) {
        --first;
        if (sizes[first] == 1) continue;
        if (strides[first] != step * run) return std::nullopt;
        run *= sizes[first];
      }
    }
    if (got != run) return std::nullopt;
    while (new_dim >= 0 && to[new_dim] == 1) out.strides[new_dim--] = next;
    old_dim = first - 1;
  }
  return out;
}

Shape resolve_reshape(const char* op, const Shape& from, const Shape& requested) {
  const auto fail = [&](const char* rule, const char* hint) {
    throw ShapeError(
        op, std::string(rule) + "; got " + to_string(from) + ", need " + to_string(requested),
        hint);
  };
  Shape out = requested;
  int free_dim = -1;
  int64_t known = 1;
  bool fits = true;
  for (int i = 0; i < out.rank(); ++i) {
    if (out[i] == -1) {
      if (free_dim >= 0) fail("only one size may be -1", "name all sizes but one");
      free_dim = i;
    } else if (out[i] < 0) {
      fail("sizes must not be negative", "use -1 for the size to be found");
    } else {
      // A product that does not fit is no number of elements, unless another size is 0.
      fits = fits && !__builtin_mul_overflow(known, out[i], &known);
    }
  }
  if (out.contains(0)) {
    known = 0;
  } else if (!fits) {
    fail("the number of elements must stay the same", "");
  }
  const int64_t n = from.numel();
  if (free_dim >= 0) {
    if (known == 0) fail("-1 is ambiguous beside a size of 0", "name every size");
    if (n % known != 0) fail("the number of elements must stay the same", "");
    out[free_dim] = n / known;
  } else if (known != n) {
    fail("the number of elements must stay the same", "");
  }
  return out;
}

int collapse_dims(int rank, int64_t* sizes, int64_t (*strides)[kMaxRank], int n) {
  int last = -1;  // last dimension kept
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] == 1) continue;
    bool joins = last >= 0;
    for (int k = 0; k < n && joins; ++k) joins = strides[k][last] == strides[k][d] * sizes[d];
    if (joins) {
      sizes[last] *= sizes[d];
    } else {
      sizes[++last] = sizes[d];
    }
    for (int k = 0; k < n; ++k) strides[k][last] = strides[k][d];
  }
  return last + 1;
}

}  // namespace cutaway

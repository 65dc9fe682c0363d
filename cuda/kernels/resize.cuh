#pragma once
#include <vector>

#include <cutaway/core/kernels/resize.h>
#include <cutaway/cuda/device/numbers.h>
#include <cutaway/cuda/device/tables.h>
#include <cutaway/cuda/device/walk.h>

// Resizing: a thread for each output and, backward, for each input, which goes through the outputs
// that read it in their order and rounds once. 16-bit values are added in f32.
namespace cutaway::cuda::CUTAWAY_TARGET {

// Coordinates of an element of planes of these sizes.
struct ResizePlace {
  int64_t plane, at[3];
};
DEVICE ResizePlace resize_place(int64_t i, const int64_t (&sizes)[3]) {
  ResizePlace p{};
  CUTAWAY_UNROLL
  for (int d = 2; d >= 0; --d) {
    p.at[d] = i % sizes[d];
    i /= sizes[d];
  }
  p.plane = i;
  return p;
}

// Corners of weight 0 are left out, so that a value that is not finite stays where it is.
template <class T>
KERNEL resize_elements(ResizeArgs a, int64_t n) {
  using W = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const int64_t i = thread_number();
  if (i >= n) return;
  const ResizePlace o = resize_place(i, a.out);
  int64_t low[3], high[3];
  double share[3];
  CUTAWAY_UNROLL
  for (int d = 0; d < 3; ++d) {
    low[d] = global<const int64_t>(a.low[d])[o.at[d]];
    high[d] = global<const int64_t>(a.high[d])[o.at[d]];
    share[d] = global<const double>(a.share[d])[o.at[d]];
  }
  const auto x = global<const T>(a.from);
  W sum = 0;
  CUTAWAY_UNROLL
  for (int corner = 0; corner < 8; ++corner) {
    double weight = 1;
    int64_t place = o.plane;
    CUTAWAY_UNROLL
    for (int d = 0; d < 3; ++d) {
      const bool upper = (corner >> d & 1) != 0;
      weight *= upper ? share[d] : 1 - share[d];
      place = place * a.in[d] + (upper ? high[d] : low[d]);
    }
    if (weight == 0) continue;
    const T v = x[place];
    sum += static_cast<W>(weight) * static_cast<W>(v);
  }
  global<T>(a.result)[i] = T(sum);
}

// The outputs [first[d][i], last[d][i]) that read coordinate i.
struct Readers {
  const int64_t* first[3];
  const int64_t* last[3];
};

template <class T>
KERNEL resize_gradient(ResizeArgs a, Readers readers, int64_t n) {
  using W = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const int64_t i = thread_number();
  if (i >= n) return;
  const ResizePlace p = resize_place(i, a.in);
  int64_t first[3], last[3];
  CUTAWAY_UNROLL
  for (int d = 0; d < 3; ++d) {
    first[d] = global<const int64_t>(readers.first[d])[p.at[d]];
    last[d] = global<const int64_t>(readers.last[d])[p.at[d]];
  }
  // Weight with which output o reads coordinate i of dimension d.
  const auto weight_of = [&](int d, int64_t o) {
    const int64_t low = global<const int64_t>(a.low[d])[o];
    const int64_t high = global<const int64_t>(a.high[d])[o];
    const double share = global<const double>(a.share[d])[o];
    return (low == p.at[d] ? 1 - share : 0.0) + (high == p.at[d] ? share : 0.0);
  };
  const auto g = global<const T>(a.from);
  W sum = 0;
  for (int64_t o0 = first[0]; o0 < last[0]; ++o0) {
    const double w0 = weight_of(0, o0);
    for (int64_t o1 = first[1]; o1 < last[1]; ++o1) {
      const double w1 = w0 * weight_of(1, o1);
      const int64_t row = ((p.plane * a.out[0] + o0) * a.out[1] + o1) * a.out[2];
      for (int64_t o2 = first[2]; o2 < last[2]; ++o2) {
        const double weight = w1 * weight_of(2, o2);
        if (weight == 0) continue;
        const T v = g[row + o2];
        sum += static_cast<W>(weight) * static_cast<W>(v);
      }
    }
  }
  global<T>(a.result)[i] = T(sum);
}

// Copies of the host tables in device memory.
class ResizeTables {
 public:
  explicit ResizeTables(const ResizeArgs& a) : args_(a) {
    for (int d = 0; d < 3; ++d) {
      low_[d] = tables_.add(a.low[d], a.out[d]);
      high_[d] = tables_.add(a.high[d], a.out[d]);
      share_[d] = tables_.add(a.share[d], a.out[d]);
    }
  }
  int64_t add(const std::vector<int64_t>& table) {
    return tables_.add(table.data(), static_cast<int64_t>(table.size()));
  }
  // The arguments with pointers to device memory.
  const ResizeArgs& send() {
    tables_.send();
    for (int d = 0; d < 3; ++d) {
      args_.low[d] = tables_.at<int64_t>(low_[d]);
      args_.high[d] = tables_.at<int64_t>(high_[d]);
      args_.share[d] = tables_.at<double>(share_[d]);
    }
    return args_;
  }
  const int64_t* at(int64_t number) const { return tables_.at<int64_t>(number); }

 private:
  ResizeArgs args_;
  Tables tables_;
  int64_t low_[3], high_[3], share_[3];
};

template <class T>
void resize(const ResizeArgs& a) {
  const int64_t n = a.planes * a.out[0] * a.out[1] * a.out[2];
  if (n == 0) return;
  ResizeTables tables(a);
  launch(one_thread_each("interpolate", n), resize_elements<T>, tables.send(), n);
}

// Places ascend with the outputs, so the outputs that read a coordinate are neighbours.
template <class T>
void resize_grad(const ResizeArgs& a) {
  const int64_t n = a.planes * a.in[0] * a.in[1] * a.in[2];
  if (n == 0) return;
  ResizeTables tables(a);
  int64_t first[3], last[3];
  for (int d = 0; d < 3; ++d) {
    std::vector<int64_t> from(static_cast<size_t>(a.in[d])), to(from.size());
    int64_t above = 0, below = 0;
    for (int64_t i = 0; i < a.in[d]; ++i) {
      while (below < a.out[d] && a.high[d][below] < i) ++below;
      while (above < a.out[d] && a.low[d][above] <= i) ++above;
      from[static_cast<size_t>(i)] = below;
      to[static_cast<size_t>(i)] = above;
    }
    first[d] = tables.add(from);
    last[d] = tables.add(to);
  }
  const ResizeArgs& args = tables.send();
  Readers readers{};
  for (int d = 0; d < 3; ++d) {
    readers.first[d] = tables.at(first[d]);
    readers.last[d] = tables.at(last[d]);
  }
  launch(one_thread_each("interpolate_grad", n), resize_gradient<T>, args, readers, n);
}

template <class T>
void set_resize(DType t) {
  kernels::resize.set(kDevice, t, &resize<T>);
  kernels::resize_grad.set(kDevice, t, &resize_grad<T>);
}

void register_resize_kernels() {
  set_resize<double>(DType::f64);
  set_resize<float>(DType::f32);
  set_resize<BFloat16>(DType::bf16);
  set_resize<Float16>(DType::f16);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET

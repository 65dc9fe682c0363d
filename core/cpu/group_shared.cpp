#include <algorithm>

#include <cutaway/core/cpu/group_own.h>
#include <cutaway/core/cpu/group_tile.h>
#include <cutaway/core/cpu/scratch.h>
#include <cutaway/core/kernels/group_shared.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/parallel.h>

// Group-shared layers. Forward and the derivative in the weights go over groups, each of which one
// thread owns; the derivative in the features goes over all groups in order, for the slice of the
// batch that a thread owns. So no sum depends on the number of threads.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

template <class T>
using Computed = std::conditional_t<std::is_same_v<T, double>, double, float>;

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Rows of x that group k reads.
struct Rows {
  const GroupSharedShape& s;
  int64_t operator()(int64_t k, int64_t j) const {
    return s.block ? s.index[k] + j : s.index[k * s.fan_in + j];
  }
};

// Weights of labels [first, first + rows) in the type of the sums: in place or converted to `room`.
template <class T, class W>
const T* weights_of(const GroupSharedShape& s, const void* weight, int64_t first, int64_t rows,
                    T* room) {
  const W* from = static_cast<const W*>(weight) + first * s.fan_in;
  if constexpr (std::is_same_v<T, W>) {
    return from;
  } else {
    math::convert_row(from, room, rows * s.fan_in);
    return room;
  }
}
template <class T, class W>
int64_t weight_room(const GroupSharedShape& s) {
  return std::is_same_v<T, W> ? 0 : s.group * s.fan_in;
}

// Groups that are worth a thread.
int64_t group_grain(const GroupSharedShape& s) {
  const int64_t work = s.group * s.fan_in * s.batch;
  return std::max<int64_t>(1, kGrain * 16 / std::max<int64_t>(work, 1));
}

// Two vectors: groups of 16, 32 and 64 labels are whole numbers of their tiles.
constexpr int kForwardVectors = 2;

template <class X, class W>
void forward(const GroupSharedForwardArgs& a) {
  using T = Computed<X>;
  constexpr int64_t kWidth = kForwardVectors * kVectorLanes<T>;
  const X* x = static_cast<const X*>(a.x);
  const X* bias = static_cast<const X*>(a.bias);
  X* z = static_cast<X*>(a.z);
  const Rows row{a};
  parallel_for(a.groups(), group_grain(a), [&](int64_t begin, int64_t end) {
    const Scratch<T> panel(a.fan_in * kWidth), room(weight_room<T, W>(a));
    for (int64_t k = begin; k < end; ++k) {
      const int64_t first = k * a.group, labels = std::min(a.group, a.labels - first);
      const T* weight = weights_of<T, W>(a, a.weight, first, labels, room.get());
      if constexpr (std::is_same_v<X, T>) {
        if (a.group == 1) {
          own_forward(
              a.batch, a.fan_in, weight, bias ? bias[k] : T(0), x, a.x_row,
              [&](int64_t j) { return row(k, j); }, z + k * a.z_row);
          continue;
        }
      }
      for (int64_t b = 0; b < a.batch; b += kWidth) {
        const int64_t left = a.batch - b;
        const int64_t vectors =
            std::min<int64_t>(kForwardVectors, (left - 1) / kVectorLanes<T> + 1);
        with_vectors<kForwardVectors>(vectors, [&](auto count) {
          constexpr int V = count, kStep = V * kVectorLanes<T>;
          for (int64_t j = 0; j < a.fan_in; ++j) {
            load_padded<V>(x + row(k, j) * a.x_row + b, left, panel.get() + j * kStep);
          }
          sum_rows<V>(labels, a.fan_in, weight, a.fan_in, int64_t(1), panel.get(), kStep,
                      [=](int64_t l, Vector<T>(&sum)[V]) {
                        if (bias) {
                          for (int v = 0; v < V; ++v) sum[v] += T(bias[first + l]);
                        }
                        store_part<V>(sum, left, z + (first + l) * a.z_row + b);
                      });
        });
      }
    }
  });
}

// dweight of one group by outer products: sums[j, l] += Σ_b x[row(k, j), b] · dz[first + l, b],
// then turned. Labels are padded to whole vectors.
template <class X>
struct WeightGrad {
  using T = Computed<X>;
  static constexpr int64_t kWidth = kPanelWidth<T>, kL = kVectorLanes<T>;
  const GroupSharedWeightGradArgs& a;
  int64_t padded;
  Scratch<T> panel, rows, turned, sums, bias;

  explicit WeightGrad(const GroupSharedWeightGradArgs& args)
      : a(args),
        padded(round_up(args.group, kL)),
        panel(args.fan_in * kWidth),
        rows(padded * kWidth),
        turned(padded * kWidth),
        sums(round_up(args.fan_in, kL) * padded),
        bias(padded) {}

  void turn(const T* dz, int64_t row, int64_t labels) const {
    for (int64_t l = 0; l < labels; l += kL) {
      for (int64_t i = 0; i < kWidth; i += kL) {
        transpose_square(dz + l * row + i, row, int(std::min(kL, labels - l)),
                         turned.get() + i * padded + l, padded);
      }
    }
  }

  void add_panel(int64_t k, int64_t first, int64_t labels, int64_t b) const {
    const Rows row{a};
    const int64_t left = a.batch - b;
    for (int64_t j = 0; j < a.fan_in; ++j) {
      load_padded<kPanelVectors>(static_cast<const X*>(a.x) + row(k, j) * a.x_row + b, left,
                                 panel.get() + j * kWidth);
    }
    const X* dz = static_cast<const X*>(a.dz) + first * a.z_row + b;
    if constexpr (std::is_same_v<X, T>) {
      if (left >= kWidth) {
        turn(dz, a.z_row, labels);
        dz = nullptr;
      }
    }
    if (dz) {
      for (int64_t l = 0; l < labels; ++l) {
        load_padded<kPanelVectors>(dz + l * a.z_row, left, rows.get() + l * kWidth);
      }
      turn(rows.get(), kWidth, labels);
    }
    const int64_t depth = std::min(left, kWidth);
    for (int64_t l = 0; l < labels; l += kWidth) {
      with_vectors(std::min<int64_t>(kPanelVectors, (padded - l) / kL), [&](auto count) {
        constexpr int V = count;
        T* out = sums.get() + l;
        const int64_t step = padded;
        sum_rows<V>(a.fan_in, depth, panel.get(), kWidth, int64_t(1), turned.get() + l, padded,
                    [=](int64_t j, Vector<T>(&sum)[V]) {
                      for (int v = 0; v < V; ++v) {
                        T* to = out + j * step + v * kL;
                        store_vector(to, load_vector(to) + sum[v]);
                      }
                    });
      });
    }
    if (!a.dbias) return;
    for (int64_t i = 0; i < depth; ++i) {
      for (int64_t l = 0; l < padded; l += kL) {
        store_vector(bias.get() + l,
                     load_vector(bias.get() + l) + load_vector(turned.get() + i * padded + l));
      }
    }
  }

  void run(int64_t k) const {
    const int64_t first = k * a.group, labels = std::min(a.group, a.labels - first);
    std::fill_n(sums.get(), round_up(a.fan_in, kL) * padded, T(0));
    std::fill_n(bias.get(), padded, T(0));
    for (int64_t b = 0; b < a.batch; b += kWidth) add_panel(k, first, labels, b);
    X* out = static_cast<X*>(a.dweight) + first * a.fan_in;
    alignas(64) T square[kL * kL];
    for (int64_t l = 0; l < labels; l += kL) {
      const int64_t used = std::min(kL, labels - l);
      for (int64_t j = 0; j < a.fan_in; j += kL) {
        transpose_square(sums.get() + j * padded + l, padded, int(kL), square, kL);
        for (int64_t r = 0; r < used; ++r) {
          const Vector<T> part[1] = {load_vector(square + r * kL)};
          store_part<1>(part, a.fan_in - j, out + (l + r) * a.fan_in + j);
        }
      }
    }
    if (a.dbias) {
      for (int64_t l = 0; l < labels; ++l) {
        math::store(static_cast<X*>(a.dbias)[first + l], bias[l]);
      }
    }
  }
};

template <class X>
void own_weight_grads(const GroupSharedWeightGradArgs& a) {
  const Rows row{a};
  parallel_for(a.labels, group_grain(a), [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) {
      const X sum = own_weight_grad(
          a.batch, a.fan_in, static_cast<const X*>(a.dz) + l * a.z_row, static_cast<const X*>(a.x),
          a.x_row, [&](int64_t j) { return row(l, j); }, static_cast<X*>(a.dweight) + l * a.fan_in);
      if (a.dbias) static_cast<X*>(a.dbias)[l] = sum;
    }
  });
}

template <class X>
void weight_grad(const GroupSharedWeightGradArgs& a) {
  if constexpr (std::is_same_v<X, Computed<X>>) {
    if (a.group == 1) return own_weight_grads<X>(a);
  }
  parallel_for(a.groups(), group_grain(a), [&](int64_t begin, int64_t end) {
    const WeightGrad<X> group(a);
    for (int64_t k = begin; k < end; ++k) group.run(k);
  });
}

// dx for the batch [from, to): sums in `out` with rows of `out_row`.
template <class X, class W, class T>
void input_grad_slice(const GroupSharedInputGradArgs& a, int64_t from, int64_t to, T* out,
                      int64_t out_row) {
  constexpr int64_t kWidth = kPanelWidth<T>;
  const X* dz = static_cast<const X*>(a.dz);
  const Rows row{a};
  const Scratch<T> panel(a.group * kWidth), room(weight_room<T, W>(a));
  for (int64_t k = 0; k < a.groups(); ++k) {
    const int64_t first = k * a.group, labels = std::min(a.group, a.labels - first);
    const T* weight = weights_of<T, W>(a, a.weight, first, labels, room.get());
    if constexpr (std::is_same_v<X, T>) {
      if (a.group == 1) {
        own_input_grad(from, to, a.fan_in, weight, dz + k * a.z_row, out, out_row,
                       [&](int64_t j) { return row(k, j); });
        continue;
      }
    }
    for (int64_t b = from; b < to; b += kWidth) {
      const int64_t left = to - b;
      const int64_t vectors = std::min<int64_t>(kPanelVectors, (left - 1) / kVectorLanes<T> + 1);
      with_vectors(vectors, [&](auto count) {
        constexpr int V = count, kStep = V * kVectorLanes<T>;
        for (int64_t l = 0; l < labels; ++l) {
          load_padded<V>(dz + (first + l) * a.z_row + b, left, panel.get() + l * kStep);
        }
        sum_rows<V>(a.fan_in, labels, weight, int64_t(1), a.fan_in, panel.get(), kStep,
                    [=](int64_t j, Vector<T>(&sum)[V]) {
                      add_part<V>(sum, left, out + row(k, j) * out_row + b);
                    });
      });
    }
  }
}

template <class X, class W>
void input_grad(const GroupSharedInputGradArgs& a) {
  using T = Computed<X>;
  X* dx = static_cast<X*>(a.dx);
  constexpr bool kConverted = !std::is_same_v<X, T>;
  const Scratch<T> wide(kConverted ? a.features * a.batch : 0);
  T* out;
  if constexpr (kConverted) {
    out = wide.get();
  } else {
    out = dx;
  }
  const int64_t out_row = kConverted ? a.batch : a.x_row;
  const int64_t vectors = (a.batch + kVectorLanes<T> - 1) / kVectorLanes<T>;
  const int64_t work = a.labels * a.fan_in * kVectorLanes<T>;
  const int64_t grain = std::max<int64_t>(1, kGrain * 16 / std::max<int64_t>(work, 1));
  parallel_for(vectors, grain, [&](int64_t begin, int64_t end) {
    const int64_t from = begin * kVectorLanes<T>, to = std::min(a.batch, end * kVectorLanes<T>);
    for (int64_t h = 0; h < a.features; ++h) {
      T* row = out + h * out_row;
      if constexpr (kConverted) {
        if (a.accumulate) {
          math::convert_row(dx + h * a.x_row + from, row + from, to - from);
          continue;
        }
      }
      if (!a.accumulate) std::fill(row + from, row + to, T(0));
    }
    input_grad_slice<X, W>(a, from, to, out, out_row);
    if constexpr (kConverted) {
      for (int64_t h = 0; h < a.features; ++h) {
        math::convert_row(out + h * out_row + from, dx + h * a.x_row + from, to - from);
      }
    }
  });
}

// f32 kernels take weights in bf16 too.
template <class Args, void (*plain)(const Args&), void (*low)(const Args&)>
void by_weights(const Args& a) {
  a.weight_type == DType::bf16 ? low(a) : plain(a);
}

template <class X>
void set_all(DType type) {
  const DeviceKind cpu = DeviceKind::cpu;
  kernels::group_shared_forward.set(cpu, type, forward<X, X>);
  kernels::group_shared_weight_grad.set(cpu, type, weight_grad<X>);
  kernels::group_shared_input_grad.set(cpu, type, input_grad<X, X>);
}

}  // namespace

void register_group_shared_kernels() {
  set_all<double>(DType::f64);
  set_all<float>(DType::f32);
  set_all<BFloat16>(DType::bf16);
  set_all<Float16>(DType::f16);
  const DeviceKind cpu = DeviceKind::cpu;
  kernels::group_shared_forward.set(
      cpu, DType::f32,
      by_weights<GroupSharedForwardArgs, forward<float, float>, forward<float, BFloat16>>);
  kernels::group_shared_input_grad.set(
      cpu, DType::f32,
      by_weights<GroupSharedInputGradArgs, input_grad<float, float>, input_grad<float, BFloat16>>);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT

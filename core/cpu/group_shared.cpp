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

// Features [rows, batch] in panels, in the type of the sums (group_tile.h, note on panels).
template <class T>
class Panels {
 public:
  static constexpr int64_t kWidth = kPanelWidth<T>;

  Panels(int64_t rows, int64_t batch)
      : rows_(rows), panels_((batch + kWidth - 1) / kWidth), data_(panels_ * rows * kWidth) {}

  // Row 0 from this column of the batch on, within one panel.
  T* at(int64_t b) const { return data_.get() + b / kWidth * rows_ * kWidth + b % kWidth; }

  template <class X>
  void fill(const X* x, int64_t x_row, int64_t batch) const {
    parallel_for(rows_, kGrain / std::max<int64_t>(batch, 1), [&](int64_t begin, int64_t end) {
      for (int64_t b = 0; b < batch; b += kWidth) {
        T* to = at(b);
        for (int64_t h = begin; h < end; ++h) {
          load_padded<kPanelVectors>(x + h * x_row + b, batch - b, to + h * kWidth);
        }
      }
    });
  }

 private:
  int64_t rows_, panels_;
  Scratch<T> data_;
};

// Where the rows of group k lie in a panel.
template <class T>
void find_rows(const GroupSharedShape& s, int64_t k, int64_t* offset) {
  const Rows row{s};
  for (int64_t j = 0; j < s.fan_in; ++j) offset[j] = row(k, j) * kPanelWidth<T>;
}

// The cache lines of `bytes` from `from` on, for tiles of `depth` products.
Ahead ahead_of(const void* from, int64_t bytes, int64_t depth) {
  depth = std::max<int64_t>(depth, 1);
  return {.two = {static_cast<const char*>(from), bytes / (64 * depth), 64 * depth, 64}};
}
// The lines of `rows` of `used` bytes, for tiles of a product for each of them.
Lines lines_of(const void* from, int64_t used, int64_t row) {
  return {static_cast<const char*>(from), used / 64, 64, row};
}

// Whether a result may be stored around the caches: large, and rows begin with cache lines.
template <class X>
bool streamed(const void* to, int64_t rows, int64_t row) {
  return rows * row * int64_t(sizeof(X)) >= kStreamedBytes && row * int64_t(sizeof(X)) % 64 == 0 &&
         reinterpret_cast<uintptr_t>(to) % 64 == 0;
}

// Two vectors: groups of 16, 32 and 64 labels are whole numbers of their tiles.
constexpr int kForwardVectors = 2;
static_assert(kPanelVectors % kForwardVectors == 0);

// Logits of one group after the other.
template <class X, class W>
struct Forward {
  using T = Computed<X>;
  const GroupSharedForwardArgs& a;
  const Panels<T>& x;
  bool stream;
  Scratch<T> room;
  Scratch<int64_t> offset;

  Forward(const GroupSharedForwardArgs& args, const Panels<T>& panels, bool streams)
      : a(args), x(panels), stream(streams), room(weight_room<T, W>(args)), offset(args.fan_in) {}

  void run(int64_t k) const {
    constexpr int64_t kStep = kForwardVectors * kVectorLanes<T>;
    const int64_t first = k * a.group, labels = std::min(a.group, a.labels - first);
    const T* weight = weights_of<T, W>(a, a.weight, first, labels, room.get());
    const char* next = static_cast<const char*>(a.weight) +
                       int64_t(sizeof(W)) * std::min(first + a.group, a.labels) * a.fan_in;
    const Ahead ahead = ahead_of(next, labels * a.fan_in * int64_t(sizeof(W)), a.fan_in);
    find_rows<T>(a, k, offset.get());
    for (int64_t b = 0; b < a.batch; b += kStep) {
      const int64_t left = a.batch - b;
      const int64_t vectors = std::min<int64_t>(kForwardVectors, (left - 1) / kVectorLanes<T> + 1);
      with_vectors<kForwardVectors>(vectors, [&](auto count) {
        const X* bias = static_cast<const X*>(a.bias);
        X* z = static_cast<X*>(a.z) + first * a.z_row + b;
        const int64_t z_row = a.z_row;
        const bool around = stream;
        if (bias) bias += first;
        sum_rows<count, T>(labels, a.fan_in, StridedRows<T>{weight, a.fan_in, 1},
                           ScatteredColumns<T>{x.at(b), offset.get()}, ahead,
                           [=](int64_t l, Vector<T>(&sum)[count]) {
                             if (bias) {
                               for (int v = 0; v < count; ++v) sum[v] += T(bias[l]);
                             }
                             store_part<count>(sum, left, z + l * z_row, around);
                           });
      });
    }
  }
};

template <class X>
void own_forwards(const GroupSharedForwardArgs& a) {
  const X* bias = static_cast<const X*>(a.bias);
  const Rows row{a};
  parallel_for(a.labels, group_grain(a), [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) {
      own_forward(
          a.batch, a.fan_in, static_cast<const X*>(a.weight) + l * a.fan_in, bias ? bias[l] : X(0),
          static_cast<const X*>(a.x), a.x_row, [&](int64_t j) { return row(l, j); },
          static_cast<X*>(a.z) + l * a.z_row);
    }
  });
}

template <class X, class W>
void forward(const GroupSharedForwardArgs& a) {
  using T = Computed<X>;
  if constexpr (std::is_same_v<X, W> && std::is_same_v<X, T>) {
    if (a.group == 1) return own_forwards<X>(a);
  }
  const Panels<T> x(a.features, a.batch);
  x.fill(static_cast<const X*>(a.x), a.x_row, a.batch);
  const bool stream = streamed<X>(a.z, a.labels, a.z_row);
  parallel_for(a.groups(), group_grain(a), [&](int64_t begin, int64_t end) {
    const Forward<X, W> group(a, x, stream);
    for (int64_t k = begin; k < end; ++k) group.run(k);
    if (stream) stream_fence();
  });
}

// dweight of one group by outer products: sums[j, l] += Σ_b x[row(k, j), b] · dz[first + l, b],
// then turned. Labels are padded to whole vectors.
template <class X>
struct WeightGrad {
  using T = Computed<X>;
  static constexpr int64_t kWidth = kPanelWidth<T>, kL = kVectorLanes<T>;
  const GroupSharedWeightGradArgs& a;
  const Panels<T>& x;
  bool stream;
  int64_t padded;
  Scratch<T> rows, turned, sums, bias;
  Scratch<int64_t> offset;

  WeightGrad(const GroupSharedWeightGradArgs& args, const Panels<T>& panels, bool streams)
      : a(args),
        x(panels),
        stream(streams),
        padded(round_up(args.group, kL)),
        rows(padded * kWidth),
        turned(padded * kWidth),
        sums(round_up(args.fan_in, kL) * padded),
        bias(padded),
        offset(args.fan_in) {}

  void turn(const T* dz, int64_t row, int64_t labels) const {
    for (int64_t l = 0; l < labels; l += kL) {
      for (int64_t i = 0; i < kWidth; i += kL) {
        transpose_square(dz + l * row + i, row, int(std::min(kL, labels - l)),
                         turned.get() + i * padded + l, padded);
      }
    }
  }

  void turn_panel(int64_t first, int64_t labels, int64_t b) const {
    const int64_t left = a.batch - b;
    const X* dz = static_cast<const X*>(a.dz) + first * a.z_row + b;
    if constexpr (std::is_same_v<X, T>) {
      if (left >= kWidth) return turn(dz, a.z_row, labels);
    }
    for (int64_t l = 0; l < labels; ++l) {
      load_padded<kPanelVectors>(dz + l * a.z_row, left, rows.get() + l * kWidth);
    }
    turn(rows.get(), kWidth, labels);
  }

  void add_panel(int64_t first, int64_t labels, int64_t b) const {
    turn_panel(first, labels, b);
    const int64_t depth = std::min(a.batch - b, kWidth);
    const X* next = static_cast<const X*>(a.dz) + std::min(first + a.group, a.labels) * a.z_row;
    for (int64_t l = 0; l < labels; l += kWidth) {
      with_vectors(std::min<int64_t>(kPanelVectors, (padded - l) / kL), [&](auto count) {
        T* out = sums.get() + l;
        const int64_t step = padded;
        const bool fresh = b == 0;
        const Ahead ahead = ahead_of(next, a.z_row * labels * int64_t(sizeof(X)), depth);
        sum_rows<count, T>(a.fan_in, depth, ScatteredRows<T>{x.at(b), offset.get()},
                           StridedColumns<T>{turned.get() + l, padded}, ahead,
                           [=](int64_t j, Vector<T>(&sum)[count]) {
                             for (int v = 0; v < count; ++v) {
                               T* to = out + j * step + v * kL;
                               store_vector(to, fresh ? sum[v] : load_vector(to) + sum[v]);
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
    std::fill_n(bias.get(), padded, T(0));
    find_rows<T>(a, k, offset.get());
    if (a.batch == 0) std::fill_n(sums.get(), round_up(a.fan_in, kL) * padded, T(0));
    for (int64_t b = 0; b < a.batch; b += kWidth) add_panel(first, labels, b);
    X* out = static_cast<X*>(a.dweight) + first * a.fan_in;
    alignas(64) T square[kL * kL];
    for (int64_t l = 0; l < labels; l += kL) {
      const int64_t used = std::min(kL, labels - l);
      for (int64_t j = 0; j < a.fan_in; j += kL) {
        transpose_square(sums.get() + j * padded + l, padded, int(kL), square, kL);
        for (int64_t r = 0; r < used; ++r) {
          const Vector<T> part[1] = {load_vector(square + r * kL)};
          store_part<1>(part, a.fan_in - j, out + (l + r) * a.fan_in + j, stream);
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
  using T = Computed<X>;
  if constexpr (std::is_same_v<X, T>) {
    if (a.group == 1) return own_weight_grads<X>(a);
  }
  const Panels<T> x(a.features, a.batch);
  x.fill(static_cast<const X*>(a.x), a.x_row, a.batch);
  const bool stream = streamed<X>(a.dweight, a.labels, a.fan_in);
  parallel_for(a.groups(), group_grain(a), [&](int64_t begin, int64_t end) {
    const WeightGrad<X> group(a, x, stream);
    for (int64_t k = begin; k < end; ++k) group.run(k);
    if (stream) stream_fence();
  });
}

// dx of a slice of the batch, summed group by group.
template <class X, class W>
struct InputGrad {
  using T = Computed<X>;
  static constexpr int64_t kWidth = kPanelWidth<T>, kL = kVectorLanes<T>;
  const GroupSharedInputGradArgs& a;
  int64_t from, columns;
  Panels<T> out;
  Scratch<T> panel, room;
  Scratch<int64_t> offset;

  InputGrad(const GroupSharedInputGradArgs& args, int64_t first, int64_t last)
      : a(args),
        from(first),
        columns(last - first),
        out(args.features, columns),
        panel(args.group * kWidth),
        room(weight_room<T, W>(args)),
        offset(args.fan_in) {}

  void begin() const {
    const X* dx = static_cast<const X*>(a.dx) + from;
    for (int64_t b = 0; b < columns; b += kWidth) {
      T* to = out.at(b);
      if (!a.accumulate) {
        std::fill_n(to, a.features * kWidth, T(0));
        continue;
      }
      for (int64_t h = 0; h < a.features; ++h) {
        load_padded<kPanelVectors>(dx + h * a.x_row + b, columns - b, to + h * kWidth);
      }
    }
  }

  void add(int64_t k) const {
    const int64_t first = k * a.group, labels = std::min(a.group, a.labels - first);
    const T* weight = weights_of<T, W>(a, a.weight, first, labels, room.get());
    find_rows<T>(a, k, offset.get());
    for (int64_t b = 0; b < columns; b += kWidth) {
      const int64_t left = columns - b;
      const int64_t vectors = std::min<int64_t>(kPanelVectors, (left - 1) / kL + 1);
      with_vectors(vectors, [&](auto count) {
        constexpr int64_t kStep = count * kL;
        const X* dz = static_cast<const X*>(a.dz) + first * a.z_row + from + b;
        StridedColumns<T> column{panel.get(), kStep};
        bool whole = false;
        if constexpr (std::is_same_v<X, T>) {
          whole = left >= kStep;
          if (whole) column = {dz, a.z_row};
        }
        if (!whole) {
          for (int64_t l = 0; l < labels; ++l) {
            load_padded<count>(dz + l * a.z_row, left, panel.get() + l * kStep);
          }
        }
        const int64_t next = std::min(first + a.group, a.labels - labels) - first;
        const Ahead ahead{
            lines_of(dz + next * a.z_row, kStep * int64_t(sizeof(X)), a.z_row * int64_t(sizeof(X))),
            lines_of(static_cast<const W*>(a.weight) + (first + next) * a.fan_in,
                     a.fan_in * int64_t(sizeof(W)), a.fan_in * int64_t(sizeof(W)))};
        T* to = out.at(b);
        const int64_t* at = offset.get();
        sum_rows<count, T>(a.fan_in, labels, StridedRows<T>{weight, 1, a.fan_in}, column, ahead,
                           [=](int64_t j, Vector<T>(&sum)[count]) {
                             T* row = to + at[j];
                             for (int v = 0; v < count; ++v) {
                               store_vector(row + v * kL, load_vector(row + v * kL) + sum[v]);
                             }
                           });
      });
    }
  }

  void end() const {
    X* dx = static_cast<X*>(a.dx) + from;
    for (int64_t b = 0; b < columns; b += kWidth) {
      const T* sums = out.at(b);
      const int64_t count = std::min(kWidth, columns - b);
      for (int64_t h = 0; h < a.features; ++h) {
        X* to = dx + h * a.x_row + b;
        if constexpr (std::is_same_v<X, T>) {
          std::copy_n(sums + h * kWidth, count, to);
        } else {
          math::convert_row(sums + h * kWidth, to, count);
        }
      }
    }
  }
};

template <class X>
void own_input_grads(const GroupSharedInputGradArgs& a, int64_t from, int64_t to) {
  const Rows row{a};
  X* dx = static_cast<X*>(a.dx);
  if (!a.accumulate) {
    for (int64_t h = 0; h < a.features; ++h) {
      std::fill(dx + h * a.x_row + from, dx + h * a.x_row + to, X(0));
    }
  }
  for (int64_t l = 0; l < a.labels; ++l) {
    own_input_grad(from, to, a.fan_in, static_cast<const X*>(a.weight) + l * a.fan_in,
                   static_cast<const X*>(a.dz) + l * a.z_row, dx, a.x_row,
                   [&](int64_t j) { return row(l, j); });
  }
}

template <class X, class W>
void input_grad(const GroupSharedInputGradArgs& a) {
  using T = Computed<X>;
  const int64_t vectors = (a.batch + kVectorLanes<T> - 1) / kVectorLanes<T>;
  const int64_t work = a.labels * a.fan_in * kVectorLanes<T>;
  const int64_t grain = std::max<int64_t>(1, kGrain * 16 / std::max<int64_t>(work, 1));
  parallel_for(vectors, grain, [&](int64_t begin, int64_t end) {
    const int64_t from = begin * kVectorLanes<T>, to = std::min(a.batch, end * kVectorLanes<T>);
    if constexpr (std::is_same_v<X, T> && std::is_same_v<X, W>) {
      if (a.group == 1) return own_input_grads<X>(a, from, to);
    }
    const InputGrad<X, W> slice(a, from, to);
    slice.begin();
    for (int64_t k = 0; k < a.groups(); ++k) slice.add(k);
    slice.end();
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

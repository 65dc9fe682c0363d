#include <vector>

#include <cutaway/core/math/half.h>
#include <cutaway/cuda/emu/graph.h>
#include <cutaway/cuda/emu/library.h>
#include <cutaway/cuda/lib/attention.h>

// The CPU kernels take f32: operands are converted on the way in, results on the way out.
namespace cutaway::cuda::emu {
namespace {

// One operand or result of all heads: rows of 16-bit numbers.
template <class T>
struct Heads {
  const AttentionArgs& x;
  int64_t rows, columns, row_distance;
  const int64_t* strides;  // of the batch dimensions; null: dense

  int64_t offset(int64_t head) const {
    if (!strides) return head * rows * columns;
    int64_t at = 0;
    for (int d = x.rank - 1; d >= 0; --d) {
      at += head % x.sizes[d] * strides[d];
      head /= x.sizes[d];
    }
    return at;
  }
  std::vector<float> load(const LibraryCall& call, const char* what, const void* from) const {
    std::vector<float> values;
    for (int64_t head = 0; head < x.batch; ++head) {
      const T* p = static_cast<const T*>(from) + offset(head);
      call.reads(what, p, rows, columns * int64_t(sizeof(T)), row_distance * int64_t(sizeof(T)));
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t c = 0; c < columns; ++c) values.push_back(float(p[row * row_distance + c]));
      }
    }
    return values;
  }
  // Results are dense.
  void store(const LibraryCall& call, void* to, const std::vector<float>& values) const {
    call.writes(to, 1, int64_t(values.size() * sizeof(T)), 0);
    for (size_t i = 0; i < values.size(); ++i) static_cast<T*>(to)[i] = T(values[i]);
  }
};

template <class T>
void attend_as(AttentionPass pass, const AttentionArgs& x) {
  const LibraryCall call("attend");
  const Heads<T> q{x, x.queries, x.depth, x.q_row, x.strides[0]};
  const Heads<T> k{x, x.keys, x.depth, x.k_row, x.strides[1]};
  const Heads<T> v{x, x.keys, x.width, x.v_row, x.strides[2]};
  const Heads<T> o{x, x.queries, x.width, x.width, nullptr};
  const auto vq = q.load(call, "q", x.q), vk = k.load(call, "k", x.k), vv = v.load(call, "v", x.v);
  std::vector<float> vo(size_t(x.batch * x.queries * x.width));
  AttentionArgs plain = x;
  plain.rank = 1;
  plain.sizes[0] = x.batch;
  plain.q_row = plain.k_row = x.depth;
  plain.v_row = x.width;
  plain.strides[0][0] = x.queries * x.depth;
  plain.strides[1][0] = x.keys * x.depth;
  plain.strides[2][0] = x.keys * x.width;
  plain.q = vq.data();
  plain.k = vk.data();
  plain.v = vv.data();
  plain.o = vo.data();
  const int64_t lse_bytes = x.batch * x.queries * int64_t(sizeof(float));
  if (pass == AttentionPass::forward) {
    call.writes(x.lse, 1, lse_bytes, 0);
    kernels::attention.find(DeviceKind::cpu, DType::f32)(plain);
    o.store(call, x.o, vo);
    return;
  }
  call.reads("lse", x.lse, 1, lse_bytes, 0);
  vo = o.load(call, "o", x.o);
  const auto up = o.load(call, "the upstream gradient", x.upstream);
  std::vector<float> dq(vq.size()), dk(vk.size()), dv(vv.size());
  plain.o = vo.data();
  plain.upstream = up.data();
  plain.dq = dq.data();
  plain.dk = dk.data();
  plain.dv = dv.data();
  kernels::attention_backward.find(DeviceKind::cpu, DType::f32)(plain);
  q.store(call, x.dq, dq);
  k.store(call, x.dk, dk);
  v.store(call, x.dv, dv);
}

}  // namespace

bool attend(AttentionPass pass, DType dtype, const AttentionArgs& a) {
  if (!library_attends(dtype, a)) return false;
  if (recording()) {
    record([=] { attend(pass, dtype, a); });
    return true;
  }
  dtype == DType::bf16 ? attend_as<BFloat16>(pass, a) : attend_as<Float16>(pass, a);
  return true;
}

}  // namespace cutaway::cuda::emu

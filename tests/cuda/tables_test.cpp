#include <gtest/gtest.h>
#include <algorithm>

#include <cutaway/core/kernels/attention.h>
#include <cutaway/core/kernels/conv.h>
#include <cutaway/core/kernels/group_shared.h>
#include <cutaway/core/kernels/index.h>
#include <cutaway/core/kernels/loss.h>
#include <cutaway/core/kernels/matmul.h>
#include <cutaway/core/kernels/norm.h>
#include <cutaway/core/kernels/optim.h>
#include <cutaway/core/kernels/pool.h>
#include <cutaway/core/kernels/random.h>
#include <cutaway/core/kernels/rearrange.h>
#include <cutaway/core/kernels/reduce.h>
#include <cutaway/core/kernels/resize.h>
#include <cutaway/core/kernels/rows.h>
#include <cutaway/core/kernels/scan.h>
#include <cutaway/core/kernels/sort.h>

namespace cutaway::cuda {
namespace {

// The emulator may have more types than the CPU, which computes some ops of 16 bits in f32; and the
// other way round for those in `in_f32`.
template <class Args>
void compare_row(const Kernel<Args>& k, std::initializer_list<DType> in_f32 = {}) {
  const auto& cpu = k.table[static_cast<int>(DeviceKind::cpu)];
  const auto& emu = k.table[static_cast<int>(DeviceKind::emu)];
  for (int t = 0; t < kNumDTypes; ++t) {
    if (std::find(in_f32.begin(), in_f32.end(), DType(t)) != in_f32.end()) continue;
    EXPECT_TRUE(emu[t] != nullptr || cpu[t] == nullptr) << k.name << " for " << name_of(DType(t));
  }
}
template <class... Args>
void expect_types_of_cpu(const Kernel<Args>&... all) {
  (compare_row(all), ...);
}

// Elementwise kernels are not named here: all back ends fill their rows from one list.
TEST(CudaTables, EveryTypeOfTheCpuHasACudaKernel) {
  using namespace kernels;
  detail::initialize_kernels();
  expect_types_of_cpu(attention, attention_backward);
  for (const auto* k : {&conv_forward, &conv_input_grad, &conv_weight_grad}) {
    compare_row(*k, {DType::bf16});
  }
  expect_types_of_cpu(group_shared_forward, group_shared_weight_grad, group_shared_input_grad);
  expect_types_of_cpu(index_bounds, gather, scatter, scatter_reduce, take_rows, put_rows,
                      reduce_rows, nonzero);
  expect_types_of_cpu(cross_entropy, cross_entropy_backward);
  expect_types_of_cpu(matmul, column_sums);
  expect_types_of_cpu(moments, channel_affine, channel_dots, channel_backward, channel_terms,
                      channel_grad_terms, update_running);
  expect_types_of_cpu(sgd_step, adam_step, rmsprop_step, adagrad_step, lion_step, optim_scalars);
  expect_types_of_cpu(max_pool, avg_pool, avg_pool_grad, plane_scatter, plane_gather);
  expect_types_of_cpu(random_uniform, random_normal, random_bernoulli, random_dropout,
                      random_integers);
  expect_types_of_cpu(triangle, concat, remap, remap_sum, window_sum, image_to_columns,
                      columns_to_image);
  expect_types_of_cpu(sum, prod, mean, var, std_dev, amax, amin, find_first, logsumexp, any, all,
                      count_nonzero, norm, median, prod_backward);
  expect_types_of_cpu(resize, resize_grad);
  expect_types_of_cpu(softmax, log_softmax, softmax_backward, log_softmax_backward, row_norm,
                      row_norm_backward);
  expect_types_of_cpu(cumsum, cumprod, logcumsumexp, cummax, cummin, linear_scan);
  expect_types_of_cpu(sort, unique, search_sorted);
}

}  // namespace
}  // namespace cutaway::cuda

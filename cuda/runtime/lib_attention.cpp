#include <limits>
#include <map>

#include <cutaway/core/error.h>
#include <cutaway/cuda/lib/attention.h>
#include <cutaway/cuda/runtime/attention_graph.h>
#include <cutaway/cuda/runtime/memory.h>

namespace cutaway::cuda::gpu {
namespace {

const dnn::Plan& plan_for(const AttentionKey& key) {
  static auto* const plans = new std::map<AttentionKey, dnn::Plan>;
  const auto at = plans->find(key);
  if (at != plans->end()) return at->second;
  dnn::Plan plan;
  try {
    if (dnn::library().complete()) plan = attention_plan(key);
  } catch (const CudaError&) {
    // A graph that the library cannot even describe has no plan.
  }
  return (*plans)[key] = std::move(plan);
}

void run_backward(const dnn::Plan& plan, const AttentionArgs& a, const float* scale) {
  constexpr float kOneValue = 1, kBlindValue = -std::numeric_limits<float>::infinity();
  void* dots = allocate(a.batch * a.queries * int64_t(sizeof(float)));
  try {
    dnn::execute(plan,
                 {kQuery, kKey, kValue, kOutput, kLse, kUpstream, kQueryGrad, kKeyGrad, kValueGrad,
                  kDots, kScale, kBlind, kOne},
                 {a.q, a.k, a.v, a.o, a.lse, a.upstream, a.dq, a.dk, a.dv, dots, scale,
                  &kBlindValue, &kOneValue});
  } catch (...) {
    release(dots);
    throw;
  }
  release(dots);
}

}  // namespace

bool attend(AttentionPass pass, DType dtype, const AttentionArgs& a) {
  if (!library_attends(dtype, a)) return false;
  const std::lock_guard lock(dnn::mutex());
  const dnn::Plan& plan = plan_for({pass, dtype, a});
  if (!plan.execution) return false;
  const auto scale = float(a.scale);
  if (pass == AttentionPass::backward) {
    run_backward(plan, a, &scale);
    return true;
  }
  constexpr float kBlindValue = -std::numeric_limits<float>::infinity();
  dnn::execute(plan, {kQuery, kKey, kValue, kOutput, kLse, kScale, kBlind},
               {a.q, a.k, a.v, a.o, a.lse, &scale, &kBlindValue});
  return true;
}

}  // namespace cutaway::cuda::gpu

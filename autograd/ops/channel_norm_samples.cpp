#include <cutaway/autograd/ops/norm.h>
#include <cutaway/autograd/ops/norm_reference.h>

namespace cutaway {
namespace {

// Statistics over everything but the channel.
NormPlace by_channel() {
  return [](const Shape& i) { return std::pair(i[1], i[1]); };
}
NormPlace by_group(int64_t channels, int64_t groups) {
  const int64_t size = channels / groups;
  return [=](const Shape& i) { return std::pair(i[0] * groups + i[1] / size, i[1]); };
}

void add_batch(SampleList& list, const char* label, Tensors in, double eps = 1e-5) {
  in.resize(3);
  const int64_t channels = in[0].sizes()[1];
  Sample& s = list.add(
      label, std::move(in),
      [=](const Tensors& t) -> Tensors {
        return {batch_norm(t[0], t[1], t[2], Tensor(), Tensor(), {.training = true, .eps = eps})};
      },
      [=](const Tensors& t) { return norm_ref(t, channels, by_channel(), {.eps = eps}); });
  s.grad = s.grad_grad = in_reach_of_checks(s);
}

// Running statistics are no inputs of the sample: the op does not differentiate them.
void add_evaluation(SampleList& list, const char* label, Tensors in) {
  in.resize(3);
  const int64_t channels = in[0].sizes()[1];
  const Tensor mean = list.randn({channels}), var = list.uniform({channels}, 0.5, 2);
  Sample& s = list.add(
      label, std::move(in),
      [=](const Tensors& t) -> Tensors {
        const Device device = t[0].device();
        return {batch_norm(t[0], t[1], t[2], mean.to(device), var.to(device))};
      },
      [=](const Tensors& t) {
        const NormReference r{.mean = mean.to_vector(), .var = var.to_vector()};
        return norm_ref(t, channels, by_channel(), r);
      });
  s.grad = s.grad_grad = in_reach_of_checks(s);
}

void add_group(SampleList& list, const char* label, Tensors in, int64_t groups) {
  in.resize(3);
  const int64_t stats = in[0].sizes()[0] * groups, channels = in[0].sizes()[1];
  Sample& s = list.add(
      label, std::move(in),
      [=](const Tensors& t) -> Tensors { return {group_norm(t[0], groups, t[1], t[2])}; },
      [=](const Tensors& t) { return norm_ref(t, stats, by_group(channels, groups), {}); });
  s.grad = s.grad_grad = in_reach_of_checks(s);
}

}  // namespace

void batch_norm_samples(SampleList& list) {
  add_batch(list, "vectors", {list.randn({5, 3})});
  add_batch(list, "vectors, weighted", {list.randn({4, 3}), list.randn({3}), list.randn({3})});
  add_batch(list, "images", {list.randn({2, 3, 2, 2}), list.randn({3}), list.randn({3})}, 1e-3);
  add_batch(list, "weight only", {list.randn({2, 2, 3}), list.randn({2})});
  add_batch(list, "one channel", {list.randn({6, 1})});
  add_batch(list, "no channels", {list.randn({3, 0, 2})});
  add_batch(list, "many samples", {list.randn({1200, 40}), list.randn({40}), list.randn({40})});
  add_batch(list, "large images", {list.randn({3, 4, 40, 41}), list.randn({4}), list.randn({4})});
  add_evaluation(list, "evaluation", {list.randn({2, 3, 4}), list.randn({3}), list.randn({3})});
  add_evaluation(list, "evaluation, plain", {list.randn({4, 3})});
  add_evaluation(list, "evaluation, empty", {list.randn({0, 3}), list.randn({3}), list.randn({3})});
  list.error(
      "rank", [] { batch_norm(zeros({3})); }, "[batch_norm] x must be [N,C,...]; got x [3]");
  list.error(
      "weight",
      [] {
        batch_norm(zeros({2, 3}), zeros({2}));
      },
      "[batch_norm] weight must have one entry a channel; got weight [2], x [2,3], need [3]");
  list.error(
      "no statistics",
      [] {
        batch_norm(zeros({2, 3}));
      },
      "[batch_norm] evaluation needs running_mean and running_var; got none");
  list.error(
      "one value",
      [] {
        batch_norm(zeros({1, 3}), Tensor(), Tensor(), Tensor(), Tensor(), {.training = true});
      },
      "[batch_norm] training needs more than one value per channel; got x [1,3]");
}

void group_norm_samples(SampleList& list) {
  add_group(list, "two groups", {list.randn({2, 4, 3})}, 2);
  add_group(list, "weighted", {list.randn({2, 4, 2}), list.randn({4}), list.randn({4})}, 2);
  add_group(list, "one group", {list.randn({2, 3}), list.randn({3}), list.randn({3})}, 1);
  add_group(list, "group a channel", {list.randn({2, 3, 2, 2}), list.randn({3})}, 3);
  add_group(list, "no samples", {list.randn({0, 4, 2}), list.randn({4}), list.randn({4})}, 2);
  add_group(list, "large images", {list.randn({2, 6, 33, 31}), list.randn({6}), list.randn({6})},
            3);
  list.error(
      "groups",
      [] {
        group_norm(zeros({2, 4}), 3);
      },
      "[group_norm] groups must divide the channels; got 3 groups, x [2,4]");
  list.error(
      "rank", [] { group_norm(zeros({4}), 2); }, "[group_norm] x must be [N,C,...]; got x [4]");
}

}  // namespace cutaway

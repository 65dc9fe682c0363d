// The tape: gradients, orders, hooks, saved values, releasing.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/checkpoint.h>
#include <cutaway/autograd/function.h>
#include <cutaway/autograd/node.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

using Values = std::vector<double>;
constexpr Opts kF64{.dtype = DType::f64};
constexpr Opts kLeaf{.dtype = DType::f64, .device = {}, .requires_grad = true};

TEST(Engine, FC_69d6_value_used_several_times) {
  Tensor w = tensor({2}, kLeaf);
  (w * 3 * w + w).sum().backward();
  EXPECT_EQ(w.grad().to_vector(), Values{13});
  Tensor x = tensor({1}, kLeaf);
  Tensor total = x;
  for (int i = 0; i < 10000; ++i) total = total + x;
  total.sum().backward();
  EXPECT_EQ(x.grad().to_vector(), Values{10001});
}

TEST(Engine, FC_2cd2_a_long_chain_needs_no_stack) {
  // 100 000 nodes on a thread with a small stack: traversal and release must not recurse.
  const auto work = [](void*) -> void* {
    Tensor x = tensor({1}, kLeaf);
    Tensor y = x;
    for (int i = 0; i < 100000; ++i) y = y + 0.0;
    y.backward();
    EXPECT_EQ(x.grad().item(), 1);
    Tensor z = x;
    for (int i = 0; i < 100000; ++i) z = z + 0.0;
    z = Tensor();
    Tensor v = x;
    for (int i = 0; i < 100000; ++i) v = v.view({1});
    v.backward();
    Tensor c = x;
    const auto doubled = [](const Tensor& t) { return t * 1.0 + 0.0; };
    for (int i = 0; i < 1000; ++i) c = checkpoint(doubled, c);
    c.backward();
    EXPECT_EQ(x.grad().item(), 3);
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, work, nullptr), 0);
  pthread_join(thread, nullptr);
}

TEST(Engine, FC_3548_gradient_of_a_gradient_norm) {
  Tensor x = tensor({1, 2}, kLeaf);
  Tensor g = grad((x * x).sum(), {x}, {.create_graph = true})[0];
  (g * g).sum().backward();
  EXPECT_EQ(x.grad().to_vector(), (Values{8, 16}));
}

TEST(Engine, FC_ae6b_third_derivative_and_detach) {
  Tensor x = tensor({3}, kLeaf);
  const GradOptions again{.create_graph = true};
  Tensor d1 = grad((x * x * x).sum(), {x}, again)[0];
  Tensor d2 = grad(d1.sum(), {x}, again)[0];
  Tensor d3 = grad(d2.sum(), {x}, again)[0];
  EXPECT_EQ(d1.item(), 27);
  EXPECT_EQ(d2.item(), 18);
  EXPECT_EQ(d3.item(), 6);
  Tensor a = x * 2;
  Tensor b = a.detach() * a;
  Tensor first = grad(b.sum(), {x}, again)[0];
  EXPECT_EQ(first.item(), 12);
  EXPECT_THROW(grad(first.sum(), {x}), AutogradError);
  Tensor half = tensor({0.5}, kLeaf);
  Tensor t1 = grad(tanh(half).sum(), {half}, again)[0];
  EXPECT_NEAR(grad(t1.sum(), {half})[0].item(), -0.7268619814, 1e-10);
}

TEST(Engine, FC_5f74_unused_inputs_integers_and_non_scalars) {
  Tensor x = tensor({1}, kLeaf), z = tensor({1}, kLeaf);
  EXPECT_THROW(grad((x * 2).sum(), {x, z}), AutogradError);
  const Tensors g = grad((x * 2).sum(), {x, z}, {.allow_unused = true});
  EXPECT_EQ(g[0].item(), 2);
  EXPECT_FALSE(g[1].defined());
  Tensor whole = tensor({1, 2}, {.dtype = DType::i64});
  EXPECT_THROW(whole.set_requires_grad(), DTypeError);
  Tensor two = tensor({1, 2}, kLeaf);
  EXPECT_THROW((two * 2).backward(), AutogradError);
  EXPECT_THROW(tensor({1}, kF64).backward(), AutogradError);
  const ValuesIndices best = topk(two, 1);
  EXPECT_TRUE(best.values.requires_grad());
  EXPECT_FALSE(best.indices.requires_grad());
}

TEST(Engine, FC_974a_hooks_run_once_on_the_full_sum) {
  Tensor x = tensor({1}, kLeaf);
  register_hook(x, [](const Tensor& g) { return g * 2; });
  register_hook(x, [](const Tensor& g) { return g + 1; });
  (x * 3).backward();
  EXPECT_EQ(x.grad().item(), 7);

  Tensor u = tensor({1}, kLeaf);
  Tensor y = u * 2;
  y.retain_grad();
  register_hook(y, [](const Tensor& g) { return g * 10; });
  y.backward();
  EXPECT_EQ(y.grad().item(), 10);
  EXPECT_EQ(u.grad().item(), 20);

  Tensor v = tensor({1}, kLeaf);
  Tensor w = v * 2;
  int calls = 0;
  double seen = 0;
  HookHandle handle;
  handle = register_hook(w, [&](const Tensor& g) {
    ++calls;
    seen = g.item();
    handle.remove();
    return Tensor();
  });
  (w * 3 + w * 4).backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(v.grad().item(), 14);
}

TEST(Engine, node_and_after_accumulate_hooks) {
  Tensor x = tensor({1, 2}, kLeaf);
  Tensor y = x * 2;
  register_node_hook_before(y, [](Tensors& g) { g[0] = g[0] * 5; });
  register_node_hook_after(y, [](Tensors& g) { g[0] = g[0] + 1; });
  int after = 0;
  register_after_accumulate(x, [&](const Tensor& leaf) {
    ++after;
    EXPECT_EQ(leaf.grad().to_vector(), (Values{11, 11}));
  });
  y.sum().backward();
  EXPECT_EQ(after, 1);
}

TEST(Engine, FC_cb81_the_gradient_handed_in_stays_the_callers) {
  Tensor x = tensor({1}, kLeaf);
  Tensor u = tensor({1}, kF64);
  x.view({1}).backward(u);
  x.grad().mul_(0);
  EXPECT_EQ(u.item(), 1);
  Tensor a = tensor({1}, kLeaf), b = tensor({1}, kLeaf);
  (a + b).backward();
  a.grad().mul_(0);
  EXPECT_EQ(b.grad().item(), 1);
  Tensor c = tensor({1, 2, 3}, kLeaf);
  c.sum().backward();
  c.grad().data<double>()[0] = 9;
  EXPECT_EQ(c.grad().to_vector(), (Values{9, 1, 1}));
}

TEST(Engine, FC_002c_guards_and_threads) {
  Tensor x = tensor({2}, kLeaf);
  {
    NoGradGuard off;
    EXPECT_FALSE((x * x).requires_grad());
    bool in_thread = false;
    std::thread([&] { in_thread = (x * x).requires_grad(); }).join();
    EXPECT_TRUE(in_thread);
  }
  EXPECT_TRUE((x * x).requires_grad());
  try {
    NoGradGuard off;
    throw std::runtime_error("inside");
  } catch (const std::runtime_error&) {
  }
  EXPECT_TRUE(context().grad_enabled);
}

TEST(Engine, FC_9447_loops_with_create_graph_keep_no_memory) {
  const auto round = [] {
    Tensor x = tensor({1.5}, kLeaf);
    Tensor y = tanh(x * x * x);
    backward({y}, {}, {.create_graph = true});
    Tensor again = grad(x.grad().sum(), {x}, {.create_graph = true})[0];
    EXPECT_TRUE(std::isfinite(again.item()));
  };
  for (int i = 0; i < 1000; ++i) round();
  const int64_t before = memory_stats().live;
  for (int i = 0; i < 20000; ++i) round();
  EXPECT_EQ(memory_stats().live, before);
}

TEST(Engine, a_second_backward_needs_retain_graph) {
  Tensor x = tensor({2}, kLeaf);
  Tensor y = (x * x).sum();
  backward({y}, {}, {.retain_graph = true});
  y.backward();
  EXPECT_EQ(x.grad().item(), 8);
  try {
    y.backward();
    FAIL() << "no exception";
  } catch (const AutogradError& e) {
    EXPECT_NE(std::string(e.what()).find("retain_graph"), std::string::npos);
  }
}

TEST(Engine, a_changed_saved_value_names_both_ops) {
  Tensor x = tensor({2}, kLeaf);
  Tensor h = x * 1.0;
  Tensor y = h * h;
  {
    NoGradGuard off;
    h.detach().mul_(3);
  }
  try {
    y.backward();
    FAIL() << "no exception";
  } catch (const AutogradError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("saved by mul"), std::string::npos) << text;
    EXPECT_NE(text.find("engine_test.cpp"), std::string::npos) << text;
    EXPECT_NE(text.find("written by mul"), std::string::npos) << text;
  }
}

TEST(Engine, anomaly_mode_names_the_op) {
  AnomalyGuard on;
  Tensor x = tensor({0}, kLeaf);
  try {
    log(x);
    FAIL() << "no exception";
  } catch (const AutogradError& e) {
    EXPECT_NE(std::string(e.what()).find("[log] anomaly"), std::string::npos) << e.what();
  }
  Tensor y = sqrt(x);
  EXPECT_THROW(y.backward(), AutogradError);
}

struct Cube : Function {
  Tensors forward(FunctionContext& ctx, const Tensors& in) override {
    ctx.save(in[0]);
    return {in[0] * in[0] * in[0]};
  }
  Tensors backward(FunctionContext& ctx, const Tensors& up) override {
    return {up[0] * 3.0 * ctx.saved(0) * ctx.saved(0)};
  }
};

// Saves a value that is neither input nor output.
struct SquareByHalves : Function {
  Tensors forward(FunctionContext& ctx, const Tensors& in) override {
    ctx.save(in[0] * 2);
    return {in[0] * in[0]};
  }
  Tensors backward(FunctionContext& ctx, const Tensors& up) override {
    return {up[0] * ctx.saved(0)};
  }
  const char* name() const override { return "square_by_halves"; }
};

struct ExpOfOutput : Function {
  Tensors forward(FunctionContext& ctx, const Tensors& in) override {
    Tensor y = exp(in[0]);
    ctx.save(y);
    return {y};
  }
  Tensors backward(FunctionContext& ctx, const Tensors& up) override {
    return {up[0] * ctx.saved(0)};
  }
};

TEST(Function, differentiates_to_every_order) {
  Tensor x = tensor({3}, kLeaf);
  const GradOptions again{.create_graph = true};
  Tensor d1 = grad(apply<Cube>({x})[0].sum(), {x}, again)[0];
  Tensor d2 = grad(d1.sum(), {x}, again)[0];
  EXPECT_EQ(d1.item(), 27);
  EXPECT_EQ(d2.item(), 18);
  EXPECT_EQ(grad(d2.sum(), {x})[0].item(), 6);
  Tensor e2 = grad(grad(apply<ExpOfOutput>({x})[0].sum(), {x}, again)[0].sum(), {x})[0];
  EXPECT_NEAR(e2.item(), std::exp(3), 1e-12);
}

TEST(Function, saved_intermediate_raises_in_a_second_backward) {
  Tensor x = tensor({3}, kLeaf);
  Tensor d1 = grad(apply<SquareByHalves>({x})[0].sum(), {x}, {.create_graph = true})[0];
  EXPECT_EQ(d1.item(), 6);
  try {
    grad(d1.sum(), {x});
    FAIL() << "no exception";
  } catch (const AutogradError& e) {
    EXPECT_NE(std::string(e.what()).find("square_by_halves"), std::string::npos) << e.what();
  }
}

TEST(Function, FC_9447_output_saved_by_its_own_node_is_released) {
  const auto round = [] {
    Tensor x = tensor({0.5}, kLeaf);
    grad(apply<ExpOfOutput>({x})[0].sum(), {x}, {.create_graph = true});
  };
  for (int i = 0; i < 100; ++i) round();
  const int64_t before = memory_stats().live;
  for (int i = 0; i < 2000; ++i) round();
  EXPECT_EQ(memory_stats().live, before);
}

// A region with saved inputs, outputs and a second derivative.
Tensor region(const Tensor& x) { return sigmoid(tanh(x * 1.3) * x); }

TEST(Checkpoint, equals_the_plain_run_bit_for_bit) {
  Tensor a = tensor({0.1, -0.7, 1.9}, kLeaf), b = a.detach().clone().set_requires_grad();
  region(region(a)).sum().backward();
  const auto fn = [](const Tensor& x) { return region(x); };
  checkpoint(fn, checkpoint(fn, b)).sum().backward();
  const Values ga = a.grad().to_vector(), gb = b.grad().to_vector();
  EXPECT_EQ(std::memcmp(ga.data(), gb.data(), ga.size() * sizeof(double)), 0);
}

TEST(Checkpoint, nests_and_differentiates_twice) {
  const auto inner = [](const Tensor& x) { return region(x); };
  const auto outer = [&](const Tensor& x) { return checkpoint(inner, x * 2.0) + region(x); };
  const auto plain = [&](const Tensor& x) { return region(x * 2.0) + region(x); };
  Values second[2];
  for (int k = 0; k < 2; ++k) {
    Tensor x = tensor({0.3, -0.4}, kLeaf);
    Tensor y = k ? checkpoint(outer, x) : plain(x);
    Tensor g = grad(y.sum(), {x}, {.create_graph = true})[0];
    (g * g).sum().backward();
    second[k] = x.grad().to_vector();
  }
  EXPECT_EQ(second[0], second[1]);
}

TEST(Checkpoint, keeps_less_alive) {
  const auto deep = [](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 20; ++i) y = tanh(y);
    return y;
  };
  Tensor x = full({4096}, 0.3, kLeaf);
  const int64_t base = memory_stats().live;
  Tensor plain = deep(x);
  const int64_t with = memory_stats().live - base;
  plain = Tensor();
  Tensor light = checkpoint(deep, x);
  const int64_t without = memory_stats().live - base;
  EXPECT_LT(without * 5, with);
}

}  // namespace
}  // namespace cutaway

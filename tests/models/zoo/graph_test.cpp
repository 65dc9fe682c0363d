#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/models/zoo/graph.h>
#include <cutaway/nn/optim/optimizer.h>
#include <tests/models/zoo/one_thread.h>

namespace cutaway::zoo {
namespace {

Tensor list(const std::vector<int64_t>& v) { return index_tensor(v); }
// 0 – 1 – 2, 1 – 3, and a node alone.
Edges small() { return {list({0, 1, 1, 2, 1, 3}), list({1, 0, 2, 1, 3, 1}), 5}; }
// a[v][u] = 1 for an edge u → v or u = v.
Tensor dense_of(const Edges& e) {
  Tensor a = eye(e.nodes, {.dtype = DType::f64});
  const std::vector<double> from = e.from.to_vector(), to = e.to.to_vector();
  for (size_t i = 0; i < from.size(); ++i) a[int64_t(to[i])][int64_t(from[i])].fill_(1);
  return a;
}
void expect_near(const Tensor& got, const Tensor& want, double within = 1e-12) {
  ASSERT_EQ(got.sizes(), want.sizes());
  const std::vector<double> a = got.to_vector(), b = want.to_vector();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], within) << i;
}
// Results, and gradients of the parameters for one upstream gradient, must agree.
void expect_same(const Tensor& got, const Tensor& want, nn::Module& layer) {
  expect_near(got, want);
  const Tensor upstream = randn(got.sizes(), {.dtype = DType::f64});
  Tensors parameters;
  for (const nn::Named& p : layer.parameters()) parameters.push_back(p.value);
  const Tensors a = grad({got}, parameters, {}, {upstream});
  const Tensors b = grad({want}, parameters, {}, {upstream});
  for (size_t i = 0; i < a.size(); ++i) expect_near(a[i], b[i]);
}

TEST(Graph, gcn_is_the_normalised_adjacency_times_a_linear_map) {
  const OneThread guard;
  manual_seed(8);
  GcnLayer layer({.in = 3, .out = 2});
  layer.to(DType::f64);
  const Edges e = small();
  const Tensor x = randn({5, 3}, {.dtype = DType::f64}), a = dense_of(e);
  const Tensor d = rsqrt(sum(a, 1, {.keepdim = true}));
  const Tensor want = matmul(d * a * t(d), matmul(x, t(layer.lin.weight))) + layer.bias;
  expect_same(layer(x, e), want, layer);
  EXPECT_THROW(layer(randn({4, 3}), e), ShapeError);
  EXPECT_THROW(layer(randn({5, 2}), e), ShapeError);
}

TEST(Graph, gat_is_attention_over_the_edges_into_a_node) {
  const OneThread guard;
  manual_seed(8);
  const Edges e = small();
  const Tensor x = randn({5, 3}, {.dtype = DType::f64});
  const Tensor may = gt(dense_of(e), 0);
  for (const bool join : {true, false}) {
    GatLayer layer({.in = 3, .out = 2, .heads = 2, .join = join});
    layer.to(DType::f64);
    const Tensor h = permute(unflatten(matmul(x, t(layer.lin.weight)), 1, {2, 2}), {1, 0, 2});
    const auto score = [&](const Tensor& v) {  // [heads,V]
      return sum(h * permute(v, {1, 0, 2}), 2);
    };
    const Tensor scores =
        leaky_relu(unsqueeze(score(layer.att_dst), 2) + unsqueeze(score(layer.att_src), 1), 0.2);
    const Tensor weights = softmax(where(may, scores, -INFINITY), -1);
    const Tensor y = permute(matmul(weights, h), {1, 0, 2});  // [V,heads,out]
    expect_same(layer(x, e), (join ? flatten(y, 1) : mean(y, 1)) + layer.bias, layer);
  }
}

TEST(Graph, miles_are_cities_in_four_quarters) {
  const NodeTask task = miles_task();
  ASSERT_EQ(task.edges.nodes, 128);
  EXPECT_EQ(task.nodes[0], "Youngstown, OH");
  EXPECT_EQ(task.labels[0].item<int64_t>(), 0);  // north-east
  EXPECT_EQ(task.told.size(), 20u);
  EXPECT_EQ(task.asked.size(), 108u);
  // Both directions of every edge, none to itself, at least six at every node.
  std::set<std::pair<double, double>> edges;
  const std::vector<double> from = task.edges.from.to_vector(), to = task.edges.to.to_vector();
  std::vector<int64_t> at(128);
  for (size_t i = 0; i < from.size(); ++i) {
    edges.insert({from[i], to[i]});
    ++at[size_t(from[i])];
    EXPECT_NE(from[i], to[i]);
  }
  for (const auto& [a, b] : edges) EXPECT_TRUE(edges.contains({b, a}));
  for (const int64_t n : at) EXPECT_GE(n, 6);
}

TEST(Graph, both_networks_tell_quarters_from_roads) {
  const OneThread guard;
  const NodeTask task = miles_task();
  const Tensor told = list(task.told), asked = list(task.asked);
  const auto share = [&](GraphModel& net) {
    optim::AdamW adam(net.parameters(), {.lr = 0.01});
    for (int i = 0; i < 60; ++i) {
      const Tensor logits = net(task.features, task.edges);
      cross_entropy(index_select(logits, 0, told), index_select(task.labels, 0, told)).backward();
      adam.step_and_zero();
    }
    net.eval();
    NoGradGuard no_grad;
    const Tensor guess = index_select(argmax(net(task.features, task.edges), 1), 0, asked);
    return mean(eq(guess, index_select(task.labels, 0, asked)).to(DType::f32)).item();
  };
  manual_seed(1);
  Gcn gcn({.in = 128, .classes = 4});
  Gat gat({.in = 128, .classes = 4});
  // Features say nothing, so a network without edges is right for one in four.
  EXPECT_GT(share(gcn), 0.7);
  EXPECT_GT(share(gat), 0.7);
}

}  // namespace
}  // namespace cutaway::zoo

#pragma once
#include <string>

#include <cutaway/nn/nn.h>

namespace cutaway::zoo {

// Edges from[e] → to[e] between `nodes` nodes, i64 [E]. An undirected graph has both directions.
struct Edges {
  Tensor from, to;
  int64_t nodes = 0;
};

struct GraphLayerOptions {
  int64_t in = 0, out = 0;
  int64_t heads = 1;            // GAT only
  bool join = true;             // GAT: heads side by side [V,heads·out]; else their mean [V,out]
  double negative_slope = 0.2;  // GAT only
};
// Graph convolution (Kipf & Welling 2016): x [V,in] → [V,out],
//   y_v = b + Σ_u W x_u / √(d_u d_v) over the edges u → v and a loop at v, d their number at a
//   node.
// Names as in PyTorch Geometric: lin.weight, bias.
class GcnLayer : public nn::Module {
 public:
  explicit GcnLayer(const GraphLayerOptions& options);
  Tensor operator()(const Tensor& x, const Edges& edges);

  nn::Linear lin;
  Tensor bias;
};
// Graph attention (Veličković et al. 2017): x [V,in] → [V,heads·out],
//   y_v = b + Σ_u a_uv W x_u, a_uv = softmax over the edges into v, loop included, of
//   leaky_relu(s·W x_u + t·W x_v).
// Names as in PyTorch Geometric: lin.weight, att_src (s), att_dst (t) [1,heads,out], bias.
class GatLayer : public nn::Module {
 public:
  explicit GatLayer(const GraphLayerOptions& options);
  Tensor operator()(const Tensor& x, const Edges& edges);

  nn::Linear lin;
  Tensor att_src, att_dst, bias;

 private:
  GraphLayerOptions options_;
};

// A graph with classes of nodes, some of which are told.
struct NodeTask {
  std::string name;
  Tensor features;  // [V,F]
  Edges edges;
  Tensor labels;              // i64 [V]
  std::vector<int64_t> told;  // nodes whose label training sees
  std::vector<int64_t> asked;
  std::vector<std::string> classes, nodes;
};
// Base of networks that tell classes of nodes: x [V,in] and edges → logits [V,classes].
class GraphModel : public nn::Module {
 public:
  virtual Tensor operator()(const Tensor& x, const Edges& edges) = 0;

  // Keeps a graph, whose nodes are then known by number. State dicts do not hold it.
  void keep(const NodeTask& graph);
  // nodes (i64) [N] of the graph that is kept → logits [N,classes]. Raises ValueError without one.
  using Module::operator();
  Tensor forward(const Tensor& nodes) override;

 private:
  Tensor features_, from_, to_;
};
struct GraphModelOptions {
  int64_t in = 0, classes = 0;
  int64_t hidden = 16, heads = 4;  // heads: GAT only, of hidden/heads numbers each
  double dropout = 0.5;            // of what each layer gets
};
// Two layers with ReLU between: conv1, conv2.
class Gcn : public GraphModel {
 public:
  explicit Gcn(const GraphModelOptions& options);
  Tensor operator()(const Tensor& x, const Edges& edges) override;

  GcnLayer conv1, conv2;
  nn::Dropout dropout;
};
// Two layers with ELU between, the first of several heads.
class Gat : public GraphModel {
 public:
  explicit Gat(const GraphModelOptions& options);
  Tensor operator()(const Tensor& x, const Edges& edges) override;

  GatLayer conv1, conv2;
  nn::Dropout dropout;
};

// 128 cities of North America, each joined with the `neighbours` nearest by road (miles of 1949,
// D. E. Knuth's Stanford GraphBase). The class is the quarter of the continent, by medians of
// latitude and longitude, which the network does not see: features are one-hot. Five cities of each
// quarter are told. Raises IoError when the sample is damaged.
NodeTask miles_task(int64_t neighbours = 6);

}  // namespace cutaway::zoo

#include <cutaway/models/zoo/graph.h>

#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::zoo {
namespace {

void check(const char* layer, const Tensor& x, const Edges& e, int64_t in) {
  const bool lists = e.from.defined() && e.to.defined() && e.from.dim() == 1 &&
                     e.from.sizes() == e.to.sizes() && e.nodes == (x.dim() ? x.size(0) : -1);
  if (!lists || x.dim() != 2 || x.size(1) != in) {
    throw ShapeError(layer, fmt::format("x must be [nodes,{}] and edges two lists of equal length "
                                        "for its nodes; got x {}, {} nodes",
                                        in, to_string(x.sizes()), e.nodes));
  }
}

// The edges and a loop at every node.
Edges with_loops(const Edges& e) {
  const Tensor all = arange(0, e.nodes, 1, {.dtype = e.from.dtype(), .device = e.from.device()});
  return {cat({e.from, all}), cat({e.to, all}), e.nodes};
}

nn::Linear dense(int64_t in, int64_t out) {
  nn::Linear layer({.in = in, .out = out, .bias = false});
  nn::init::xavier_uniform_(layer.weight);
  return layer;
}

}  // namespace

GcnLayer::GcnLayer(const GraphLayerOptions& o) : lin(dense(o.in, o.out)) {
  bias = zeros({o.out});
  add("lin", lin);
  add("bias", bias);
}
Tensor GcnLayer::operator()(const Tensor& x, const Edges& edges) {
  Scope scope(*this);
  check("GcnLayer", x, edges, lin.weight.size(1));
  const Edges e = with_loops(edges);
  const Tensor ones_of = ones(e.to.sizes(), {x.dtype(), x.device()});
  const Tensor scale = rsqrt(segment_sum(ones_of, e.to, e.nodes));  // at least 1: the loop
  const Tensor h = lin(x) * unsqueeze(scale, 1);
  const Tensor sums = segment_sum(index_select(h, 0, e.from), e.to, e.nodes);
  return scope.done(sums * unsqueeze(scale, 1) + bias);
}

GatLayer::GatLayer(const GraphLayerOptions& o) : lin(dense(o.in, o.heads * o.out)), options_(o) {
  att_src = nn::init::xavier_uniform_(empty({1, o.heads, o.out}));
  att_dst = nn::init::xavier_uniform_(empty({1, o.heads, o.out}));
  bias = zeros({o.join ? o.heads * o.out : o.out});
  add("lin", lin);
  add("att_src", att_src);
  add("att_dst", att_dst);
  add("bias", bias);
}
Tensor GatLayer::operator()(const Tensor& x, const Edges& edges) {
  Scope scope(*this);
  check("GatLayer", x, edges, lin.weight.size(1));
  const Edges e = with_loops(edges);
  const Tensor h = unflatten(lin(x), 1, {options_.heads, options_.out});  // [V,heads,out]
  const Tensor source = sum(h * att_src, 2), target = sum(h * att_dst, 2);
  const Tensor scores = leaky_relu(index_select(source, 0, e.from) + index_select(target, 0, e.to),
                                   options_.negative_slope);
  // Softmax over the edges into a node; its largest score is taken off, which changes nothing.
  const Tensor largest = segment_max(scores.detach(), e.to, e.nodes);
  const Tensor powers = exp(scores - index_select(largest, 0, e.to));
  const Tensor sums = segment_sum(powers, e.to, e.nodes);
  const Tensor weights = powers / index_select(sums, 0, e.to);  // [E,heads]
  const Tensor y = segment_sum(index_select(h, 0, e.from) * unsqueeze(weights, 2), e.to, e.nodes);
  return scope.done((options_.join ? flatten(y, 1) : mean(y, 1)) + bias);
}

void GraphModel::keep(const NodeTask& graph) {
  if (features_.defined()) throw ValueError("GraphModel", "a graph is kept already");
  features_ = graph.features.clone();
  from_ = graph.edges.from.clone();
  to_ = graph.edges.to.clone();
  add_buffer("features", features_, false);
  add_buffer("from", from_, false);
  add_buffer("to", to_, false);
}
Tensor GraphModel::forward(const Tensor& nodes) {
  if (!features_.defined()) {
    throw ValueError(type(), "there is no graph to look nodes up in", "call keep() first");
  }
  return index_select((*this)(features_, {from_, to_, features_.size(0)}), 0, nodes);
}

Gcn::Gcn(const GraphModelOptions& o)
    : conv1({.in = o.in, .out = o.hidden}),
      conv2({.in = o.hidden, .out = o.classes}),
      dropout({.p = o.dropout}) {
  add("conv1", conv1);
  add("conv2", conv2);
  add("dropout", dropout);
}
Tensor Gcn::operator()(const Tensor& x, const Edges& edges) {
  Scope scope(*this);
  const Tensor h = relu(conv1(dropout(x), edges));
  return scope.done(conv2(dropout(h), edges));
}

Gat::Gat(const GraphModelOptions& o)
    : conv1({.in = o.in, .out = o.hidden / o.heads, .heads = o.heads}),
      conv2({.in = o.hidden / o.heads * o.heads, .out = o.classes, .join = false}),
      dropout({.p = o.dropout}) {
  add("conv1", conv1);
  add("conv2", conv2);
  add("dropout", dropout);
}
Tensor Gat::operator()(const Tensor& x, const Edges& edges) {
  Scope scope(*this);
  const Tensor h = elu(conv1(dropout(x), edges));
  return scope.done(conv2(dropout(h), edges));
}

}  // namespace cutaway::zoo

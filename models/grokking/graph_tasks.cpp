// Graph metric completion: the distance of every pair of nodes as a class.
#include <cutaway/models/grokking/task.h>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <queue>

#include <cutaway/core/error.h>

namespace cutaway::grokking {
namespace {

struct Edge {
  int64_t to, weight;
};
struct Graph {
  std::vector<std::string> names;
  std::vector<std::vector<Edge>> edges;
  std::vector<std::vector<double>> places;

  void link(int64_t a, int64_t b, int64_t weight = 1) {
    edges[size_t(a)].push_back({b, weight});
    edges[size_t(b)].push_back({a, weight});
  }
};

// A box of n1 × n2 × … nodes, neighbours along each axis; the last axis may close.
Graph box(const std::vector<int64_t>& sizes, bool closed) {
  Graph g;
  int64_t count = 1;
  for (int64_t n : sizes) count *= n;
  g.edges.resize(size_t(count));
  for (int64_t v = 0; v < count; ++v) {
    std::vector<double> place;
    std::string name;
    int64_t stride = count, rest = v;
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      stride /= sizes[axis];
      const int64_t i = rest / stride;
      rest %= stride;
      place.push_back(double(i));
      name += (axis ? "," : "") + std::to_string(i);
      if (i + 1 < sizes[axis]) g.link(v, v + stride);
      const bool last = axis + 1 == sizes.size();
      if (closed && last && i + 1 == sizes[axis]) g.link(v, v - i * stride);
    }
    g.names.push_back(name);
    g.places.push_back(place);
  }
  if (closed) g.places.clear();
  return g;
}

// Zachary (1977): friendships in a karate club; 34 members, 78 edges. Node i is followed by its
// neighbours with larger numbers.
Graph karate() {
  constexpr int kEdges[][2] = {
      {0, 1},   {0, 2},   {0, 3},   {0, 4},   {0, 5},   {0, 6},   {0, 7},   {0, 8},   {0, 10},
      {0, 11},  {0, 12},  {0, 13},  {0, 17},  {0, 19},  {0, 21},  {0, 31},  {1, 2},   {1, 3},
      {1, 7},   {1, 13},  {1, 17},  {1, 19},  {1, 21},  {1, 30},  {2, 3},   {2, 7},   {2, 8},
      {2, 9},   {2, 13},  {2, 27},  {2, 28},  {2, 32},  {3, 7},   {3, 12},  {3, 13},  {4, 6},
      {4, 10},  {5, 6},   {5, 10},  {5, 16},  {6, 16},  {8, 30},  {8, 32},  {8, 33},  {9, 33},
      {13, 33}, {14, 32}, {14, 33}, {15, 32}, {15, 33}, {18, 32}, {18, 33}, {19, 33}, {20, 32},
      {20, 33}, {22, 32}, {22, 33}, {23, 25}, {23, 27}, {23, 29}, {23, 32}, {23, 33}, {24, 25},
      {24, 27}, {24, 31}, {25, 31}, {26, 29}, {26, 33}, {27, 33}, {28, 31}, {28, 33}, {29, 32},
      {29, 33}, {30, 32}, {30, 33}, {31, 32}, {31, 33}, {32, 33}};
  Graph g;
  g.edges.resize(34);
  for (int i = 0; i < 34; ++i) g.names.push_back(std::to_string(i + 1));
  for (const auto& e : kEdges) g.link(e[0], e[1]);
  return g;
}

// A binary tree of 63 nodes: six levels.
Graph tree() {
  Graph g;
  g.edges.resize(63);
  for (int i = 0; i < 63; ++i) {
    g.names.push_back(std::to_string(i));
    if (i) g.link(i, (i - 1) / 2);
  }
  return g;
}

Graph graph_file(const std::string& path) {
  const auto lines = read_fields(path, " \t,;");
  Graph g;
  std::map<std::string, int64_t> numbers;
  const auto node = [&](const std::string& name) {
    const auto [at, fresh] = numbers.emplace(name, int64_t(g.names.size()));
    if (fresh) {
      g.names.push_back(name);
      g.edges.emplace_back();
    }
    return at->second;
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::string> f;
    for (const auto& field : lines[i]) {
      if (!field.empty()) f.push_back(field);
    }
    const std::string where = fmt::format("{}: edge {}", path, i + 1);
    if (f.size() != 2 && f.size() != 3) {
      throw ValueError("grok",
                       fmt::format("{} has {} fields; need u v or u v weight", where, f.size()));
    }
    const int64_t weight = f.size() == 3 ? whole_number(f[2], where) : 1;
    if (weight < 1 || weight > 1000) {
      throw ValueError("grok",
                       fmt::format("{}: weight {} is out of range; need 1 to 1000", where, weight));
    }
    const int64_t a = node(f[0]), b = node(f[1]);
    if (a != b) g.link(a, b, weight);
    if (g.names.size() > 2000) throw ValueError("grok", path + ": more than 2000 nodes");
  }
  return g;
}

Graph make_graph(const std::string& kind) {
  if (kind == "path") return box({64}, false);
  if (kind == "cycle") return box({64}, true);
  if (kind == "cylinder") return box({7, 7}, true);
  if (kind == "hypercube") return box({2, 2, 2, 2, 2, 2, 2}, false);
  if (kind == "lattice") return box({7, 7}, false);
  if (kind == "lattice3d") return box({7, 7, 7}, false);
  if (kind == "karate") return karate();
  if (kind == "tree") return tree();
  return graph_file(kind);
}

// Shortest distances from one node (Dijkstra); −1 where there is no way.
std::vector<int64_t> distances(const Graph& g, int64_t from) {
  std::vector<int64_t> d(g.names.size(), -1);
  using Item = std::pair<int64_t, int64_t>;  // distance, node
  std::priority_queue<Item, std::vector<Item>, std::greater<>> open;
  open.push({0, from});
  while (!open.empty()) {
    const auto [far, v] = open.top();
    open.pop();
    if (d[size_t(v)] >= 0) continue;
    d[size_t(v)] = far;
    for (const Edge& e : g.edges[size_t(v)]) {
      if (d[size_t(e.to)] < 0) open.push({far + e.weight, e.to});
    }
  }
  return d;
}

}  // namespace

Task graph_task(const TaskOptions& o) {
  const Graph g = make_graph(o.name.substr(6));
  const auto n = int64_t(g.names.size());
  if (n < 2) throw ValueError("grok", "a graph needs at least 2 nodes");
  std::vector<std::vector<int64_t>> d;
  int64_t diameter = 0;
  for (int64_t v = 0; v < n; ++v) {
    d.push_back(distances(g, v));
    for (int64_t u = 0; u < n; ++u) {
      if (d.back()[size_t(u)] < 0) {
        throw ValueError("grok", fmt::format("the graph is not connected: there is no way from "
                                             "node {} to node {}",
                                             g.names[size_t(v)], g.names[size_t(u)]));
      }
      diameter = std::max(diameter, d.back()[size_t(u)]);
    }
  }
  Task t{.name = o.name, .entities = n, .tokens = g.names};
  for (int64_t k = 0; k <= diameter; ++k) t.classes.push_back(std::to_string(k));
  fill_pairs(t, [&](int64_t a, int64_t b) { return d[size_t(a)][size_t(b)]; });
  t.places = g.places;
  t.laws = {Law::triangle};
  t.instance = [n, d](Law, const int64_t* v, int64_t* rows) {
    const int64_t a = v[0], b = v[1], c = v[2];
    rows[0] = a * n + b;
    rows[1] = b * n + c;
    rows[2] = a * n + c;
    return d[size_t(a)][size_t(b)] + d[size_t(b)][size_t(c)] == d[size_t(a)][size_t(c)];
  };
  if (int64_t(t.pool.size()) > o.pairs_max) {
    Generator random{.seed = o.seed, .stream = 29};
    const auto order = permutation(int64_t(t.pool.size()), random);
    t.pool.assign(order.begin(), order.begin() + std::max<int64_t>(o.pairs_max, 2));
    std::sort(t.pool.begin(), t.pool.end());
  }
  return t;
}

}  // namespace cutaway::grokking

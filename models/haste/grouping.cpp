#include <cutaway/models/haste/grouping.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include <cutaway/core/error.h>
#include <cutaway/core/linalg/blas.h>
#include <cutaway/core/parallel.h>
#include <cutaway/models/haste/draws.h>
#include <cutaway/models/haste/metrics.h>

namespace cutaway::haste {
namespace {

constexpr struct {
  Grouping grouping;
  const char* name;
} kNames[] = {{Grouping::semantic, "semantic"},
              {Grouping::greedy, "greedy"},
              {Grouping::two_stage, "two-stage"},
              {Grouping::random, "random"},
              {Grouping::freq, "freq"}};

// Streams of the seed.
constexpr uint64_t kSigns = 1, kGreedy = 2, kMeans = 3, kPack = 4, kShuffle = 5,
                   kInside = uint64_t(1) << 32;

void normalise(float* row, int64_t dim) {
  double squares = 0;
  for (int64_t d = 0; d < dim; ++d) squares += double(row[d]) * row[d];
  if (squares <= 0) return;
  const auto scale = float(1 / std::sqrt(squares));
  for (int64_t d = 0; d < dim; ++d) row[d] *= scale;
}

// Sparse rows times the ±1 matrix: [rows, dim]. Signs of feature f are the bits of its own blocks
// of the generator, so that the matrix is never stored.
std::vector<float> project(const Csr& x, int64_t dim, uint64_t seed) {
  std::vector<float> signs(static_cast<size_t>(x.cols * dim));
  const int64_t blocks = (dim + 127) / 128;
  parallel_for(x.cols, 256, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      for (int64_t d = 0; d < dim; ++d) {
        const auto bits =
            math::philox4(seed, kSigns, uint64_t(f * blocks + d / 128)).word[d % 128 / 32];
        signs[size_t(f * dim + d)] = bits >> (d % 32) & 1 ? 1.f : -1.f;
      }
    }
  });
  std::vector<float> out(static_cast<size_t>(x.rows() * dim));
  parallel_for(x.rows(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* to = &out[size_t(r * dim)];
      const auto index = x.row(r);
      for (size_t i = 0; i < index.size(); ++i) {
        const float v = x.value.empty() ? 1.f : x.values(r)[i];
        const float* sign = &signs[size_t(index[i] * dim)];
        for (int64_t d = 0; d < dim; ++d) to[d] += v * sign[d];
      }
    }
  });
  return out;
}

// Labels that are not in a group yet, with their embeddings side by side: taken ones are removed by
// moving the last into their place.
class Pool {
 public:
  Pool(const std::vector<float>& e, int64_t dim, std::vector<int32_t> members)
      : dim_(dim), members_(std::move(members)), rows_(members_.size() * size_t(dim)) {
    for (size_t i = 0; i < members_.size(); ++i) {
      std::copy_n(&e[size_t(members_[i]) * size_t(dim)], dim, &rows_[i * size_t(dim)]);
    }
  }
  int64_t size() const { return int64_t(members_.size()); }

  // Moves a random member and the `more` nearest to it out, nearest first.
  void take(int64_t more, Draws& draws, std::vector<int32_t>& out) {
    const int64_t first = draws.below(size());
    const std::vector<float> seed(&rows_[size_t(first * dim_)],
                                  &rows_[size_t(first * dim_)] + dim_);
    out.push_back(remove(first));
    more = std::min(more, size());
    if (more == 0) return;
    cosines_.resize(members_.size());
    blas::gemm(blas::Gemm<float>{.m = size(),
                                 .n = 1,
                                 .k = dim_,
                                 .a = rows_.data(),
                                 .lda = dim_,
                                 .b = seed.data(),
                                 .ldb = 1,
                                 .c = cosines_.data(),
                                 .ldc = 1});
    near_.resize(members_.size());
    std::iota(near_.begin(), near_.end(), 0);
    const auto nearer = [&](int32_t x, int32_t y) {
      const float a = cosines_[size_t(x)], b = cosines_[size_t(y)];
      return a != b ? a > b : members_[size_t(x)] < members_[size_t(y)];
    };
    std::partial_sort(near_.begin(), near_.begin() + more, near_.end(), nearer);
    near_.resize(size_t(more));
    for (const int32_t i : near_) out.push_back(members_[size_t(i)]);
    std::sort(near_.rbegin(), near_.rend());  // from the back: removing moves only later ones
    for (const int32_t i : near_) remove(i);
  }

 private:
  int32_t remove(int64_t i) {
    const int32_t member = members_[size_t(i)];
    members_[size_t(i)] = members_.back();
    members_.pop_back();
    std::copy_n(&rows_[members_.size() * size_t(dim_)], dim_, &rows_[size_t(i * dim_)]);
    return member;
  }

  int64_t dim_;
  std::vector<int32_t> members_;
  std::vector<float> rows_, cosines_;
  std::vector<int32_t> near_;
};

std::vector<int32_t> numbers(int64_t n) {
  std::vector<int32_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void shuffle(std::vector<int32_t>& v, Draws& draws) {
  for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[size_t(draws.below(int64_t(i)))]);
}

// Greedy over members; groups of G are appended to `out` while a whole one is left, the rest to
// `rest`.
void greedy(const std::vector<float>& e, int64_t dim, std::vector<int32_t> members, int64_t group,
            Draws& draws, std::vector<int32_t>& out, std::vector<int32_t>& rest) {
  Pool pool(e, dim, std::move(members));
  while (pool.size() >= group) pool.take(group - 1, draws, out);
  if (pool.size()) pool.take(group - 1, draws, rest);
}

// Spherical k-means: centres [clusters, dim].
struct Means {
  int64_t clusters, dim;
  std::vector<float> centres;
  std::vector<int64_t> taken;  // points a centre has seen

  // The nearest centre of each of `rows` points [rows, dim], the lower number on ties; returns the
  // sum of their cosines.
  double assign(const float* points, int64_t rows, int32_t* to) const {
    constexpr int64_t kRows = 2048;
    const int64_t chunks = (rows + kRows - 1) / kRows;
    std::vector<float> cosines(static_cast<size_t>(std::min(rows, kRows) * clusters));
    double sum = 0;
    for (int64_t c = 0; c < chunks; ++c) {
      const int64_t begin = c * kRows, count = std::min(kRows, rows - begin);
      blas::gemm(blas::Gemm<float>{.transpose_b = true,
                                   .m = count,
                                   .n = clusters,
                                   .k = dim,
                                   .a = points + begin * dim,
                                   .lda = dim,
                                   .b = centres.data(),
                                   .ldb = dim,
                                   .c = cosines.data(),
                                   .ldc = clusters});
      std::vector<float> best(static_cast<size_t>(count));
      parallel_for(count, 16, [&](int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r) {
          const float* row = &cosines[size_t(r * clusters)];
          int64_t at = 0;
          for (int64_t k = 1; k < clusters; ++k) at = row[k] > row[at] ? k : at;
          to[begin + r] = int32_t(at);
          best[size_t(r)] = row[at];
        }
      });
      for (const float b : best) sum += b;
    }
    return sum;
  }

  // Moves centres to the mean of all points they have seen (Sculley, "Web-scale k-means
  // clustering", 2010), back onto the sphere.
  void update(const float* points, int64_t rows, const int32_t* to) {
    for (int64_t r = 0; r < rows; ++r) {
      float* centre = &centres[size_t(to[r] * dim)];
      const auto rate = float(1.0 / double(++taken[size_t(to[r])]));
      for (int64_t d = 0; d < dim; ++d) centre[d] += rate * (points[r * dim + d] - centre[d]);
    }
    for (int64_t k = 0; k < clusters; ++k) normalise(&centres[size_t(k * dim)], dim);
  }
};

void gather(const std::vector<float>& e, int64_t dim, const std::vector<int32_t>& rows,
            std::vector<float>& out) {
  out.resize(rows.size() * size_t(dim));
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(&e[size_t(rows[i]) * size_t(dim)], dim, &out[i * size_t(dim)]);
  }
}

// Clusters of all rows of e; the best of the restarts.
std::vector<int32_t> cluster(const std::vector<float>& e, int64_t count, int64_t clusters,
                             const GroupingOptions& o) {
  constexpr int64_t kBatch = 8192;
  const int64_t batch = std::min(kBatch, count);
  Means best{clusters, o.dim, {}, {}};
  double best_score = -1e300;
  std::vector<float> points;
  std::vector<int32_t> to(static_cast<size_t>(std::max(batch, count)));
  for (int64_t restart = 0; restart < o.restarts; ++restart) {
    Draws draws(o.seed, kMeans + (uint64_t(restart) << 8));
    std::vector<int32_t> order = numbers(count);
    shuffle(order, draws);
    Means means{clusters, o.dim, {}, std::vector<int64_t>(size_t(clusters), 1)};
    gather(e, o.dim, {order.begin(), order.begin() + clusters}, means.centres);
    double score = 0;
    for (int64_t b = 0; b < o.batches; ++b) {
      std::vector<int32_t> rows;
      for (int64_t i = 0; i < batch; ++i) rows.push_back(order[size_t((b * batch + i) % count)]);
      gather(e, o.dim, rows, points);
      score = means.assign(points.data(), batch, to.data());  // of the last batch
      means.update(points.data(), batch, to.data());
    }
    if (score > best_score) {
      best_score = score;
      best = std::move(means);
    }
  }
  best.assign(e.data(), count, to.data());
  return to;
}

std::vector<int32_t> two_stage(const std::vector<float>& e, int64_t count,
                               const GroupingOptions& o) {
  const int64_t clusters = std::max<int64_t>(1, count / (16 * o.group));
  const std::vector<int32_t> to = cluster(e, count, clusters, o);
  std::vector<std::vector<int32_t>> members(static_cast<size_t>(clusters)), whole(members.size()),
      rest(members.size());
  for (int64_t i = 0; i < count; ++i) members[size_t(to[size_t(i)])].push_back(int32_t(i));
  parallel_chunks(clusters, [&](int64_t c) {
    Draws draws(o.seed, kInside + uint64_t(c));
    const auto at = size_t(c);
    greedy(e, o.dim, std::move(members[at]), o.group, draws, whole[at], rest[at]);
  });
  std::vector<int32_t> out, left;
  for (const auto& w : whole) out.insert(out.end(), w.begin(), w.end());
  for (const auto& r : rest) left.insert(left.end(), r.begin(), r.end());
  Draws draws(o.seed, kPack);
  std::vector<int32_t> last;
  greedy(e, o.dim, std::move(left), o.group, draws, out, last);
  out.insert(out.end(), last.begin(), last.end());
  return out;
}

void check_options(const GroupingOptions& o) {
  const auto need = [](bool ok, const char* what, auto got) {
    if (!ok) throw ValueError("grouping", fmt::format("need {}; got {}", what, got));
  };
  need(o.group >= 1, "a group of at least 1 label", o.group);
  need(o.dim >= 1 && o.dim <= 4096, "1 to 4096 dimensions", o.dim);
  need(o.restarts >= 1, "at least 1 restart", o.restarts);
  need(o.batches >= 1, "at least 1 batch", o.batches);
}

}  // namespace

Grouping grouping_from(const std::string& name) {
  std::string all;
  for (const auto& n : kNames) {
    if (name == n.name) return n.grouping;
    all += (all.empty() ? "" : ", ") + std::string(n.name);
  }
  throw ValueError("grouping",
                   fmt::format("there is no grouping \"{}\"; need one of {}", name, all));
}

const char* grouping_name(Grouping grouping) {
  for (const auto& n : kNames) {
    if (grouping == n.grouping) return n.name;
  }
  return "?";
}

int64_t head_size(int64_t labels, double ratio, int64_t group) {
  if (!(ratio >= 0 && ratio < 1)) {
    throw ValueError("grouping", fmt::format("need a head ratio in [0, 1); got {}", ratio));
  }
  if (group < 1)
    throw ValueError("grouping", fmt::format("need a group of 1 or more; got {}", group));
  if (ratio == 0 || labels <= 0) return 0;
  int64_t head = std::max<int64_t>(1, int64_t(double(labels) * ratio));
  if (head > group) head = (head + group - 1) / group * group;
  return std::min(head, labels);
}

std::vector<float> label_embeddings(const XmcData& train, const std::vector<int32_t>& labels,
                                    int64_t dim, uint64_t seed) {
  const std::vector<float> samples = project(train.features, dim, seed);
  const Csr positives = transpose(train.labels);
  std::vector<float> e(labels.size() * size_t(dim));
  parallel_for(int64_t(labels.size()), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* to = &e[size_t(i * dim)];
      for (const int32_t sample : positives.row(labels[size_t(i)])) {
        const float* from = &samples[size_t(sample * dim)];
        for (int64_t d = 0; d < dim; ++d) to[d] += from[d];
      }
      normalise(to, dim);
    }
  });
  return e;
}

std::vector<int32_t> form_groups(const std::vector<float>& e, int64_t count,
                                 const std::vector<int64_t>& frequency, const GroupingOptions& o) {
  check_options(o);
  const bool by_frequency = o.method == Grouping::freq, dealt = o.method == Grouping::random;
  if (!dealt &&
      (by_frequency ? int64_t(frequency.size()) != count : int64_t(e.size()) != count * o.dim)) {
    throw ValueError("grouping",
                     fmt::format("embeddings or frequencies are not those of {} labels", count));
  }
  std::vector<int32_t> all = numbers(count);
  if (count == 0) return all;
  if (by_frequency) {
    std::stable_sort(all.begin(), all.end(), [&](int32_t x, int32_t y) {
      return frequency[size_t(x)] > frequency[size_t(y)];
    });
    return all;
  }
  if (dealt) {
    Draws draws(o.seed, kShuffle);
    shuffle(all, draws);
    return all;
  }
  if (o.method == Grouping::two_stage || (o.method == Grouping::semantic && count > kGreedyMost)) {
    return two_stage(e, count, o);
  }
  Draws draws(o.seed, kGreedy);
  std::vector<int32_t> out, last;
  greedy(e, o.dim, std::move(all), o.group, draws, out, last);
  out.insert(out.end(), last.begin(), last.end());
  return out;
}

LabelOrder order_labels(const XmcData& train, const GroupingOptions& o) {
  check_options(o);
  const std::vector<int64_t> frequency = label_frequencies(train.labels);
  std::vector<int32_t> by_frequency = numbers(train.num_labels());
  std::stable_sort(by_frequency.begin(), by_frequency.end(), [&](int32_t x, int32_t y) {
    return frequency[size_t(x)] > frequency[size_t(y)];
  });
  LabelOrder order;
  order.group = o.group;
  order.head = head_size(train.num_labels(), o.head_ratio, o.group);
  order.seen = std::count_if(frequency.begin(), frequency.end(), [](int64_t n) { return n > 0; });
  order.label.assign(by_frequency.begin(), by_frequency.begin() + order.head);
  const int64_t grouped = std::max<int64_t>(0, order.seen - order.head);
  const auto first = by_frequency.begin() + order.head;
  const std::vector<int32_t> tail(first, first + grouped);
  std::vector<int64_t> tail_frequency;
  for (const int32_t l : tail) tail_frequency.push_back(frequency[size_t(l)]);
  const bool needs = o.method != Grouping::freq && o.method != Grouping::random;
  const std::vector<float> e =
      needs && grouped ? label_embeddings(train, tail, o.dim, o.seed) : std::vector<float>();
  for (const int32_t i : form_groups(e, grouped, tail_frequency, o)) {
    order.label.push_back(tail[size_t(i)]);
  }
  order.label.insert(order.label.end(), first + grouped, by_frequency.end());
  order.place.resize(order.label.size());
  for (size_t i = 0; i < order.label.size(); ++i) order.place[size_t(order.label[i])] = int32_t(i);
  return order;
}

Csr reorder_labels(const Csr& labels, const LabelOrder& order) {
  if (labels.cols != int64_t(order.place.size())) {
    throw ValueError("grouping", fmt::format("an order of {} labels for a set with {}",
                                             order.place.size(), labels.cols));
  }
  Csr out = labels;
  for (int32_t& l : out.index) l = order.place[size_t(l)];
  for (int64_t r = 0; r < out.rows(); ++r) {
    std::sort(out.index.begin() + out.start[size_t(r)],
              out.index.begin() + out.start[size_t(r) + 1]);
  }
  return out;
}

Cohesion cohesion(const std::vector<float>& e, int64_t dim, const std::vector<int32_t>& order,
                  int64_t group) {
  Cohesion out;
  double sum = 0, to_first = 0;
  int64_t others = 0;
  const int64_t n = int64_t(order.size());
  const auto row = [&](int64_t i) { return &e[size_t(order[size_t(i)]) * size_t(dim)]; };
  const auto dot = [&](const float* x, const float* y) {
    double s = 0;
    for (int64_t d = 0; d < dim; ++d) s += double(x[d]) * y[d];
    return s;
  };
  for (int64_t begin = 0; begin < n; begin += group) {
    const int64_t end = std::min(begin + group, n);
    std::vector<float> mean(static_cast<size_t>(dim));
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t d = 0; d < dim; ++d) mean[size_t(d)] += row(i)[d];
    }
    normalise(mean.data(), dim);
    double own = 0;
    for (int64_t i = begin; i < end; ++i) own += dot(row(i), mean.data());
    for (int64_t i = begin + 1; i < end; ++i, ++others) to_first += dot(row(i), row(begin));
    sum += own;
    out.group.push_back(own / double(end - begin));
  }
  out.mean = n ? sum / double(n) : 0;
  out.to_first = others ? to_first / double(others) : 0;
  return out;
}

}  // namespace cutaway::haste

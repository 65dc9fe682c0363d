#pragma once
#include <cmath>

#include <cutaway/autograd/ops/reduce_reference.h>

// A plain reference of all normalisations. Used by *_samples.cpp only.
namespace cutaway {

// For each element: which statistic it belongs to, and which weight it has.
using NormPlace = std::function<std::pair<int64_t, int64_t>(const Shape&)>;

struct NormReference {
  double eps = 1e-5;
  bool centered = true;
  std::vector<double> mean, var;  // fixed statistics; empty: those of x
};

// y = (x − mean) / sqrt(var + eps) · weight + bias with in = {x, weight?, bias?}.
inline Tensors norm_ref(const Tensors& in, int64_t stats, const NormPlace& place, NormReference r) {
  Ref y(in[0]);
  if (r.mean.empty()) {
    std::vector<double> count(size_t(stats), 0);
    r.mean = r.var = count;
    size_t k = 0;
    for_each_index(y.sizes, [&](const Shape& i) {
      const size_t s = size_t(place(i).first);
      count[s] += 1;
      r.mean[s] += r.centered ? y.v[k] : 0;
      ++k;
    });
    for (size_t s = 0; s < count.size(); ++s) r.mean[s] /= count[s];
    k = 0;
    for_each_index(y.sizes, [&](const Shape& i) {
      const size_t s = size_t(place(i).first);
      r.var[s] += (y.v[k] - r.mean[s]) * (y.v[k] - r.mean[s]) / count[s];
      ++k;
    });
  }
  const auto values = [&](size_t i) {
    return in.size() > i && in[i].defined() ? in[i].to_vector() : std::vector<double>();
  };
  const std::vector<double> weight = values(1), bias = values(2);
  size_t k = 0;
  for_each_index(y.sizes, [&](const Shape& i) {
    const auto [s, w] = place(i);
    double& v = y.v[k++];
    v = (v - r.mean[size_t(s)]) / std::sqrt(r.var[size_t(s)] + r.eps);
    if (!weight.empty()) v *= weight[size_t(w)];
    if (!bias.empty()) v += bias[size_t(w)];
  });
  return {y.tensor()};
}

}  // namespace cutaway

#pragma once
#include <optional>
#include <utility>

#include <cutaway/nn/module.h>

namespace cutaway::nn {

struct WeightNormOptions {
  std::optional<int64_t> dim = 0;  // one length for each index along it; none: one in all
};
struct SpectralNormOptions {
  int64_t n_power_iterations = 1;
  double eps = 1e-12;
  int64_t dim = 0;  // of the outputs; 1 for transposed convolutions
};

namespace detail {
// |v| over all dimensions but dim, kept as size 1; 0-d for none.
Tensor weight_length(const Tensor& v, std::optional<int64_t> dim);
// v g / |v|.
Tensor weight_normed(const Tensor& v, const Tensor& g, std::optional<int64_t> dim);
// The first singular vectors start at random; `iterations` more steps towards them, in place.
void start_vectors(const Tensor& weight, const SpectralNormOptions& o, Tensor& u, Tensor& v);
void power_steps(const Tensor& weight, const SpectralNormOptions& o, int64_t iterations, Tensor& u,
                 Tensor& v);
// weight / (uᵀ W v).
Tensor spectral_normed(const Tensor& weight, const SpectralNormOptions& o, const Tensor& u,
                       const Tensor& v);
}  // namespace detail

// A layer of one tensor whose weight is computed from other parameters at each call. Its other
// parameters keep their names.
template <class L>
class Reparametrised : public Module {
 protected:
  explicit Reparametrised(const L& layer) : layer_(layer), first_(layer.weight.detach()) {
    layer_.weight = {};
  }
  std::vector<std::pair<std::string, Tensor*>> heap_parameters() const override {
    std::vector<std::pair<std::string, Tensor*>> list;
    for (const Slot& s : const_cast<L&>(layer_).slots()) {
      if (s.parameter && s.name != "weight") list.emplace_back(s.name, s.handle);
    }
    return list;
  }
  // The layer's result with this weight, which it does not keep.
  Tensor run(const Tensor& weight, const Tensor& x) {
    layer_.weight = weight;
    Tensor y = layer_.forward(x);
    layer_.weight = {};
    return y;
  }
  // The weight that the layer came with; it can be taken once.
  Tensor take_weight() { return std::move(first_); }

 private:
  L layer_;
  Tensor first_;
};

// w = g v / |v|, direction and length learned apart (Salimans & Kingma 2016):
// `nn::WeightNorm conv(nn::Conv2d({…}))`. In place of weight it has weight_g and weight_v, the
// names of torch.nn.utils.weight_norm.
template <class L>
class WeightNorm : public Reparametrised<L> {
 public:
  explicit WeightNorm(const L& layer, const WeightNormOptions& options = {})
      : Reparametrised<L>(layer), options_(options) {
    weight_v = this->take_weight();
    weight_g = detail::weight_length(weight_v, options.dim);
    this->add("weight_g", weight_g);
    this->add("weight_v", weight_v);
  }
  Tensor forward(const Tensor& x) override {
    return this->run(detail::weight_normed(weight_v, weight_g, options_.dim), x);
  }

  Tensor weight_g, weight_v;

 private:
  WeightNormOptions options_;
};

// A weight divided by its largest singular value, which a power iteration in each training call
// follows (Miyato et al. 2018). In place of weight it has weight_orig and the buffers weight_u and
// weight_v, the names of torch.nn.utils.spectral_norm.
template <class L>
class SpectralNorm : public Reparametrised<L> {
 public:
  explicit SpectralNorm(const L& layer, const SpectralNormOptions& options = {})
      : Reparametrised<L>(layer), options_(options) {
    weight_orig = this->take_weight();
    detail::start_vectors(weight_orig, options_, weight_u, weight_v);
    this->add("weight_orig", weight_orig);
    this->add_buffer("weight_u", weight_u);
    this->add_buffer("weight_v", weight_v);
  }
  Tensor forward(const Tensor& x) override {
    if (this->training()) {
      detail::power_steps(weight_orig, options_, options_.n_power_iterations, weight_u, weight_v);
    }
    return this->run(detail::spectral_normed(weight_orig, options_, weight_u, weight_v), x);
  }

  Tensor weight_orig, weight_u, weight_v;

 private:
  SpectralNormOptions options_;
};

}  // namespace cutaway::nn

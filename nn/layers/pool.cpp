#include <cutaway/nn/layers/pool.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {

MaxUnpoolLayer::MaxUnpoolLayer(const char* name, int spatial, const UnpoolOptions& o)
    : layer_(name), spatial_(spatial), options_(o) {
  o.kernel.expand(name, spatial);
  o.stride.value_or(o.kernel).expand(name, spatial);
  o.padding.expand(name, spatial);
}

Tensor MaxUnpoolLayer::operator()(const Tensor& values, const Tensor& indices, const Shape& sizes) {
  Scope scope(*this);
  const int batch = values.dim() - spatial_;
  if (batch < 1 || batch > 2 || indices.sizes() != values.sizes() ||
      (sizes.rank() != 0 && sizes.rank() != spatial_)) {
    throw ShapeError(layer_,
                     fmt::format("values and indices must be [N,C,spatial…] with {} spatial "
                                 "dimensions; got {}, {}, sizes {}",
                                 spatial_, to_string(values.sizes()), to_string(indices.sizes()),
                                 to_string(sizes)));
  }
  const Shape kernel = options_.kernel.expand(layer_, spatial_);
  const Shape stride = options_.stride.value_or(options_.kernel).expand(layer_, spatial_);
  const Shape padding = options_.padding.expand(layer_, spatial_);
  Shape all = values.sizes().slice(0, batch);
  for (int d = 0; d < spatial_; ++d) {
    const int64_t n = values.size(batch + d);
    all.push_back(sizes.rank() ? sizes[d] : (n - 1) * stride[d] - 2 * padding[d] + kernel[d]);
  }
  Shape flat = all.slice(0, batch);
  flat.push_back(all.slice(batch, all.rank()).numel());
  const Tensor zero = zeros(flat, {values.dtype(), values.device()});
  // Overlapping windows may have found one element; it is written, not added up.
  const Tensor y = scatter(zero, batch, flatten(indices, batch), flatten(values, batch));
  return scope.done(reshape(y, all));
}

LpPoolLayer::LpPoolLayer(const char* name, int spatial, const LpPoolOptions& o)
    : spatial_(spatial), options_(o) {
  if (!(o.norm_type > 0)) {
    throw ValueError(name, fmt::format(".norm_type must be positive; got {}", o.norm_type));
  }
  for (const int64_t k : o.kernel.expand(name, spatial)) {
    require_at_least(name, "kernel", k, 1);
    elements_ *= k;
  }
}

Tensor LpPoolLayer::forward(const Tensor& x) {
  const double p = options_.norm_type;
  const PoolOptions o{
      .kernel = options_.kernel, .stride = options_.stride, .ceil_mode = options_.ceil_mode};
  const Tensor powers = pow(x, p);
  const Tensor means = spatial_ == 1   ? avg_pool1d(powers, o)
                       : spatial_ == 2 ? avg_pool2d(powers, o)
                                       : avg_pool3d(powers, o);
  // A window whose sum is negative (odd p) gives 0, as its root would be complex.
  return pow(relu(means) * double(elements_), 1 / p);
}

}  // namespace cutaway::nn

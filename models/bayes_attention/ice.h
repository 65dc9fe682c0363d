#pragma once
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <cutaway/models/bayes_attention/heads.h>
#include <cutaway/nn/nn.h>

namespace cutaway::bayes {

// In-context estimation (T7): a prompt shows n labelled statistics under unknown means μ_k, then a
// query whose label is asked for.
struct IceTask {
  std::string name;  // "gauss", "bern", "pois" or "qpsk"
  Family family;
  int64_t dim = 2, keys = 4;
};
// Section 5: Gaussian means N(0, 2.25 I) with Σ = [[1,.6],[.6,.5]]; Bernoulli sigmoid(2 N) in
// [.02,.98]; Poisson exp(.8 + .9 N) in [.1,20]; qpsk: the four phases times a channel CN(0,1),
// noise of variance 0.1. Raises ValueError for other names.
IceTask ice_task(const std::string& name);

// B prompts, f32.
struct Prompts {
  Tensor t;       // [B,n,d]
  Tensor labels;  // [B,n], i64
  Tensor query;   // [B,d]
  Tensor answer;  // [B], i64
  Tensor oracle;  // log posterior with the true means [B,K]; undefined for user data
  Tensor mu;      // true means [B,K,d], f64; undefined for user data
  // Pooled (T7): μ̂_k = (Σ T + τ T̄_all)/(n_k + τ), τ = 1, and log(n_k + 1).
  Tensor mean;          // [B,K,d]
  Tensor log_count;     // [B,K]
  int64_t missing = 0;  // prompts without an example of some class
};
Prompts draw_prompts(const IceTask& task, int64_t prompts, int64_t n, uint64_t seed);
// A table prompt,label,T1…Td, the last row of a prompt is its query; equal lengths. Raises
// ValueError or IoError.
Prompts read_prompts(const std::string& path, IceTask& task);
// The same prompts with other queries and answers; needs the true means.
Prompts fresh_queries(const IceTask& task, const Prompts& p, Draws& draws);
Prompts slice_prompts(const Prompts& p, int64_t begin, int64_t end);

// Log-probabilities of the answer [B,K] of heads without training.
Tensor plug_in(const IceTask& task, const Prompts& p);         // true link, same μ̂
Tensor gaussian_head(const Prompts& p, const Tensor& metric);  // −½|T − μ̂|²_M
Tensor token_head(const Prompts& p, const Tensor& c,
                  const Tensor& bias);            // weights ∝ e^{qᵀCT+bias}
Tensor within_class_precision(const Prompts& p);  // [d,d]

// A trainable model: shared, affine, atlas, link, token, transformer, or the black box mlp.
class IceModel : public nn::Module {
 public:
  virtual Tensor log_probabilities(const Prompts& p) = 0;
  virtual Tensor metric() const { return {}; }  // M of `shared`, C of `token`
};
// Starts from the scale of the training prompts; raises ValueError for other names.
std::unique_ptr<IceModel> make_ice_model(const std::string& name, const Prompts& train,
                                         const IceTask& task, int64_t heads);

struct IceOptions {
  std::string model = "shared";
  int64_t heads = 9, n = 64, prompts = 4000, steps = 0;  // steps 0: by the model
  uint64_t seed = 0;
};
struct IceResult {
  double excess = 0;                        // E KL(oracle || model), nats
  double plug_in = 0;                       // the same for the plug-in posterior
  std::map<std::string, double> baselines;  // Gaussian head, naive and kernel attention
  double cosine = NAN, norm_ratio = NAN;    // learned metric against Σ⁻¹ (Gaussian noise)
  Tensor metric;                            // learned metric, if the model has one
  int64_t missing = 0;
};
// Trains on prompts of one seed, measures on others. Cross entropy of the answer, Adam with a
// linear decay to a tenth.
IceResult run_ice(const IceTask& task, const IceOptions& options);
// The same on given prompts: without an oracle, losses are cross entropies of the answer.
IceResult run_ice(const IceTask& task, const IceOptions& options, const Prompts& train,
                  const Prompts& test);

}  // namespace cutaway::bayes

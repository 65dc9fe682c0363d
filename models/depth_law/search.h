#pragma once
#include <string>
#include <vector>

#include <cutaway/models/depth_law/budget.h>

namespace cutaway::depth {

// Labelled examples: x f32, standardised, [N,C,S,S], [N,C,S] or [N,D], or words i64 [N,T]; y [N].
struct TrainData {
  std::string name;
  Tensor x, y;
  int64_t classes = 10;
  int64_t vocabulary = 0;  // of words
};
// "fashion" (Fashion-MNIST, 2×2 means: 14×14), "synth" (synth-images: 10 classes of 3×16×16, sums
// of three low-frequency cosines with random circular shift, amplitude U(.7,1.3), noise 0.7),
// "synth-vec" (30 blobs in 128 dimensions, 10 classes), "synth-seq" (16 of 32 words: which is the
// most frequent?), "synth-copy" (which is the first?), "cifar:DIR" (binary batches), "idx:PREFIX"
// (PREFIX-images-idx3-ubyte[.gz] and labels), or "wav:DIR" (a folder of WAV files for each class).
// Vectors for an MLP, padded to whole patches for a transformer. Raises ValueError for other names
// and for data that the architecture cannot read, IoError for damaged files.
TrainData load_data(const std::string& name, Arch arch, uint64_t seed);
// Readers of data_files.cpp, by what follows the colon.
TrainData read_cifar(const std::string& folder);
TrainData read_idx_images(const std::string& prefix);
TrainData read_wav(const std::string& folder);
// (x − mean) / std of each channel or feature over the examples.
Tensor standardised(const Tensor& x);
// Sets inputs, side and outputs of a spec for the data.
void fit_to_data(Spec& spec, const TrainData& data);

enum class Optimizer { sgd, adam };

struct SearchOptions {
  double low = 1e-4, high = 1;
  int64_t points = 17, refine = 9, trials = 4, batches = 100, batch = 128;
  uint64_t seed = 0;
  Optimizer optimizer = Optimizer::sgd;  // Adam (0.9, 0.999, 1e-8) is not covered by the law
};
// Mean training loss over the first batches of one epoch, SGD without momentum, fresh start; +inf
// when it becomes non-finite or exceeds three times the first loss. The order of the data and the
// start depend on the trial only: all rates see the same. `layer_rates` multiply the rate of each
// hidden layer, when given.
double training_loss(const Spec& spec, const TrainData& data, double rate, uint64_t trial,
                     const SearchOptions& options, const std::vector<double>& layer_rates = {});

// Losses of one depth on a grid of rates, and the best rate.
struct Optimum {
  int64_t depth = 0;
  std::vector<double> rates;                // ascending
  std::vector<std::vector<double>> losses;  // [rates][trials]
  std::vector<double> mean;                 // over trials; +inf where one diverged
  double rate = 0, low = 0, high = 0;       // η*, and its bootstrap interval (90 %)
  double loss = 0;                          // least mean loss
  double log_variance = 0;                  // bootstrap variance of log η*
};
// Coarse grid, finer around its best point, parabola through three points of log loss. Raises
// ValueError when every rate diverged, or when the best is at an edge of the grid (how far to
// extend it).
Optimum find_optimum(const Spec& spec, const TrainData& data, const SearchOptions& options);

// Mean of η L^{3/2} of the first two depths predicts the others: relative error of each.
std::vector<double> zero_shot_errors(const std::vector<Optimum>& optima);

// Rates of section 6 at depth L from η0 at depth L0.
struct Rule {
  std::string name;
  double rate;
  std::vector<double> layer_rates;  // per-layer μP only
};
// none, paper, measured, exact, pathsum, inverse, root, layerwise.
std::vector<Rule> transfer_rules(const Spec& from, int64_t to, double rate, double measured_slope,
                                 uint64_t seed);
// Loss-against-rate curves, and η* against depth with fitted, −3/2 and exact lines.
std::string loss_plot(const std::vector<Optimum>& optima, const std::string& title);
struct RatePoint {
  double depth, rate, low, high;
};
std::string slope_plot(const std::vector<RatePoint>& points, const SlopeFit& fit, bool exact,
                       const std::string& title);
// depth,rate,trial,loss: one row each, the same bytes for the same seed.
std::string csv_of(const std::vector<Optimum>& optima);

}  // namespace cutaway::depth

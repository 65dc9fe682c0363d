#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cutaway/models/haste/encoder.h>
#include <cutaway/models/haste/output_layer.h>
#include <cutaway/models/haste/rewire.h>
#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::haste {

// What a model is built for. Labels stand in the model's order: the head by frequency, then the
// groups of the tail, then labels never seen.
struct ModelSizes {
  int64_t words = 0, labels = 0, head = 0;
  std::vector<double> prior;  // [labels], share of the training samples with this label
};

struct StepOptions {
  double lr_out = 0, lr_encoder = 0;
  double aux = 0;  // weight a of the auxiliary loss: (1 − a) · main + a · auxiliary
  int64_t step = 0;
  bool want_loss = false;
  bool keep_gradients = false;  // the encoder does not step and keeps its gradients: for checks
};

// Encoder, dense head and sparse tail with one loss over their concatenated logits, summed over
// batch and labels (section 3).
class Model {
 public:
  Model(const RunOptions& options, const ModelSizes& sizes);

  // One step of both optimisers on a batch and its labels in the model's order [rows,labels]
  // optimisers: dropout, forward, gradients, Adam for the encoder, SGD in place for head and tail.
  // Returns the summed loss, NaN unless it is wanted.
  double step(const Batch& batch, const Csr& labels, const StepOptions& options);

  // Features of a batch without dropout, transposed: [width,rows] for tail and head.
  struct Features {
    Tensor tail, head;
  };
  Features features(const Batch& batch);
  // Logits of labels [first, first + count), all of the head or all of the tail: [count,rows].
  Tensor scores(const Features& x, int64_t first, int64_t count);
  int64_t labels() const { return sizes_.labels; }
  int64_t head_size() const { return sizes_.head; }

  // Rewires the tail; returns how many slots changed. `step` keys the random numbers.
  int64_t rewire_tail(int64_t step, double progress);
  bool can_rewire() const;

  Encoder& encoder() { return *encoder_; }
  OutputLayer* head() { return head_.get(); }
  OutputLayer& tail() { return *tail_; }
  OutputLayer* meta() { return meta_.get(); }
  // Bytes of every tensor: encoder with its moments, head, tail, index, momentum.
  std::vector<std::pair<std::string, int64_t>> memory() const;

  // Everything that a file holds; the second adds what training needs to go on. Handles of the
  // model's own tensors: writing into them changes the model.
  nn::NamedTensors tensors() const;
  nn::NamedTensors training_state() const;
  // Copies values by name; everything is checked first. Raises ValueError, ShapeError.
  void load(const nn::NamedTensors& state, bool training);

  Generator& random() { return random_; }
  const Generator& random() const { return random_; }

 private:
  std::unique_ptr<OutputLayer> make_layer(OutputKind kind, int64_t first, int64_t count,
                                          int64_t width) const;
  nn::NamedTensors encoder_parameters() const;
  Tensor encode(const Batch& batch);
  // Columns of h with dropout, for the tail through the bottleneck, if any; transposed.
  Tensor tail_branch(const Tensor& h, double dropout);
  Tensor branch(const Tensor& h, int64_t begin, int64_t width, double dropout);

  RunOptions options_;
  ModelSizes sizes_;
  Branches branches_;
  Generator random_;  // of dropout
  std::unique_ptr<Encoder> encoder_;
  std::unique_ptr<nn::Linear> project_;  // --features proj: P_tail and P_head side by side
  // --layer bottleneck: H → F before a dense tail. It belongs to the encoder: SGD at the rate of
  // the output layers, over sums of all labels, would let it diverge.
  std::unique_ptr<nn::Linear> bottleneck_;
  std::unique_ptr<OutputLayer> head_, tail_, meta_;
  std::vector<std::unique_ptr<optim::AdamW>> adam_;  // with decay, and without for vectors
};

}  // namespace cutaway::haste

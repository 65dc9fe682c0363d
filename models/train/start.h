#pragma once
#include <string>
#include <vector>

#include <cutaway/nn/module.h>

namespace cutaway::train {

// What a model took over from a file of weights.
struct Taken {
  int64_t tensors = 0;
  std::vector<std::string> fresh;  // names in the model that keep their first values
};
// Starts a model from weights by name: safetensors, or what torch.save wrote. Files for BERT and
// GPT-2 may have the names of Hugging Face's models. Names that the file lacks stay fresh, and so
// does the last layer when its sizes are others, for another number of classes. Raises ValueError
// when no name fits, ShapeError for other sizes elsewhere, IoError as the readers do; the model is
// unchanged then.
Taken start_from(nn::Module& model, const std::string& path);

}  // namespace cutaway::train

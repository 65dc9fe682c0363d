#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cutaway/nn/module.h>

namespace cutaway::zoo {

// What a model sees: sizes of one input without the batch, and how many classes it tells apart.
struct Task {
  Shape input;
  int64_t classes = 0;
};

// A model of the zoo by name, with fresh parameters from the default generator. Raises ValueError
// listing the names, or when the input does not suit the model.
std::unique_ptr<nn::Module> make_model(const std::string& name, const Task& task);
// Names with one line about each.
std::vector<std::pair<std::string, std::string>> known_models();

}  // namespace cutaway::zoo

#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cutaway/nn/module.h>

namespace cutaway::zoo {

// What a model sees: sizes of one input without the batch, and how many classes it tells apart; or,
// for language models, how many tokens there are.
struct Task {
  Shape input;
  int64_t classes = 0;
  int64_t vocabulary = 0;  // > 0: inputs are token ids [T] below it, and what to tell is the next
};

// A model of the zoo by name, with fresh parameters from the default generator. Classifiers give
// logits [N,classes], language models [N,T,vocabulary]. Raises ValueError listing the names, or
// when the task does not suit the model.
std::unique_ptr<nn::Module> make_model(const std::string& name, const Task& task);
// Names with one line about each.
std::vector<std::pair<std::string, std::string>> known_models();

}  // namespace cutaway::zoo

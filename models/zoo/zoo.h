#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cutaway/nn/module.h>

namespace cutaway::zoo {

struct NodeTask;

// Sizes that the command line may choose; 0: those of the model's name.
struct ModelSize {
  int64_t layers = 0, heads = 0, width = 0;
  double dropout = 0;
};

// What a model sees: sizes of one input without the batch, and how many classes it tells apart; or,
// for language models, how many tokens there are.
struct Task {
  Shape input;
  int64_t classes = 0;
  // > 0: inputs are token ids [T] below it, and what to tell is the next, or the class of the text
  int64_t vocabulary = 0;
  ModelSize size = {};                              // of language models
  std::shared_ptr<const NodeTask> graph = nullptr;  // that a model of graphs keeps; or none
};

// What a model is for.
enum class Kind : uint8_t {
  classifier,  // x [N,input…] → logits [N,classes]
  language,    // tokens [N,T] → logits [N,T,vocabulary]
  text,        // tokens [N,T] → logits [N,classes]
  pictures,    // a PictureModel (pictures.h) of x [N,C,H,W]; no classes
  graph,       // a GraphModel (graph.h) of nodes with input[0] features each; with a graph to
               // keep: numbers of nodes [N] → logits [N,classes]
};

// A model of the zoo by name, with fresh parameters from the default generator. Raises ValueError
// listing the names, or when the task does not suit the model.
std::unique_ptr<nn::Module> make_model(const std::string& name, const Task& task);
// Whether the model of this name reads tokens and tells the next; false for unknown names.
bool is_language_model(const std::string& name);
// Of a model; classifier for a name that is not known.
Kind kind_of(const std::string& name);
// Whether inputs are token ids of text.
constexpr bool reads_text(Kind kind) { return kind == Kind::language || kind == Kind::text; }
// Names with one line about each.
std::vector<std::pair<std::string, std::string>> known_models();

}  // namespace cutaway::zoo

#pragma once
#include <functional>
#include <string>
#include <vector>

#include <cutaway/core/io/onnx_file.h>
#include <cutaway/nn/module.h>

namespace cutaway::onnx {

struct ExportOptions {
  std::vector<std::string> input_names = {};   // default: input, or input_0, input_1, …
  std::vector<std::string> output_names = {};  // default: output, or output_0, …
  // Dimension 0 of inputs and results is free and called "batch": the model is watched with
  // batches of 2 and 3, made of rows of the examples, and what differs is computed from the input.
  bool dynamic_batch = true;
  // The file is evaluated for inputs with rows in another order and held against the model, within
  // 1e-4 of the largest result. It finds numbers that the model computes past the ops.
  bool check = true;
};

// What a model computes from inputs, in eval mode: a function of tensors, which may call any
// module.
using Forward = std::function<Tensors(const Tensors&)>;

// The nodes of a watched run, with weights named as in `module`. Every op's equivalent stands in
// its record (`.onnx`). Raises ValueError naming op and module for one without, and when the batch
// shows in something that ONNX cannot compute.
File export_graph(nn::Module& module, const Forward& forward, const Tensors& examples,
                  const ExportOptions& options = {});
// The same for modules of one tensor, written to a file.
void export_model(nn::Module& module, const Tensors& examples, const std::string& path,
                  const ExportOptions& options = {});

}  // namespace cutaway::onnx

#pragma once
#include <cutaway/core/io/onnx_file.h>

namespace cutaway::onnx {

// One graph for every batch from those of the same model for batches of 2 and of 3. Sizes in
// constants that grow with the batch are computed from the first input; constants of one value, or
// of equal rows, are expanded to the batch. Raises ValueError naming the node for all else.
Graph with_free_batch(Graph two, const Graph& three);

}  // namespace cutaway::onnx

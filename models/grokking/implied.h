#pragma once
#include <cutaway/models/grokking/task.h>

namespace cutaway::grokking {

// Number of test inputs of a comparison (three answers) that its training inputs do not settle: no
// chain of <, = and > leads from one entity to the other, so that orders of the entities exist
// which agree with all training inputs and differ here. What a learner answers there is a guess, or
// comes from elsewhere: symmetry instances, or a liking for regular grids. Raises ValueError for
// other tasks.
int64_t open_comparisons(const Task& task, const Split& split);

}  // namespace cutaway::grokking

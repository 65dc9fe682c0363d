#pragma once
#include <cutaway/models/reproduce/reproduce.h>

namespace cutaway::grokking {

// The statements of README.md, in order, and their pictures: `cutaway reproduce grokking`.
extern const reproduce::Study kStudy;

}  // namespace cutaway::grokking

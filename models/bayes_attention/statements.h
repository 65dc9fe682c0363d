#pragma once
#include <cutaway/models/reproduce/reproduce.h>

namespace cutaway::bayes {

// Statements of section 8 for `cutaway reproduce bayes-attention`.
extern const reproduce::Study kStudy;

}  // namespace cutaway::bayes

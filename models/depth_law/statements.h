#pragma once
#include <cutaway/models/reproduce/reproduce.h>

namespace cutaway::depth {

// Statements of section 8 for `cutaway reproduce depth-law`.
extern const reproduce::Study kStudy;

}  // namespace cutaway::depth

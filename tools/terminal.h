#pragma once
#include <string>

namespace cutaway::tools {

// Columns of the terminal behind standard output; where there is none COLUMNS of the environment,
// and 100 without that. At least 40.
int terminal_width();

// Lines of whole words, each behind `indent` spaces and at most `width` columns long where its
// words are shorter than that; every character counts as one column. No newline at the end.
std::string wrapped(const std::string& text, int indent, int width);

}  // namespace cutaway::tools

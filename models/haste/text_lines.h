#pragma once
#include <cutaway/datasets/text_lines.h>

namespace cutaway::haste {

using data::cut;
// Lines whose errors begin with "xmc".
struct Lines : data::TextLines {
  Lines(const std::string& name, std::string_view text) : TextLines("xmc", name, text) {}
};

}  // namespace cutaway::haste

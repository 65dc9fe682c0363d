#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cutaway {

// `text` as a JSON string, with its quotation marks; control characters become spaces.
std::string json_quoted(std::string_view text);
// `word` as a shell reads it back: as it is when plain, else in single quotation marks.
std::string shell_quoted(std::string_view word);
// "1.50 GiB", "512 bytes".
std::string bytes_text(int64_t bytes);
// The file of a call as messages show it: one of the library by its place in the tree
// ("nn/layers/linear.cpp"), wherever it was compiled, others as they are.
std::string_view source_name(std::string_view file);

}  // namespace cutaway

#pragma once
#include <string>

#include <cutaway/datasets/dataset.h>
#include <cutaway/datasets/text/text_files.h>

namespace cutaway::data {

// JSON lines of numbers as a data set: the field "target", "label", "class" or "y" is the target,
// or else the last; all others are inputs, f32 [N,D], in the order of the first line. A target of
// texts gives classes numbered by first appearance, one of numbers what make_targets() says. Raises
// IoError naming `name` and the field for inputs that are texts, and for a single field.
Dataset json_lines_dataset(const std::string& name, const JsonLines& lines);

// FILE.jsonl or .ndjson, plain or .gz; every fifth line is for testing.
bool is_json_lines(const std::string& path);
Dataset open_json_lines(const std::string& path, const std::string& split);

}  // namespace cutaway::data

#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cutaway/core/tensor.h>
#include <cutaway/datasets/dataset.h>
#include <cutaway/datasets/text/tokenizer.h>

namespace cutaway::data {

// The text of a file, plain or gzipped, without a byte order mark. Raises IoError naming file and
// line for what is not UTF-8.
std::string load_text(const std::string& path);
std::string parse_text(const std::string& name, std::string_view bytes);

// Values of one field of JSON lines: numbers (true is 1, false 0) or texts.
struct JsonColumn {
  std::string name;
  std::vector<std::string> texts;  // empty when the field is numbers
  Tensor values;                   // f64 [N]; undefined when the field is texts
};
struct JsonLines {
  int64_t lines = 0;
  std::vector<JsonColumn> columns;
  // Raises ValueError listing the columns there are.
  const JsonColumn& column(std::string_view name) const;
};
// One JSON object a line, blank lines left out; plain or gzipped. Each of `fields` ("a.b": b inside
// a) becomes a column; none named: every field of the first line that is a number, truth value or
// text. Raises IoError naming file, line and field when a line is no object, a field is missing or
// is neither text nor number, or is not what it was in the first line.
JsonLines load_json_lines(const std::string& path, const std::vector<std::string>& fields = {});
JsonLines parse_json_lines(const std::string& name, std::string_view text,
                           const std::vector<std::string>& fields = {});

// Files of text to train on.
struct Corpus {
  std::string name;
  std::vector<std::pair<std::string, std::string>> files;  // name and content
};
// A named set ("austen": two novels), a file ending in .txt, .txt.gz or .text, or a folder: its
// files with such names, sorted. Raises ValueError listing what there is, IoError as load_text.
Corpus open_corpus(const std::string& name_or_path);
// Whether open_corpus has such a name, or the path is of a kind that it reads.
bool is_corpus(const std::string& name_or_path);

// Token ids of a corpus in a row, i64 [n]: the first nine tenths (by bytes) of each file for
// training, the last tenth for validation, file after file.
struct CorpusTokens {
  Tensor train, validation;
  int64_t validation_characters = 0;
};
CorpusTokens corpus_tokens(const Corpus& corpus, const Tokenizer& tokenizer);

// Tokens cut into pieces one after the other: inputs i64 [N,context], targets the tokens that
// follow each, N = ⌊(n−1)/context⌋; what is left over at the end is not used. Raises ValueError
// when there is not one piece.
Dataset token_windows(const std::string& name, const Tensor& tokens, int64_t context,
                      int64_t vocabulary);

}  // namespace cutaway::data

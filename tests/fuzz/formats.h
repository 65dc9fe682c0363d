#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Every reader of files behind one face: bytes in, accepted or refused. Refused means exactly one
// cutaway::Error whose text names the file; anything else leaves as std::logic_error or as whatever
// was thrown, which the corpus runner and libFuzzer both report.
namespace cutaway::fuzz {

using Input = std::span<const uint8_t>;

bool accepts_safetensors(Input in, std::string* message = nullptr);
bool accepts_npy(Input in, std::string* message = nullptr);
bool accepts_npz(Input in, std::string* message = nullptr);
// A file of torch.save.
bool accepts_torch(Input in, std::string* message = nullptr);
bool accepts_csv(Input in, std::string* message = nullptr);
bool accepts_idx(Input in, std::string* message = nullptr);
// Packed IDX; more than 1 MiB of content is refused.
bool accepts_idx_gz(Input in, std::string* message = nullptr);
// LZ4 frames; more than 1 MiB of content is refused.
bool accepts_lz4(Input in, std::string* message = nullptr);
// One JSON object of numbers and texts.
bool accepts_json_fields(Input in, std::string* message = nullptr);
// Sparse multi-label samples; what is read must be sound.
bool accepts_xmc_sparse(Input in, std::string* message = nullptr);
// A Debian package index.
bool accepts_packages(Input in, std::string* message = nullptr);
// WordNet's nouns.
bool accepts_wordnet(Input in, std::string* message = nullptr);
// An ONNX model; what is read must be written and read again to the same bytes.
bool accepts_onnx(Input in, std::string* message = nullptr);
// A checkpoint folder in which one file has another content: the input's first line names the file
// (state.json, config.json, model.safetensors, optim.safetensors, latest), the rest is the content.
bool accepts_checkpoint(Input in, std::string* message = nullptr);

// tokenizer.json; what is read must encode and decode, and be written and read alike.
bool accepts_tokenizer(Input in, std::string* message = nullptr);
// vocab.txt of WordPiece.
bool accepts_vocabulary(Input in, std::string* message = nullptr);
bool accepts_json_lines(Input in, std::string* message = nullptr);
bool accepts_fasta(Input in, std::string* message = nullptr);
bool accepts_text(Input in, std::string* message = nullptr);

// CIFAR records; the input's first line, "10" or "100", tells which.
bool accepts_cifar(Input in, std::string* message = nullptr);
// A NumPy .npz file as a data set.
bool accepts_named_set(Input in, std::string* message = nullptr);
// JSON lines as a data set.
bool accepts_json_set(Input in, std::string* message = nullptr);
// A MATLAB file.
bool accepts_matlab(Input in, std::string* message = nullptr);
// A picture, also brought to another size.
bool accepts_image(Input in, std::string* message = nullptr);
// Text of LIBSVM; what is read must be sound.
bool accepts_libsvm(Input in, std::string* message = nullptr);

struct Format {
  const char* folder;  // of the corpus
  bool (*accepts)(Input in, std::string* message);
  // Of mutations of each file; fewer where files are written or processes started.
  int rounds = 250;
};
const std::vector<Format>& formats();

}  // namespace cutaway::fuzz

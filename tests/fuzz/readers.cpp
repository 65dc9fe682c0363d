#include <cutaway/core/io/file.h>
#include <cutaway/core/io/json_lines.h>
#include <cutaway/core/io/npy.h>
#include <cutaway/core/io/npz.h>
#include <cutaway/core/io/onnx_file.h>
#include <cutaway/core/io/pack.h>
#include <cutaway/core/io/safetensors.h>
#include <cutaway/core/io/torch_file.h>
#include <cutaway/datasets/readers.h>
#include <cutaway/models/haste/sets.h>
#include <tests/fuzz/accepted.h>
#include <tests/fuzz/formats.h>

namespace cutaway::fuzz {
bool accepts_safetensors(Input in, std::string* message) {
  return accepted([&] { io::parse_safetensors(kName, in.data(), int64_t(in.size())); }, message);
}

bool accepts_npy(Input in, std::string* message) {
  return accepted([&] { io::parse_npy(kName, in.data(), int64_t(in.size())); }, message);
}

bool accepts_npz(Input in, std::string* message) {
  return accepted([&] { io::parse_npz(kName, in.data(), int64_t(in.size())); }, message);
}

bool accepts_torch(Input in, std::string* message) {
  return accepted([&] { io::parse_torch(kName, in.data(), int64_t(in.size())); }, message);
}

bool accepts_csv(Input in, std::string* message) {
  return accepted([&] { data::parse_csv(kName, std::string(in.begin(), in.end())); }, message);
}

bool accepts_idx(Input in, std::string* message) {
  return accepted([&] { data::parse_idx(kName, in.data(), int64_t(in.size())); }, message);
}

bool accepts_idx_gz(Input in, std::string* message) {
  const auto read = [&] {
    const io::Bytes plain = io::gunzip(in, kName, 1 << 20);
    data::parse_idx(kName, plain.data(), int64_t(plain.size()));
  };
  return accepted(read, message);
}

bool accepts_lz4(Input in, std::string* message) {
  return accepted([&] { io::unlz4(in, kName, 1 << 20); }, message);
}

bool accepts_json_fields(Input in, std::string* message) {
  const auto read = [&] { io::parse_json_fields(kName, std::string(in.begin(), in.end())); };
  return accepted(read, message);
}

bool accepts_packages(Input in, std::string* message) {
  const auto read = [&] {
    haste::debian_documents(haste::parse_packages(kName, std::string(in.begin(), in.end())));
  };
  return accepted(read, message);
}

bool accepts_wordnet(Input in, std::string* message) {
  return accepted([&] { haste::parse_wordnet(kName, std::string(in.begin(), in.end())); }, message);
}

namespace {

// Attributes of kinds that only the reader knows are not written.
bool writable(const onnx::Graph& g) {
  for (const onnx::Node& n : g.nodes) {
    for (const onnx::Attribute& a : n.attributes) {
      if (a.type == onnx::Attribute::Type::none || a.type == onnx::Attribute::Type::other) {
        return false;
      }
      if (a.type == onnx::Attribute::Type::graph && !writable(*a.g)) return false;
    }
  }
  return true;
}

}  // namespace

bool accepts_onnx(Input in, std::string* message) {
  const auto read = [&] {
    const onnx::File file = onnx::parse_file(kName, in);
    if (!writable(file.graph)) return;
    const std::string once = onnx::file_bytes(file);
    const onnx::File again =
        onnx::parse_file(kName, {reinterpret_cast<const uint8_t*>(once.data()), once.size()});
    if (onnx::file_bytes(again) != once) throw std::logic_error("written and read, it differs");
  };
  return accepted(read, message);
}

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {{"safetensors", accepts_safetensors},
                                          {"npy", accepts_npy},
                                          {"npz", accepts_npz},
                                          {"torch", accepts_torch},
                                          {"csv", accepts_csv},
                                          {"idx", accepts_idx},
                                          {"idx_gz", accepts_idx_gz},
                                          {"lz4", accepts_lz4},
                                          {"json_fields", accepts_json_fields},
                                          {"xmc_sparse", accepts_xmc_sparse},
                                          {"packages", accepts_packages},
                                          {"wordnet", accepts_wordnet},
                                          {"tokenizer", accepts_tokenizer},
                                          {"vocabulary", accepts_vocabulary},
                                          {"json_lines", accepts_json_lines},
                                          {"fasta", accepts_fasta},
                                          {"text", accepts_text},
                                          {"onnx", accepts_onnx},
                                          {"cifar", accepts_cifar},
                                          {"libsvm", accepts_libsvm},
                                          {"image", accepts_image},
                                          {"named_set", accepts_named_set},
                                          {"json_set", accepts_json_set},
                                          {"matlab", accepts_matlab, 8},
                                          {"checkpoint", accepts_checkpoint, 25}};
  return all;
}

}  // namespace cutaway::fuzz

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
  static const std::vector<Format> all = {{"safetensors", accepts_safetensors, false},
                                          {"npy", accepts_npy, false},
                                          {"npz", accepts_npz, false},
                                          {"torch", accepts_torch, false},
                                          {"csv", accepts_csv, false},
                                          {"idx", accepts_idx, false},
                                          {"idx_gz", accepts_idx_gz, false},
                                          {"lz4", accepts_lz4, false},
                                          {"json_fields", accepts_json_fields, false},
                                          {"xmc_sparse", accepts_xmc_sparse, false},
                                          {"packages", accepts_packages, false},
                                          {"wordnet", accepts_wordnet, false},
                                          {"tokenizer", accepts_tokenizer, false},
                                          {"vocabulary", accepts_vocabulary, false},
                                          {"json_lines", accepts_json_lines, false},
                                          {"fasta", accepts_fasta, false},
                                          {"text", accepts_text, false},
                                          {"onnx", accepts_onnx, false},
                                          {"cifar", accepts_cifar, false},
                                          {"libsvm", accepts_libsvm, false},
                                          {"image", accepts_image, false},
                                          {"checkpoint", accepts_checkpoint, true}};
  return all;
}

}  // namespace cutaway::fuzz

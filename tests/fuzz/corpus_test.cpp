// Every file of tests/fuzz, and many damaged copies of each, go through their reader: it accepts,
// or throws one cutaway::Error that names the file. The same entry functions serve libFuzzer
// (CUTAWAY_FUZZ=ON).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/npy.h>
#include <cutaway/core/io/npz.h>
#include <cutaway/core/io/safetensors.h>
#include <cutaway/datasets/readers.h>
#include <tests/fuzz/formats.h>
#include <tests/paths.h>

namespace cutaway::fuzz {
namespace {
namespace fs = std::filesystem;
using io::Bytes;

std::string corpus_folder() { return std::string(kSourceDir) + "/tests/fuzz"; }

// Files of one format, sorted by name.
std::map<std::string, Bytes> corpus(const std::string& folder) {
  std::map<std::string, Bytes> files;
  for (const auto& entry : fs::directory_iterator(corpus_folder() + "/" + folder)) {
    files[entry.path().filename().string()] = io::read_file(entry.path().string());
  }
  return files;
}

// "format/file" and the piece of text its error must hold; empty: the file is good.
std::map<std::string, std::string> expectations() {
  std::map<std::string, std::string> all;
  std::ifstream in(corpus_folder() + "/expected.txt");
  for (std::string line; std::getline(in, line);) {
    const size_t tab = line.find('\t');
    EXPECT_NE(tab, std::string::npos) << line;
    all[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return all;
}

class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed) {}
  size_t below(size_t n) {
    state_ = state_ * 1664525u + 1013904223u;
    return size_t(state_ >> 8) % n;
  }

 private:
  uint32_t state_;
};

// A few random changes: bits, bytes, words at their extremes, insertions, deletions, doubled
// pieces, and the tail of another file.
Bytes mutated(Bytes b, const std::vector<Bytes>& others, Random& random) {
  constexpr uint8_t kEdges[] = {0, 1, 0x7F, 0x80, 0xFF, '"', '[', '-', '9', '\n'};
  for (size_t left = 1 + random.below(4); left > 0 && !b.empty(); --left) {
    const size_t at = random.below(b.size());
    const auto here = b.begin() + int64_t(at);
    const size_t length = 1 + random.below(std::min<size_t>(16, b.size() - at));
    switch (random.below(7)) {
      case 0:
        *here ^= uint8_t(1u << random.below(8));
        break;
      case 1:
        *here = kEdges[random.below(std::size(kEdges))];
        break;
      case 2:
        std::fill_n(here, length, uint8_t(random.below(2) ? 0xFF : 0));
        break;
      case 3:
        b.insert(here, kEdges[random.below(std::size(kEdges))]);
        break;
      case 4:
        b.erase(here, here + int64_t(length));
        break;
      case 5: {
        const Bytes piece(here, here + int64_t(length));
        b.insert(b.begin() + int64_t(random.below(b.size())), piece.begin(), piece.end());
        break;
      }
      default: {
        const Bytes& other = others[random.below(others.size())];
        b.resize(at);
        if (!other.empty()) {
          b.insert(b.end(), other.begin() + int64_t(random.below(other.size())), other.end());
        }
      }
    }
  }
  return b;
}

class Corpus : public testing::TestWithParam<Format> {};
std::string format_name(const testing::TestParamInfo<Format>& f) { return f.param.folder; }
INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(formats()), format_name);

TEST_P(Corpus, every_file_is_accepted_or_refused_as_expected) {
  const Format& format = GetParam();
  const auto expected = expectations();
  int good = 0, bad = 0;
  for (const auto& [name, bytes] : corpus(format.folder)) {
    const std::string key = std::string(format.folder) + "/" + name;
    ASSERT_TRUE(expected.contains(key)) << key << " is not in expected.txt";
    const std::string& need = expected.at(key);
    std::string message;
    try {
      EXPECT_EQ(format.accepts(bytes, &message), need.empty()) << key << ": " << message;
    } catch (const std::exception& e) {
      ADD_FAILURE() << key << ": " << e.what();
    }
    EXPECT_NE(message.find(need), std::string::npos) << key << ": " << message;
    (need.empty() ? good : bad) += 1;
  }
  EXPECT_GE(good, 4);
  EXPECT_GE(bad, 10);
}

TEST_P(Corpus, damaged_copies_are_accepted_or_refused) {
  const Format& format = GetParam();
  std::vector<Bytes> all;
  for (auto& [name, bytes] : corpus(format.folder)) all.push_back(bytes);
  int64_t tried = 0, refused = 0;
  const auto check = [&](const Bytes& b, size_t file) {
    try {
      ++tried;
      refused += !format.accepts(b, nullptr);
    } catch (const std::exception& e) {
      ADD_FAILURE() << format.folder << " file " << file << ": " << e.what();
    }
  };
  Random random(7);
  const size_t cuts = size_t(format.rounds) * 4 / 5;
  for (size_t file = 0; file < all.size(); ++file) {
    const Bytes& b = all[file];
    const size_t stride = 1 + b.size() / cuts;
    for (size_t n = 0; n < b.size(); n += stride) {
      check(Bytes(b.begin(), b.begin() + int64_t(n)), file);
    }
    const int fewer = b.size() > 4000 ? 10 : 1;  // large files are slow to read
    for (int round = 0; round < std::max(format.rounds / fewer, 1); ++round)
      check(mutated(b, all, random), file);
  }
  EXPECT_GT(tried, 500);
  EXPECT_GT(refused, tried / 10);
}

// The functions that take a path: the error names the path.
TEST(CorpusFiles, readers_of_paths_name_the_path) {
  const std::map<std::string, std::function<void(const std::string&)>> readers = {
      {"safetensors", [](const std::string& p) { io::load_safetensors(p); }},
      {"npy", [](const std::string& p) { io::load_npy(p); }},
      {"npz", [](const std::string& p) { io::load_npz(p); }},
      {"csv", [](const std::string& p) { data::load_csv(p); }},
      {"idx", [](const std::string& p) { data::load_idx(p); }}};
  for (const auto& [key, need] : expectations()) {
    const auto reader = readers.find(key.substr(0, key.find('/')));
    if (reader == readers.end()) continue;
    const std::string path = corpus_folder() + "/" + key;
    try {
      reader->second(path);
      EXPECT_EQ(need, "") << key;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(path), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(need), std::string::npos) << e.what();
      EXPECT_NE(need, "") << key << ": " << e.what();
    }
  }
  EXPECT_THROW(io::read_file(corpus_folder()), IoError);
  EXPECT_THROW(io::read_file(corpus_folder() + "/no such file"), IoError);
}

TEST(CorpusFiles, a_packed_file_larger_than_allowed_is_refused) {
  const std::string path = corpus_folder() + "/idx_gz/thousand_to_one.idx.gz";
  EXPECT_THROW(io::read_maybe_gzip(path, 1 << 20), IoError);
  EXPECT_EQ(io::read_maybe_gzip(path, 8 << 20).size(), size_t(8 + (4 << 20)));
}

TEST(CorpusFiles, expected_lists_every_file) {
  size_t files = 0;
  for (const Format& f : formats()) files += corpus(f.folder).size();
  EXPECT_EQ(files, expectations().size());
}

}  // namespace
}  // namespace cutaway::fuzz

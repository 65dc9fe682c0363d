// One program a format: a libFuzzer target, or, built by a compiler without libFuzzer, a program
// that reads the files and folders it is given. CUTAWAY_FUZZ_ACCEPTS is the function of its format.
#include <cstdio>
#include <filesystem>

#include <cutaway/core/io/file.h>
#include <tests/fuzz/formats.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cutaway::fuzz::CUTAWAY_FUZZ_ACCEPTS({data, size});
  return 0;
}

#ifdef CUTAWAY_FUZZ_STANDALONE
int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  int files = 0;
  const auto read = [&](const fs::path& path) {
    const cutaway::io::Bytes bytes = cutaway::io::read_file(path.string());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++files;
  };
  for (int i = 1; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) {
      read(argv[i]);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(argv[i])) {
      if (entry.is_regular_file()) read(entry.path());
    }
  }
  std::printf("%d files read\n", files);
  return 0;
}
#endif

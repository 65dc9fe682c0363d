#include <cutaway/datasets/images.h>

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/parallel.h>
#include <cutaway/datasets/formats.h>
#include <cutaway/datasets/image_decode.h>

namespace cutaway::data {
namespace {
namespace fs = std::filesystem;

constexpr const char* kEndings[] = {".jpg", ".jpeg", ".png", ".bmp"};
constexpr const char* kTestFolders[] = {"test", "val", "valid"};

void check_options(const PictureOptions& o) {
  const bool sizes = (o.height == 0 && o.width == 0) || (o.height > 0 && o.width > 0);
  if (!sizes || std::max(o.height, o.width) > kLongestSide || o.height * o.width > kMostPixels) {
    throw ValueError("image", fmt::format("pictures of {}×{}; need two sides of 1 to {}", o.height,
                                          o.width, kLongestSide));
  }
  if (o.channels != 0 && o.channels != 1 && o.channels != 3) {
    throw ValueError("image", fmt::format("{} channels; need 1 or 3", o.channels));
  }
}

// Rows of pixels as planes of channels.
void write_planes(const Pixels& p, uint8_t* out) {
  const auto [height, width, channels] = p.info;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < height * width; ++i) {
      *out++ = p.values[size_t(i * channels + c)];
    }
  }
}

Pixels decode(const std::string& name, std::span<const uint8_t> bytes, const PictureOptions& o) {
  Pixels p = decode_picture(name, bytes, o.channels);
  return o.height > 0 ? resize_picture(p, o.height, o.width) : p;
}

// Names of what a folder holds that is not hidden, sorted.
std::vector<std::string> entries(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    const std::string name = entry.path().filename().string();
    const bool wanted = folders ? entry.is_directory(ignored) : entry.is_regular_file(ignored);
    if (wanted && !name.starts_with('.')) names.push_back(name);
  }
  if (error) throw IoError("image", folder + ": " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_picture(const std::string& path) {
  return !path.ends_with(".gz") && std::any_of(std::begin(kEndings), std::end(kEndings),
                                               [&](auto e) { return has_ending(path, e); });
}

std::vector<std::string> pictures_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string& name : entries(folder, false)) {
    if (is_picture(folder + "/" + name)) paths.push_back(folder + "/" + name);
  }
  return paths;
}

// Whether a sub-folder holds a picture.
bool has_classes(const std::string& folder) {
  const std::vector<std::string> classes = entries(folder, true);
  return std::any_of(classes.begin(), classes.end(),
                     [&](auto& c) { return !pictures_in(folder + "/" + c).empty(); });
}

std::string test_folder(const std::string& folder) {
  for (const char* name : kTestFolders) {
    std::error_code ignored;
    if (fs::is_directory(folder + "/" + name, ignored)) return folder + "/" + name;
  }
  return {};
}

struct Listed {
  std::string path;
  int64_t label;
  bool test;
};
struct Listing {
  std::vector<std::string> classes;
  std::vector<Listed> pictures;
};

void list_part(const std::string& folder, bool test, Listing& out) {
  for (const std::string& name : entries(folder, true)) {
    const std::vector<std::string> paths = pictures_in(folder + "/" + name);
    if (paths.empty()) continue;
    auto at = std::find(out.classes.begin(), out.classes.end(), name);
    if (at == out.classes.end()) {
      if (test) {
        throw IoError("image", fmt::format("{}/{}: there is no such class among those for training",
                                           folder, name));
      }
      at = out.classes.insert(at, name);
    }
    for (const std::string& path : paths) {
      out.pictures.push_back({path, at - out.classes.begin(), test});
    }
  }
}

// All pictures of both splits, class by class.
Listing list_pictures(const std::string& folder) {
  Listing out;
  std::error_code ignored;
  if (fs::is_directory(folder + "/train", ignored)) {
    const std::string test = test_folder(folder);
    if (test.empty()) throw IoError("image", folder + ": has a folder train, but none test or val");
    list_part(folder + "/train", false, out);
    list_part(test, true, out);
  } else {
    list_part(folder, false, out);
    int64_t in_class = 0;
    for (size_t i = 0; i < out.pictures.size(); ++i) {
      in_class = i > 0 && out.pictures[i].label == out.pictures[i - 1].label ? in_class + 1 : 0;
      out.pictures[i].test = in_split(in_class, "test");
    }
  }
  if (out.pictures.empty()) {
    throw IoError("image", folder + ": no sub-folder holds a picture",
                  "a folder for each class, with .jpg, .png or .bmp files");
  }
  return out;
}

// What all pictures become: the size of the first unless options give one.
PictureOptions common_size(const Listing& all, const PictureOptions& options) {
  const auto n = int64_t(all.pictures.size());
  std::vector<PictureInfo> infos(all.pictures.size());
  parallel_chunks(n, [&](int64_t i) {
    const std::string& path = all.pictures[size_t(i)].path;
    infos[size_t(i)] = picture_info(path, io::read_file(path));
  });
  PictureOptions out = options;
  for (size_t i = 0; i < infos.size() && options.height == 0; ++i) {
    if (infos[i].height != infos[0].height || infos[i].width != infos[0].width) {
      throw IoError(
          "image",
          fmt::format("{} has {}×{} pixels, {} has {}×{}", all.pictures[i].path, infos[i].height,
                      infos[i].width, all.pictures[0].path, infos[0].height, infos[0].width),
          "--resize HEIGHTxWIDTH brings all to one size");
    }
  }
  if (options.height == 0) out.height = infos[0].height, out.width = infos[0].width;
  const bool grey =
      std::all_of(infos.begin(), infos.end(), [](auto& i) { return i.channels == 1; });
  if (options.channels == 0) out.channels = grey ? 1 : 3;
  return out;
}

}  // namespace

Tensor parse_image(const std::string& name, std::span<const uint8_t> bytes,
                   const PictureOptions& options) {
  check_options(options);
  const Pixels p = decode(name, bytes, options);
  Tensor out = empty({p.info.channels, p.info.height, p.info.width}, {.dtype = DType::u8});
  write_planes(p, out.data<uint8_t>());
  return out;
}

Tensor load_image(const std::string& path, const PictureOptions& options) {
  return parse_image(path, io::read_file(path), options);
}

bool is_image_folder(const std::string& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return false;
  const std::string train = folder + "/train";
  return has_classes(fs::is_directory(train, ignored) ? train : folder);
}

Dataset image_folder(const std::string& folder, const std::string& split,
                     const PictureOptions& options) {
  require_split(split);
  check_options(options);
  const Listing all = list_pictures(folder);
  const PictureOptions size = common_size(all, options);
  std::vector<Listed> wanted;
  for (const Listed& p : all.pictures) {
    if (p.test == (split == "test")) wanted.push_back(p);
  }
  const auto n = int64_t(wanted.size());
  const int64_t one = size.channels * size.height * size.width;
  if (n > io::unpack_limit() / one) {
    throw IoError("image",
                  fmt::format("{}: {} pictures of {} bytes; they may have {} MiB", folder, n, one,
                              io::unpack_limit() >> 20),
                  "--resize HEIGHTxWIDTH makes them smaller");
  }
  Dataset d{.name = folder,
            .inputs = empty({n, size.channels, size.height, size.width}, {.dtype = DType::u8}),
            .targets = empty({n}, {.dtype = DType::i64}),
            .classes = all.classes,
            .scale = 1.0 / 255};
  parallel_chunks(n, [&](int64_t i) {
    const Listed& p = wanted[size_t(i)];
    write_planes(decode(p.path, io::read_file(p.path), size), d.inputs.data<uint8_t>() + i * one);
    d.targets.data<int64_t>()[i] = p.label;
  });
  return d;
}

}  // namespace cutaway::data

#include <cutaway/core/io/npz.h>

#include <set>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/npy.h>
#include <cutaway/core/io/zip.h>

namespace cutaway::io {

NamedArrays parse_npz(const std::string& name, const uint8_t* data, int64_t bytes) {
  const ZipReader archive(name, {data, size_t(bytes)});
  NamedArrays arrays;
  std::set<std::string> seen;
  uint64_t room = uint64_t(unpack_limit());
  for (const ZipReader::Member& m : archive.members()) {
    std::string key = m.name;
    if (key.ends_with(".npy")) key.resize(key.size() - 4);
    if (!seen.insert(key).second)
      throw IoError("npz", name + ": the name " + key + " is there twice");
    const Bytes member = archive.read(m, room);
    room -= member.size();
    arrays.emplace_back(
        key, parse_npy(name + ", member " + m.name, member.data(), int64_t(member.size())));
  }
  return arrays;
}

NamedArrays load_npz(const std::string& path) {
  const Bytes bytes = read_file(path);
  return parse_npz(path, bytes.data(), int64_t(bytes.size()));
}

void save_npz(const std::string& path, const NamedArrays& arrays, NpzOptions options) {
  std::vector<std::pair<std::string, Bytes>> members;
  std::set<std::string> seen;
  for (const auto& [name, array] : arrays) {
    if (name.empty() || !seen.insert(name).second) {
      throw IoError("npz", path + ": the name \"" + name + "\" is empty or there twice");
    }
    members.emplace_back(name + ".npy", format_npy(array));
  }
  const Bytes bytes = make_zip(members, {.compress = options.compress});
  AtomicFile out(path);
  out.write(bytes.data(), int64_t(bytes.size()));
  out.commit();
}

}  // namespace cutaway::io

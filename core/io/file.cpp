#include <cutaway/core/io/file.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <cutaway/core/error.h>

namespace cutaway::io {
namespace fs = std::filesystem;
namespace {

int64_t memory_bytes() { return int64_t(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE); }

}  // namespace

Bytes read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw IoError("read", fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  struct Close {
    int fd;
    ~Close() { ::close(fd); }
  } close_at_end{fd};
  struct stat info {};
  if (::fstat(fd, &info) != 0 || S_ISDIR(info.st_mode)) {
    throw IoError("read", fmt::format("{} is a folder, not a file", path));
  }
  if (S_ISREG(info.st_mode) && info.st_size > memory_bytes()) {
    throw IoError("read", fmt::format("{} has {} bytes, more than this machine's memory", path,
                                      int64_t(info.st_size)));
  }
  Bytes bytes(S_ISREG(info.st_mode) ? size_t(info.st_size) : 0);
  size_t have = 0;
  for (;;) {
    if (have == bytes.size()) bytes.resize(have + (S_ISREG(info.st_mode) ? 1 : 65536));
    const ssize_t n = ::read(fd, bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw IoError("read", fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    if (n == 0) break;
    have += size_t(n);
  }
  bytes.resize(have);
  return bytes;
}

Bytes gunzip(std::span<const uint8_t> packed, const std::string& name, int64_t limit) {
  z_stream z{};
  if (inflateInit2(&z, 15 + 16) != Z_OK) throw IoError("gunzip", "cannot start zlib");
  struct End {
    z_stream& z;
    ~End() { inflateEnd(&z); }
  } end{z};
  Bytes out;
  size_t used = 0;
  z.next_in = const_cast<Bytef*>(packed.data());
  size_t left = packed.size();
  for (;;) {
    if (z.avail_in == 0 && left > 0) {
      z.avail_in = uInt(std::min<size_t>(left, 1u << 30));
      left -= z.avail_in;
    }
    if (used == out.size()) out.resize(std::max<size_t>(65536, out.size() * 2));
    const size_t room = std::min<size_t>(out.size() - used, 1u << 30);
    z.next_out = out.data() + used;
    z.avail_out = uInt(room);
    const int status = inflate(&z, Z_NO_FLUSH);
    used += room - z.avail_out;
    if (int64_t(used) > limit) {
      throw IoError("gunzip", fmt::format("{} unpacks to more than {} bytes", name, limit),
                    "unpack it with gunzip first");
    }
    if (status == Z_STREAM_END) {
      if (z.avail_in == 0 && left == 0) break;
      if (inflateReset(&z) != Z_OK)
        throw IoError("gunzip", fmt::format("{}: cannot read on", name));
      continue;  // several members in one file
    }
    if (status == Z_BUF_ERROR && z.avail_in == 0 && left == 0) {
      throw IoError("gunzip", fmt::format("{} is cut off: the gzip data ends too early", name));
    }
    if (status != Z_OK && status != Z_BUF_ERROR) {
      throw IoError("gunzip",
                    fmt::format("{} is damaged: {}", name, z.msg ? z.msg : "bad gzip data"));
    }
  }
  out.resize(used);
  return out;
}

Bytes read_maybe_gzip(const std::string& path, int64_t limit) {
  Bytes bytes = read_file(path);
  if (bytes.size() < 2 || bytes[0] != 0x1f || bytes[1] != 0x8b) return bytes;
  return gunzip(bytes, path, limit > 0 ? limit : unpack_limit());
}

int64_t unpack_limit() { return memory_bytes() / 4; }

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  std::error_code ignored;
  if (fs::is_symlink(path_, ignored)) {
    const fs::path target = fs::weakly_canonical(path_, ignored);
    if (!ignored) path_ = target.string();
  }
  temporary_ = fmt::format("{}.{}.tmp", path_, ::getpid());
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    const int error = errno;
    temporary_.clear();
    throw IoError("write", fmt::format("cannot write {}: {}", path_, std::strerror(error)));
  }
  struct stat info {};
  if (::stat(path_.c_str(), &info) == 0) (void)!::fchmod(fd_, info.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what) {
  throw IoError("write", fmt::format("cannot {} {}: {}", what, path_, std::strerror(errno)));
}

void AtomicFile::write(const void* data, int64_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd_, p, size_t(bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write");
    p += n;
    bytes -= n;
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) fail("flush");
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) fail("close");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("replace");
  temporary_.clear();
  sync_folder(fs::path(path_).parent_path().string());
}

void write_file_atomic(const std::string& path, const std::string& content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void sync_folder(const std::string& folder) {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

}  // namespace cutaway::io

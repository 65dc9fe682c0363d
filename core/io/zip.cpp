#include <cutaway/core/io/zip.h>

#include <fmt/format.h>
#include <minizip/unzip.h>
#include <minizip/zip.h>
#include <algorithm>
#include <cstring>

#include <cutaway/core/error.h>

namespace cutaway::io {
namespace {

// An archive in memory, as minizip's file functions see it.
struct Memory {
  const uint8_t* data = nullptr;  // reading
  uint64_t size = 0;
  Bytes* out = nullptr;  // writing
  uint64_t at = 0;
  bool cut = false;  // the last read ended early
};

uLong read_memory(voidpf opaque, voidpf, void* to, uLong n) {
  auto* m = static_cast<Memory*>(opaque);
  const uint64_t have = m->out ? m->out->size() : m->size;
  const uint64_t take = m->at < have ? std::min<uint64_t>(n, have - m->at) : 0;
  if (take) std::memcpy(to, (m->out ? m->out->data() : m->data) + m->at, take);
  m->at += take;
  m->cut = take < n;
  return uLong(take);
}

uLong write_memory(voidpf opaque, voidpf, const void* from, uLong n) {
  auto* m = static_cast<Memory*>(opaque);
  if (!m->out) return 0;
  if (m->at + n > m->out->size()) m->out->resize(m->at + n);
  if (n) std::memcpy(m->out->data() + m->at, from, n);
  m->at += n;
  return n;
}

ZPOS64_T tell_memory(voidpf opaque, voidpf) { return static_cast<Memory*>(opaque)->at; }

long seek_memory(voidpf opaque, voidpf, ZPOS64_T offset, int origin) {
  auto* m = static_cast<Memory*>(opaque);
  const uint64_t size = m->out ? m->out->size() : m->size;
  const uint64_t base = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                        : origin == ZLIB_FILEFUNC_SEEK_CUR ? m->at
                                                           : size;
  uint64_t to = 0;
  if (__builtin_add_overflow(base, offset, &to) || to > size) return -1;
  m->at = to;
  return 0;
}

voidpf open_memory(voidpf opaque, const void*, int) { return opaque; }
int close_memory(voidpf, voidpf) { return 0; }
// minizip takes an early end for data unless this says otherwise.
int ended_early(voidpf opaque, voidpf) { return static_cast<Memory*>(opaque)->cut; }

zlib_filefunc64_def functions(Memory& memory) {
  zlib_filefunc64_def f{};
  f.zopen64_file = open_memory;
  f.zread_file = read_memory;
  f.zwrite_file = write_memory;
  f.ztell64_file = tell_memory;
  f.zseek64_file = seek_memory;
  f.zclose_file = close_memory;
  f.zerror_file = ended_early;
  f.opaque = &memory;
  return f;
}

// An archive of nothing: its end record alone, which minizip does not find at the very beginning.
bool is_empty_archive(std::span<const uint8_t> bytes) {
  constexpr uint8_t kEnd[22] = {'P', 'K', 5, 6};
  return bytes.size() == 22 && std::memcmp(bytes.data(), kEnd, 22) == 0;
}

constexpr unsigned kChunk = 1u << 20;
constexpr uint64_t kEncrypted = 1;
// Deflate turns 1 byte into at most 1032; a member that claims more lies.
constexpr uint64_t kDeflateRatio = 1032;

}  // namespace

struct ZipReader::State {
  Memory memory;
  unzFile file = nullptr;
};

void ZipReader::fail(const std::string& member, const std::string& rule) const {
  throw IoError("zip", name_ + (member.empty() ? "" : ", member " + member) + ": " + rule);
}

ZipReader::ZipReader(std::string name, std::span<const uint8_t> bytes)
    : name_(std::move(name)), state_(std::make_unique<State>()) {
  if (is_empty_archive(bytes)) return;
  state_->memory.data = bytes.data();
  state_->memory.size = bytes.size();
  zlib_filefunc64_def f = functions(state_->memory);
  state_->file = unzOpen2_64(name_.c_str(), &f);
  if (!state_->file) fail("", "is not a zip archive or is cut off: it has no central directory");
  try {
    list();
  } catch (...) {
    unzClose(state_->file);
    throw;
  }
}

ZipReader::~ZipReader() {
  if (state_->file) unzClose(state_->file);
}

void ZipReader::list() {
  unzFile file = state_->file;
  unz_global_info64 global{};
  if (unzGetGlobalInfo64(file, &global) != UNZ_OK) fail("", "its central directory is damaged");
  if (global.number_entry == 0) return;
  std::string text(65536, '\0');  // a name has at most 65535 bytes
  int status = unzGoToFirstFile(file);
  for (; status == UNZ_OK; status = unzGoToNextFile(file)) {
    unz_file_info64 info{};
    unz64_file_pos place{};
    if (unzGetCurrentFileInfo64(file, &info, text.data(), uLong(text.size()), nullptr, 0, nullptr,
                                0) != UNZ_OK ||
        unzGetFilePos64(file, &place) != UNZ_OK) {
      fail("", "its central directory is damaged");
    }
    Member m{text.substr(0, info.size_filename), info.compressed_size, info.uncompressed_size,
             place.pos_in_zip_directory, place.num_of_file};
    if (info.flag & kEncrypted) fail(m.name, "is encrypted");
    if (info.compression_method != 0 && info.compression_method != Z_DEFLATED) {
      fail(m.name, fmt::format("compression method {} is unknown; need stored or deflated",
                               info.compression_method));
    }
    const bool stored = info.compression_method == 0;
    if (m.packed > state_->memory.size || (stored && m.size != m.packed) ||
        m.size / kDeflateRatio > m.packed) {
      fail(m.name, fmt::format("claims {} bytes, {} packed, in an archive of {}", m.size, m.packed,
                               state_->memory.size));
    }
    members_.push_back(std::move(m));
  }
  if (status != UNZ_END_OF_LIST_OF_FILE) fail("", "its central directory is damaged");
}

Bytes ZipReader::read(const Member& m, uint64_t limit) const {
  unzFile file = state_->file;
  if (m.size > limit) {
    fail(m.name, fmt::format("unpacks to {} bytes, more than {}", m.size, limit));
  }
  const unz64_file_pos place{m.place, m.number};
  if (unzGoToFilePos64(file, &place) != UNZ_OK || unzOpenCurrentFile(file) != UNZ_OK) {
    fail(m.name, "its local header does not match the central directory");
  }
  Bytes out;
  int got = 0;
  do {
    const size_t used = out.size();
    out.resize(used + size_t(std::min<uint64_t>(kChunk, m.size - used)) + 1);
    got = unzReadCurrentFile(file, out.data() + used, unsigned(out.size() - used));
    out.resize(used + size_t(std::max(got, 0)));
  } while (got > 0 && out.size() <= m.size);
  const int closed = unzCloseCurrentFile(file);
  if (got < 0) fail(m.name, "its packed data are damaged");
  if (closed == UNZ_CRCERROR) fail(m.name, "its CRC is wrong: the data are damaged");
  if (out.size() != m.size) {
    fail(m.name, fmt::format("has {} bytes, the central directory says {}", out.size(), m.size));
  }
  return out;
}

Bytes make_zip(const std::vector<std::pair<std::string, Bytes>>& members, ZipOptions options) {
  Bytes out;
  Memory memory;
  memory.out = &out;
  zlib_filefunc64_def f = functions(memory);
  zipFile file = zipOpen2_64("", APPEND_STATUS_CREATE, nullptr, &f);
  bool good = file != nullptr;
  for (const auto& [name, bytes] : members) {
    if (name.empty() || name.size() > 60000 || name.find('\0') != std::string::npos) {
      if (file) zipClose(file, nullptr);
      throw IoError("zip", "a member needs a name of 1 to 60000 bytes other than 0");
    }
    zip_fileinfo info{};
    info.tmz_date.tm_mday = 1;
    info.tmz_date.tm_year = 1980;  // the first date there is: no clock in the file
    const int zip64 = bytes.size() >= 0xFFFF0000u;
    good = good &&
           zipOpenNewFileInZip64(file, name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr,
                                 options.compress ? Z_DEFLATED : 0,
                                 options.compress ? Z_DEFAULT_COMPRESSION : 0, zip64) == ZIP_OK;
    for (size_t at = 0; good && at < bytes.size(); at += kChunk) {
      const auto n = unsigned(std::min<size_t>(kChunk, bytes.size() - at));
      good = zipWriteInFileInZip(file, bytes.data() + at, n) == ZIP_OK;
    }
    good = good && zipCloseFileInZip(file) == ZIP_OK;
  }
  if (file) good = zipClose(file, nullptr) == ZIP_OK && good;
  if (!good) throw IoError("zip", "the archive could not be made");
  return out;
}

}  // namespace cutaway::io

#include <cutaway/datasets/mat_file.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/mat_child.h>
#include <cutaway/datasets/mat_frame.h>

namespace cutaway::data {
namespace {

using Bytes = std::span<const uint8_t>;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

// What the child writes, checked as if it came from anywhere.
class Receiver {
 public:
  Receiver(const std::string& name, int pipe, int64_t seconds)
      : name_(name), pipe_(pipe), seconds_(seconds) {}

  // False when the child has gone.
  bool raw(void* to, size_t bytes) {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      pollfd ready{pipe_, POLLIN, 0};
      const int polled = ::poll(&ready, 1, int(std::min<int64_t>(seconds_, 1 << 20) * 1000));
      if (polled < 0 && errno == EINTR) continue;
      if (polled == 0) refuse_mat(name_, fmt::format("took longer than {} s to read", seconds_));
      const ssize_t n = ::read(pipe_, at, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += n;
      bytes -= size_t(n);
    }
    return true;
  }
  template <class T>
  T number() {
    T value{};
    if (!raw(&value, sizeof value)) throw Gone();
    return value;
  }
  std::string text() {
    const auto length = number<uint64_t>();
    if (length > 1 << 20) refuse_mat(name_, "is damaged: a name of more than 1 MiB");
    std::string s(length, '\0');
    if (!raw(s.data(), length)) throw Gone();
    return s;
  }
  struct Gone {};

 private:
  const std::string& name_;
  int pipe_;
  int64_t seconds_;
};

DType dtype_of(MatType type) {
  constexpr DType kTypes[] = {DType::f64, DType::f32, DType::i64,    DType::i32,
                              DType::i8,  DType::u8,  DType::boolean};
  return kTypes[size_t(type)];
}

Tensor receive_array(const std::string& name, Receiver& in, const std::string& array,
                     int64_t& left) {
  const auto type = in.number<MatType>();
  const auto rank = in.number<uint8_t>();
  if (type > MatType::boolean || rank < 1 || rank > kMaxRank)
    refuse_mat(name, array + " is damaged");
  Shape sizes;  // the last first: MATLAB stores columns
  int64_t need = size_of(dtype_of(type));
  for (int d = 0; d < rank; ++d) {
    const auto size = in.number<uint64_t>();
    if (size > uint64_t(INT64_MAX) || __builtin_mul_overflow(need, int64_t(size), &need)) {
      refuse_mat(name, array + " has too many elements");
    }
    sizes.insert(0, int64_t(size));
  }
  if (in.number<uint64_t>() != uint64_t(need)) refuse_mat(name, array + " is damaged");
  if (need > left) {
    refuse_mat(name, fmt::format("its arrays take more than {} MiB", io::unpack_limit() >> 20));
  }
  left -= need;
  const Tensor columns = empty(sizes, {.dtype = dtype_of(type)});
  if (!in.raw(columns.raw(), size_t(need))) throw Receiver::Gone();
  if (type == MatType::boolean) {
    auto* b = static_cast<uint8_t*>(columns.raw());
    std::transform(b, b + need, b, [](uint8_t v) { return uint8_t(v != 0); });
  }
  Layout turned = columns.layout();
  std::reverse(turned.sizes.begin(), turned.sizes.end());
  std::reverse(turned.strides.begin(), turned.strides.end());
  return contiguous_raw(make_view(columns, turned));
}

std::string one_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank) out += c;
    if (blank && !out.ends_with(' ')) out += ' ';
  }
  return out;
}

// Everything up to the message that ends it.
MatFile receive(const std::string& name, Receiver& in, int64_t expected) {
  MatFile out;
  int64_t left = io::unpack_limit();
  for (;;) {
    switch (in.number<MatMessage>()) {
      case MatMessage::array: {
        const std::string array = in.text();
        out.arrays.emplace_back(array, receive_array(name, in, array, left));
        break;
      }
      case MatMessage::left_out: {
        const std::string array = in.text();
        out.left_out.emplace_back(array, in.text());
        break;
      }
      case MatMessage::failure:
        refuse_mat(name, "is damaged: " + one_line(in.text()));
      case MatMessage::end: {
        const auto seen = in.number<uint64_t>();
        if (expected >= 0 && seen != uint64_t(expected)) {
          refuse_mat(name,
                     fmt::format("is damaged: libmatio reads {} of {} variables", seen, expected));
        }
        return out;
      }
      default:
        refuse_mat(name, "is damaged");
    }
  }
}

// The reading process; it does not outlive this object.
class Child {
 public:
  Child(const std::string& name, const std::string& path, int pipe, MatLimits limits) {
    const MatLibrary& library = mat_library();
    process_ = ::fork();
    if (process_ < 0) throw IoError("matlab", name + ": cannot start a process to read it");
    if (process_ == 0) run_mat_child(library, path, pipe, limits);
  }
  ~Child() {
    if (process_ > 0) ::kill(process_, SIGKILL), wait();
  }
  Child(const Child&) = delete;

  // Why it ended before it was done.
  std::string ended() {
    const int status = wait();
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (signal == SIGXCPU || signal == SIGKILL) return "reading it took too long";
    if (signal != 0) return fmt::format("is damaged: libmatio crashed ({})", ::strsignal(signal));
    return "is damaged: libmatio gave up";
  }

 private:
  int wait() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return status;
  }
  pid_t process_ = -1;
};

// For bytes that lie in no file as they are; HDF5 takes files with a path only.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, Bytes bytes) {
    path_ = (std::filesystem::temp_directory_path() / "cutaway-matlab-XXXXXX").string();
    const Descriptor file(::mkstemp(path_.data()));
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = ::write(file.number(), bytes.data() + at, bytes.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        const int error = errno;
        ::unlink(path_.c_str());
        throw IoError("matlab", fmt::format("{}: cannot write {} to read it: {}", name, path_,
                                            ::strerror(error)));
      }
      at += size_t(n);
    }
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

MatFile read_path(const std::string& name, const std::string& path, Bytes bytes) {
  const int64_t expected = count_mat_variables(name, bytes);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw IoError("matlab",
                  fmt::format("{}: cannot start to read it: {}", name, ::strerror(errno)));
  }
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const int64_t seconds = 30 + int64_t(bytes.size() >> 20);
  Child child(name, path, write_end.number(),
              {.memory = 2 * io::unpack_limit() + (64 << 20), .seconds = seconds});
  write_end.close();
  Receiver in(name, read_end.number(), 2 * seconds);
  try {
    return receive(name, in, expected);
  } catch (const Receiver::Gone&) {
    refuse_mat(name, child.ended());
  }
}

}  // namespace

MatFile load_mat(const std::string& path) {
  const io::Bytes file = io::read_file(path);
  if (file.size() < 2 || file[0] != 0x1F || file[1] != 0x8B) return read_path(path, path, file);
  return parse_mat(path, io::gunzip(file, path, io::unpack_limit()));
}

MatFile parse_mat(const std::string& name, Bytes bytes) {
  const TemporaryFile file(name, bytes);
  return read_path(name, file.path(), bytes);
}

}  // namespace cutaway::data

#include <cutaway/datasets/mat_child.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <matio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cutaway/core/error.h>

namespace cutaway::data {

struct MatLibrary {
  decltype(&Mat_Open) open = nullptr;
  decltype(&Mat_Close) close = nullptr;
  decltype(&Mat_VarReadNext) next = nullptr;
  decltype(&Mat_VarFree) free = nullptr;
  decltype(&Mat_VarGetStructFieldnames) field_names = nullptr;
  decltype(&Mat_VarGetNumberOfFields) field_count = nullptr;
  decltype(&Mat_LogInitFunc) log_to = nullptr;
};

const MatLibrary& mat_library() {
  static const MatLibrary loaded = [] {
    MatLibrary l;
    void* const handle = ::dlopen(CUTAWAY_MATIO, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      throw IoError("matlab", std::string("cannot load " CUTAWAY_MATIO ": ") + ::dlerror(),
                    "apt-get install libmatio11");
    }
    const auto find = [&](const char* name, auto& function) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
      if (function == nullptr) {
        throw IoError("matlab", std::string(CUTAWAY_MATIO " has no function ") + name);
      }
    };
    find("Mat_Open", l.open);
    find("Mat_Close", l.close);
    find("Mat_VarReadNext", l.next);
    find("Mat_VarFree", l.free);
    find("Mat_VarGetStructFieldnames", l.field_names);
    find("Mat_VarGetNumberOfFields", l.field_count);
    find("Mat_LogInitFunc", l.log_to);
    return l;
  }();
  return loaded;
}

namespace {

constexpr int kDeepest = 16;  // cells in cells
constexpr int kMostRank = 8;
constexpr size_t kMostParts = 1 << 20;  // arrays of a cell or struct

char g_complaint[256];  // the first thing that libmatio complained of
void note_complaint(int level, char* message) {
  if ((level & (MATIO_LOG_LEVEL_CRITICAL | MATIO_LOG_LEVEL_WARNING | MATIO_LOG_LEVEL_ERROR)) == 0) {
    return;
  }
  if (g_complaint[0] == 0) std::snprintf(g_complaint, sizeof g_complaint, "%s", message);
}

[[noreturn]] void leave() { ::_exit(0); }

// Messages to the parent. Nobody to read them ends the child.
class Out {
 public:
  explicit Out(int pipe) : pipe_(pipe) {}

  void raw(const void* data, size_t bytes) const {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t n = ::write(pipe_, at, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) leave();
      at += n;
      bytes -= size_t(n);
    }
  }
  template <class T>
  void number(T value) const {
    raw(&value, sizeof value);
  }
  void text(const std::string& s) const {
    number(uint64_t(s.size()));
    raw(s.data(), s.size());
  }
  void left_out(const std::string& name, const char* what) const {
    number(MatMessage::left_out);
    text(name);
    text(what);
  }
  [[noreturn]] void fail(const std::string& what) const {
    number(MatMessage::failure);
    text(what);
    leave();
  }

 private:
  int pipe_;
};

class Sender {
 public:
  Sender(const MatLibrary& library, const Out& out) : library_(library), out_(out) {}

  void variable(const matvar_t& v, const std::string& name, int depth = 0) const {
    if (depth > kDeepest) out_.fail(name + " lies too deep in cells");
    if (v.rank < 1 || v.dims == nullptr) return out_.left_out(name, "nothing");
    if (v.rank > kMostRank) return out_.left_out(name, "more than 8 dimensions");
    if (v.isComplex) return out_.left_out(name, "complex numbers");
    switch (v.class_type) {
      case MAT_C_CELL:
        return cells(v, name, depth);
      case MAT_C_STRUCT:
        return fields(v, name, depth);
      case MAT_C_CHAR:
        return out_.left_out(name, "text");
      case MAT_C_SPARSE:
        return sparse(v, name);
      case MAT_C_DOUBLE:
        return as_it_is<double>(v, name, MatType::f64);
      case MAT_C_SINGLE:
        return as_it_is<float>(v, name, MatType::f32);
      case MAT_C_INT64:
        return as_it_is<int64_t>(v, name, MatType::i64);
      case MAT_C_INT32:
        return as_it_is<int32_t>(v, name, MatType::i32);
      case MAT_C_INT8:
        return as_it_is<int8_t>(v, name, MatType::i8);
      case MAT_C_UINT8:
        return as_it_is<uint8_t>(v, name, v.isLogical ? MatType::boolean : MatType::u8);
      case MAT_C_INT16:
        return widened<int16_t, int32_t>(v, name, MatType::i32);
      case MAT_C_UINT16:
        return widened<uint16_t, int32_t>(v, name, MatType::i32);
      case MAT_C_UINT32:
        return widened<uint32_t, int64_t>(v, name, MatType::i64);
      case MAT_C_UINT64:
        return widened<uint64_t, int64_t>(v, name, MatType::i64);
      default:
        return out_.left_out(name, "an object or function");
    }
  }

 private:
  size_t count(const matvar_t& v, const std::string& name) const {
    size_t n = 1;
    for (int d = 0; d < v.rank; ++d) {
      if (__builtin_mul_overflow(n, v.dims[d], &n)) out_.fail(name + " has too many elements");
    }
    return n;
  }

  void send(const matvar_t& v, const std::string& name, MatType type, const void* data,
            size_t bytes) const {
    out_.number(MatMessage::array);
    out_.text(name);
    out_.number(type);
    out_.number(uint8_t(v.rank));
    for (int d = 0; d < v.rank; ++d) out_.number(uint64_t(v.dims[d]));
    out_.number(uint64_t(bytes));
    out_.raw(data, bytes);
  }

  // The elements; fails unless there are as many as the sizes say.
  template <class T>
  const T* elements(const matvar_t& v, const std::string& name, size_t& n) const {
    n = count(v, name);
    if (n > 0 && (v.data == nullptr || v.data_size != int(sizeof(T)) || v.nbytes / sizeof(T) < n)) {
      out_.fail(name + " lacks its data");
    }
    return static_cast<const T*>(v.data);
  }

  template <class T>
  void as_it_is(const matvar_t& v, const std::string& name, MatType type) const {
    size_t n = 0;
    const T* from = elements<T>(v, name, n);
    send(v, name, type, from, n * sizeof(T));
  }

  template <class From, class To>
  void widened(const matvar_t& v, const std::string& name, MatType type) const {
    size_t n = 0;
    const From* from = elements<From>(v, name, n);
    std::vector<To> to(n);
    for (size_t i = 0; i < n; ++i) {
      if (sizeof(From) == sizeof(To) && from[i] > From(INT64_MAX)) {
        out_.fail(name + " holds a number above 2^63");
      }
      to[i] = To(from[i]);
    }
    send(v, name, type, to.data(), n * sizeof(To));
  }

  // As a dense array of doubles.
  void sparse(const matvar_t& v, const std::string& name) const {
    const size_t n = count(v, name);
    const auto* s = static_cast<const mat_sparse_t*>(v.data);
    if (v.rank != 2 || s == nullptr || s->njc != v.dims[1] + 1 || s->ndata > s->nir ||
        s->jc == nullptr || (s->ndata > 0 && (s->ir == nullptr || s->data == nullptr))) {
      out_.fail(name + " is no sound sparse array");
    }
    std::vector<double> dense(n);
    for (size_t column = 0; column < v.dims[1]; ++column) {
      for (size_t at = s->jc[column]; at < s->jc[column + 1]; ++at) {
        if (at >= s->ndata || s->ir[at] >= v.dims[0]) {
          out_.fail(name + " has a sparse entry out of range");
        }
        double value = 0;
        if (v.isLogical || v.data_type == MAT_T_UINT8) {
          value = static_cast<const uint8_t*>(s->data)[at];
        } else if (v.data_type == MAT_T_DOUBLE) {
          value = static_cast<const double*>(s->data)[at];
        } else {
          return out_.left_out(name, "a sparse array of this type");
        }
        dense[column * v.dims[0] + s->ir[at]] = value;
      }
    }
    send(v, name, MatType::f64, dense.data(), n * sizeof(double));
  }

  void parts(const matvar_t& v, const std::string& name, size_t need) const {
    if (need > kMostParts) out_.fail(name + " has too many parts");
    if (need > 0 && (v.data == nullptr || v.nbytes / sizeof(matvar_t*) < need)) {
      out_.fail(name + " lacks its data");
    }
  }

  void cells(const matvar_t& v, const std::string& name, int depth) const {
    const size_t n = count(v, name);
    parts(v, name, n);
    auto* const* cell = static_cast<matvar_t* const*>(v.data);
    for (size_t i = 0; i < n; ++i) {
      const std::string part = name + "{" + std::to_string(i + 1) + "}";
      if (cell[i] == nullptr) {
        out_.left_out(part, "nothing");
      } else {
        variable(*cell[i], part, depth + 1);
      }
    }
  }

  void fields(const matvar_t& v, const std::string& name, int depth) const {
    const size_t n = count(v, name), width = library_.field_count(const_cast<matvar_t*>(&v));
    char* const* names = library_.field_names(&v);
    if (n > kMostParts || width > kMostParts || (width > 0 && names == nullptr)) {
      out_.fail(name + " has too many parts");
    }
    parts(v, name, n * width);
    auto* const* field = static_cast<matvar_t* const*>(v.data);
    for (size_t i = 0; i < n * width; ++i) {
      const std::string element = n == 1 ? "" : "(" + std::to_string(i / width + 1) + ")";
      const std::string part = name + element + "." + names[i % width];
      if (field[i] == nullptr) {
        out_.left_out(part, "nothing");
      } else {
        variable(*field[i], part, depth + 1);
      }
    }
  }

  const MatLibrary& library_;
  const Out& out_;
};

// Address space that the process has already, in bytes.
int64_t space_used() {
  char text[64] = {};
  const int file = ::open("/proc/self/statm", O_RDONLY);
  const ssize_t n = file < 0 ? 0 : ::read(file, text, sizeof text - 1);
  if (file >= 0) ::close(file);
  return n <= 0 ? 0 : std::strtoll(text, nullptr, 10) * ::sysconf(_SC_PAGESIZE);
}

void set_limit(int resource, int64_t most) {
  const rlimit limit{rlim_t(most), rlim_t(most)};
  ::setrlimit(__rlimit_resource_t(resource), &limit);
}

// Signals end the child, nothing is printed, and no descriptor is left but the pipe. Gives its new
// number.
int withdraw(int pipe, MatLimits limits) {
  for (const int s :
       {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT, SIGPIPE, SIGXCPU}) {
    std::signal(s, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pipe = ::dup2(::fcntl(pipe, F_DUPFD, 10), 3);
  ::syscall(SYS_close_range, 4u, ~0u, 0u);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int standard : {0, 1, 2}) ::dup2(nothing, standard);
  ::setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);  // some file systems have no locks; we only read
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_CPU, limits.seconds);
  set_limit(RLIMIT_AS, space_used() + limits.memory);
  return pipe;
}

void read_all(const MatLibrary& library, const std::string& path, const Out& out) {
  library.log_to("cutaway", note_complaint);
  mat_t* const mat = library.open(path.c_str(), MAT_ACC_RDONLY);
  const auto complain = [&](const char* otherwise) {
    out.fail(g_complaint[0] != 0 ? g_complaint : otherwise);
  };
  if (mat == nullptr) complain("libmatio cannot open it");
  const Sender sender(library, out);
  uint64_t count = 0;
  for (; matvar_t* v = library.next(mat); ++count) {
    if (g_complaint[0] != 0) complain("");
    sender.variable(*v, v->name == nullptr ? "" : v->name);
    library.free(v);
  }
  if (g_complaint[0] != 0) complain("");
  out.number(MatMessage::end);
  out.number(count);
}

}  // namespace

void run_mat_child(const MatLibrary& library, const std::string& path, int pipe, MatLimits limits) {
  const Out out(withdraw(pipe, limits));
  try {
    read_all(library, path, out);
  } catch (const std::exception&) {  // no memory
    out.fail("it asks for more memory than it may have");
  }
  leave();
}

}  // namespace cutaway::data

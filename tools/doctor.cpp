#include <dlfcn.h>
#include <fmt/format.h>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/device.h>
#include <cutaway/core/dispatch.h>
#include <cutaway/core/linalg/blas.h>
#include <cutaway/core/parallel.h>
#include <cutaway/cuda/info.h>
#include <cutaway/datasets/dataset.h>

#include <tools/commands.h>

namespace cutaway::tools {
namespace {
namespace fs = std::filesystem;

// Counts lines that ask the reader to do something.
struct Report {
  int problems = 0;
  void good(const std::string& what, const std::string& found) {
    fmt::print("  ok    {:<12} {}\n", what, found);
  }
  void note(const std::string& what, const std::string& found, const std::string& advice) {
    fmt::print("  note  {:<12} {}\n{:21}{}\n", what, found, "", advice);
  }
  void bad(const std::string& what, const std::string& found, const std::string& advice) {
    ++problems;
    fmt::print("  BAD   {:<12} {}\n{:21}{}\n", what, found, "", advice);
  }
};

std::string proc_line(const char* file, const std::string& key) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with(key)) {
      const size_t colon = line.find(':');
      const size_t first = line.find_first_not_of(" \t", colon + 1);
      return first == std::string::npos ? "" : line.substr(first);
    }
  }
  return {};
}

void check_cpu(Report& r) {
  const std::string flags = " " + proc_line("/proc/cpuinfo", "flags") + " ";
  std::string offered;
  for (const char* f : {"avx2", "fma", "avx512f", "avx512bw", "avx512_bf16", "amx_bf16"}) {
    if (flags.find(fmt::format(" {} ", f)) != std::string::npos) offered += fmt::format(" {}", f);
  }
  r.good("cpu", proc_line("/proc/cpuinfo", "model name") + ":" +
                    (offered.empty() ? " no vector extensions" : offered));
  std::string variants;
  for (const std::string& v : available_cpu_variants()) variants += " " + v;
  r.good("kernels", fmt::format("{} (available:{}; CUTAWAY_CPU_VARIANT chooses another)",
                                cpu_variant(), variants));
}

// Largest error of C = A·B against plain f64 loops, relative to k·|A||B|, over sizes that cross the
// block edges of BLAS.
template <class T>
double worst_product_error(std::string& where) {
  double worst = 0;
  for (const int n : {1, 3, 8, 17, 33, 64, 100, 129}) {
    for (const int variant : {0, 1, 2, 3}) {
      const bool ta = variant & 1, tb = variant & 2;
      const int m = n, k = n + 5, cols = n + 2;
      std::vector<T> a(size_t(m * k)), b(size_t(k * cols)), c(size_t(m * cols), T(NAN));
      uint32_t state = 12345;
      const auto next = [&] {
        state = state * 1664525u + 1013904223u;
        return T((double(state >> 8) / double(1 << 24) - 0.5) / 3);  // full mantissas
      };
      for (T& v : a) v = next();
      for (T& v : b) v = next();
      blas::gemm(blas::Gemm<T>{.transpose_a = ta,
                               .transpose_b = tb,
                               .m = m,
                               .n = cols,
                               .k = k,
                               .a = a.data(),
                               .lda = ta ? m : k,
                               .b = b.data(),
                               .ldb = tb ? k : cols,
                               .c = c.data(),
                               .ldc = cols});
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < cols; ++j) {
          double sum = 0, size = 0;
          for (int t = 0; t < k; ++t) {
            const double p = double(a[size_t(ta ? t * m + i : i * k + t)]) *
                             double(b[size_t(tb ? j * k + t : t * cols + j)]);
            sum += p;
            size += std::fabs(p);
          }
          const double error = std::fabs(double(c[size_t(i * cols + j)]) - sum) / (size + 1e-30);
          if (!(error <= worst)) {
            worst = std::isnan(error) ? INFINITY : error;
            where = fmt::format("{}x{}x{}{}{}", m, cols, k, ta ? " Aᵀ" : "", tb ? " Bᵀ" : "");
          }
        }
      }
    }
  }
  return worst;
}

void check_blas(Report& r) {
  std::string where32, where64;
  const double e32 = worst_product_error<float>(where32),
               e64 = worst_product_error<double>(where64);
  const std::string found = fmt::format("{}; largest product error f32 {:.1e}, f64 {:.1e}",
                                        blas::blas_config(), e32, e64);
  if (e32 < 1e-5 && e64 < 1e-13) return r.good("blas", found);
  r.bad("blas", found + " at " + (e32 >= 1e-5 ? where32 : where64),
        "this OpenBLAS computes wrong products on this CPU: set OPENBLAS_CORETYPE (for example "
        "Haswell), or install a newer one");
}

void check_threads(Report& r) {
  r.good("threads",
         fmt::format("{} (CUTAWAY_NUM_THREADS, OMP_NUM_THREADS or --threads)", num_threads()));
  const char* policy = std::getenv("OMP_WAIT_POLICY");
  if (num_threads() > 1 && policy && std::string(policy) == "active") {
    r.note("waiting", "threads spin while they wait (OMP_WAIT_POLICY=active)",
           "unset it on a machine shared with other programs");
  }
}

void check_memory(Report& r) {
  r.good("memory", fmt::format("{} in all, {} available; pool holds {} bytes",
                               proc_line("/proc/meminfo", "MemTotal"),
                               proc_line("/proc/meminfo", "MemAvailable"), memory_stats().cached));
}

void check_gpu(Report& r) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver) dlclose(driver);
  for (const cuda::DeviceInfo& d : cuda::devices()) {
    r.good("gpu", fmt::format("{}, compute capability {}.{}, {} processors, {:.1f} GB", d.name,
                              d.major, d.minor, d.processors, double(d.memory) / 1e9));
  }
  if (!has_backend(DeviceKind::cuda)) {
    r.note("gpu", driver ? "CUDA driver found, but no GPU can be used" : "no CUDA driver",
           cuda::cuda_missing());
    return;
  }
  for (const cuda::LibraryInfo& l : cuda::libraries()) {
    if (!l.file.empty() && l.missing.empty()) {
      r.good("gpu library", l.name + ": " + l.file);
    } else {
      r.note("gpu library", l.name + (l.file.empty() ? " not found" : ": lacks " + l.missing[0]),
             "without it own kernels do its work, slower; sparse products need cuSPARSE");
    }
  }
}

bool on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string list = path ? path : "";
  size_t from = 0;
  while (from <= list.size()) {
    const size_t colon = std::min(list.find(':', from), list.size());
    std::error_code ignored;
    if (fs::is_regular_file(fs::path(list.substr(from, colon - from)) / program, ignored))
      return true;
    from = colon + 1;
  }
  return false;
}

void check_programs(Report& r) {
  on_path("mpirun")
      ? r.good("mpi", "mpirun found")
      : r.note("mpi", "mpirun not found",
               "only needed to train on several machines: apt-get install openmpi-bin");
  on_path("dot") ? r.good("graphviz", "dot found")
                 : r.note("graphviz", "dot not found",
                          "graph pictures stay DOT text: apt-get install graphviz");
}

void check_data(Report& r) {
  try {
    const data::Dataset d = data::fashion_mnist("train");
    const std::string found = fmt::format("{}: {} training images", d.name, d.size());
    if (d.size() == 60000) return r.good("data", found);
    r.note("data", found,
           "the full set: apt-get install dataset-fashion-mnist, or CUTAWAY_DATA=FOLDER with "
           "FOLDER/fashion-mnist");
  } catch (const std::exception& e) {
    r.bad("data", e.what(), "CUTAWAY_SAMPLES names the folder of the samples");
  }
}

}  // namespace

void add_doctor(CLI::App& app, int& status) {
  auto common = std::make_shared<Common>();
  CLI::App* c =
      app.add_subcommand("doctor", "Look at this machine: CPU, BLAS, threads, memory, GPU, data");
  c->footer("Example:\n  cutaway doctor");
  add_common(*c, *common);
  c->callback([common, &status] {
    apply_common(*common);
    Report r;
    fmt::print("cutaway {}\n", CUTAWAY_VERSION);
    check_cpu(r);
    check_blas(r);
    check_threads(r);
    check_memory(r);
    check_gpu(r);
    check_programs(r);
    check_data(r);
    fmt::print("{}\n", r.problems ? fmt::format("{} problem(s)", r.problems) : "all well");
    status = r.problems ? 1 : 0;
  });
}

}  // namespace cutaway::tools

#include <tools/bench_workloads.h>

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <thread>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>

#include <tools/bench/compare.h>
#include <tools/bench/explain.h>
#include <tools/bench/floors.h>
#include <tools/bench/record.h>
#include <tools/bench/scaling.h>
#include <tools/bench/workloads.h>
#include <tools/commands.h>

namespace cutaway::tools {
namespace {

struct BenchArgs {
  std::string versus, python, peer, json, svg;
  std::vector<std::string> workloads, dtypes = {"f32"};
  std::vector<int> threads;
  int rounds = 7;
  bool quick = false, explain = false, scaling = false, list = false;
  bool record = false, describe = false, start = false, first_step = false;
};

std::vector<DType> types(const BenchArgs& a) {
  std::vector<DType> list;
  for (const std::string& name : a.dtypes) {
    if (name != "f32" && name != "bf16") {
      throw ValueError("bench", fmt::format("workloads run in f32 or bf16; got {}", name));
    }
    list.push_back(name == "f32" ? DType::f32 : DType::bf16);
  }
  return list;
}

// 1 and all cores, unless named.
std::vector<int> thread_counts(const BenchArgs& a) {
  if (!a.threads.empty()) return a.threads;
  const int cores = int(std::thread::hardware_concurrency());
  return cores > 1 ? std::vector<int>{1, cores} : std::vector<int>{1};
}

void list_workloads() {
  for (const WorkloadInfo& w : known_workloads()) {
    fmt::print("{:<20} {}{}\n", w.name, w.about, w.model ? "; f32, bf16" : "");
  }
}

void run_explain(const BenchArgs& a) {
  std::vector<std::string> names = a.workloads;
  if (names.empty()) {
    for (const WorkloadInfo& w : known_workloads()) {
      if (w.model) names.push_back(w.name);
    }
  }
  for (const std::string& name : names) {
    for (const DType dtype : types(a)) {
      for (const int threads : thread_counts(a)) {
        const Workload w = make_workload(name, dtype);
        fmt::print("{}\n", explain_text(w, explain(w, threads), threads));
        std::fflush(stdout);
      }
    }
  }
}

// "plot.svg" → "plot-memory.svg".
std::string memory_path(const std::string& path) {
  const std::filesystem::path p(path);
  return (p.parent_path() / (p.stem().string() + "-memory" + p.extension().string())).string();
}

void run_scaling(const BenchArgs& a) {
  ScalingOptions o{.threads = thread_counts(a).front(), .quick = a.quick};
  if (!a.workloads.empty()) o.models = a.workloads;
  const auto series = measure_scaling(o);
  fmt::print("{}", scaling_text(series));
  if (!a.json.empty()) io::write_file_atomic(a.json, scaling_json(series));
  if (a.svg.empty()) return;
  io::write_file_atomic(a.svg, scaling_svg(series, false));
  io::write_file_atomic(memory_path(a.svg), scaling_svg(series, true));
}

std::unique_ptr<Peer> make_peer(const BenchArgs& a) {
  if (a.versus.empty()) return nullptr;
  if (a.versus != "torch") {
    throw ValueError("bench", fmt::format("the only peer is torch; got {}", a.versus));
  }
  PeerOptions o{.python = a.python, .script = torch_script()};
  if (!a.peer.empty()) {
    const io::Bytes text = io::read_file(a.peer);
    o.script.assign(text.begin(), text.end());
  }
  return std::make_unique<Peer>(o);
}

int run_compare(const BenchArgs& a) {
  CompareOptions o{.workloads = a.workloads,
                   .dtypes = types(a),
                   .threads = thread_counts(a),
                   .rounds = a.rounds};
  if (a.quick) {
    o.rounds = std::min(o.rounds, 3);
    o.milliseconds = 20;
  }
  for (const std::string& name : o.workloads) make_workload(name);  // misspelt ones fail first
  const auto own = make_own_side();
  const auto peer = make_peer(a);
  std::string version = peer ? peer->version() : "";
  if (version.starts_with("torch ")) version.erase(0, 6);
  fmt::print("{}{}\n", machine_name(), peer ? ", PyTorch " + version : "");
  for (const int n : o.threads) {
    fmt::print("{} thread{}: peak {:.1f} GFLOP/s f32, {:.1f} bf16; copy {:.1f} GB/s\n", n,
               n > 1 ? "s" : "", peak_flops(DType::f32, n) / 1e9, peak_flops(DType::bf16, n) / 1e9,
               copy_rate(1 << 28, n) / 1e9);
  }
  fmt::print("\n{}\n", table_head());
  const auto rows = compare(o, *own, peer.get(), [](const CompareRow& r) {
    fmt::print("{}\n", table_line(r));
    std::fflush(stdout);
  });
  if (peer) fmt::print("\n{}", best_table(rows));
  if (!a.json.empty()) io::write_file_atomic(a.json, compare_json(rows, version));
  if (!a.svg.empty()) io::write_file_atomic(a.svg, compare_svg(rows, version));
  const bool good =
      std::all_of(rows.begin(), rows.end(), [&](const CompareRow& r) { return !peer || r.valid; });
  return good ? 0 : 1;
}

int run_record(const BenchArgs& a) {
  RecordBenchOptions o{.rounds = a.rounds};
  if (a.quick) o = {.rounds = std::min(a.rounds, 5), .milliseconds = 20};
  std::vector<std::string> names = a.workloads;
  if (names.empty()) {
    for (const WorkloadInfo& w : known_workloads()) names.push_back(w.name);
  }
  fmt::print("{}\n", record_head());
  std::vector<RecordRow> rows;
  for (const std::string& name : names) {
    const auto& known = known_workloads();
    const bool model = std::any_of(known.begin(), known.end(), [&](const WorkloadInfo& w) {
      return w.name == name && w.model;
    });
    for (const DType dtype : types(a)) {
      if (!model && dtype != DType::f32) continue;  // ops run in f32 only
      for (const int threads : thread_counts(a)) {
        rows.push_back(bench_record(name, dtype, threads, o));
        fmt::print("{}\n", record_line(rows.back()));
        if (a.describe) fmt::print("\n{}\n", rows.back().listing);
        std::fflush(stdout);
      }
    }
  }
  if (!a.json.empty()) io::write_file_atomic(a.json, record_json(rows));
  const bool good =
      std::all_of(rows.begin(), rows.end(), [](const RecordRow& r) { return r.same_bits; });
  return good ? 0 : 1;
}

// From the start of a process to the end of its first step.
void run_start() {
  std::vector<double> ms = start_times(15);
  std::sort(ms.begin(), ms.end());
  fmt::print("start to first step  median {:.1f} ms, least {:.1f} ms of {} processes\n",
             ms[ms.size() / 2], ms.front(), ms.size());
}

int run_bench(const BenchArgs& a) {
  if (a.first_step) {
    make_workload("mlp1").step();
  } else if (a.start) {
    run_start();
  } else if (a.record) {
    return run_record(a);
  } else if (a.list) {
    list_workloads();
  } else if (a.explain) {
    run_explain(a);
  } else if (a.scaling) {
    run_scaling(a);
  } else {
    return run_compare(a);
  }
  return 0;
}

}  // namespace

void add_bench_workloads(CLI::App& c, int& status) {
  auto a = std::make_shared<BenchArgs>();
  c.footer(
      "Examples:\n"
      "  cutaway bench --vs torch --json bench.json --svg bench.svg\n"
      "  cutaway bench --workload mlp,nanogpt --threads 1 --explain");
  c.add_flag("--list", a->list, "Print the workloads");
  c.add_option("--workload", a->workloads, "Names, separated by commas; all by default")
      ->delimiter(',');
  c.add_option("--vs", a->versus, "torch: run the same in PyTorch, in turn");
  c.add_option("--python", a->python, "The interpreter that has PyTorch");
  c.add_option("--peer", a->peer, "Another script in the place of PyTorch's");
  c.add_option("--dtype", a->dtypes, "f32, bf16 (training steps)")
      ->delimiter(',')
      ->capture_default_str();
  c.add_option("--threads", a->threads, "Numbers of threads; 1 and all cores by default")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  c.add_option("--rounds", a->rounds, "Rounds, of which the median counts")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  c.add_flag("--quick", a->quick, "Three short rounds: rough numbers");
  c.add_flag("--explain", a->explain, "Where the time of a step goes, op by op");
  c.add_flag("--record", a->record, "Run every step eagerly and as a recorded step");
  c.add_flag("--describe", a->describe, "With --record: also print the recorded calls");
  c.add_flag("--start", a->start, "Time from the start of a process to its first training step");
  c.add_flag("--first-step", a->first_step, "Run one training step")->group("");
  c.add_flag("--scaling", a->scaling, "How cost grows with the sizes of mlp, gpt and resnet");
  c.add_option("--json", a->json, "Write the results to this file");
  c.add_option("--svg", a->svg, "Draw them to this file");
  c.callback([a, &c, &status] {
    if (c.get_subcommands().empty()) status = run_bench(*a);
  });
}

}  // namespace cutaway::tools

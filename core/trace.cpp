#include <cutaway/core/trace.h>

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include <cutaway/core/dispatch.h>
#include <cutaway/core/error.h>
#include <cutaway/core/text.h>

namespace cutaway::trace {

std::atomic<bool> detail::on{false};

namespace {

constexpr size_t kRing = 1 << 16;
std::atomic<bool> logging{false};

int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

enum class Kind : uint8_t { op, range, memory };

struct Event {
  Kind kind;
  const char* name;
  int64_t begin = 0, end = 0;  // ns
  int64_t bytes = 0;           // of the results, or of the block
  int64_t bytes_in = 0;        // of the operands
  bool backward = false, view = false;
  int64_t live = 0, cached = 0;
  const ModuleScope* module = nullptr;
  const char* file = "";
  uint32_t line = 0;
  int depth = 0;
  Shape sizes = {};
  Shape operands[3] = {};
  DType dtype = DType::f32;
  Device device = kCpu;
};

// Events of one thread; written by it, read by whoever saves.
struct Ring {
  std::mutex mutex;
  std::vector<Event> events;
  size_t next = 0;
  int thread = 0;
  void push(const Event& e) {
    std::lock_guard lock(mutex);
    if (events.size() < kRing) {
      events.push_back(e);
    } else {
      events[next++ % kRing] = e;
    }
  }
};

struct Rings {
  std::mutex mutex;
  std::vector<Ring*> all;  // kept to the end: events outlive their threads
};
Rings& rings() {
  static auto* r = new Rings;
  return *r;
}

Ring& my_ring() {
  thread_local Ring* ring = nullptr;
  if (!ring) {
    ring = new Ring;
    std::lock_guard lock(rings().mutex);
    ring->thread = int(rings().all.size());
    rings().all.push_back(ring);
  }
  return *ring;
}

// Where there is no memory for an event it is lost and the program goes on.
void record(const Event& e) noexcept {
  try {
    my_ring().push(e);
  } catch (const std::bad_alloc&) {
  }
}

template <class F>
void for_each_event(F&& f) {
  std::lock_guard lock(rings().mutex);
  for (Ring* r : rings().all) {
    std::lock_guard ring_lock(r->mutex);
    for (const Event& e : r->events) f(e, r->thread);
  }
}

// Reads CUTAWAY_TRACE when the program starts and writes what it asks for when the program ends.
struct Environment {
  std::string wish;

  Environment() {
    const char* text = std::getenv("CUTAWAY_TRACE");
    wish = text ? text : "";
    if (wish == "log") {
      start_log();
    } else if (!wish.empty()) {
      start();
    }
  }
  ~Environment() {
    if (wish.empty() || wish == "log") return;
    try {
      if (wish == "table") {
        std::fputs(op_table().c_str(), stderr);
      } else {
        save_chrome(wish);
      }
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
  }
} environment;

struct Row {
  std::string name;
  int64_t calls = 0, time = 0, bytes = 0;
};

// Sums of op events under the name that `name` gives them (empty: left out), longest time first.
template <class F>
std::string table(const char* title, F&& name) {
  std::map<std::string, Row> rows;
  for_each_event([&](const Event& e, int) {
    const std::string key = e.kind == Kind::op ? name(e) : "";
    if (key.empty()) return;
    Row& r = rows[key];
    r.name = key;
    ++r.calls;
    r.time += e.end - e.begin;
    r.bytes += e.bytes;
  });
  std::vector<Row> order;
  for (const auto& [key, row] : rows) order.push_back(row);
  std::sort(order.begin(), order.end(), [](const Row& a, const Row& b) { return a.time > b.time; });
  std::string out = fmt::format("{:<24} {:>9} {:>12} {:>12} {:>14}\n", title, "calls", "total ms",
                                "mean us", "result bytes");
  for (const Row& r : order) {
    out += fmt::format("{:<24} {:>9} {:>12.3f} {:>12.3f} {:>14}\n", r.name, r.calls,
                       double(r.time) * 1e-6, double(r.time) * 1e-3 / double(r.calls), r.bytes);
  }
  return out;
}

std::string full_name(const Event& e) {
  return e.backward ? e.name + std::string(" backward") : e.name;
}

std::string chrome_event(const Event& e, int thread) {
  const double begin = double(e.begin) * 1e-3, length = double(e.end - e.begin) * 1e-3;
  if (e.kind == Kind::memory) {
    return fmt::format(
        "{{\"name\":\"host memory\",\"ph\":\"C\",\"pid\":0,\"tid\":{},\"ts\":{:.3f},"
        "\"args\":{{\"live\":{},\"cached\":{}}}}}",
        thread, begin, e.live, e.cached);
  }
  std::string args = fmt::format("\"module\":{}", json_quoted(module_path(e.module)));
  if (e.kind == Kind::op) {
    args +=
        fmt::format(",\"sizes\":\"{}\",\"dtype\":\"{}\",\"device\":\"{}\",\"bytes\":{},\"at\":{}",
                    to_string(e.sizes), name_of(e.dtype), to_string(e.device), e.bytes,
                    json_quoted(fmt::format("{}:{}", source_name(e.file), e.line)));
  }
  return fmt::format(
      "{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"pid\":0,\"tid\":{},\"ts\":{:.3f},"
      "\"dur\":{:.3f},\"args\":{{{}}}}}",
      json_quoted(full_name(e)), e.kind == Kind::op ? "op" : "range", thread, begin, length, args);
}

}  // namespace

void start() { detail::on = true; }
void start_log() {
  logging = true;
  start();
}
void stop() {
  detail::on = false;
  logging = false;
}

void clear() {
  std::lock_guard lock(rings().mutex);
  for (Ring* r : rings().all) {
    std::lock_guard ring_lock(r->mutex);
    r->events.clear();
    r->next = 0;
  }
}

OpEvent::OpEvent(const char* name) : name_(name), begin_(now_ns()) {}

namespace {
int64_t bytes_of(const Tensor& t) { return t.numel() * size_of(t.dtype()); }
}  // namespace

void OpEvent::inputs(const Tensor* const* operands, int count) {
  for (int i = 0; i < count; ++i) {
    if (!operands[i]->defined()) continue;
    bytes_in_ += bytes_of(*operands[i]);
    if (i < 3) operands_[i] = operands[i]->sizes();
  }
}

void OpEvent::finish(const Tensor* outputs, int count) {
  const bool view = std::all_of(outputs, outputs + count,
                                [](const Tensor& t) { return t.defined() && t.impl()->is_view; });
  record(outputs, count, false, count > 0 && view);
}

void OpEvent::finish_backward(const Tensor* upstreams, int count, const Tensor* grads,
                              int num_grads) {
  bool view = true;
  for (int i = 0; i < num_grads; ++i) {
    if (!grads[i].defined()) continue;
    view =
        view && count > 0 && upstreams[0].defined() && grads[i].storage() == upstreams[0].storage();
    bytes_in_ += bytes_of(grads[i]);
    if (i < 3) operands_[i] = grads[i].sizes();
  }
  record(upstreams, count, true, view);
}

void OpEvent::record(const Tensor* outputs, int count, bool backward, bool view) {
  const Context& c = context();
  Event e{.kind = Kind::op,
          .name = name_,
          .begin = begin_,
          .end = now_ns(),
          .bytes_in = bytes_in_,
          .backward = backward,
          .view = view,
          .module = c.module,
          .file = c.site.file_name(),
          .line = c.site.line(),
          .depth = c.call_depth};
  for (int i = 0; i < 3; ++i) e.operands[i] = operands_[i];
  for (int i = 0; i < count; ++i) {
    if (!outputs[i].defined()) continue;
    e.bytes += bytes_of(outputs[i]);
    if (i == 0) {
      e.sizes = outputs[i].sizes();
      e.dtype = outputs[i].dtype();
      e.device = outputs[i].device();
    }
  }
  trace::record(e);
  if (!logging) return;
  const std::string line =
      fmt::format("{}{} {} {} {} {} {:.3f} us {}{}:{}\n", e.name, backward ? " backward" : "",
                  to_string(e.sizes), name_of(e.dtype), to_string(e.device), cpu_variant(),
                  double(e.end - e.begin) * 1e-3, e.module ? module_path(e.module) + " " : "",
                  source_name(e.file), e.line);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Range::Range(const char* name) : name_(enabled() ? name : nullptr), begin_(name_ ? now_ns() : 0) {}
Range::~Range() {
  if (!name_) return;
  const Context& c = context();
  record({.kind = Kind::range,
          .name = name_,
          .begin = begin_,
          .end = now_ns(),
          .module = c.module,
          .depth = c.call_depth});
}

void memory(int64_t bytes, int64_t live, int64_t cached) noexcept {
  record({.kind = Kind::memory,
          .name = "memory",
          .begin = now_ns(),
          .bytes = bytes,
          .live = live,
          .cached = cached});
}

void save_chrome(const std::string& path) {
  std::string json =
      fmt::format("{{\"otherData\":{{\"cpu_variant\":\"{}\"}},\"traceEvents\":[", cpu_variant());
  const char* gap = "\n";
  for_each_event([&](const Event& e, int thread) {
    json += gap + chrome_event(e, thread);
    gap = ",\n";
  });
  json += "]}\n";
  std::FILE* f = std::fopen(path.c_str(), "wb");
  const bool written = f && std::fwrite(json.data(), 1, json.size(), f) == json.size();
  if (!f || (std::fclose(f) != 0) || !written) {
    throw IoError("trace", "cannot write " + path, "is the folder there and writable?");
  }
}

std::string op_table() {
  return table("op", [](const Event& e) { return full_name(e); });
}

void for_each_span(const std::function<void(const Span&)>& f) {
  for_each_event([&](const Event& e, int thread) {
    if (e.kind == Kind::memory) return;
    Span s{.name = e.name,
           .op = e.kind == Kind::op,
           .backward = e.backward,
           .view = e.view,
           .thread = thread,
           .begin = e.begin,
           .end = e.end,
           .bytes_in = e.bytes_in,
           .bytes_out = e.bytes,
           .dtype = e.dtype,
           .result = e.sizes,
           .operands = {}};
    for (int i = 0; i < 3; ++i) s.operands[i] = e.operands[i];
    f(s);
  });
}

std::string module_table() {
  return table("module", [](const Event& e) -> std::string {
    if (e.depth > 1) return "";  // its time is in that of the op around it
    return e.module ? module_path(e.module) : "(outside modules)";
  });
}

}  // namespace cutaway::trace

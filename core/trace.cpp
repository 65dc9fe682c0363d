#include <cutaway/core/trace.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <vector>

#include <cutaway/core/dispatch.h>
#include <cutaway/core/error.h>

namespace cutaway::trace {

std::atomic<bool> detail::on{false};

namespace {

constexpr size_t kRing = 1 << 16;
std::atomic<bool> logging{false};

int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

struct Event {
  const char* name;
  int64_t begin, end, bytes;
  const ModuleScope* module;
  const char* file;
  uint32_t line;
  int depth;
  bool op;
  Shape sizes;
  DType dtype;
  Device device;
};

// Events of one thread; written by it, read by whoever saves.
struct Ring {
  std::mutex mutex;
  std::vector<Event> events;
  size_t next = 0;
  int thread;
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

template <class F>
void for_each_event(F&& f) {
  std::lock_guard lock(rings().mutex);
  for (Ring* r : rings().all) {
    std::lock_guard ring_lock(r->mutex);
    for (const Event& e : r->events) f(e, r->thread);
  }
}

std::string quoted(const std::string& s) {
  std::string out;
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += uint8_t(c) < 0x20 ? ' ' : c;
  }
  return out;
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

void OpEvent::finish(const Tensor* outputs, int count) {
  const Context& c = context();
  Event e{.name = name_, .begin = begin_, .end = now_ns(), .bytes = 0, .module = c.module,
          .file = c.site.file_name(), .line = c.site.line(), .depth = c.call_depth, .op = true,
          .sizes = {}, .dtype = DType::f32, .device = kCpu};
  for (int i = 0; i < count; ++i) {
    if (!outputs[i].defined()) continue;
    e.bytes += outputs[i].numel() * size_of(outputs[i].dtype());
    if (i == 0) {
      e.sizes = outputs[i].sizes();
      e.dtype = outputs[i].dtype();
      e.device = outputs[i].device();
    }
  }
  my_ring().push(e);
  if (!logging) return;
  const std::string line = fmt::format(
      "{} {} {} {} {} {:.3f} us {}{}:{}\n", e.name, to_string(e.sizes), name_of(e.dtype),
      to_string(e.device), cpu_variant(), double(e.end - e.begin) * 1e-3,
      e.module ? module_path(e.module) + " " : "", e.file, e.line);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Range::Range(const char* name) : name_(enabled() ? name : nullptr), begin_(name_ ? now_ns() : 0) {}
Range::~Range() {
  if (!name_) return;
  const Context& c = context();
  my_ring().push({.name = name_, .begin = begin_, .end = now_ns(), .bytes = 0, .module = c.module,
                  .file = "", .line = 0, .depth = c.call_depth, .op = false, .sizes = {},
                  .dtype = DType::f32, .device = kCpu});
}

void save_chrome(const std::string& path) {
  std::string json = "{\"traceEvents\":[";
  bool first = true;
  for_each_event([&](const Event& e, int thread) {
    json += fmt::format("{}\n{{\"name\":\"{}\",\"ph\":\"X\",\"pid\":0,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},"
                        "\"args\":{{\"sizes\":\"{}\",\"dtype\":\"{}\",\"bytes\":{},\"module\":\"{}\","
                        "\"at\":\"{}:{}\"}}}}",
                        first ? "" : ",", quoted(e.name), thread, double(e.begin) * 1e-3,
                        double(e.end - e.begin) * 1e-3, to_string(e.sizes), name_of(e.dtype), e.bytes,
                        quoted(module_path(e.module)), quoted(e.file), e.line);
    first = false;
  });
  json += "]}\n";
  std::FILE* f = std::fopen(path.c_str(), "wb");
  const bool written = f && std::fwrite(json.data(), 1, json.size(), f) == json.size();
  if (!f || (std::fclose(f) != 0) || !written) {
    throw IoError("trace", "cannot write " + path, "is the folder there and writable?");
  }
}

std::string op_table() {
  struct Row {
    int64_t calls = 0, time = 0, bytes = 0;
  };
  std::map<std::string, Row> rows;
  for_each_event([&](const Event& e, int) {
    if (!e.op) return;
    Row& r = rows[e.name];
    ++r.calls;
    r.time += e.end - e.begin;
    r.bytes += e.bytes;
  });
  std::vector<std::pair<std::string, Row>> order(rows.begin(), rows.end());
  std::sort(order.begin(), order.end(), [](auto& a, auto& b) { return a.second.time > b.second.time; });
  std::string table = fmt::format("{:<24} {:>9} {:>12} {:>12} {:>14}\n", "op", "calls", "total ms", "mean us",
                                  "result bytes");
  for (const auto& [name, r] : order) {
    table += fmt::format("{:<24} {:>9} {:>12.3f} {:>12.3f} {:>14}\n", name, r.calls, double(r.time) * 1e-6,
                         double(r.time) * 1e-3 / double(r.calls), r.bytes);
  }
  return table;
}

}  // namespace cutaway::trace

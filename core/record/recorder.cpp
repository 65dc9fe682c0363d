#include <cutaway/core/record/recorder.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include <cutaway/core/context.h>
#include <cutaway/core/tensor.h>
#include <cutaway/core/text.h>

namespace cutaway::recording {
namespace {

constinit thread_local Recorder* current_recorder = nullptr;

using Access = ArgumentVisitor::Access;

}  // namespace

// Copies the arguments of one call into the tape and notes their pointers.
class Copier : public ArgumentVisitor {
 public:
  Copier(Recorder& recorder, Call& call) : recorder_(recorder), call_(call) {}

  // Where host results are written while the call runs for the first time.
  std::vector<void*> results;

  void random(uint64_t& seed, uint64_t& stream, uint64_t& offset) override {
    for (Recorder::Draw& d : recorder_.draws_) {
      if (d.at != Generator{seed, stream, offset}) continue;
      d.read = true;
      auto& states = recorder_.tape_->calls[size_t(d.call)].states;
      states.insert(states.end(), {&seed, &stream, &offset});
      return;
    }
    recorder_.refuse(call_.name, "draws from a generator of its own");
  }

 protected:
  void pointer(void* place, Access access) override { recorder_.add_operand(call_, place, access); }
  const void* host_copy(const void* list, size_t bytes) override {
    void* copy = recorder_.tape_->memory.take(bytes);
    std::memcpy(copy, list, bytes);
    return copy;
  }
  void* host_place(void* result, size_t bytes) override {
    auto* place = static_cast<std::byte*>(recorder_.tape_->memory.take(bytes));
    const auto* before = static_cast<const std::byte*>(result);
    call_.results.push_back({place, {before, before + bytes}, {}});
    results.push_back(result);
    return place;
  }

 private:
  Recorder& recorder_;
  Call& call_;
};

void* ArgumentMemory::take(size_t bytes) {
  constexpr size_t kChunk = 65536;
  const size_t rounded = (bytes + 15) / 16 * 16;
  if (rounded > left_) {
    const size_t size = std::max(kChunk, rounded);
    chunks_.push_back(std::make_unique<std::byte[]>(size));
    next_ = chunks_.back().get();
    left_ = size;
  }
  void* p = next_;
  next_ += rounded;
  left_ -= rounded;
  bytes_ += rounded;
  return p;
}

Tape::~Tape() {
  for (const Block& b : blocks) {
    if (b.storage) b.storage->drop();
  }
}

Recorder* Recorder::current() noexcept { return current_recorder; }

Recorder::Recorder(const std::vector<Input>& inputs)
    : tape_(std::make_unique<Tape>()), generator_(default_generator()) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& in = inputs[i];
    alive_[reinterpret_cast<uintptr_t>(in.begin)] = int(i);
    input_storages_.push_back(in.storage);
    tape_->blocks.push_back({.kind = Block::Kind::input,
                             .bytes = in.bytes,
                             .filled = true,
                             .input = int(i),
                             .base = in.begin});
  }
  current_recorder = this;
  ++detail::recordings;
}

Recorder::~Recorder() {
  if (current_recorder != this) return;
  current_recorder = nullptr;
  --detail::recordings;
}

void Recorder::refuse(const char* op, const std::string& why) {
  if (recording()) tape_->refused = fmt::format("{}: {}", op ? op : "host code", why);
}

int Recorder::find(const void* p, int64_t* offset) const {
  const auto address = reinterpret_cast<uintptr_t>(p);
  auto it = alive_.upper_bound(address);
  if (it == alive_.begin()) return -1;
  --it;
  const Block& b = tape_->blocks[size_t(it->second)];
  *offset = int64_t(address - it->first);
  return *offset < b.bytes || *offset == 0 ? it->second : -1;
}

void Recorder::add_operand(Call& call, void* place, Access access) {
  const void* p;
  std::memcpy(&p, place, sizeof p);
  Operand o{.at = static_cast<char*>(place), .access = access};
  o.block = find(p, &o.offset);
  if (o.block < 0) return refuse(call.name, "uses memory of no tensor");
  Block& b = tape_->blocks[size_t(o.block)];
  if (!b.filled && access != Access::write) {
    return refuse(call.name, fmt::format("reads {} that host code wrote in {}", bytes_text(b.bytes),
                                         b.made_by ? b.made_by : "no op"));
  }
  if (access != Access::read) b.filled = b.changed = true;
  call.operands.push_back(o);
}

void Recorder::kernel(const char* name, Device device, DType dtype, AnyKernel fn, const void* args,
                      const detail::ArgsInfo& info) {
  if (recording() && device.kind != DeviceKind::cpu) {
    refuse(name, "runs on " + to_string(device) + "; only work on the CPU is recorded");
  }
  if (recording() && !info.visit) refuse(name, "does not say what its arguments are");
  if (!recording()) {
    info.run({info.run, fn, const_cast<void*>(args)});
    return;
  }
  Call call{.name = name, .dtype = dtype, .info = &info, .renew = std::move(renew_)};
  renew_ = nullptr;
  void* copy = tape_->memory.take(info.bytes);
  std::memcpy(copy, args, info.bytes);
  call.call = {info.run, fn, copy};
  Copier copier(*this, call);
  info.visit(copier, copy);
  info.run({info.run, fn, const_cast<void*>(args)});
  for (size_t i = 0; i < copier.results.size(); ++i) {
    const auto* after = static_cast<const std::byte*>(copier.results[i]);
    call.results[i].after.assign(after, after + call.results[i].before.size());
  }
  if (recording()) tape_->calls.push_back(std::move(call));
}

void Recorder::made(Storage* s) {
  if (!recording()) return;
  alive_[reinterpret_cast<uintptr_t>(s->data)] = int(tape_->blocks.size());
  tape_->blocks.push_back({.bytes = s->bytes,
                           .made_by = context().op,
                           .filled = s->bytes == 0,
                           .base = static_cast<char*>(s->data)});
  live_bytes_ += s->bytes;
  tape_->eager_peak = std::max(tape_->eager_peak, live_bytes_);
}

void Recorder::freed(Storage* s) noexcept {
  const auto it = alive_.find(reinterpret_cast<uintptr_t>(s->data));
  if (it == alive_.end()) return;
  if (tape_->blocks[size_t(it->second)].kind == Block::Kind::temporary) live_bytes_ -= s->bytes;
  alive_.erase(it);
}

void Recorder::used(Storage* s) {
  if (!recording() || !s->data) return;
  if (alive_.count(reinterpret_cast<uintptr_t>(s->data))) return;
  if (std::count(input_storages_.begin(), input_storages_.end(), s)) return;
  s->retain();
  alive_[reinterpret_cast<uintptr_t>(s->data)] = int(tape_->blocks.size());
  tape_->blocks.push_back({.kind = Block::Kind::outside,
                           .bytes = s->bytes,
                           .filled = true,
                           .storage = s,
                           .base = static_cast<char*>(s->data)});
}

void Recorder::constant(Storage* s) {
  if (!recording()) return;
  const auto it = alive_.find(reinterpret_cast<uintptr_t>(s->data));
  if (it == alive_.end()) return;
  Block& b = tape_->blocks[size_t(it->second)];
  if (b.kind != Block::Kind::temporary || b.storage) return;
  s->retain();
  b.kind = Block::Kind::constant;
  b.storage = s;
  b.filled = true;
}

void Recorder::draw(const Generator& at, int64_t n) {
  if (!recording()) return;
  const Generator end{at.seed, at.stream, at.offset + (uint64_t(n) + 3) / 4};
  // A region that is run again starts where its first run did: the same numbers, no new draw.
  const bool again =
      std::any_of(draws_.begin(), draws_.end(), [&](const Draw& d) { return d.at == at; });
  if (again && at != generator_) return;
  if (at != generator_) return refuse("draw", "the default generator was set back");
  generator_ = end;
  draws_.push_back({at, int(tape_->calls.size())});
  tape_->calls.push_back({.kind = Call::Kind::draw, .name = "draw", .draw_elements = n});
}

void Recorder::host(const char* name, const std::vector<const void*>& reads,
                    std::function<void(const void* const*)> fn) {
  if (!recording()) return;
  Call call{.kind = Call::Kind::host, .name = name, .host = std::move(fn)};
  auto* values = static_cast<const void**>(tape_->memory.take((reads.size() + 1) * sizeof(void*)));
  size_t i = 0;
  for (const void* p : reads) {
    values[i] = p;
    add_operand(call, &values[i++], Access::read);
  }
  call.call.args = values;
  tape_->calls.push_back(std::move(call));
}

void Recorder::check_draws() {
  for (const Draw& d : draws_) {
    if (!d.read && tape_->calls[size_t(d.call)].draw_elements > 0) {
      refuse("draw", "host code uses random numbers");
    }
  }
  if (default_generator() != generator_) {
    refuse("draw", "the default generator was used in another way than by draw()");
  }
}

std::unique_ptr<Tape> Recorder::stop(const std::vector<Storage*>& results) {
  current_recorder = nullptr;
  --detail::recordings;
  check_draws();
  for (Storage* s : results) {
    const auto it = alive_.find(reinterpret_cast<uintptr_t>(s->data));
    if (it == alive_.end()) continue;
    Block& b = tape_->blocks[size_t(it->second)];
    if (b.kind != Block::Kind::temporary || b.storage) continue;
    s->retain();
    b.kind = Block::Kind::result;
    b.storage = s;
  }
  for (const Block& b : tape_->blocks) {
    if (b.kind == Block::Kind::constant && b.changed) {
      refuse(b.made_by, "a table made by host code is changed by a kernel");
    }
  }
  for (const auto& [address, index] : alive_) {
    const Block& b = tape_->blocks[size_t(index)];
    if (b.kind != Block::Kind::temporary || !recording()) continue;
    refuse(b.made_by, fmt::format("a tensor of {} made by the step is kept after it; return it "
                                  "from the function instead",
                                  bytes_text(b.bytes)));
    escaped_ = true;
  }
  return std::move(tape_);
}

bool active() noexcept { return recording_somewhere() && current_recorder; }

void refuse(const char* op, const char* why) {
  if (active()) current_recorder->refuse(op, why);
}

void constant(const Tensor& t) {
  if (active()) current_recorder->constant(t.storage());
}

void renew_next(std::function<bool(void* args)> fn) {
  if (active()) current_recorder->renew_next(std::move(fn));
}

void each_time(const char* name, const std::vector<const Tensor*>& reads,
               std::function<void(const void* const* values)> fn) {
  std::vector<const void*> values;
  for (const Tensor* t : reads) values.push_back(t->raw());
  if (active()) current_recorder->host(name, values, fn);
  fn(values.data());
}

}  // namespace cutaway::recording

namespace cutaway::detail {

using recording::current_recorder;

void record_kernel(const char* name, Device device, DType dtype, AnyKernel fn, const void* args,
                   const ArgsInfo& info) {
  if (current_recorder) return current_recorder->kernel(name, device, dtype, fn, args, info);
  info.run({info.run, fn, const_cast<void*>(args)});
}
void record_made(Storage* s) {
  if (current_recorder) current_recorder->made(s);
}
void record_freed(Storage* s) noexcept {
  if (current_recorder) current_recorder->freed(s);
}
void record_used(Storage* s) {
  if (current_recorder) current_recorder->used(s);
}
void record_draw(const Generator& at, int64_t n) {
  if (current_recorder) current_recorder->draw(at, n);
}

}  // namespace cutaway::detail

#include <cutaway/core/storage.h>

#include <cstring>
#include <new>

#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/error.h>
#include <cutaway/core/record/hook.h>

namespace cutaway {
namespace {

constexpr int64_t kHeader = 64;
static_assert(sizeof(Storage) <= kHeader);

// Host storages are one block: header, then data.
void release_host(Storage* s) noexcept {
  if (recording_somewhere()) [[unlikely]] detail::record_freed(s);
  const int64_t bytes = s->bytes;
  s->~Storage();
  pool_free(s, kHeader + bytes);
}

void release_header(Storage* s) noexcept {
  s->~Storage();
  pool_free(s, kHeader);
}

void release_device(Storage* s) noexcept {
  backend(s->device.kind).release(s->device.index, s->data, s->bytes);
  release_header(s);
}

void release_wrapped(Storage* s) noexcept {
  if (s->release_owner) s->release_owner(s->owner);
  release_header(s);
}

// Bytes of a host block. Impossible requests stay impossible, so that the pool refuses them.
int64_t block_bytes(int64_t bytes) {
  return bytes < 0 || bytes > INT64_MAX - kHeader ? bytes : kHeader + bytes;
}

}  // namespace

Storage* make_storage(Device device, int64_t bytes) {
  if (device.kind == DeviceKind::cpu) [[likely]] {
    void* block = pool_allocate(block_bytes(bytes));
    Storage* s = new (block) Storage;
    s->data = static_cast<char*>(block) + kHeader;
    s->bytes = bytes;
    s->release = release_host;
#ifndef NDEBUG
    std::memset(s->data, 0xff, size_t(bytes));  // what is read before it is written shows as NaN
#endif
    if (recording_somewhere()) [[unlikely]] detail::record_made(s);
    return s;
  }
  Storage* s = new (pool_allocate(kHeader)) Storage;
  s->device = device;
  s->bytes = bytes;
  s->release = release_header;
  if (device.kind != DeviceKind::meta) {
    try {
      s->data = backend(device.kind).allocate(device.index, bytes);
    } catch (...) {
      release_header(s);
      throw;
    }
    s->release = release_device;
  }
  return s;
}

Storage* wrap_storage(Device device, void* data, int64_t bytes, void* owner,
                      void (*release_owner)(void*) noexcept) {
  Storage* s = new (pool_allocate(kHeader)) Storage;
  s->device = device;
  s->data = data;
  s->bytes = bytes;
  s->owner = owner;
  s->release_owner = release_owner;
  s->release = release_wrapped;
  return s;
}

}  // namespace cutaway

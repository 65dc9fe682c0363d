#include <cutaway/core/alloc/pool.h>

#include <gtest/gtest.h>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include <cutaway/core/context.h>
#include <cutaway/core/error.h>
#include <cutaway/core/storage.h>
#include <cutaway/core/tensor.h>

namespace cutaway {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kPooling = false;
#else
constexpr bool kPooling = true;
#endif

constexpr int64_t kMega = int64_t(1) << 20;

// Sets the thread's op and module for a while.
struct Working {
  Context kept = context();
  Working(const char* op, const ModuleScope* module) {
    context().op = op;
    context().module = module;
  }
  ~Working() { context() = kept; }
};

// No bound on memory and an empty cache, before and after.
class Pool : public testing::Test {
 protected:
  Pool() { trim_memory(); }
  ~Pool() override {
    set_memory_limit(0);
    trim_memory();
  }
  const MemoryStats before_ = memory_stats();
  int64_t live() const { return memory_stats().live - before_.live; }
};

TEST_F(Pool, BlocksAreAlignedApartAndCounted) {
  std::vector<std::pair<char*, int64_t>> blocks;
  for (int64_t bytes : {0, 1, 63, 64, 65, 1000, 1024, 1025, 4097, 32768, 32769, 300000}) {
    char* p = static_cast<char*>(pool_allocate(bytes));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u) << bytes;
    std::memset(p, int(blocks.size()), size_t(bytes));
    blocks.emplace_back(p, bytes);
  }
  EXPECT_EQ(memory_stats().allocations - before_.allocations, int64_t(blocks.size()));
  EXPECT_GE(live(), 1 + 63 + 64 + 65 + 1000 + 1024 + 1025 + 4097 + 32768 + 32769 + 300000);
  for (size_t k = 0; k < blocks.size(); ++k) {
    const auto [p, bytes] = blocks[k];
    for (int64_t i = 0; i < bytes; ++i) ASSERT_EQ(p[i], char(k));
    pool_free(p, bytes);
  }
  EXPECT_EQ(live(), 0);
}

TEST_F(Pool, SmallSizesRoundUpByLessThanAQuarter) {
  if (!kPooling) GTEST_SKIP() << "blocks are not rounded under the sanitizer";
  for (int64_t bytes = 1; bytes <= 32768; bytes += bytes < 1100 ? 1 : 97) {
    void* p = pool_allocate(bytes);
    const int64_t got = live();
    EXPECT_GE(got, bytes);
    EXPECT_LT(got, std::max<int64_t>(bytes + 64, bytes + bytes / 4 + 1)) << bytes;
    pool_free(p, bytes);
  }
  EXPECT_EQ(live(), 0);
}

TEST_F(Pool, ASmallBlockIsReusedAtOnce) {
  if (!kPooling) GTEST_SKIP() << "there is no reuse under the sanitizer";
  void* p = pool_allocate(200);
  pool_free(p, 200);
  void* q = pool_allocate(193);  // the same class
  EXPECT_EQ(p, q);
  pool_free(q, 193);
}

TEST_F(Pool, RequestsThatTheCacheServesAskNothingOfTheSystem) {
  if (!kPooling) GTEST_SKIP() << "there is no reuse under the sanitizer";
  const auto use = [] {
    for (const int64_t bytes : {int64_t(100), 40 * kMega, 3 * kMega, int64_t(20000)}) {
      pool_free(pool_allocate(bytes), bytes);
    }
  };
  const int64_t first = memory_stats().from_system;
  use();
  const int64_t filled = memory_stats().from_system;
  EXPECT_GT(filled, first);
  for (int i = 0; i < 5; ++i) use();
  EXPECT_EQ(memory_stats().from_system, filled);
  trim_memory();
  use();
  EXPECT_GT(memory_stats().from_system, filled);
}

TEST_F(Pool, FreedMemoryServesRequestsOfOtherSizes) {
  if (!kPooling) GTEST_SKIP() << "there is no reuse under the sanitizer";
  char* p = static_cast<char*>(pool_allocate(4 * kMega));
  pool_free(p, 4 * kMega);
  EXPECT_GE(memory_stats().largest_free, 4 * kMega);
  char* small = static_cast<char*>(pool_allocate(kMega));
  char* more = static_cast<char*>(pool_allocate(2 * kMega));
  for (char* q : {small, more}) {
    EXPECT_GE(q, p);
    EXPECT_LT(q, p + 4 * kMega);
  }
  pool_free(small, kMega);
  pool_free(more, 2 * kMega);
  char* again = static_cast<char*>(pool_allocate(4 * kMega));
  EXPECT_EQ(again, p);
  pool_free(again, 4 * kMega);
  EXPECT_GE(memory_stats().cached - before_.cached, 4 * kMega);
  EXPECT_GE(trim_memory(), 4 * kMega);
  EXPECT_LE(memory_stats().cached, before_.cached);
}

TEST_F(Pool, PeakFollowsLargeBlocks) {
  reset_peak_memory();
  const int64_t base = memory_stats().peak;
  void* a = pool_allocate(3 * kMega);
  void* b = pool_allocate(5 * kMega);
  pool_free(a, 3 * kMega);
  pool_free(b, 5 * kMega);
  EXPECT_EQ(memory_stats().peak - base, 8 * kMega);
  reset_peak_memory();
  EXPECT_EQ(memory_stats().peak, base);
}

TEST_F(Pool, TheCacheHasABound) {
  set_memory_cache_limit(3 * kMega);
  void* a = pool_allocate(2 * kMega);
  void* b = pool_allocate(2 * kMega);
  pool_free(a, 2 * kMega);
  pool_free(b, 2 * kMega);
  EXPECT_NEAR(double(memory_stats().cached - before_.cached), kPooling ? 2.0 * kMega : 0.0, 256);
  set_memory_cache_limit(kMega);
  EXPECT_EQ(memory_stats().cached, before_.cached);
  set_memory_cache_limit(int64_t(1) << 32);
  EXPECT_THROW(set_memory_cache_limit(-1), ValueError);
  EXPECT_THROW(set_memory_limit(-1), ValueError);
}

TEST_F(Pool, BeyondTheLimitTheErrorListsHolders) {
  const ModuleScope* net = intern_scope(nullptr, "net", "Net");
  const ModuleScope* fc = intern_scope(net, "fc1", "Linear");
  Tensor held;
  {
    Working w("matmul", fc);
    held = empty({3 * kMega}, {.dtype = DType::u8});
  }
  Tensor other = empty({kMega}, {.dtype = DType::u8});
  set_memory_limit(memory_stats().live + 2 * kMega);
  Working w("relu", net);
  const MemoryStats then = memory_stats();
  try {
    empty({int64_t(1) << 30}, {.dtype = DType::f32});
    FAIL() << "the limit was not kept";
  } catch (const MemoryError& e) {
    const std::string text = e.what();
    EXPECT_EQ(text.find("[relu] out of memory; got a request for 4294967"), 0u) << text;
    for (const char* part : {"4.00 GiB", "limit ", "live ", "cached ", "largest free block",
                             "3.00 MiB  matmul in net.fc1 (Linear)", "at  net (Net)", "hint: "}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
    }
    EXPECT_LT(text.find("matmul in"), text.find("(outside ops)")) << "largest first";
  }
  EXPECT_EQ(memory_stats().live, then.live) << "a failed request leaves nothing behind";
  set_memory_limit(0);
  EXPECT_NO_THROW(empty({4 * kMega}, {.dtype = DType::u8}));
}

TEST_F(Pool, TheCacheMakesRoomBeforeARequestFails) {
  set_memory_limit(memory_stats().live + 8 * kMega);
  void* a = pool_allocate(2 * kMega);
  void* b = pool_allocate(2 * kMega);
  pool_free(a, 2 * kMega);
  pool_free(b, 2 * kMega);
  void* big = pool_allocate(7 * kMega);  // only fits when the cache is given back
  pool_free(big, 7 * kMega);
}

TEST_F(Pool, ImpossibleSizesAreErrors) {
  const int64_t live = memory_stats().live;
  for (int64_t bytes : {int64_t(-1), INT64_MIN, INT64_MAX, int64_t(1) << 47, int64_t(1) << 44}) {
    EXPECT_THROW(pool_allocate(bytes), MemoryError) << bytes;
    EXPECT_THROW(make_storage(kCpu, bytes), MemoryError) << bytes;
  }
  EXPECT_EQ(memory_stats().live, live);
}

TEST_F(Pool, ThreadsFreeEachOthersBlocks) {
  constexpr int kRounds = 200, kBlocks = 500;
  const int64_t reserved = memory_stats().live + memory_stats().cached;
  std::mutex mutex;
  std::vector<char*> ready;
  std::atomic<bool> done{false};
  std::atomic<int64_t> wrong{0};
  std::thread consumer([&] {
    for (;;) {
      std::vector<char*> mine;
      const bool last = done;
      {
        std::lock_guard lock(mutex);
        mine.swap(ready);
      }
      for (char* p : mine) {
        wrong += p[0] != 7 || p[199] != 7;
        pool_free(p, 200);
      }
      if (last && mine.empty()) return;
      std::this_thread::yield();
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kBlocks; ++i) {
      char* p = static_cast<char*>(pool_allocate(200));
      std::memset(p, 7, 200);
      std::lock_guard lock(mutex);
      ready.push_back(p);
    }
    for (;;) {  // at most a few rounds are in flight, so that the memory needed is bounded
      std::lock_guard lock(mutex);
      if (ready.size() < 4 * kBlocks) break;
    }
  }
  done = true;
  consumer.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(live(), 0);
  // 100 000 blocks of 256 bytes passed through; what the pool holds stays near what was in flight.
  EXPECT_LT(memory_stats().live + memory_stats().cached - reserved, 4 * kMega);
}

TEST_F(Pool, AThreadThatEndsLeavesItsFreeBlocks) {
  std::vector<void*> blocks;
  for (int round = 0; round < 50; ++round) {
    std::thread([&] {
      for (int i = 0; i < 100; ++i) blocks.push_back(pool_allocate(320));
      for (int i = 0; i < 300; ++i) pool_free(pool_allocate(64 * (i % 40 + 1)), 64 * (i % 40 + 1));
    }).join();
    EXPECT_GE(live(), 100 * 320);
    for (void* p : blocks) pool_free(p, 320);
    blocks.clear();
    EXPECT_EQ(live(), 0);
  }
  if (kPooling) {
    EXPECT_LT(memory_stats().cached - before_.cached, 2 * kMega);
  }
}

// Freed after the free lists of the thread are gone, and by static destructors at the end of the
// process: both must find the shared lists.
thread_local Tensor late;
Tensor last_of_all;

TEST_F(Pool, TensorsOutliveTheListsOfTheirThread) {
  std::thread([] {
    late = empty({3});  // made before the thread's pool, hence destroyed after it
    late = empty({5});
  }).join();
  EXPECT_EQ(live(), 0);
  last_of_all = empty({7});
}

TEST_F(Pool, SnapshotIsJsonAndEscapesNames) {
  const ModuleScope* odd = intern_scope(nullptr, "a\"b\\c", "Net");
  Tensor t;
  {
    Working w("conv2d", odd);
    t = empty({kMega}, {.dtype = DType::u8});
  }
  const auto json = nlohmann::json::parse(memory_snapshot_json());
  EXPECT_EQ(json.at("live").get<int64_t>(), memory_stats().live);
  EXPECT_GE(json.at("peak").get<int64_t>(), kMega);
  bool found = false;
  for (const auto& b : json.at("blocks")) {
    found = found ||
            (b.at("op") == "conv2d" && b.at("module") == "a\"b\\c (Net)" && b.at("bytes") >= kMega);
  }
  EXPECT_TRUE(found);
}

TEST(Storage, IsCountedAndWrapsForeignMemory) {
  Storage* s = make_storage(kCpu, 100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(s->data) % 64, 0u);
  EXPECT_EQ(s->bytes, 100);
  s->retain();
  s->drop();
  s->bump("add_");
  EXPECT_EQ(s->version, 1u);
  EXPECT_STREQ(s->writer, "add_");
  s->drop();
  Storage* meta = make_storage(kMeta, int64_t(1) << 60);
  EXPECT_EQ(meta->data, nullptr);
  meta->drop();
  Storage* none = make_storage(kCpu, 0);
  none->drop();

  int released = 0;
  float memory[4] = {};
  Storage* w = wrap_storage(kCpu, memory, sizeof(memory), &released,
                            [](void* owner) noexcept { ++*static_cast<int*>(owner); });
  w->retain();
  w->drop();
  EXPECT_EQ(released, 0);
  w->drop();
  EXPECT_EQ(released, 1);
}

}  // namespace
}  // namespace cutaway

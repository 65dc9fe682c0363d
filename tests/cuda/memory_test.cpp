#include <cutaway/cuda/emu/memory.h>

#include <gtest/gtest.h>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <cutaway/core/device.h>
#include <cutaway/core/error.h>
#include <cutaway/core/tensor.h>

namespace cutaway::cuda::emu {
namespace {

constexpr Device kEmu{DeviceKind::emu, 0};

template <class F>
std::string error_of(F&& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(EmuMemory, BlocksAreAlignedApartAndPoisoned) {
  char* a = static_cast<char*>(allocate(100));
  char* b = static_cast<char*>(allocate(0));
  EXPECT_EQ(uintptr_t(a) % kAlignment, 0u);
  EXPECT_EQ(uintptr_t(b) % kAlignment, 0u);
  {
    Access access;
    for (int i = 0; i < 100; ++i) EXPECT_EQ(static_cast<unsigned char>(a[i]), 0xff);
    float value;
    std::memcpy(&value, a, sizeof value);
    EXPECT_TRUE(std::isnan(value));
  }
  EXPECT_NO_THROW(check_red_zones());
  release(a);
  release(b);
  EXPECT_NO_THROW(raise_faults());
}

TEST(EmuMemory, FindsTheBlockOfAPointer) {
  std::vector<char*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(static_cast<char*>(allocate(10 + i)));
  for (int i = 0; i < 100; ++i) {
    for (const int at : {0, 5, 10 + i}) {  // also right behind the block
      const Block b = find_block(blocks[size_t(i)] + at);
      EXPECT_EQ(b.begin, blocks[size_t(i)]);
      EXPECT_EQ(b.bytes, 10 + i);
      EXPECT_FALSE(b.freed);
    }
    EXPECT_EQ(find_block(blocks[size_t(i)] + 10 + i + 1).begin, nullptr);
    EXPECT_EQ(find_block(blocks[size_t(i)] - 1).begin, nullptr);
  }
  int on_host = 0;
  EXPECT_EQ(find_block(&on_host).begin, nullptr);
  EXPECT_EQ(find_block(nullptr).begin, nullptr);
  for (char* b : blocks) release(b);
  EXPECT_TRUE(find_block(blocks.back()).freed);
}

TEST(EmuMemory, ABrokenRedZoneIsFoundOnDemandAndOnFree) {
  for (const int64_t at : {int64_t(-1), int64_t(-kRedZone), int64_t(24), int64_t(87)}) {
    char* a = static_cast<char*>(allocate(24));
    {
      Access access;
      a[at] = 1;
    }
    const std::string want = at < 0 ? std::to_string(-at) + " bytes before its begin"
                                    : std::to_string(at - 24) + " bytes behind its end";
    const std::string text = error_of([] { check_red_zones(); });
    EXPECT_NE(text.find(want), std::string::npos) << text;
    EXPECT_NE(text.find("24 bytes"), std::string::npos) << text;
    release(a);
    EXPECT_NE(error_of([] { synchronize(kEmu); }).find(want), std::string::npos);
    EXPECT_EQ(error_of([] { synchronize(kEmu); }), "");  // said once
  }
}

TEST(EmuMemory, AWriteAfterFreeIsFound) {
  char* a = static_cast<char*>(allocate(16));
  release(a);
  {
    Access access;
    a[3] = 0;
  }
  const std::string text = error_of([] { check_red_zones(); });
  EXPECT_NE(text.find("something wrote to byte 3 after it was freed"), std::string::npos) << text;
  {
    Access access;
    a[3] = char(0xff);
  }
  EXPECT_NO_THROW(check_red_zones());
}

TEST(EmuMemory, FreeingTwiceOrSomethingElseIsReportedAtTheNextSync) {
  void* a = allocate(16);
  release(a);
  release(a);
  EXPECT_NE(error_of([] { raise_faults(); }).find("was freed twice"), std::string::npos);
  int on_host = 0;
  release(&on_host);
  EXPECT_NE(error_of([] { raise_faults(); }).find("no block was freed"), std::string::npos);
}

TEST(EmuMemory, ImpossibleRequestsAreMemoryErrors) {
  EXPECT_THROW(allocate(-1), MemoryError);
  EXPECT_THROW(allocate(int64_t(1) << 60), MemoryError);
  EXPECT_THROW(allocate(INT64_MAX), MemoryError);
  EXPECT_THROW(empty({int64_t(1) << 50}, {.device = kEmu}), MemoryError);
  EXPECT_THROW(empty({2}, {.device = {DeviceKind::emu, 1}}), DeviceError);
}

TEST(EmuMemory, CountsBytesAndBlocks) {
  const Stats before = stats();
  void* a = allocate(1000);
  void* b = allocate(500);
  EXPECT_EQ(stats().live, before.live + 1500);
  EXPECT_EQ(stats().blocks, before.blocks + 2);
  EXPECT_EQ(stats().allocations, before.allocations + 2);
  EXPECT_GE(stats().peak, before.live + 1500);
  release(a);
  release(b);
  EXPECT_EQ(stats().live, before.live);
  EXPECT_EQ(stats().blocks, before.blocks);
}

TEST(EmuMemory, FreedMemoryIsUsedAgain) {
  // Many times the capacity in all: pieces must be joined and reused.
  const int64_t bytes = stats().capacity / 16;
  for (int i = 0; i < 40; ++i) {
    void* a = allocate(1 << 20);
    void* b = allocate((1 << 16) * (i + 1));
    release(a);
    release(b);
  }
  EXPECT_GT(bytes, 1 << 22);
  EXPECT_NO_THROW(check_red_zones());
}

TEST(EmuMemory, CopiesCheckTheRange) {
  const Backend& emu = backend(DeviceKind::emu);
  float host[4] = {1, 2, 3, 4}, back[4] = {};
  float* a = static_cast<float*>(emu.allocate(0, sizeof host));
  float* b = static_cast<float*>(emu.allocate(0, sizeof host));
  emu.copy_from_host(0, a, host, sizeof host);
  emu.copy(0, b, a, sizeof host);
  emu.copy_to_host(0, back, b, sizeof host);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(back[i], host[i]);
  EXPECT_THROW(emu.copy_to_host(0, back, b + 1, sizeof host), DeviceError);
  EXPECT_THROW(emu.copy_to_host(0, back, host, sizeof host), DeviceError);
  EXPECT_THROW(emu.copy_from_host(0, back, host, sizeof host), DeviceError);
  emu.release(0, a, sizeof host);
  const std::string text = error_of([&] { emu.copy_to_host(0, back, a, sizeof host); });
  EXPECT_NE(text.find("freed"), std::string::npos) << text;
  emu.release(0, b, sizeof host);
}

TEST(EmuMemory, ManyThreadsMayAllocate) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        char* a = static_cast<char*>(allocate(64 + t));
        {
          Access access;
          std::memset(a, t, size_t(64 + t));
          EXPECT_EQ(a[63 + t], t);
        }
        release(a);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_NO_THROW(check_red_zones());
}

TEST(EmuMemoryDeathTest, TheGuardStopsHostAccess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        set_guard(true);
        volatile char* a = static_cast<char*>(allocate(16));
        a[0] = 1;
      },
      "");
  const bool before = guard();
  set_guard(true);
  char* a = static_cast<char*>(allocate(16));
  {
    Access outer;
    a[0] = 1;
    { Access inner; }
    EXPECT_EQ(a[0], 1);
  }
  set_guard(before);
  release(a);
}

}  // namespace
}  // namespace cutaway::cuda::emu

#include <gtest/gtest.h>

#include <map>
#include <set>

#include <cutaway/core/error.h>
#include <cutaway/cuda/alloc/caching.h>

namespace cutaway::cuda {
namespace {

// Host memory of bounded size, and queues whose marks pass when the test says so.
struct Host {
  int64_t capacity = int64_t{1} << 40, taken = 0;
  std::map<void*, int64_t> segments;
  std::set<void*> passed;
  int64_t marks = 0;
  CachingAllocator allocator{
      {.allocate = [this](int64_t bytes) -> void* {
         if (taken + bytes > capacity) return nullptr;
         // Addresses only: nothing is stored.
         void* p = reinterpret_cast<void*>((int64_t{1} << 44) + next);
         next += bytes + (1 << 20);
         segments[p] = bytes;
         taken += bytes;
         return p;
       },
       .release =
           [this](void* p) {
             taken -= segments.at(p);
             segments.erase(p);
           },
       .mark = [this](void*) { return reinterpret_cast<void*>(++marks); },
       .passed = [this](void* mark, bool wait) { return wait || passed.count(mark) > 0; },
       .room = [] { return std::string("nothing free"); }}};
  int64_t next = 0;
};
void* queue(int64_t i) { return reinterpret_cast<void*>(i); }

TEST(CachingAllocator, ReusesInTheSameQueueOnly) {
  Host h;
  void* a = h.allocator.allocate(1000, queue(1));
  h.allocator.release(a);
  EXPECT_EQ(h.allocator.allocate(900, queue(1)), a);
  h.allocator.release(a);
  EXPECT_NE(h.allocator.allocate(900, queue(2)), a);
  EXPECT_EQ(h.allocator.stats().segments, 2);
}
TEST(CachingAllocator, SplitsAndJoins) {
  Host h;
  char* a = static_cast<char*>(h.allocator.allocate(1, queue(1)));
  char* b = static_cast<char*>(h.allocator.allocate(512, queue(1)));
  char* c = static_cast<char*>(h.allocator.allocate(513, queue(1)));
  char* d = static_cast<char*>(h.allocator.allocate(0, queue(1)));
  EXPECT_EQ(b, a + 512);
  EXPECT_EQ(c, b + 512);
  EXPECT_EQ(d, c + 1024);
  h.allocator.release(a);
  h.allocator.release(c);
  h.allocator.release(b);
  EXPECT_EQ(h.allocator.allocate(2048, queue(1)), a);  // all three, joined
  h.allocator.release(a);
  h.allocator.release(d);
  const auto s = h.allocator.stats();
  EXPECT_EQ(s.live, 0);
  EXPECT_EQ(s.splits, s.merges);
  EXPECT_EQ(h.allocator.trim(), CachingAllocator::kSmallSegment);
  EXPECT_EQ(h.taken, 0);
}
TEST(CachingAllocator, SmallestFittingPieceFirst) {
  Host h;
  void* p[6];
  const int64_t sizes[] = {4096, 512, 1024, 512, 2048, 512};
  for (int i = 0; i < 6; ++i) p[i] = h.allocator.allocate(sizes[i], queue(1));
  for (int i : {0, 2, 4}) h.allocator.release(p[i]);
  EXPECT_EQ(h.allocator.allocate(1024, queue(1)), p[2]);
  EXPECT_EQ(h.allocator.allocate(1500, queue(1)), p[4]);
  EXPECT_EQ(h.allocator.allocate(1500, queue(1)), p[0]);
}
TEST(CachingAllocator, LargeRequestsHaveTheirOwnSegments) {
  Host h;
  h.allocator.allocate(100, queue(1));
  h.allocator.allocate(3 << 20, queue(1));
  h.allocator.allocate(3 << 20, queue(1));
  h.allocator.allocate(31 << 20, queue(1));
  EXPECT_EQ(h.allocator.stats().segments, 3);
  EXPECT_EQ(h.allocator.stats().reserved, (2 << 20) + (20 << 20) + (32 << 20));
}
TEST(CachingAllocator, OtherQueuesAreWaitedFor) {
  Host h;
  void* a = h.allocator.allocate(1000, queue(1));
  h.allocator.note_use(a, queue(1));  // its own: nothing to wait for
  h.allocator.note_use(a, queue(2));
  h.allocator.note_use(a, queue(2));
  h.allocator.release(a);
  EXPECT_EQ(h.marks, 1);
  EXPECT_NE(h.allocator.allocate(1000, queue(1)), a);
  h.passed.insert(reinterpret_cast<void*>(1));
  EXPECT_EQ(h.allocator.allocate(1000, queue(1)), a);
}
TEST(CachingAllocator, FullMemoryIsTrimmedThenReported) {
  Host h;
  h.capacity = 44 << 20;
  void* a = h.allocator.allocate(12 << 20, queue(1), "conv");
  void* b = h.allocator.allocate(30 << 20, queue(2), "matmul");
  h.allocator.release(a);
  EXPECT_NE(h.allocator.allocate(13 << 20, queue(2), "relu"), nullptr);  // a's segment is given up
  try {
    h.allocator.allocate(4 << 20, queue(1));
    FAIL();
  } catch (const MemoryError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("no room for 4194304 bytes"), std::string::npos) << text;
    EXPECT_NE(text.find("nothing free"), std::string::npos) << text;
    EXPECT_LT(text.find("matmul: 31457280 bytes in 1 blocks"), text.find("relu: "));
  }
  h.allocator.release(b);
  EXPECT_NE(h.allocator.allocate(4 << 20, queue(1)), nullptr);
  EXPECT_THROW(h.allocator.allocate(-1, queue(1)), MemoryError);
  EXPECT_THROW(h.allocator.allocate(int64_t{1} << 62, queue(1)), MemoryError);
}
TEST(CachingAllocator, AnHeirGetsTheMemoryOfAQueue) {
  Host h;
  void* a = h.allocator.allocate(1000, queue(7));
  void* b = h.allocator.allocate(1000, queue(7));
  h.allocator.release(b);
  h.allocator.bequeath(queue(7), queue(1));
  EXPECT_EQ(h.allocator.allocate(1000, queue(1)), b);
  h.allocator.release(a);
  EXPECT_EQ(h.allocator.allocate(1000, queue(1)), a);
  EXPECT_EQ(h.allocator.stats().segments, 1);
}
TEST(CachingAllocator, UnknownPointersAreIgnored) {
  Host h;
  int x = 0;
  h.allocator.release(&x);
  h.allocator.release(nullptr);
  void* a = h.allocator.allocate(10, queue(1));
  h.allocator.release(a);
  h.allocator.release(a);
  EXPECT_EQ(h.allocator.stats().blocks, 0);
}

}  // namespace
}  // namespace cutaway::cuda

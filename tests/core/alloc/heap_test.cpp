#include <cutaway/core/alloc/heap.h>

#include <gtest/gtest.h>
#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace cutaway {
namespace {

constexpr int64_t kMega = int64_t(1) << 20;

char* data(HeapBlock* b) { return reinterpret_cast<char*>(b + 1); }

TEST(Heap, BlocksKeepWhatIsWrittenAndDoNotOverlap) {
  Heap heap(256 * kMega);
  std::mt19937 rng(7);
  struct Held {
    HeapBlock* block;
    int64_t bytes;
    char mark;
  };
  std::vector<Held> held;
  std::map<char*, char*> ranges;  // of live blocks
  for (int step = 0; step < 4000; ++step) {
    if (held.empty() || rng() % 100 < 55) {
      const int64_t bytes = 1 + int64_t(rng() % (rng() % 8 ? 5000 : 900000));
      HeapBlock* b = heap.take(bytes);
      if (!b) continue;
      ASSERT_GE(b->bytes, bytes);
      ASSERT_LT(b->bytes, bytes + 129);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(data(b)) % 64, 0u);
      auto after = ranges.lower_bound(data(b));
      if (after != ranges.end()) {
        ASSERT_LE(data(b) + b->bytes, after->first);
      }
      if (after != ranges.begin()) {
        ASSERT_LE((--after)->second, data(b));
      }
      ranges[data(b)] = data(b) + b->bytes;
      const char mark = char(step);
      std::memset(data(b), mark, size_t(bytes));
      held.push_back({b, bytes, mark});
    } else {
      const size_t i = rng() % held.size();
      const Held h = held[i];
      for (int64_t k = 0; k < h.bytes; k += 1 + h.bytes / 50) ASSERT_EQ(data(h.block)[k], h.mark);
      ASSERT_EQ(data(h.block)[h.bytes - 1], h.mark);
      ranges.erase(data(h.block));
      heap.give(h.block, rng() % 4 != 0);
      held[i] = held.back();
      held.pop_back();
      if (rng() % 200 == 0) {
        heap.release();
        ASSERT_EQ(heap.cached(), 0);
      }
    }
    ASSERT_GE(heap.cached(), 0);
    ASSERT_LE(heap.largest_free(), heap.cached());
  }
  for (const Held& h : held) heap.give(h.block);
  // Everything is one free block again.
  EXPECT_EQ(heap.largest_free(), heap.cached());
  EXPECT_EQ(heap.growth(heap.cached()), 0);
}

TEST(Heap, TakesTheSmallestThatFits) {
  Heap heap(64 * kMega);
  HeapBlock* a = heap.take(3 * kMega);
  HeapBlock* wall = heap.take(64);
  HeapBlock* b = heap.take(2 * kMega);
  HeapBlock* end = heap.take(64);
  heap.give(a);
  heap.give(b);
  EXPECT_EQ(heap.growth(2 * kMega), 0);
  HeapBlock* c = heap.take(2 * kMega - 100);
  EXPECT_EQ(c, b);
  HeapBlock* d = heap.take(2 * kMega - 100);
  EXPECT_EQ(d, a);
  for (HeapBlock* h : {c, d, wall, end}) heap.give(h);
}

TEST(Heap, GrowsByWhatItLacks) {
  Heap heap(64 * kMega);
  HeapBlock* first = heap.take(kMega);
  HeapBlock* last = heap.take(3 * kMega);
  heap.give(last);
  EXPECT_EQ(heap.growth(5 * kMega), 2 * kMega);
  HeapBlock* larger = heap.take(5 * kMega);  // begins where the free one at the end began
  EXPECT_EQ(larger, last);
  heap.give(larger, false);
  EXPECT_EQ(heap.cached(), 0);
  EXPECT_EQ(heap.growth(kMega), kMega);
  heap.give(first);
}

TEST(Heap, ReleasedPagesAreZeroAgain) {
  Heap heap(64 * kMega);
  HeapBlock* b = heap.take(4 * kMega);
  std::memset(data(b), 1, size_t(4 * kMega));
  heap.give(b);
  EXPECT_EQ(heap.release(), 4 * kMega);
  b = heap.take(4 * kMega);
  int64_t left = 0;
  for (int64_t i = 0; i < 4 * kMega; ++i) left += data(b)[i] != 0;
  EXPECT_LT(left, 2 * 65536) << "only parts of pages at the ends keep what they held";
  heap.give(b);
}

TEST(Heap, TheEndOfTheAddressesIsNotAnError) {
  Heap heap(4 * kMega);
  EXPECT_EQ(heap.take(5 * kMega), nullptr);
  HeapBlock* b = heap.take(3 * kMega);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(heap.take(kMega), nullptr);
  heap.give(b);
  EXPECT_NE(b = heap.take(4 * kMega - 64), nullptr);
  heap.give(b);
}

TEST(Heap, FewerAddressesThanAskedForWillDo) {
  Heap heap(int64_t(1) << 60);
  HeapBlock* b = heap.take(kMega);
  ASSERT_NE(b, nullptr);
  data(b)[kMega - 1] = 1;
  heap.give(b);
}

}  // namespace
}  // namespace cutaway

#include <cutaway/core/parallel.h>

#include <atomic>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <cutaway/core/context.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

class Parallel : public testing::Test {
 protected:
  ~Parallel() override { set_num_threads(before_); }
  const int before_ = num_threads();
};

TEST_F(Parallel, EveryChunkRunsOnce) {
  for (int threads : {1, 2, 4, 7}) {
    set_num_threads(threads);
    for (int64_t chunks : {0, 1, 2, 3, 64, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(chunks));
      parallel_chunks(chunks, [&](int64_t i) { ++hits[size_t(i)]; });
      for (const auto& h : hits) ASSERT_EQ(h, 1);
    }
  }
}

TEST_F(Parallel, RangesCoverEverythingWithoutOverlap) {
  for (int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    for (int64_t n : {0, 1, 9, 10, 11, 99, 100, 1001}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
      std::atomic<int> calls{0};
      parallel_for(n, 10, [&](int64_t begin, int64_t end) {
        ++calls;
        EXPECT_LT(begin, end);
        for (int64_t i = begin; i < end; ++i) ++hits[size_t(i)];
      });
      for (const auto& h : hits) ASSERT_EQ(h, 1);
      EXPECT_LE(calls, threads);
      EXPECT_TRUE(n > 10 || calls <= 1);
    }
  }
}

TEST_F(Parallel, TheLowestFailingChunkIsReported) {
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    for (int round = 0; round < 50; ++round) {
      try {
        parallel_chunks(100, [](int64_t i) {
          if (i % 10 == 7) throw IndexError("take", "bad index; got " + std::to_string(i));
        });
        FAIL();
      } catch (const IndexError& e) {
        EXPECT_STREQ(e.what(), "[take] bad index; got 7");
      }
    }
    // The next region works as ever.
    std::atomic<int> calls{0};
    parallel_chunks(10, [&](int64_t) { ++calls; });
    EXPECT_EQ(calls, 10);
  }
}

TEST_F(Parallel, ExceptionsOfAnyTypePass) {
  set_num_threads(3);
  EXPECT_THROW(parallel_chunks(9, [](int64_t) { throw 5; }), int);
  EXPECT_THROW(parallel_for(9, 1, [](int64_t, int64_t) { throw std::bad_alloc(); }),
               std::bad_alloc);
}

TEST_F(Parallel, NestedCallsStayOnTheirThread) {
  set_num_threads(4);
  EXPECT_FALSE(in_parallel_region());
  std::vector<std::atomic<int>> hits(12);
  parallel_chunks(4, [&](int64_t i) {
    EXPECT_TRUE(in_parallel_region());
    const auto id = std::this_thread::get_id();
    parallel_chunks(3, [&](int64_t j) {
      EXPECT_EQ(std::this_thread::get_id(), id);
      ++hits[size_t(i * 3 + j)];
    });
  });
  for (const auto& h : hits) EXPECT_EQ(h, 1);
  EXPECT_FALSE(in_parallel_region());
}

TEST_F(Parallel, ChunksSeeTheContextOfTheCaller) {
  set_num_threads(4);
  const ModuleScope* scope = intern_scope(nullptr, "net", "Net");
  const Context kept = context();
  context().op = "gather";
  context().module = scope;
  context().grad_enabled = false;
  std::atomic<int> wrong{0};
  parallel_chunks(16, [&](int64_t) {
    const Context& c = context();
    wrong += std::string(c.op) != "gather" || c.module != scope || c.grad_enabled;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_STREQ(context().op, "gather");
  context() = kept;
  parallel_chunks(16, [&](int64_t) { wrong += context().module != kept.module; });
  EXPECT_EQ(wrong, 0);
}

// Subnormal numbers are kept in every thread.
TEST_F(Parallel, FC_76ca_SubnormalsAreKept) {
  set_num_threads(4);
  std::vector<float> got(64);
  parallel_chunks(64, [&](int64_t i) {
    const volatile float tiny = 1e-40f, one = 1.0f;
    got[size_t(i)] = tiny * one;
  });
  for (float x : got) EXPECT_EQ(x, 1e-40f);
}

TEST_F(Parallel, SeveralThreadsMayAskAtOnce) {
  set_num_threads(4);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int k = 0; k < 3; ++k) {
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) parallel_chunks(8, [&](int64_t i) { sum += i; });
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(sum, 3 * 100 * 28);
}

TEST_F(Parallel, TheCountIsChecked) {
  EXPECT_THROW(set_num_threads(0), ValueError);
  EXPECT_THROW(set_num_threads(-3), ValueError);
  EXPECT_EQ(num_threads(), before_);
  set_num_threads(100000);
  EXPECT_EQ(num_threads(), 256);
}

}  // namespace
}  // namespace cutaway

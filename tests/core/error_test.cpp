#include <cutaway/core/error.h>

#include <gtest/gtest.h>
#include <string>

#include <cutaway/core/context.h>

namespace cutaway {
namespace {

TEST(Error, WithoutPlaceItIsOneLine) {
  EXPECT_STREQ(ShapeError("add", "sizes differ; got [2], need [3]").what(),
               "[add] sizes differ; got [2], need [3]");
  EXPECT_STREQ(ShapeError("add", "sizes differ", "use expand()").what(),
               "[add] sizes differ\n  hint: use expand()");
  EXPECT_STREQ(IoError(std::string("plain text")).what(), "plain text");
}

TEST(Error, NamesModulePathAndCallSite) {
  const Context kept = context();
  const ModuleScope* net = intern_scope(nullptr, "net", "Net");
  context().module = intern_scope(net, "fc1", "Linear");
  const auto here = std::source_location::current();
  {
    CallScope outer(here);
    CallScope inner(std::source_location::current());  // a composite's own calls do not count
    EXPECT_EQ(std::string(ValueError("linear", "bad", "do this").what()),
              "[linear] bad\n  at  net.fc1 (Linear)\n  in  tests/core/error_test.cpp:" +
                  std::to_string(here.line()) + "\n  hint: do this");
  }
  EXPECT_STREQ(ValueError("linear", "bad").what(), "[linear] bad\n  at  net.fc1 (Linear)");
  context() = kept;
}

TEST(Error, AllKindsAreErrors) {
  EXPECT_THROW(throw ShapeError("op", "rule"), Error);
  EXPECT_THROW(throw DTypeError("op", "rule"), Error);
  EXPECT_THROW(throw DeviceError("op", "rule"), Error);
  EXPECT_THROW(throw IndexError("op", "rule"), Error);
  EXPECT_THROW(throw ValueError("op", "rule"), Error);
  EXPECT_THROW(throw AutogradError("op", "rule"), Error);
  EXPECT_THROW(throw IoError("op", "rule"), Error);
  EXPECT_THROW(throw MemoryError("op", "rule"), Error);
  EXPECT_THROW(throw CudaError("op", "rule"), std::runtime_error);
}

TEST(ModuleScope, TheSameThreeGiveTheSamePointer) {
  const char* type = "Block";
  const ModuleScope* a = intern_scope(nullptr, "encoder", type);
  EXPECT_EQ(a, intern_scope(nullptr, std::string("enc") + "oder", type));
  const ModuleScope* b = intern_scope(a, "0", type);
  EXPECT_NE(b, intern_scope(a, "1", type));
  EXPECT_NE(b, intern_scope(nullptr, "0", type));
  EXPECT_EQ(module_path(b), "encoder.0 (Block)");
  EXPECT_EQ(module_path(nullptr), "");
}

}  // namespace
}  // namespace cutaway

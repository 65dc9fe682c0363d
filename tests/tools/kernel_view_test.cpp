#include <gtest/gtest.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/cuda/emu/options.h>

#include <tools/kernel_view.h>

namespace cutaway::tools {
namespace {

// What softmax of a [4, 256] tensor launches on the emulator.
std::vector<cuda::emu::Collected> softmax_launches() {
  const Tensor x = full({4, 256}, 0.5).to(Device{DeviceKind::emu, 0});
  const cuda::emu::OptionsScope counting({.count = true});
  cuda::emu::take_collected();
  softmax(x, 1);
  return cuda::emu::take_collected();
}

TEST(KernelView, TableNamesLinesAndTotals) {
  const auto launches = softmax_launches();
  ASSERT_EQ(launches.size(), 1u);
  const std::string table = launch_table(launches[0].counters);
  EXPECT_NE(table.find("4096 B read, 4096 B written"), std::string::npos) << table;
  EXPECT_NE(table.find("bank conflicts 0"), std::string::npos) << table;
  EXPECT_NE(table.find("rows.cuh:"), std::string::npos) << table;
  EXPECT_NE(table.find("global write"), std::string::npos) << table;
}

TEST(KernelView, PictureShowsEveryLaneOfEveryRequest) {
  const auto launches = softmax_launches();
  ASSERT_EQ(launches.size(), 1u);
  const std::string svg = warp_picture(launches[0]);
  size_t cells = 0;
  for (size_t at = svg.find("<rect"); at != std::string::npos; at = svg.find("<rect", at + 1)) {
    ++cells;
  }
  EXPECT_EQ(cells, 1 + 32 * launches[0].first_warp.size());  // and the background
  EXPECT_GE(launches[0].first_warp.size(), 2u);
  EXPECT_EQ(svg.rfind("</svg>\n"), svg.size() - 7);
}

}  // namespace
}  // namespace cutaway::tools

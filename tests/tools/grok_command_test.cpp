// cutaway grok as a shell starts it: the commands of docs/grokking.md at small scale, bad input.
#include <tests/tools/shell_command.h>

namespace cutaway {
namespace {
namespace fs = std::filesystem;

class GrokCommand : public ShellCommand {
 protected:
  void refuses(const std::string& arguments, const std::string& piece) {
    ShellCommand::refuses("grok " + arguments, piece);
  }
};

TEST_F(GrokCommand, the_page_runs_at_small_scale) {
  std::ifstream page(std::string(kSourceDir) + "/docs/grokking.md");
  int commands = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("cutaway grok ")) continue;
    std::string arguments = line.substr(8);
    const auto replace = [&](const std::string& from, const std::string& to) {
      const size_t at = arguments.find(from);
      if (at != std::string::npos) arguments.replace(at, from.size(), to);
    };
    replace("--epochs 6000", "--epochs 400 --after 0");
    replace("--epochs 5000", "--epochs 60");
    replace("--seeds 5", "--seeds 2");
    const bool trains =
        line.find(" train ") != std::string::npos || line.find(" sweep ") != std::string::npos;
    if (trains) arguments += " --p 11 --d 32 --hidden 64 --train-frac 0.8";
    EXPECT_EQ(run(arguments), 0) << arguments << '\n' << text_;
    ++commands;
  }
  EXPECT_EQ(commands, 5);
  for (const char* name :
       {"config.json", "log.csv", "stages.json", "report.html", "checkpoints/final.safetensors",
        "plots/accuracy.svg", "plots/violation.svg", "plots/dimension.svg", "plots/spectrum.svg",
        "plots/components-1-2.svg", "inspect/spectrum.svg"}) {
    EXPECT_TRUE(fs::exists(folder_ / "grok-none" / name)) << name;
  }
  EXPECT_TRUE(fs::exists(folder_ / "grok-sweep/sweep.svg"));
  EXPECT_EQ(run("grok train --out grok-none --epochs 1"), 2);  // never overwrites a run
}

TEST_F(GrokCommand, refuses_bad_input_in_one_line) {
  refuses("train --task mul --p 15", "15 is none");
  refuses("train --task affine --p 2", "between 3 and 1000");
  refuses("train --train-frac 1", "between 0 and 1");
  refuses("train --p 5 --train-frac 0.001", "0 training");
  refuses("train --d 66", "not divisible");
  write("two.txt", "a b\nc d\n");
  refuses("train --task graph:two.txt", "no way from node a to node c");
  write("ragged.csv", "0,1\n1\n");
  refuses("train --task table:ragged.csv", "row 2 has 1 fields");
  write("range.csv", "0,1\n1,10000\n");
  refuses("train --task table:range.csv", "out of range");
  write("loop.csv", "1,2,0\n0,1,2\n2,0,0\n");
  refuses("train --task table:loop.csv --prompt assoc", "for x, y, z = ");
  refuses("train --task add --prompt triangle", "does not belong");
  refuses("train --task graph:missing.txt", "missing.txt");
  refuses("inspect nowhere", "nowhere");
  refuses("criterion nowhere", "nowhere");
}

}  // namespace
}  // namespace cutaway

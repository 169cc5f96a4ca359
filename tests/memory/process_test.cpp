// The whole process's memory is the planned peak and a bounded rest (docs/memory.md): measured on
// the real program, in processes of their own.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "start_program.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

using nlohmann::json;

// docs/memory.md: what a process holds beyond its planned peak.
constexpr double kRest = 64.0 * (1 << 20);

constexpr bool is_sanitized = ALOFT_SANITIZED;

// Runs the program with its output in `out`; its peak of resident bytes.
double run(const std::vector<std::string>& arguments, const Path& out) {
  std::vector<std::string> words{ALOFT_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const pid_t child = start_program(words, out);
  int status = -1;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

void expect_bounded(const std::string& what, double planned, double resident) {
  std::printf("%s: planned %.1f MiB, resident %.1f MiB, %.1f more\n", what.c_str(),
              planned / (1 << 20), resident / (1 << 20), (resident - planned) / (1 << 20));
  EXPECT_LE(resident - planned, kRest) << what;
  // The plan is no overestimate either: what it reserves is touched.
  EXPECT_GE(resident, 0.9 * planned) << what;
}

TEST(ProcessMemory, OfATrainingStepIsThePlanAndABoundedRest) {
  if (is_sanitized) GTEST_SKIP() << "a sanitizer keeps a shadow of all memory";
  const TemporaryFolder folder;
  for (const char* precision : {"O0", "O2:bf16", "O2:fp16"})
    for (const auto& size :
         {std::vector<std::string>{"--layers", "1", "--dim", "64", "--vocab", "100", "--batch", "1",
                                   "--seq", "16"},
          {"--layers", "3", "--dim", "512", "--vocab", "8000", "--batch", "2", "--seq", "128"}}) {
      std::vector<std::string> arguments{"bench",   "step", "--model",     "gpt2-124m",
                                         "--heads", "4",    "--no-limit",  "--json",
                                         "--steps", "2",    "--precision", precision};
      arguments.insert(arguments.end(), size.begin(), size.end());
      const double resident = run(arguments, folder / "out.json");
      const json j = json::parse(read_file(folder / "out.json", 1 << 20));
      expect_bounded(std::string(precision) + " width " + size[3], j["planned_peak_bytes"],
                     resident);
      EXPECT_LE(j["peak_rss_bytes"].get<double>(), resident);
    }
}

// Tokenizer, loader, evaluation, checkpoint and sample included.
TEST(ProcessMemory, OfATrainingRunToo) {
  if (is_sanitized) GTEST_SKIP() << "a sanitizer keeps a shadow of all memory";
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; text.size() < 20000; ++i)
    text += "line " + std::to_string(i * 7919 % 1013) + "\n";
  folder.put(folder / "text.txt", text);
  folder.put(
      folder / "small.toml",
      "[model]\nlayers = 4\ndim = 320\nheads = 4\ncontext = 64\n[data]\ntext = "
      "[\"text.txt\"]\ncache = \"" +
          (folder / "cache").string() +
          "\"\ntokenizer = { kind = \"char\" }\nvalidation = 0.1\n[train]\nbatch = 4\nsteps = "
          "2\nsample_tokens = 4\n");
  for (const char* precision : {"O0", "O2:bf16"}) {
    const std::string out = (folder / precision).string();
    const double resident = run({"train", (folder / "small.toml").string(), "--quiet", "--out", out,
                                 "--set", std::string("precision.level=") + precision},
                                folder / "out.txt");
    const json record = json::parse(read_file(Path(out) / "run.json", 1 << 24));
    expect_bounded(std::string("training ") + precision, record["memory"]["peak_bytes"], resident);
  }
}

}  // namespace
}  // namespace aloft

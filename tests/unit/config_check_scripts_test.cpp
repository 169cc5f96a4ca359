// What a shell script tells a program, where its commands stand.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "told_settings.h"

namespace aloft::config_check {
namespace {

using Environment = std::map<std::string, std::string>;

TEST(ConfigCheckScripts, VariablesGrow) {
  EXPECT_EQ(option("A=\"--wd 2\"\nA+=\" --lr 1\"\npython t.py $A\n", "lr"), "1");
  EXPECT_EQ(option("A=(--wd 2)\nA+=(--lr 1)\npython t.py \"${A[@]}\"\n", "lr"), "1");
  EXPECT_EQ(option("A=(--wd 2)\nA+=(--lr 1)\npython t.py \"${A[@]}\"\n", "wd"), "2");
  const char* quoted = "python t.py --lr 1e-4 --wd=\"0.1\" --bf16 --seed=\"1\" --steps 10 \"$@\"\n";
  for (const auto& [key, value] :
       {std::pair("lr", "1e-4"), {"wd", "0.1"}, {"bf16", "true"}, {"seed", "1"}, {"steps", "10"}})
    EXPECT_EQ(option(quoted, key), value) << key;
  EXPECT_EQ(option("A+=(--lr 1)\npython t.py ${A[@]}\n", "lr"), "1");  // that was not there
  EXPECT_EQ(option("A=(--x= --lr 1)\npython t.py ${A[@]}\n", "lr"), "1");
  const Environment path = {{"P", "/a:/b"}};
  EXPECT_EQ(script("export P=/a\nP+=:/b\npython t.py\n").environment, path);
  EXPECT_EQ(script("P=/a\nP+=:/b python t.py\n").environment, path);
  // A text that would grow beyond measure does not.
  std::string text = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 200; ++i) text += "A+=\"$A\"\n";
  EXPECT_TRUE(script(text + "export A\npython t.py\n").environment.empty());
}

TEST(ConfigCheckScripts, VariablesOfOneCommand) {
  const Environment both = {{"X", "1"}, {"Y", "2"}};
  EXPECT_EQ(script("X=1 Y=2 python t.py --lr 1\n").environment, both);
  EXPECT_EQ(script("X=1 Y=2 python t.py lr=3\n").environment, both);  // ends in an assignment
  EXPECT_EQ(script("env X=1 Y=2 python t.py\n").environment, both);
  EXPECT_EQ(script("/usr/bin/env -i -u HOME X=1 Y=2 python t.py\n").environment, both);
  EXPECT_EQ(script("if srun --mpi env X=1 Y=2 python t.py --lr 1; then\n").environment, both);
  EXPECT_EQ(option("srun --mpi env X=1 python t.py --lr 1\n", "mpi"), "true");
  EXPECT_EQ(option("env X=1 python t.py --lr 1\n", "lr"), "1");
  EXPECT_EQ(option("time X=1 python t.py --lr 1\n", "lr"), "1");
  // They are gone behind it, and another value is there again.
  EXPECT_EQ(option("LR=1\nLR=2 python a.py\npython b.py --lr $LR\n", "lr"), "1");
  EXPECT_EQ(script("export X=0\nX=1 python a.py\npython b.py\n").environment.at("X"), "0");
  // Commands that make no run see them for nothing, and their options say nothing.
  const Side tools = script("X=1 mkdir --parents out\necho --lr 1\npython t.py --wd 2\n");
  EXPECT_TRUE(tools.environment.empty());
  EXPECT_EQ(tools.settings.at("static").size(), 1u);
}

TEST(ConfigCheckScripts, ValuesAreThoseAtThePlaceOfTheCommand) {
  EXPECT_EQ(option("LR=1\nLR=2\npython t.py --lr $LR\nLR=3\n", "lr"), "2");
  EXPECT_EQ(script("export X=1\nexport X=2\npython t.py\nexport X=3\n").environment.at("X"), "2");
  EXPECT_EQ(script("export X=1\nX=2\npython t.py\nX=3\n").environment.at("X"), "2");
  EXPECT_EQ(script("export X\nX=2\npython t.py > log; export X=3\n").environment.at("X"), "2");
  EXPECT_EQ(script("X=1\ndeclare -x X\n./train --lr 1\n").environment.at("X"), "1");
  EXPECT_EQ(script("if true; then export X=1; fi\npython t.py\n").environment.at("X"), "1");
  EXPECT_TRUE(script("export X=1\nunset X\npython t.py\n").environment.empty());
  EXPECT_TRUE(script("python t.py --lr 1\nexport X=1\n").environment.empty());
  // Whatever it is called, a command sees what stands before it; a word that ends a block sees
  // none.
  EXPECT_EQ(script("python a.py\nexport X=1\nsbatch job.slurm\n").environment.at("X"), "1");
  EXPECT_TRUE(script("if true; then python t.py; export X=3; fi\n").environment.empty());
  // A file that is read by others has no command: what it leaves counts.
  EXPECT_EQ(script("export X=1\nexport X=2\n").environment.at("X"), "2");
}

// Of the program that is started; what stands in front of it is for its interpreter or launcher.
TEST(ConfigCheckScripts, OptionsOfOneDash) {
  EXPECT_EQ(option("python t.py -lr 1e-4 --seed 1\n", "lr"), "1e-4");
  EXPECT_EQ(option("mpirun -np 8 python -u t.py -b=32 -x -0.5\n", "b"), "32");
  EXPECT_EQ(option("mpirun -np 8 python -u t.py -b=32 -x -0.5\n", "x"), "-0.5");
  EXPECT_EQ(option("./train -b 32 -v --x 1\n", "v"), "true");
  EXPECT_EQ(option("python -m pkg.train -b 32\n", "b"), "32");
  const auto count = [](const std::string& text) {
    return script(text).settings.at("static").size();
  };
  EXPECT_EQ(count("mpirun -np 8 python -u t.py -b 32\n"), 1u);
  EXPECT_EQ(count("python -m pkg.train -b 32\n"), 1u);
  EXPECT_EQ(count("./train - -- -5 -.5 -1e-3 --lr 1\n"), 1u);
}

// What is not compared is said.
TEST(ConfigCheckScripts, OptionsThatWaitForARunAreNamed) {
  testing::internal::CaptureStderr();
  const Side side = script("B=$((4 * 8))\npython t.py -b $B --n=$(nproc) --lr 1 \"$@\"\n");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("a.sh: options whose values only a run would know are not compared: b, n\n"),
            std::string::npos)
      << said;
  EXPECT_EQ(side.settings.at("static").size(), 1u);
}

TEST(ConfigCheckScripts, AnEmptyWordIsAValue) {
  const Side side = script("python t.py --d \"\" --e --f '' --g=\n");
  EXPECT_EQ(value_of(side, "d"), "");
  EXPECT_EQ(value_of(side, "e"), "true");
  EXPECT_EQ(value_of(side, "f"), "");
  EXPECT_EQ(value_of(side, "g"), "");
}

TEST(ConfigCheckScripts, WhatIsAssignedBehindSetAIsExported) {
  const Environment x = {{"X", "1"}};
  for (const char* on : {"set -a", "set -ea", "set -o allexport", "set -euo pipefail -a"})
    EXPECT_EQ(script(on + std::string("\nX=1\nset +a\nY=2\npython t.py\n")).environment, x) << on;
  EXPECT_EQ(script("set -a; X=1; set +o allexport; Y=2\npython t.py\n").environment, x);
  for (const char* off : {"set -e", "set -o pipefail", "set -- -a", "set all", "setup -a"})
    EXPECT_TRUE(script(off + std::string("\nX=1\npython t.py\n")).environment.empty()) << off;
}

TEST(ConfigCheckScripts, PassesOverDocumentsForCommands) {
  const std::string before = "cat > README <<EOF\nWe don't need it\nt --lr 3\nexport X=1\nEOF\n";
  const Side said = script(before + "python t.py --lr 1\n");
  ASSERT_EQ(said.settings.at("static").size(), 1u);
  EXPECT_EQ(value_text(said.settings.at("static")[0]), "1");
  EXPECT_EQ(said.settings.at("static")[0].place, "a.sh:6");
  EXPECT_TRUE(said.environment.empty());
  EXPECT_EQ(option("cat <<-'A' <<B\n\tA\nit's\nB\npython t.py --lr 1\n", "lr"), "1");
  EXPECT_EQ(option("python t.py --lr 1 <<< \"it's\"\npython t.py --x 2\n", "x"), "2");
  EXPECT_EQ(option("python t.py --lr 1\ncat <<EOF\nwithout an end\nt --lr 3\n", "lr"), "1");
}

TEST(ConfigCheckScripts, FilesOfACommandAreNoWords) {
  const Side side =
      script("X=1 python t.py --lr 1 >log 2>&1 --wd 2 < in | tee --append out &> b\n");
  EXPECT_EQ(value_of(side, "lr"), "1");
  EXPECT_EQ(value_of(side, "wd"), "2");
  EXPECT_EQ(side.settings.at("static").size(), 2u);
  EXPECT_EQ(side.environment, (Environment{{"X", "1"}}));
}

}  // namespace
}  // namespace aloft::config_check

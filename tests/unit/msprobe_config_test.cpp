// msprobe's config.json: what it asks for, and what is refused before memory is spent on it.
#include "recipe/msprobe_config.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace aloft {
namespace {

std::string steps_of(const std::string& steps) {
  const MsprobeConfig config = parse_msprobe_config("{\"step\": " + steps + "}", "config.json");
  for (const Override& o : config.probe)
    if (o.key == "probe.at") return o.value;
  return "all";
}

TEST(MsprobeConfig, Steps) {
  EXPECT_EQ(steps_of("[0, \"3\", \"5-7\"]"), "[0,3,5,6,7]");
  EXPECT_EQ(steps_of("2"), "[2]");
  EXPECT_EQ(steps_of("[]"), "all");
}

TEST(MsprobeConfig, StepsBeyondMeasureAreRefused) {
  std::string many = "\"0-99999\"";
  for (int i = 0; i < 3; ++i) many += ", \"0-99999\"";  // each of them might pass
  for (const std::string& steps :
       {std::string("[\"9-1\"]"), std::string("[\"-1\"]"), std::string("[\"0-100001\"]"),
        "[" + many + "]", std::string("[\"9223372036854775807\"]"),
        std::string("[\"9223372036854775806-9223372036854775807\"]"), std::string("[-1]"),
        std::string("-1"), std::string("[1000000000000000000]"), std::string("1e30")})
    try {
      static_cast<void>(steps_of(steps));
      ADD_FAILURE() << steps;
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), "E0729") << steps;
      EXPECT_NE(std::string(e.what()).find("config.json"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("step: "), std::string::npos) << e.what();
    }
}

std::string key_of(const MsprobeConfig& config, const std::string& key) {
  for (const Override& o : config.probe)
    if (o.key == "probe." + key) return o.value;
  return "";
}
MsprobeConfig read(const std::string& text) { return parse_msprobe_config(text, "config.json"); }

std::string refusal_of(const std::string& text) {
  try {
    static_cast<void>(read(text));
    return "";
  } catch (const UserError& e) {
    return e.code() == "E0729" ? e.what() : "another error";
  }
}

// Of a task that is not done, too; what it says there counts for nothing.
TEST(MsprobeConfig, AKeyThatThereIsNotIsRefusedInEverySection) {
  const auto names = [](const std::string& text, const std::string& key) {
    return refusal_of(text).find(key + ": ") != std::string::npos;
  };
  EXPECT_TRUE(names(R"({"tensor": {"lst": ["a"]}})", "tensor.lst"));
  EXPECT_TRUE(names(R"({"task": "tensor", "acc_check": {"list": [], "whitelist": []}})",
                    "acc_check.whitelist"));
  EXPECT_TRUE(names(R"({"statistics": 1, "task": "structure"})", "statistics"));
  EXPECT_EQ(refusal_of(R"({"task": "statistics", "tensor": {"scope": [], "file_format": "x"},
    "acc_check": {"white_list": [], "black_list": ["a"], "error_data_path": "./"},
    "overflow_check": {"overflow_nums": 1, "check_mode": "all"}, "nan_check": {"any": 1}})"),
            "");
}

TEST(MsprobeConfig, AKeyThatStandsTwiceIsRefused) {
  EXPECT_NE(refusal_of(R"({"task": "tensor", "task": "statistics"})").find("task, twice"),
            std::string::npos);
  EXPECT_NE(refusal_of(R"({"statistics": {"list": ["a"], "list": ["b"]}})").find("list, twice"),
            std::string::npos);
  EXPECT_EQ(
      refusal_of(R"({"task": "statistics", "statistics": {"list": []}, "tensor": {"list": []}})"),
      "");
}

TEST(MsprobeConfig, RefusalsSayWhatThereIs) {
  const std::string kernels = refusal_of(R"({"task": "statistics", "level": "L2"})");
  for (const char* said : {"\"L0\"", "\"L1\"", "\"mix\"", "acc_check"})
    EXPECT_NE(kernels.find(said), std::string::npos) << kernels;
  const std::string lists = refusal_of(R"({"statistics": {"list": ["a"], "tensor_list": ["b"]}})");
  EXPECT_NE(lists.find("msprobe writes the tensors of the one"), std::string::npos) << lists;
}

// As msprobe takes them: API calls, where nothing is said of the level.
TEST(MsprobeConfig, LevelsAreThoseOfMsprobe) {
  EXPECT_EQ(key_of(read("{}"), "level"), "\"op\"");
  EXPECT_EQ(key_of(read("{}"), "task"), "\"statistics\"");
  EXPECT_EQ(key_of(read(R"({"level": "L0"})"), "level"), "\"module\"");
  EXPECT_EQ(key_of(read(R"({"task": "structure", "level": "L1"})"), "level"), "\"mix\"");
  EXPECT_EQ(key_of(read(R"({"task": "acc_check", "level": "L1"})"), "level"), "");
}

// As msprobe takes an argument of PrecisionDebugger.
TEST(MsprobeConfig, ATaskThatIsAskedForIsReadInstead) {
  const std::string text = R"({"task": "tensor", "level": "L0",
    "tensor": {"list": ["a"], "file_format": "npy"}, "statistics": {"list": ["b"]}})";
  const MsprobeConfig config = parse_msprobe_config(text, "config.json", "statistics");
  EXPECT_EQ(key_of(config, "task"), "\"statistics\"");
  EXPECT_EQ(key_of(config, "list"), R"(["b"])");
  EXPECT_EQ(key_of(config, "format"), "");
  ASSERT_EQ(config.notes.size(), 1u);
  EXPECT_NE(config.notes[0].find("tensor"), std::string::npos);
  EXPECT_TRUE(parse_msprobe_config(text, "config.json", "tensor").notes.empty());
  EXPECT_EQ(key_of(parse_msprobe_config(text, "config.json", "overflow"), "task"), "\"overflow\"");
}

// The file that lies in msprobe's package, for each of its tasks.
TEST(MsprobeConfig, MsprobesOwnFileIsReadAsItIs) {
  for (const char* task : {"statistics", "tensor", "acc_check", "structure"}) {
    const MsprobeConfig config = read(R"({"task": ")" + std::string(task) + R"(",
      "dump_path": "./dump_path", "rank": [], "step": [], "level": "L1", "extra_info": true,
      "async_dump": false, "risk_level": "ALL",
      "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"},
      "tensor": {"scope": [], "list": [], "data_mode": ["all"]},
      "acc_check": {"white_list": [], "black_list": [], "error_data_path": "./"}})");
    EXPECT_EQ(key_of(config, "task"), '"' + std::string(task) + '"');
    EXPECT_TRUE(config.notes.empty()) << task << ": " << config.notes.front();
  }
}

TEST(MsprobeConfig, WhatChangesNothingIsSaid) {
  for (const char* text :
       {R"({"extra_info": false})", R"({"risk_level": "FOCUS"})",
        R"({"custom_op_namespaces": ["mine"]})", R"({"risk_level": "CORE", "level": "mix"})",
        R"({"task": "tensor", "tensor": {"diff_nums": 3}})",
        R"({"task": "overflow_check", "overflow_check": {"overflow_nums": 1}})",
        R"({"task": "acc_check", "acc_check": {"error_data_path": "errors"}})"})
    EXPECT_EQ(read(text).notes.size(), 1u) << text;
}

TEST(MsprobeConfig, WhatHasAMeaningIsDone) {
  EXPECT_EQ(key_of(read(R"({"statistics": {"summary_mode": "xor"}})"), "summary"), "\"xor\"");
  EXPECT_EQ(key_of(read(R"({"statistics": {"summary_mode": "xor"}})"), "task"), "\"tensor\"");
  EXPECT_NE(key_of(read(R"({"risk_level": "CORE"})"), "list").find("Torch.matmul."),
            std::string::npos);
  const MsprobeConfig listed =
      read(R"({"risk_level": "CORE", "statistics": {"list": ["Functional.relu.0.forward"]}})");
  EXPECT_EQ(key_of(listed, "list"), R"(["Functional.relu.0.forward"])");
  for (const char* rank : {"[]", "[0]", "[0, 1]", "0", "[\"0-3\"]"})
    EXPECT_NO_THROW(read("{\"rank\": " + std::string(rank) + "}")) << rank;
}

// Of each the key, and a word of what stands there instead.
TEST(MsprobeConfig, WhatHasNoneIsRefusedWithWhatToWrite) {
  const struct {
    const char *text, *key, *instead;
  } cases[] = {
      {R"({"level": "L2"})", "level:", "acc_check"},
      {R"({"level": "debug"})", "level:", "L1"},
      {R"({"rank": [1]})", "rank:", "[]"},
      {R"({"dump_enable": false})", "dump_enable:", "step"},
      {R"({"risk_level": "NONE"})", "risk_level:", "ALL"},
      {R"({"load": {"path": "a"}})", "load:", "acc-check"},
      {R"({"task": "nan_check"})", "task:", "overflow_check"},
      {R"({"task": "exception_dump"})", "task:", "overflow_check"},
      {R"({"task": "diff_check"})", "task:", "compare"},
      {R"({"task": "run_ut"})", "task:", "acc_check"},
      {R"({"task": "grad_probe"})", "task:", "monitor.on"},
      {R"({"extra_info": 1})", "extra_info:", "false"},
      {R"({"statistics": {"summary_mode": "crc"}})", "statistics.summary_mode:", "xor"},
      {R"x({"statistics": {"list": ["name-regex(a.*)"]}})x", "statistics.list:", "patterns"},
      {R"({"statistics": {"slice": [{"dim": 0}]}})", "statistics.slice:", "whole"},
      {R"({"task": "tensor", "tensor": {"bench_path": "b"}})", "tensor.bench_path:", "compare"},
      {R"({"task": "tensor", "tensor": {"tensor_list": ["b"]}})", "tensor.tensor_list:", "list"},
      {R"({"task": "acc_check", "acc_check": {"black_list": ["relu"]}})",
       "acc_check.black_list:", "white_list"},
      {R"({"statistics": {"lists": []}})", "statistics.lists:", "no such key"},
      {R"({"stepp": 1})", "stepp:", "no such key"},
  };
  for (const auto& [text, key, instead] : cases) try {
      read(text);
      ADD_FAILURE() << text;
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), "E0729") << text;
      EXPECT_NE(std::string(e.what()).find(key), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(instead), std::string::npos) << e.what();
    }
}

}  // namespace
}  // namespace aloft

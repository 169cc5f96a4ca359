// What is known of one run before it is made: where it would run, what it was told, what it would
// learn from and begin with. A recipe, a run, files of settings and msprobe's zip each say a part.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "observe/config_check/tensor_facts.h"

namespace aloft::config_check {

// A hyper-parameter.
struct Setting {
  std::string key;               // with what it lies in: "optimizer.lr"
  nlohmann::ordered_json value;  // no object
  std::string place;             // "train.sh:12"; "" where it is not known
  bool is_default = false;       // nobody has set it
  // Whether nothing that is learnt depends on it; not known of others' settings but by their names.
  std::optional<bool> is_harmless = {};
  bool is_untyped = false;  // a text of a script, which says a number no other way
  bool is_quoted = false;   // one of a script that has blanks, and is one word all the same
  bool is_read = true;      // false of a recipe's key that nothing reads, as the recipe stands
  // Of a value that is not the one that counts (unset_values.h): what stood there; who has it,
  // where that is not known, "num_train_epochs = 3"; why.
  std::string written = {}, decided_by = {}, note = {};
};

// What a step is given, or has as weights: tensors in their order.
struct StepTensors {
  std::int64_t step = 0, rank = 0;
  std::vector<NamedTensor> tensors;
};

// Draws of one place of a program, as msprobe counts them.
struct RandomCalls {
  std::string op;
  std::int64_t rank = 0;
  std::vector<std::string> stack;  // "File train.py, line 3, in main, torch.manual_seed(1)"
  std::int64_t count = 0;
};

struct Side {
  std::string name;  // as it was given
  // Variables of the environment. Of a process all are known, and one that is missing is not set;
  // of a script those that it exports.
  std::map<std::string, std::string> environment;
  bool is_whole_environment = false;
  // What a run of Aloft takes, whoever said so: "threads", "device".
  std::map<std::string, std::string> in_use = {};
  std::map<std::string, std::string> packages;  // versions, by name
  // By the names of msprobe's files: "static" of recipes and scripts, "dynamic" of a program.
  std::map<std::string, std::vector<Setting>> settings;
  std::vector<StepTensors> batches, weights;
  std::vector<RandomCalls> random;
  std::optional<std::string> seed;
  std::string random_place;              // of a checkpoint: "step 3, micro-batch 0"
  std::vector<std::string> first_draws;  // the first numbers drawn, as text
};

}  // namespace aloft::config_check

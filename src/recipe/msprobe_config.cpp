#include "recipe/msprobe_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace aloft {

namespace {

using nlohmann::json;

// Lists of words and of numbers as a recipe has them; JSON's quotes are TOML's.
std::string toml_of(const json& value) { return json_text(value); }

class Reading {
 public:
  explicit Reading(const json& config) : config_(config) {}

  MsprobeConfig run() {
    for (const auto& [key, value] : config_.items()) take(key, value);
    take_section();
    return std::move(result_);
  }
  const std::vector<std::string>& mistakes() const { return mistakes_; }

 private:
  void set(const char* key, std::string value) { result_.probe.push_back({key, std::move(value)}); }
  void refuse(const std::string& key, const std::string& need) {
    mistakes_.push_back(key + ": " + need);
  }
  static bool is_empty(const json& value) {
    return value.is_null() || value == "" || value == json::array();
  }

  void take(const std::string& key, const json& value) {
    if (key == "task") {
      task_ = value.is_string() ? value.get<std::string>() : "";
      if (task_ != "statistics" && task_ != "tensor" && task_ != "overflow_check" &&
          task_ != "structure" && task_ != "acc_check")
        refuse(key, "statistics, tensor, overflow_check, structure or acc_check");
    } else if (key == "dump_path") {
      if (value.is_string()) result_.dump_path = value.get<std::string>();
    } else if (key == "rank") {
      const bool has_first = is_empty(value) || value == json::array({0}) || value == 0;
      if (!has_first) refuse(key, "[] or [0]: a run has one rank");
    } else if (key == "step") {
      take_steps(value);
    } else if (key == "level") {
      level_ = value == "L0" ? "module" : value == "L1" ? "op" : value == "mix" ? "mix" : "";
      if (level_.empty()) refuse(key, "\"L0\", modules, \"L1\", ops, or \"mix\", both");
    } else if (key == "extra_info" || key == "dump_enable") {
      if (value != true) refuse(key, "true");
    } else if (key == "precision") {
      if (value != "low" && value != "high") refuse(key, "low or high: numbers are in double");
    } else if (key == "async_dump") {
      if (!value.is_boolean()) refuse(key, "true or false: files are written beside training");
    } else if (!is_section(key)) {
      refuse(key, "there is no such key");
    }
  }

  static bool is_section(const std::string& key) {
    return key == "statistics" || key == "tensor" || key == "overflow_check" ||
           key == "structure" || key == "acc_check";
  }

  // [0, "3", "4-6"]; [] of all.
  void take_steps(const json& value) {
    if (is_empty(value)) return;
    std::vector<std::int64_t> steps;
    for (const json& one : value.is_array() ? value : json::array({value})) {
      if (one.is_number_integer()) {
        steps.push_back(one.get<std::int64_t>());
        continue;
      }
      const std::string text = one.is_string() ? one.get<std::string>() : "";
      const std::size_t dash = text.find('-');
      const auto from = parse_int(text.substr(0, dash));
      const auto to = dash == std::string::npos ? from : parse_int(text.substr(dash + 1));
      constexpr std::int64_t kMost = 100'000, kLast = 1'000'000'000'000'000;
      const auto room = kMost - std::ssize(steps);  // of all ranges together
      if (!from || !to || *from < 0 || *to < *from || *to > kLast || *to - *from > room)
        return refuse("step", "numbers, or ranges such as \"4-6\"");
      for (std::int64_t step = *from; step <= *to; ++step) steps.push_back(step);
    }
    set("probe.at", toml_of(steps));
  }

  // Of the task alone is its section read, as msprobe does.
  void take_section() {
    const auto found = config_.find(task_);
    std::string task = task_ == "overflow_check" ? "overflow" : task_;
    if (found != config_.end() && !found->is_object())
      refuse(task_, "an object");
    else if (found != config_.end())
      for (const auto& [key, value] : found->items()) take_own(key, value, task);
    set("probe.task", '"' + task + '"');
    if (!level_.empty() && task != "overflow") set("probe.level", '"' + level_ + '"');
  }

  void take_own(const std::string& key, const json& value, std::string& task) {
    const std::string name = task_ + "." + key;
    const bool is_dumped = task_ == "statistics" || task_ == "tensor";
    if (is_dumped && key == "summary_mode") {
      if (value == "md5") {
        set("probe.summary", "\"md5\"");
        task = "tensor";
      } else if (value != "statistics") {
        refuse(name, "statistics or md5");
      }
    } else if (task_ == "tensor" && key == "file_format") {
      if (value == "npy" || value == "pt")
        set("probe.format", toml_of(value));
      else if (!is_empty(value))
        refuse(name, "pt or npy");
    } else if (is_empty(value) && (is_section_key(key) || key == "bench_path")) {
      return;
    } else if (task_ == "acc_check" && key == "white_list") {
      if (!is_empty(value)) set("probe.list", toml_of(value));
    } else if (task_ == "acc_check" && (key == "black_list" || key == "error_data_path")) {
      if (!is_empty(value)) refuse(name, "nothing: every call is written");
    } else if (is_dumped && (key == "scope" || key == "list" || key == "data_mode")) {
      if (key != "data_mode" || value != json::array({"all"}))
        set(("probe." + key).c_str(), toml_of(value));
    } else if (task_ == "statistics" && key == "tensor_list") {
      if (!is_empty(config_.at(task_).value("list", json())))
        refuse(name, "nothing beside statistics.list: one list says what is looked at");
      set("probe.list", toml_of(value));
      task = "tensor";
    } else if (is_section_key(key)) {
      refuse(name, "nothing: there all is looked at");
    } else {
      refuse(name, "there is no such key");
    }
  }
  static bool is_section_key(const std::string& key) {
    return key == "scope" || key == "list" || key == "tensor_list" || key == "data_mode";
  }

  const json& config_;
  std::string task_ = "statistics", level_;
  MsprobeConfig result_;
  std::vector<std::string> mistakes_;
};

}  // namespace

MsprobeConfig parse_msprobe_config(std::string_view text, const std::string& name) {
  const json config = parse_json(text);
  if (!config.is_object())
    throw UserError("E0729", "not a config.json of msprobe")
        .at(name)
        .saw(config.is_discarded() ? std::string(json_problem(text)) : "no object")
        .need("an object with `task`, `level`, `step` ...");
  Reading reading(config);
  MsprobeConfig result = reading.run();
  if (reading.mistakes().empty()) return result;
  UserError e("E0729", "msprobe's config.json asks for what Aloft has nothing for");
  e.add_line("at", name);
  for (const std::string& mistake : reading.mistakes()) e.add_line("need", mistake);
  throw e;
}

MsprobeConfig read_msprobe_config(const Path& path) {
  return parse_msprobe_config(read_file(path), path.string());
}

}  // namespace aloft

#include "recipe/msprobe_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/terminal.h"
#include "base/text.h"

namespace aloft {

namespace {

using nlohmann::json;

constexpr const char* kOverflow = "overflow_check";

// Besides the sections of tasks.
const std::vector<std::string> kKeys = {"task",       "dump_path",  "rank",        "step",
                                        "level",      "extra_info", "dump_enable", "precision",
                                        "async_dump", "risk_level"};

// Lists of words and of numbers as a recipe has them; JSON's quotes are TOML's.
std::string toml_of(const json& value) { return json_text(value); }

class Reading {
 public:
  Reading(const json& config, const std::string& task)
      : config_(config), is_asked_(!task.empty()), task_(task == "overflow" ? kOverflow : task) {
    if (!is_asked_) task_ = "statistics";
  }

  MsprobeConfig run() {
    for (const auto& [key, value] : config_.items()) take(key, value);
    take_section();
    for (const auto& [key, value] : config_.items())
      if (key != task_) check_section(key, value);
    return std::move(result_);
  }
  struct Mistake {
    std::string saw, need, near;
  };
  const std::vector<Mistake>& mistakes() const { return mistakes_; }

 private:
  void set(const char* key, std::string value) { result_.probe.push_back({key, std::move(value)}); }
  void refuse(const std::string& key, const json& value, const std::string& need) {
    constexpr std::size_t kShown = 60;
    std::string saw = json_text(value);
    if (std::size_t end = kShown; saw.size() > end) {
      while (end > 0 && (static_cast<unsigned char>(saw[end]) & 0xc0) == 0x80) --end;
      saw = saw.substr(0, end) + "...";
    }
    mistakes_.push_back({fmt::format("{}: {}", key, harmless(saw)), need, ""});
  }
  void refuse_key(const std::string& name, const std::string& key,
                  const std::vector<std::string>& known) {
    mistakes_.push_back(
        {name + ": there is no such key", "one of " + join(known, ", "), nearest_name(key, known)});
  }
  static bool is_empty(const json& value) {
    return value.is_null() || value == "" || value == json::array();
  }

  void note(const std::string& text) { result_.notes.push_back(text); }

  void take(const std::string& key, const json& value) {
    if (key == "task") {
      take_task(value);
    } else if (key == "dump_path") {
      if (value.is_string()) result_.dump_path = value.get<std::string>();
    } else if (key == "rank") {
      if (!has_first_rank(value)) refuse(key, value, "[], or a list with 0: a run has one rank");
    } else if (key == "step") {
      take_steps(value);
    } else if (key == "level") {
      take_level(value);
    } else if (key == "extra_info") {
      if (!value.is_boolean())
        refuse(key, value, "true or false");
      else if (value == false)
        note("extra_info: stack.json and construct.json are written in any case");
    } else if (key == "dump_enable") {
      if (!value.is_null() && value != true)
        refuse(key, value,
               "true: it cannot be switched on while a run trains; `step` says which steps");
    } else if (key == "precision") {
      if (value != "low" && value != "high")
        refuse(key, value, "low or high: numbers are in double");
    } else if (key == "async_dump") {
      if (!value.is_boolean())
        refuse(key, value, "true or false: files are written beside training");
    } else if (key == "risk_level") {
      take_risk(value);
    } else if (key == "custom_op_namespaces") {
      if (!is_empty(value)) note(key + ": ops of any origin are looked at");
    } else if (key == "load") {
      refuse(key, value,
             "nothing: no input is replaced; `aloft probe acc-check` makes dumped calls again");
    } else if (!is_section(key)) {
      refuse_key(key, key, kKeys);
    }
  }

  // Sections of tasks of this msprobe and of earlier ones: that of the task alone is read.
  static bool is_section(const std::string& key) {
    static constexpr std::string_view kSections[] = {
        "statistics", "tensor",         "overflow_check", "structure",
        "acc_check",  "diff_check",     "exception_dump", "grad_probe",
        "nan_check",  "free_benchmark", "run_ut"};
    return std::ranges::find(kSections, key) != std::end(kSections);
  }

  // Of a task that is not done no value counts; a key that there is not is a slip all the same.
  void check_section(const std::string& section, const json& value) {
    static const std::map<std::string, std::vector<std::string>> kOwnKeys = {
        {"statistics", {"summary_mode", "slice", "request_id"}},
        {"tensor",
         {"summary_mode", "slice", "request_id", "file_format", "diff_nums", "bench_path"}},
        {kOverflow, {"overflow_nums", "check_mode"}},
        {"structure", {}},
        {"acc_check", {"white_list", "black_list", "error_data_path"}}};
    const auto own = kOwnKeys.find(section);
    if (own == kOwnKeys.end()) return;
    if (!value.is_object()) return refuse(section, value, "an object");
    for (const auto& [key, unread] : value.items())
      if (!is_section_key(key) && std::ranges::find(own->second, key) == own->second.end())
        refuse_key(section + "." + key, key, own->second);
  }

  void take_task(const json& value) {
    if (is_asked_) {
      if (value.is_string() && value != task_)
        note("task " + value.get<std::string>() + " is not done: the task asked for is " + task_);
      return;
    }
    task_ = value.is_string() ? value.get<std::string>() : "";
    constexpr std::string_view kOwn[] = {"statistics", "tensor", "overflow_check", "structure",
                                         "acc_check"};
    if (std::ranges::find(kOwn, task_) != std::end(kOwn)) return;
    if (task_ == "nan_check" || task_ == "exception_dump")
      refuse("task", value, "overflow_check, which names the first op that is not finite");
    else if (task_ == "diff_check")
      refuse("task", value, "tensor, and `aloft probe compare` of the two dumps");
    else if (task_ == "run_ut")
      refuse("task", value, "acc_check");
    else if (task_ == "grad_probe")
      refuse("task", value, "statistics, or `monitor.on = true` in the recipe");
    else
      refuse("task", value, "statistics, tensor, overflow_check, structure or acc_check");
  }

  void take_level(const json& value) {
    if (value.is_null()) return;
    level_ = value == "L0" ? "module" : value == "L1" ? "op" : value == "mix" ? "mix" : "";
    if (value == "L2")
      refuse("level", value,
             "\"L0\", modules, \"L1\", ops, or \"mix\", both; what each call's kernel takes and "
             "gives is of task acc_check, at \"L1\"");
    else if (value == "debug")
      refuse("level", value,
             "\"L1\" or \"mix\", whose `list` names the values that a program would save");
    else if (level_.empty())
      refuse("level", value, "\"L0\", modules, \"L1\", ops, or \"mix\", both");
  }

  // Which functions are left out where no list says which are meant.
  void take_risk(const json& value) {
    if (is_empty(value) || value == "ALL") return;
    if (value == "CORE")
      is_core_ = true;
    else if (value == "FOCUS")
      note("risk_level FOCUS: what moves elements alone is looked at, too, as with ALL");
    else
      refuse("risk_level", value, "ALL, FOCUS or CORE");
  }

  static bool has_first_rank(const json& value) {
    if (is_empty(value)) return true;
    const auto is_first = [](const json& one) {
      return one == 0 ||
             (one.is_string() && (one == "0" || one.get<std::string>().starts_with("0-")));
    };
    return value.is_array() ? std::ranges::any_of(value, is_first) : is_first(value);
  }

  // [0, "3", "4-6"]; [] of all.
  void take_steps(const json& value) {
    if (is_empty(value)) return;
    std::vector<std::int64_t> steps;
    for (const json& one : value.is_array() ? value : json::array({value})) {
      const std::string text = one.is_string()           ? one.get<std::string>()
                               : one.is_number_integer() ? one.dump()
                                                         : "";
      const std::size_t dash = text.find('-');
      const auto from = parse_int(text.substr(0, dash));
      const auto to = dash == std::string::npos ? from : parse_int(text.substr(dash + 1));
      constexpr std::int64_t kMost = 100'000, kLast = 1'000'000'000'000'000;
      const auto room = kMost - std::ssize(steps);  // of all ranges together
      if (!from || !to || *from < 0 || *to < *from || *to > kLast || *to - *from > room)
        return refuse("step", value, "numbers, or ranges such as \"4-6\"");
      for (std::int64_t step = *from; step <= *to; ++step) steps.push_back(step);
    }
    set("probe.at", toml_of(steps));
  }

  // Of the task alone is its section read, as msprobe does.
  void take_section() {
    const auto found = config_.find(task_);
    std::string task = task_ == kOverflow ? "overflow" : task_;
    if (found != config_.end() && !found->is_object())
      refuse(task_, *found, "an object");
    else if (found != config_.end())
      for (const auto& [key, value] : found->items()) take_own(key, value, task);
    set("probe.task", '"' + task + '"');
    if (task == "overflow" || task == "acc_check") return;
    const bool is_mix = task == "structure" && level_ == "op";  // of ops alone there is none
    set("probe.level", '"' + (is_mix ? "mix" : level_) + '"');
    if (is_core_ && !has_selection()) take_core();
  }

  bool has_selection() const {
    return std::ranges::any_of(result_.probe, [](const Override& set) {
      return set.key == "probe.list" || set.key == "probe.scope";
    });
  }
  // What msprobe calls the core: products, norms, rows of tables, attention.
  void take_core() {
    if (level_ == "mix") note("risk_level CORE: at level mix all ops are looked at");
    if (level_ != "op") return;
    set("probe.list", toml_of({"Torch.matmul.", "Torch.linear", "Torch.conv", "Torch.batch_norm",
                               "Torch.group_norm", "Torch.layer_norm", "Torch.rms_norm",
                               "Torch.embedding", "Torch.attention"}));
  }

  void take_own(const std::string& key, const json& value, std::string& task) {
    const std::string name = task_ + "." + key;
    if (task_ == "statistics" || task_ == "tensor") return take_of_dump(key, name, value, task);
    if (task_ == "acc_check" && take_of_check(key, name, value)) return;
    if (task_ == kOverflow && (key == "overflow_nums" || key == "check_mode"))
      return note(name + ": every step's first op that is not finite is named");
    if (!is_section_key(key)) return refuse_key(name, key, keys_of_section());
    if (!is_empty(value) && value != json::array({"all"}))
      refuse(name, value, "nothing: there all is looked at");
  }

  // Of the sections of statistics and tensor.
  void take_of_dump(const std::string& key, const std::string& name, const json& value,
                    std::string& task) {
    if (key == "summary_mode") {
      if (value == "md5" || value == "xor") {
        set("probe.summary", toml_of(value));
        task = "tensor";
      } else if (!is_empty(value) && value != "statistics") {
        refuse(name, value, "statistics, md5 or xor");
      }
    } else if (task_ == "tensor" && key == "file_format") {
      if (value == "npy" || value == "pt")
        set("probe.format", toml_of(value));
      else if (!is_empty(value))
        refuse(name, value, "pt or npy");
    } else if (key == "diff_nums" && task_ == "tensor") {
      note(name + ": nothing is compared while a run trains; `aloft probe compare` does it");
    } else if (key == "bench_path" && task_ == "tensor") {
      if (!is_empty(value))
        refuse(name, value, "nothing: `aloft probe compare` of the two dumps does it");
    } else if (key == "slice" || key == "request_id") {
      if (!is_empty(value)) refuse(name, value, "nothing: tensors are looked at whole");
    } else if (!is_section_key(key)) {
      refuse_key(name, key, keys_of_section());
    } else if (is_empty(value)) {
      return;
    } else if (key == "tensor_list") {
      if (task_ == "tensor")
        return refuse(name, value, "nothing: `list` says which tensors are written");
      if (!is_empty(config_.at(task_).value("list", json())))
        refuse(name, value,
               "nothing beside statistics.list: msprobe writes the tensors of the one and "
               "statistics of the other; here one list says both: make two runs, or take task "
               "tensor with that list, which has statistics of all that it means");
      take_list("probe.list", name, value);
      task = "tensor";
    } else if (key != "data_mode" || value != json::array({"all"})) {
      take_list(("probe." + key).c_str(), name, value);
    }
  }

  // Of the section of acc_check; false: it has no such key.
  bool take_of_check(const std::string& key, const std::string& name, const json& value) {
    if (key == "white_list") {
      if (!is_empty(value)) set("probe.list", toml_of(value));
    } else if (key == "black_list") {
      if (!is_empty(value))
        refuse(name, value, "nothing; acc_check.white_list says which ops are meant");
    } else if (key == "error_data_path") {
      if (!is_empty(value) && value != "./")
        note(name + ": operands and results of every call lie in the dump");
    } else {
      return false;
    }
    return true;
  }

  void take_list(const char* key, const std::string& name, const json& value) {
    const auto is_pattern = [](const json& word) {
      return word.is_string() && word.get<std::string>().starts_with("name-regex(");
    };
    if (value.is_array() && std::ranges::any_of(value, is_pattern))
      return refuse(name, value,
                    "parts of names, or patterns with * and ?: no regular expressions");
    set(key, toml_of(value));
  }
  std::vector<std::string> keys_of_section() const {
    std::vector<std::string> keys = {"scope", "list", "data_mode"};
    if (task_ == "statistics") keys.insert(keys.end(), {"tensor_list", "summary_mode"});
    if (task_ == "tensor") keys.insert(keys.end(), {"file_format", "summary_mode"});
    if (task_ == "acc_check") keys.emplace_back("white_list");
    return keys;
  }
  static bool is_section_key(const std::string& key) {
    return key == "scope" || key == "list" || key == "tensor_list" || key == "data_mode";
  }

  const json& config_;
  bool is_asked_;
  std::string task_, level_ = "op";  // msprobe's usual one
  bool is_core_ = false;
  MsprobeConfig result_;
  std::vector<Mistake> mistakes_;
};

// Keys that stand twice in one object, of which a reader takes either. Of a text that is JSON.
class KeysTwice : public nlohmann::json_sax<json> {
 public:
  std::vector<std::string> twice;

  bool start_object(std::size_t) override { return open_.emplace_back(), true; }
  bool end_object() override { return open_.pop_back(), true; }
  bool key(std::string& name) override {
    if (!open_.back().insert(name).second) twice.push_back(name);
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(json::binary_t&) override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;
  }

 private:
  std::vector<std::set<std::string>> open_;
};

}  // namespace

MsprobeConfig parse_msprobe_config(std::string_view text, const std::string& name,
                                   const std::string& task) {
  const json config = parse_json(text);
  if (!config.is_object())
    throw UserError("E0729", "not a config.json of msprobe")
        .at(name)
        .saw(config.is_discarded() ? std::string(json_problem(text)) : "no object")
        .need("an object with `task`, `level`, `step` ...");
  Reading reading(config, task);
  MsprobeConfig result = reading.run();
  std::vector<Reading::Mistake> mistakes = reading.mistakes();
  KeysTwice keys;
  json::sax_parse(text, &keys);
  for (const std::string& key : keys.twice) mistakes.push_back({key + ", twice", "it once", ""});
  if (mistakes.empty()) return result;
  UserError e("E0729", "msprobe's config.json asks for what Aloft has nothing for");
  e.add_line("at", name);
  for (const Reading::Mistake& mistake : mistakes) {
    e.add_line("saw", mistake.saw);
    e.add_line("need", mistake.need);
    if (!mistake.near.empty()) e.add_line("try", mistake.near);
  }
  throw e;
}

MsprobeConfig read_msprobe_config(const Path& path, const std::string& task) {
  MsprobeConfig config = parse_msprobe_config(read_file(path), path.string(), task);
  for (const std::string& note : config.notes) log_warning("{}: {}", path.string(), note);
  return config;
}

std::vector<Override> with_said(std::vector<Override> config, const std::vector<Override>& said) {
  std::erase_if(config, [&](const Override& own) {
    return std::ranges::find(said, own.key, &Override::key) != said.end();
  });
  config.insert(config.end(), said.begin(), said.end());
  return config;
}

}  // namespace aloft

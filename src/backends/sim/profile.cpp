#include "backends/sim/profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "files/toml_text.h"
#include "ops/op.h"

namespace aloft::sim {

namespace profiles {
#define PROFILE(name) std::string_view p##name();
#include "backends/sim/profiles.inc"
#undef PROFILE
}  // namespace profiles

namespace {

using Builtin = std::pair<std::string_view, std::string_view (*)()>;
constexpr Builtin kBuiltin[] = {
#define PROFILE(name) {#name, profiles::p##name},
#include "backends/sim/profiles.inc"
#undef PROFILE
};

// A number of the file: `scale` of its unit make one of ours.
struct Rate {
  std::string_view key;
  double scale;
  double Profile::*at;
};
constexpr Rate kRates[] = {{"low_tflops", 1e12, &Profile::low_flops},
                           {"f32_tflops", 1e12, &Profile::f32_flops},
                           {"memory_gbps", 1e9, &Profile::memory_bandwidth},
                           {"host_gbps", 1e9, &Profile::host_bandwidth},
                           {"launch_us", 1e-6, &Profile::launch_seconds}};

class ProfileReader {
 public:
  ProfileReader(std::string name, std::string file) : file_(std::move(file)) {
    const std::string quoted = in_quotes(file_, file_.size());
    plain_ = quoted.substr(1, quoted.size() - 2);
    profile_.name = std::move(name);
  }

  Profile read(std::string_view text) {
    toml::table table;
    try {
      table = parse_toml(text, file_);
    } catch (const TomlError& e) {
      mistakes_.push_back(plain_ + ":" + std::to_string(e.line) + ": " + e.what());
      refuse();
    }
    if (table.empty()) mistakes_.push_back(plain_ + ": there is no key in it");
    for (const auto& [key, value] : table) take(key.str(), value);
    if (!mistakes_.empty()) refuse();
    const auto has = [&](const Rate& rate) { return table.contains(rate.key); };
    profile_.says_products = has(kRates[0]) && has(kRates[1]);
    profile_.says_moves = has(kRates[2]) && has(kRates[3]) && has(kRates[4]);
    return profile_;
  }

 private:
  void take(std::string_view key, const toml::node& value) {
    for (const Rate& rate : kRates)
      if (rate.key == key) {
        profile_.*rate.at = rate.scale * number(key, value, 1e9);
        return;
      }
    constexpr double kGib = 1 << 30;
    if (key == "memory_gib") {
      profile_.memory = static_cast<std::size_t>(kGib * number(key, value, 1 << 20));
      if (profile_.memory == 0) mistake(value, "memory_gib: need a byte at least");
    } else if (key == "types")
      take_types(value);
    else if (key == "f32_ops")
      take_f32_ops(value);
    else
      mistake(value, in_quotes(std::string(key)) + " is no key of a profile");
  }

  double number(std::string_view key, const toml::node& value, double most) {
    const double v = value.value<double>().value_or(-1);
    if (std::isfinite(v) && v > 0 && v <= most) return v;
    mistake(value, std::string(key) + ": need a number above 0 and at most " + shortest(most));
    return 1;
  }

  void take_types(const toml::node& value) {
    profile_.capability = {false, false, false, false};
    const toml::array* list = value.as_array();
    if (!list || list->empty())
      return mistake(value, "types: need a list, such as [\"f32\", \"bf16\"]");
    for (const toml::node& type : *list) {
      const std::string name = type.value<std::string>().value_or("");
      if (name == "bf16")
        profile_.capability.stores_bf16 = profile_.capability.computes_bf16 = true;
      else if (name == "f16")
        profile_.capability.stores_f16 = profile_.capability.computes_f16 = true;
      else if (name != "f32")
        mistake(value, "types: need f32, bf16 or f16, not " + in_quotes(name));
    }
  }

  void take_f32_ops(const toml::node& value) {
    const toml::array* list = value.as_array();
    if (!list || list->empty())
      return mistake(value, "f32_ops: need a list of ops, such as [\"softmax\"]");
    for (const toml::node& op : *list) {
      const std::string name = op.value<std::string>().value_or("");
      if (!find_op(Name(name))) mistake(value, "f32_ops: there is no op " + in_quotes(name));
      profile_.f32_ops.push_back(name);
    }
  }

  void mistake(const toml::node& at, const std::string& what) {
    mistakes_.push_back(plain_ + ":" + std::to_string(at.source().begin.line) + ": " + what);
  }

  [[noreturn]] void refuse() const {
    UserError e("E0332", "the device profile " + in_quotes(file_) + " cannot be used");
    for (const std::string& m : mistakes_) e.add_line("saw", m);
    std::string keys = "memory_gib, types, f32_ops";
    for (const Rate& rate : kRates) keys += ", " + std::string(rate.key);
    e.add_line("need", "one or more of " + keys);
    throw e;
  }

  std::string file_;
  std::string plain_;  // the same on one line, and no command to a terminal
  Profile profile_;
  std::vector<std::string> mistakes_;
};

}  // namespace

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : kBuiltin) names.emplace_back(name);
  return names;
}

Profile load_profile(const std::string& name) {
  for (const auto& [builtin, text] : kBuiltin)
    if (builtin == name) return ProfileReader(name, name + ".toml").read(text());
  if (name.find_first_of("./") == std::string::npos) {
    UserError e =
        UserError("E0332", "there is no device profile " + in_quotes(name))
            .need("one of: " + join(profile_names(), ", ") + "; or the path of a TOML file");
    if (path_exists(name + ".toml"))
      e.add_line("try", "sim:" + name + ".toml");
    else if (const std::string near = nearest_name(name, profile_names()); !near.empty())
      e.add_line("try", "sim:" + near);
    throw e;
  }
  if (!path_exists(name))
    throw UserError("E0332", "there is no device profile " + in_quotes(name))
        .saw("no file " + in_quotes(std::filesystem::absolute(name).lexically_normal().string()))
        .need("one of: " + join(profile_names(), ", ") +
              "; or the path of a TOML file, which begins "
              "in the folder where the program runs");
  if (!is_file(name))
    throw UserError("E0332", "the device profile " + in_quotes(name) + " cannot be used")
        .need("a regular file");
  constexpr std::uint64_t kLimit = 1 << 20;
  return ProfileReader(Path(name).stem().string(), name).read(read_file(name, kLimit));
}

}  // namespace aloft::sim

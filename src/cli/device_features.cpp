#include "cli/device_features.h"

#include <fmt/format.h>

#include "base/text.h"

namespace aloft::cli {
namespace {

constexpr DType kKinds[] = {DType::F32, DType::BF16, DType::F16};

std::vector<std::string> types(const Capability& c, bool (Capability::*can)(DType) const) {
  std::vector<std::string> names;
  for (const DType t : kKinds)
    if ((c.*can)(t)) names.emplace_back(name_of(t));
  return names;
}

std::string text_of(const Features::SpaceSize& s) {
  return std::string(name_of(s.space)) + (s.bytes ? " " + human_bytes(s.bytes) : ", no limit");
}

// Null for what a device does not say.
template <class Number>
nlohmann::json unless_zero(Number n) {
  return n > 0 ? nlohmann::json(n) : nlohmann::json();
}

}  // namespace

nlohmann::json features_json(const Device& device) {
  const Features& f = device.features();
  nlohmann::json spaces = nlohmann::json::object();
  for (const auto& s : f.spaces) spaces[std::string(name_of(s.space))] = unless_zero(s.bytes);
  return {{"name", device.name()},
          {"stores", types(f.capability, &Capability::stores)},
          {"multiplies", types(f.capability, &Capability::computes)},
          {"streams", f.streams},
          {"is_asynchronous", f.is_asynchronous},
          {"shares_host_memory", f.shares_host_memory},
          {"alignment_bytes", f.alignment},
          {"f32_gflops", unless_zero(f.f32_flops / 1e9)},
          {"low_gflops", unless_zero(f.low_flops / 1e9)},
          {"memory_gb_s", unless_zero(f.memory_bandwidth / 1e9)},
          {"host_gb_s", unless_zero(f.host_bandwidth / 1e9)},
          {"launch_us", unless_zero(f.launch_seconds * 1e6)},
          {"is_simulated", f.is_simulated},
          {"spaces", spaces}};
}

std::vector<std::pair<std::string, std::string>> features_text(const Device& device) {
  const Features& f = device.features();
  std::vector<std::string> spaces;
  for (const auto& s : f.spaces) spaces.push_back(text_of(s));
  std::vector<std::pair<std::string, std::string>> rows = {
      {"device", device.name()},
      {"stores", join(types(f.capability, &Capability::stores), " ")},
      {"multiplies", join(types(f.capability, &Capability::computes), " ")}};
  if (f.f32_flops > 0)
    rows.emplace_back("products", fmt::format("f32 {:.4g}, low types {:.4g} TFLOP/s by its profile",
                                              f.f32_flops / 1e12, f.low_flops / 1e12));
  if (f.memory_bandwidth > 0)
    rows.emplace_back(
        "moves",
        fmt::format("its memory {:.4g} GB/s, from and to the host {:.4g} GB/s; a kernel takes "
                    "{:.4g} us at least",
                    f.memory_bandwidth / 1e9, f.host_bandwidth / 1e9, f.launch_seconds * 1e6));
  rows.emplace_back("streams", std::to_string(f.streams) +
                                   (f.is_asynchronous ? ", work goes on beside the host" : ""));
  rows.emplace_back("memory", f.shares_host_memory ? "the host's" : join(spaces, "; "));
  return rows;
}

}  // namespace aloft::cli

// aloft devices
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "backends/catalog.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/measure.h"
#include "base/log.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/device_features.h"
#include "cli/machine.h"
#include "cli/shared_options.h"
#include "cli/verb.h"
#include "runtime/current_device.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

// Bytes of a cache level as the C library reports it; 0 where it does not know.
std::uint64_t cache_bytes(int name) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0;
}

// Of one device that the command line names.
ExitCode one_device(bool as_json, const Device& device) {
  if (as_json)
    print_result("{}\n", features_json(device).dump(2));
  else
    for (const auto& [what, how] : features_text(device)) print_result("{:<18}{}\n", what, how);
  return ExitCode::Ok;
}

ExitCode devices(bool as_json, bool measure) {
  const std::string isa = cpu::describe(cpu::cpu_features());
  json device = {{"backend", "cpu"},
                 {"processor", machine_name()},
                 {"instruction_sets", isa},
                 {"caches",
                  {{"l1d_bytes", cache_bytes(_SC_LEVEL1_DCACHE_SIZE)},
                   {"l2_bytes", cache_bytes(_SC_LEVEL2_CACHE_SIZE)},
                   {"l3_bytes", cache_bytes(_SC_LEVEL3_CACHE_SIZE)}}},
                 {"memory_bytes", static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                                      static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE))},
                 {"features", features_json(open_device("cpu"))}};
  if (measure) {
    log_info("measuring: products of 512 x 1024 x 512, and a stream through memory");
    const cpu::MatmulRates rates = cpu::measure_matmul_rates();
    device["f32_gflops"] = rates.f32_gflops;
    device["bf16_gflops"] = rates.bf16_gflops;
    device["stream_gb_s"] = cpu::measure_stream_rate();
  }
  if (as_json) {
    json all = json::array({device});
    for (const DeviceKind& kind : device_kinds())
      if (kind.name != "cpu")
        all.push_back({{"backend", kind.name},
                       {"summary", kind.summary},
                       {"variants", kind.variants},
                       {"features", features_json(open_device(kind.name))}});
    print_result("{}\n", all.dump(2));
    return ExitCode::Ok;
  }
  print_result("{:<18}{}\n", "backend", device["backend"].get<std::string>());
  print_result("{:<18}{}\n", "processor", device["processor"].get<std::string>());
  print_result("{:<18}{}\n", "instruction sets", isa);
  for (const auto& [key, text] :
       {std::pair{"l1d_bytes", "L1 data"}, {"l2_bytes", "L2"}, {"l3_bytes", "L3"}})
    print_result("{:<18}{}\n", text, human_bytes(device["caches"][key].get<std::uint64_t>()));
  print_result("{:<18}{}\n", "memory", human_bytes(device["memory_bytes"].get<std::uint64_t>()));
  if (measure) {
    print_result("{:<18}{:.0f} GFLOP/s\n", "f32 products", device["f32_gflops"].get<double>());
    print_result("{:<18}{:.0f} GFLOP/s\n", "bf16 products", device["bf16_gflops"].get<double>());
    print_result("{:<18}{:.1f} GB/s\n", "memory stream", device["stream_gb_s"].get<double>());
  }
  for (const DeviceKind& kind : device_kinds())
    if (kind.name != "cpu") {
      print_result("\n--device {}: {}\n", kind.name, kind.summary);
      if (!kind.variants.empty()) print_result("--device {}\n", join(kind.variants, ", "));
    }
  return ExitCode::Ok;
}

}  // namespace

Action devices_verb(CLI::App& app) {
  struct Options {
    bool json = false, no_measure = false;
  };
  auto o = std::make_shared<Options>();
  add_json(app, o->json, "a list of objects");
  app.add_flag("--no-measure", o->no_measure, "only what is there, without measuring its speed");
  add_device(app, "only what this device can do: sim:910B3");
  return [o] {
    if (given_device()) return one_device(o->json, current_device());
    return devices(o->json, !o->no_measure);
  };
}

}  // namespace aloft::cli

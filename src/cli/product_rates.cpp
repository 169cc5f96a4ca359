#include "cli/product_rates.h"

#include <fmt/format.h>
#include <omp.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "backends/cpu/isa.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/machine.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

constexpr const char* kFile = "product-rates.json";

// What the rates belong to: another processor, library, cap on instruction sets or number of
// threads multiplies at other rates.
std::string measured_on() {
  return machine_name() + "; " + cpu::describe(cpu::cpu_features()) + "; oneDNN " +
         cpu::library_version() + "; " + std::to_string(omp_get_max_threads()) + " used";
}

double rate_in(const json& entry, const char* key) {
  const auto it = entry.find(key);
  const double rate = it != entry.end() && it->is_number() ? it->get<double>() : 0;
  return std::isfinite(rate) && rate > 0 ? rate : 0;
}

// The whole file; an empty object where there is none that can be used.
json remembered(const Path& file) {
  constexpr std::uint64_t kLimit = 1 << 20;
  try {
    json all = parse_json(read_file(file, kLimit));
    if (all.is_object()) return all;
  } catch (const Error&) {
  }
  return json::object();
}

// Whether a remembered rate was measured in quiet; versions before did not ask.
bool was_quiet(const json& entry) {
  const auto it = entry.find("spread");
  return it != entry.end() && it->is_number() && it->get<double>() <= cpu::kQuietSpread;
}

void remember(const Path& cache, json all, const std::string& key, const cpu::MatmulRates& rates) {
  all[key] = {{"f32_gflops", rates.f32_gflops},
              {"bf16_gflops", rates.bf16_gflops},
              {"spread", rates.spread}};
  try {
    make_folder(cache);
    write_file_atomic(cache / kFile, json_text(all, 2) + "\n");
  } catch (const Error&) {  // a cache that cannot be written is measured again
  }
}

}  // namespace

MeasuredRates product_rates(const Path& cache, const std::function<cpu::MatmulRates()>& measure) {
  const std::string key = measured_on();
  json all = remembered(cache / kFile);
  if (const auto it = all.find(key); it != all.end() && was_quiet(*it)) {
    MeasuredRates rates{rate_in(*it, "f32_gflops"), rate_in(*it, "bf16_gflops"),
                        "as measured before (" + (cache / kFile).string() + ")"};
    if (rates.f32_gflops > 0 && rates.bf16_gflops > 0) return rates;
  }
  const cpu::MatmulRates now = measure();
  MeasuredRates rates{now.f32_gflops, now.bf16_gflops, "measured now"};
  if (now.spread <= cpu::kQuietSpread)
    remember(cache, std::move(all), key, now);
  else
    rates.source += fmt::format(", not kept: repeats differ by {:.0f} %", 100 * now.spread);
  return rates;
}

MeasuredRates shown_product_rates() {
  MeasuredRates rates = product_rates();
  log_info("products here: {}", describe(rates));
  return rates;
}

}  // namespace aloft::cli

#include "cli/product_rates.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

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

double now_in_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// One processor's in the file.
struct Kept {
  cpu::MatmulRates rates;
  bool is_settled = false;  // measured in quiet, or twice
  double at = 0;            // seconds since 1970; of unsettled ones

  bool is_due() const {
    constexpr double kWait = 10 * 60;
    const double age = now_in_seconds() - at;
    return !is_settled && (age < 0 || age >= kWait);
  }
};

// Versions before kept rates without a spread, measured in quiet or not: those count for nothing.
std::optional<Kept> kept_in(const json& all, const std::string& key) {
  const auto it = all.find(key);
  if (it == all.end() || !it->is_object()) return std::nullopt;
  const auto spread = it->find("spread"), at = it->find("unsettled_at");
  Kept kept;
  kept.rates = {rate_in(*it, "f32_gflops"), rate_in(*it, "bf16_gflops"), 0};
  if (kept.rates.f32_gflops == 0 || kept.rates.bf16_gflops == 0) return std::nullopt;
  if (spread == it->end() || !spread->is_number()) return std::nullopt;
  kept.rates.spread = spread->get<double>();
  kept.is_settled = at == it->end();
  if (!kept.is_settled && at->is_number()) kept.at = at->get<double>();
  return kept;
}

void remember(const Path& cache, json all, const std::string& key, const Kept& kept) {
  all[key] = {{"f32_gflops", kept.rates.f32_gflops},
              {"bf16_gflops", kept.rates.bf16_gflops},
              {"spread", kept.rates.spread}};
  if (!kept.is_settled) all[key]["unsettled_at"] = kept.at;
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
  const auto shown = [](const Kept& k, const std::string& source) {
    const std::string busy =
        k.is_settled ? ""
                     : fmt::format(", the machine was busy: repeats differed by {:.0f} %",
                                   100 * k.rates.spread);
    return MeasuredRates{k.rates.f32_gflops, k.rates.bf16_gflops, source + busy};
  };
  const std::optional<Kept> before = kept_in(all, key);
  if (before && !before->is_due())
    return shown(*before, "as measured before (" + (cache / kFile).string() + ")");
  Kept now{measure(), before.has_value(), now_in_seconds()};
  now.is_settled = now.is_settled || now.rates.spread <= cpu::kQuietSpread;
  if (before) {
    now.rates.f32_gflops = std::max(now.rates.f32_gflops, before->rates.f32_gflops);
    now.rates.bf16_gflops = std::max(now.rates.bf16_gflops, before->rates.bf16_gflops);
  }
  remember(cache, std::move(all), key, now);
  return shown(now, "measured now");
}

MeasuredRates shown_product_rates() {
  MeasuredRates rates = product_rates();
  log_info("products here: {}", describe(rates));
  return rates;
}

}  // namespace aloft::cli

#include "cli/product_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/cpu/isa.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/machine.h"
#include "runtime/current_device.h"
#include "runtime/threads.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

constexpr const char* kFile = "product-rates.json";

// What the rates belong to: another processor, library, cap on instruction sets or number of
// threads multiplies at other rates.
std::string measured_on() {
  return machine_name() + "; " + cpu::describe(cpu::cpu_features()) + "; oneDNN " +
         cpu::library_version() + "; " + std::to_string(host_threads().count()) + " used";
}

// No processor has rates beyond these: such a file was damaged or edited.
constexpr double kLeastGflops = 0.01, kMostGflops = 1e6, kMostSpread = 1e3;

double number_in(const json& entry, const char* key, double least, double most, double otherwise) {
  const auto it = entry.find(key);
  if (it == entry.end() || !it->is_number()) return otherwise;
  const double value = it->get<double>();
  return value >= least && value <= most ? value : otherwise;
}

double rate_in(const json& entry, const char* key) {
  return number_in(entry, key, kLeastGflops, kMostGflops, 0);
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
  // Measured since, in a machine that was disturbed too, and far below.
  std::optional<cpu::MatmulRates> doubt = {};

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
  const auto at = it->find("unsettled_at");
  Kept kept;
  kept.rates = {rate_in(*it, "f32_gflops"), rate_in(*it, "bf16_gflops"),
                number_in(*it, "spread", 0, kMostSpread, -1)};
  if (kept.rates.f32_gflops == 0 || kept.rates.bf16_gflops == 0 || kept.rates.spread < 0)
    return std::nullopt;
  kept.is_settled = at == it->end();
  if (!kept.is_settled && at->is_number()) kept.at = at->get<double>();
  const cpu::MatmulRates doubt = {rate_in(*it, "doubt_f32_gflops"),
                                  rate_in(*it, "doubt_bf16_gflops"), 0};
  if (doubt.f32_gflops > 0 && doubt.bf16_gflops > 0) kept.doubt = doubt;
  return kept;
}

void remember(const Path& cache, json all, const std::string& key, const Kept& kept) {
  all[key] = {{"f32_gflops", kept.rates.f32_gflops},
              {"bf16_gflops", kept.rates.bf16_gflops},
              {"spread", kept.rates.spread}};
  if (!kept.is_settled) all[key]["unsettled_at"] = kept.at;
  if (kept.doubt)
    all[key].update({{"doubt_f32_gflops", kept.doubt->f32_gflops},
                     {"doubt_bf16_gflops", kept.doubt->bf16_gflops}});
  try {
    make_folder(cache);
    write_file_atomic(cache / kFile, json_text(all, 2) + "\n");
  } catch (const Error&) {  // a cache that cannot be written is measured again
  }
}

// Two measurements of a busy machine settle it, by the better of each type: nothing makes a product
// too fast. One that lies far below the other leaves that in doubt: either the machine was very
// busy, or the better was damaged. It counts until a third lies far below it, too, or does not.
// Whether all that stays was measured now.
bool settle(Kept& now, const Kept& before) {
  constexpr double kFar = 10;
  const cpu::MatmulRates measured = now.rates;
  const bool is_far_below = before.rates.f32_gflops > kFar * measured.f32_gflops ||
                            before.rates.bf16_gflops > kFar * measured.bf16_gflops;
  const cpu::MatmulRates& other = is_far_below && before.doubt ? *before.doubt : before.rates;
  now.is_settled = !is_far_below || before.doubt;
  if (!now.is_settled) now.doubt = measured;
  now.rates.f32_gflops = std::max(measured.f32_gflops, other.f32_gflops);
  now.rates.bf16_gflops = std::max(measured.bf16_gflops, other.bf16_gflops);
  return measured.f32_gflops >= other.f32_gflops && measured.bf16_gflops >= other.bf16_gflops;
}

MeasuredRates shown(const Kept& k, const std::string& source) {
  const std::string busy = k.is_settled
                               ? ""
                               : fmt::format(", the machine was busy: repeats differed by {:.0f} %",
                                             100 * k.rates.spread);
  return {k.rates.f32_gflops, k.rates.bf16_gflops, source + busy};
}

}  // namespace

MeasuredRates product_rates(const Path& cache, const std::function<cpu::MatmulRates()>& measure) {
  const std::string key = measured_on();
  const Path file = cache / kFile;
  const std::string as_before = "as measured before (" + file.string() + ")";
  std::optional<Kept> before = kept_in(remembered(file), key);
  if (before && !before->is_due()) return shown(*before, as_before);
  Kept now{measure(), false, now_in_seconds()};
  now.is_settled = now.rates.spread <= cpu::kQuietSpread;
  // Another program may have measured too in the meantime: what it wrote stays.
  json all = remembered(file);
  before = kept_in(all, key);
  if (before && !before->is_due() && (before->is_settled || !now.is_settled))
    return shown(*before, as_before);
  const bool is_now = now.is_settled || !before || settle(now, *before);
  remember(cache, std::move(all), key, now);
  return shown(now, is_now ? "measured now" : "the better of two measurements, now and before");
}

MeasuredRates device_rates() {
  const Features& f = current_device().features();
  if (f.f32_flops > 0 && f.low_flops > 0) {
    constexpr double kGiga = 1e9;
    return {f.f32_flops / kGiga, f.low_flops / kGiga, "as " + current_device().name() + " says",
            f.low_flops / kGiga};
  }
  MeasuredRates rates = product_rates();
  // What has no f16 products computes them in f32, or as three of bf16.
  rates.f16_gflops = std::max(rates.f32_gflops, rates.bf16_gflops / 3);
  return rates;
}

profile::Rates rates_of_device() {
  constexpr double kGiga = 1e9;
  const MeasuredRates products = device_rates();
  profile::Rates rates{products.f32_gflops, products.bf16_gflops,
                       std::max(products.f16_gflops, products.f32_gflops), 0, products.source};
  const Features& f = current_device().features();
  if (f.memory_bandwidth > 0) {
    rates.memory_gb_s = f.memory_bandwidth / kGiga;
    return rates;
  }
  try {
    rates.memory_gb_s = cpu::measure_stream_rate();
  } catch (const EnvironmentError& e) {
    log_warning("how fast the memory is was not measured: {}", e.headline());
  }
  return rates;
}

MeasuredRates shown_product_rates() {
  MeasuredRates rates = device_rates();
  log_info("products here: {}", describe(rates));
  return rates;
}

}  // namespace aloft::cli

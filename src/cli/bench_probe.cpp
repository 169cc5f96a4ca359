#include "cli/bench_probe.h"

#include <algorithm>
#include <array>
#include <vector>

#include "cli/bench_profile.h"
#include "frontend/random.h"

namespace aloft::cli {

namespace {

constexpr int kPairs = 40;

// A subject with the random numbers that it draws next: those of the process are one state.
struct Turn {
  BenchSubject& subject;
  std::array<std::int64_t, 3> random;
  std::vector<double> times = {};

  double step() {
    set_random_numbers(random);
    const double start = steady_seconds();
    subject.step();
    const double seconds = steady_seconds() - start;
    random = random_numbers();
    return seconds;
  }
};

double median(std::vector<double> v) {
  std::ranges::sort(v);
  return v[v.size() / 2];
}

}  // namespace

void measure_probe(BenchSubject& subject, const BenchOptions& o, nlohmann::json& result) {
  Turn on{subject, random_numbers()};
  BenchOptions plain = o;
  plain.probe = "none";
  const auto other = open_bench(plain);
  other->start();
  Turn off{*other, random_numbers()};
  while (other->steps_made() < subject.steps_made()) off.step();
  for (int pair = 0; pair < kPairs; ++pair) {
    // Whoever comes first meets caches that the other left: in turns.
    Turn& first = pair % 2 == 0 ? on : off;
    Turn& second = pair % 2 == 0 ? off : on;
    for (Turn* turn : {&first, &second}) turn->times.push_back(turn->step());
  }
  result["probe"] = o.probe;
  result["probe_pairs"] = kPairs;
  result["probe_cost"] = median(on.times) / median(off.times);
  result["probe_step_ms"] = median(on.times) * 1e3;
  result["probe_step_ms_off"] = median(off.times) * 1e3;
  result["parameters_hash"] = subject.parameters_hash();
  result["parameters_hash_off"] = other->parameters_hash();
}

}  // namespace aloft::cli

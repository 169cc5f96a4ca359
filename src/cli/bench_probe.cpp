#include "cli/bench_probe.h"

#include <algorithm>
#include <array>
#include <vector>

#include "cli/bench_profile.h"
#include "frontend/random.h"
#include "scalar/median.h"

namespace aloft::cli {

namespace {

constexpr std::int64_t kPairs = 40, kLooks = 4;  // at least

// A subject with the random numbers that it draws next: those of the process are one state.
struct Turn {
  BenchSubject& subject;
  std::array<std::int64_t, 3> random;
  std::int64_t every = 1;                         // every how many-th step looks
  std::vector<double> looking = {}, others = {};  // times

  void step() {
    const bool looks = subject.steps_made() % every == 0;
    set_random_numbers(random);
    const double start = steady_seconds();
    subject.step();
    const double seconds = steady_seconds() - start;
    random = random_numbers();
    (looks ? looking : others).push_back(seconds);
  }
  // Of a step, of which every so many-th looks.
  double seconds() const {
    const auto rest = static_cast<double>(every - 1);
    return (scalar::upper_median(looking) + rest * scalar::upper_median(others)) / (rest + 1);
  }
};

}  // namespace

void measure_probe(BenchSubject& subject, const BenchOptions& o, nlohmann::json& result) {
  Turn on{subject, random_numbers(), o.probe_every};
  BenchOptions plain = o;
  plain.probe = "none";
  const auto other = open_bench(plain);
  other->start();
  Turn off{*other, random_numbers()};
  while (other->steps_made() < subject.steps_made()) off.step();
  off.looking.clear();
  const std::int64_t pairs = std::max(kPairs, kLooks * o.probe_every);
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    // Whoever comes first meets caches that the other left: in turns.
    Turn& first = pair % 2 == 0 ? on : off;
    Turn& second = pair % 2 == 0 ? off : on;
    for (Turn* turn : {&first, &second}) turn->step();
  }
  result["probe"] = o.probe;
  result["probe_every"] = o.probe_every;
  result["probe_pairs"] = pairs;
  result["probe_cost"] = on.seconds() / off.seconds();
  result["probe_step_ms"] = on.seconds() * 1e3;
  result["probe_step_ms_off"] = off.seconds() * 1e3;
  result["parameters_hash"] = subject.parameters_hash();
  result["parameters_hash_off"] = other->parameters_hash();
}

}  // namespace aloft::cli

#include "cli/bench_probe.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "cli/bench_profile.h"
#include "frontend/random.h"
#include "scalar/median.h"

namespace aloft::cli {

namespace {

constexpr std::int64_t kPairs = 40, kRounds = 4;  // at least
constexpr std::int64_t kTimed = 2;                // steps of a turn, at least

// A subject with the random numbers that it draws next: those of the process are one state.
struct Turn {
  BenchSubject& subject;
  std::array<std::int64_t, 3> random;
  std::map<Look, std::vector<double>> times = {};  // of steps that have this look

  void step(bool is_timed = true) {
    const Look look = subject.look();
    set_random_numbers(random);
    const double start = steady_seconds();
    subject.step();
    const double seconds = steady_seconds() - start;
    random = random_numbers();
    if (is_timed) times[look].push_back(seconds);
  }
  // The files of a step are written beside the next one, whose time they are part of: the first
  // step, with nothing to be written beside it, is as no other of a run, and is not timed; those
  // of the last are no part of the other's steps. It meets caches that the other left, too.
  void steps(std::int64_t timed) {
    step(false);
    for (std::int64_t i = 0; i < timed; ++i) step();
    subject.settle();
  }
  std::int64_t count(Look look) const {
    const auto it = times.find(look);
    return it == times.end() ? 0 : std::ssize(it->second);
  }
  // Of a step in the mean: the medians of steps alike.
  double seconds() const {
    double all = 0, count = 0;
    for (const auto& [look, seconds] : times) {
      const auto own = static_cast<double>(seconds.size());
      all += own * scalar::upper_median(seconds);
      count += own;
    }
    return all / count;
  }
};

// The same that nobody looks at, whatever the options and the recipe say.
BenchOptions without_probe(BenchOptions o) {
  std::erase_if(o.recipe.set, [](const std::string& text) {
    const std::string key = parse_override(text).key;
    return key.starts_with("probe.") || key.starts_with("monitor.");
  });
  o.recipe.set.emplace_back("monitor.on=false");
  o.probe = "none";
  return o;
}

}  // namespace

void measure_probe(BenchSubject& subject, const BenchOptions& o, nlohmann::json& result) {
  Turn on{subject, random_numbers()};
  const auto other = open_bench(without_probe(o));
  other->start();
  Turn off{*other, random_numbers()};
  while (other->steps_made() < subject.steps_made()) off.step(false);
  subject.settle();
  const std::int64_t round =
      subject.steps_a_round();  // whole ones, so that each look has its share
  const std::int64_t timed = (kTimed + round - 1) / round * round;
  const std::int64_t turns = (std::max(kPairs, kRounds * round) + timed - 1) / timed;
  const std::int64_t pairs = turns * timed;
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    Turn& first = turn % 2 == 0 ? on : off;  // what slows down slows down both
    Turn& second = turn % 2 == 0 ? off : on;
    for (Turn* one : {&first, &second}) one->steps(timed);
  }
  result["probe"] = o.probe.empty() ? subject.looked_at_by() : o.probe;
  result["probe_pairs"] = pairs;
  result["probe_looks"] = pairs - on.count(Look::Nothing);
  result["probe_cost"] = on.seconds() / off.seconds();
  result["probe_step_ms"] = on.seconds() * 1e3;
  result["probe_step_ms_off"] = off.seconds() * 1e3;
  result["parameters_hash"] = subject.parameters_hash();
  result["parameters_hash_off"] = other->parameters_hash();
}

}  // namespace aloft::cli

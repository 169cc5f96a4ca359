// What a recorder saw, for people and for programs: docs/profile.md says what stands where.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "observe/profile/rates.h"
#include "observe/profile/recorder.h"

namespace aloft::profile {

// Ops of one kind and phase, over all steps.
struct Row {
  std::string op;
  Phase phase = Phase::Forward;
  std::int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
  bool has_products = false;
  // What the work would have taken at the device's rates: products at theirs, and bytes at that of
  // the memory, whichever takes longer; 0: rates are not known.
  double seconds_at_rates = 0;
};

struct Step {
  std::int64_t step = 0;
  double begin = 0, seconds = 0;  // from the first instruction's beginning to the last one's end
  double in_calls = 0;            // the sum of its instructions
};

struct Summary {
  std::string device;
  int threads = 1;                // of the host's pool
  double timer_seconds = 0;       // see timer_seconds()
  double host_step_seconds = 0;   // by the host's clock, the median of the steps that were timed
  double plain_step_seconds = 0;  // ... of those before them, but the first; 0: none
  Rates rates;
  std::vector<Step> steps;
  std::vector<Row> rows;  // longest first
};

// The part of it that the recorder knows.
Summary summary_of(const Recorder& recorder, const Rates& rates);

// A table, in lines of 100 columns at most.
std::string text_of(const Summary& summary);
nlohmann::json json_of(const Summary& summary);
// profile.json: a trace as Perfetto and chrome://tracing read it, with the summary beside it.
std::string trace_text(const Recorder& recorder, const Summary& summary);

}  // namespace aloft::profile

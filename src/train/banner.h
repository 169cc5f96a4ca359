// What a person wants to know before a run takes its time: model, data, length, precision, memory,
// where it all goes.
#pragma once

#include <cstdint>
#include <string>

#include "recipe/run_length.h"
#include "sources/run_data.h"
#include "train/session.h"

namespace aloft {

struct BannerFacts {
  const Session& session;
  const RunData& data;
  Path out;                         // the run directory
  RunPlace begin = {};              // where a resumed run stands
  std::int64_t tokens_before = 0;   // that it was trained on
  std::uint64_t planned_bytes = 0;  // 0: nothing is planned, as in eager mode
  double compile_s = 0;
  int threads = 1;
  std::string device_before = {};  // of a run that goes on, where it is known
  bool is_from_cache = false;      // the compiled step, of an earlier start
};

// Lines "label  text", each ended; no line is longer than what is in it needs.
std::string start_banner(const BannerFacts& facts);

}  // namespace aloft

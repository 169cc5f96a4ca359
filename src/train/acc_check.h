// The calls of a dumped step (train/probe_calls.h) made again as their ops mean them, in double,
// and what their kernels gave held against that. docs/acc-check.md is the page.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "observe/accuracy/standards.h"
#include "ops/op.h"

namespace aloft {

// Of a result of a call.
struct CheckedResult {
  std::string type;  // "bf16[4,8]"
  accuracy::Accuracy accuracy;
};

struct CheckedCall {
  std::string step, entry;  // "step0", "Torch.linear.3.forward"
  std::string op, kernel, name, module, phase, program;
  std::int64_t instruction = 0;  // of the program
  std::vector<CheckedResult> results;
  std::string unchecked;  // why it could not be made again; empty: it was
  // Which figure of dump.json its tensors are not of; empty: none.
  std::string contradiction;
  bool is_passed() const;
  // The first of its results that does not pass; null where all do.
  const CheckedResult* failed() const;
};

// What a dump has, judged or not.
struct CheckedDump {
  std::vector<CheckedCall> calls;
  // Entries without `call`, step and name: of statistics, of modules, of another program. Nothing
  // says which op made them of what.
  struct Unjudged {
    std::string step, entry;
  };
  std::vector<Unjudged> unjudged;
  // Steps without a dump.json that can be read: of a program that was ended, say.
  struct Unread {
    std::string step, why;
  };
  std::vector<Unread> unread;
};

// To which standard a result of a call is held.
accuracy::Standard standard_of(const OpDef& op, const Attrs& attrs, CallTypes in, CallTypes out,
                               std::size_t result);

// Every call of the dumps in `dump`: a folder with step*/rank*/dump.json, or one dump.json. `list`:
// of those whose entries or names have one of these parts; empty: all. DataError E0650: it is no
// dump; E0863: it has no calls that could be made again; E0601, E0602. What is wrong with a call,
// or with one of several steps, is said of it alone.
CheckedDump check_calls(const Path& dump, const std::vector<std::string>& list = {});

// An object a call, then one an entry that is not judged, whose result is "skip", then one a step
// that cannot be read, whose entry is "".
nlohmann::ordered_json json_of(const CheckedDump& dump);
std::string json_text_of(const CheckedDump& dump);

// accuracy_checking_result.csv (a row an entry), accuracy_checking_details.csv (a row a result) and
// accuracy_checking.json in `folder`. EnvironmentError E0603.
void write_checked(const CheckedDump& dump, const Path& folder);

}  // namespace aloft

// A recorded step, made again several times: whether the machine computes the same bits each time,
// and the run's. What differs is a fault of a processor, of memory, or of a kernel that is not
// deterministic; docs/redo.md says what is found and what cannot be.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "observe/redo/bit_watch.h"
#include "recipe/recipe.h"
#include "types/variable.h"

namespace aloft {

struct RedoReport;

struct RedoOptions {
  Path run;
  std::int64_t step = 0;  // from 0 on
  int times = 3;          // 2 or more
  // Beside the same memory with fewer threads, the last time in other memory: what is wrong in
  // one place for good is right in another.
  bool other_memory = true;
  std::vector<Override> overrides;  // of the run's recipe: threads, the device
  std::string machine;              // as run.json names it; empty: not compared
  // Told what is known so far: before each step on the way and before each repeat. What it throws
  // ends it: nothing was written.
  std::function<void(const RedoReport& so_far)> told = {};
};

struct RedoReport {
  std::int64_t step = 0, begins_at = 0;
  std::int64_t stands_at = 0;  // steps behind the state, while it is made
  struct Repeat {
    int threads = 0;
    bool is_other_memory = false;
  };
  std::vector<Repeat> repeats;                // that were begun
  std::size_t instructions = 0, tensors = 0;  // that were compared, of a repeat
  std::string no_other_memory;                // why not, where it was asked for; empty: it was

  // The first instruction whose bits differ between two repeats.
  struct Fault {
    int repeat = 0;  // that parts from the first, from 1 on
    int wrong = 0;   // the one that a further repeat speaks against; 0: all three differ
    bool is_other_length = false;  // it ran other instructions: of no use to look further
    redo::WatchedInstruction instruction;
    bool is_result = false;  // else what it took had changed since it was written
    int number = 0;
    std::string tensor;  // whose bytes: an operand's variable, or what wrote it
    TensorType type;
    redo::ElementDifference elements;  // value: of a right repeat, other: of the wrong one
  };
  std::optional<Fault> fault;

  // Against what the run recorded.
  bool is_comparable = false;  // the same program, on the same machine
  std::int64_t compared_steps = 0;
  std::vector<std::int64_t> unrecorded;   // steps of which metrics.jsonl has no whole line
  std::optional<std::int64_t> parted_at;  // the first step with other numbers
  std::vector<std::string> numbers;       // how they differ there
  std::vector<std::string> variables;     // that differ from those of the checkpoint behind it
  bool is_state_compared = false;
  // Checkpoints that were passed over, each with what is wrong with it, and whether the one behind
  // the step is among them: no fault of this machine's now.
  std::vector<std::string> damaged;
  bool is_saved_state_damaged = false;
};

// Errors of RecordedRun. A run that was made in eager mode is made again by compiled programs.
RedoReport redo_step(const RedoOptions& options);

// For people, lines; for programs, docs/redo.md.
std::string redo_text(const RedoReport& report);
nlohmann::ordered_json json_of(const RedoReport& report);

}  // namespace aloft

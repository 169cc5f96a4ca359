// A run's directory: who may work in it, and where what lies.
//   run.json  data.json  run.lock  metrics.jsonl  events.out.tfevents.*  checkpoints/  samples/
//   tokenizer/
// A new run wants a folder that does not exist or is empty; one that goes on wants its run.json, or
// whole checkpoints where that was lost. Anything else is somebody's: it is refused, and nothing in
// it is touched. While an object lives, no other process trains there.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/folder_lock.h"

namespace aloft {

class RunDirectory {
 public:
  // Creates `folder` where it is missing. UserError E0811: it holds a run, which is not to be
  // resumed; E0820: files of others; E0821: another process trains there. DataError E0643: its
  // run.json is damaged. EnvironmentError E0603, E0604.
  RunDirectory(Path folder, bool resume);
  // Lets go; a folder in which no run began is removed again.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const Path& path() const { return folder_; }
  Path record_path() const { return folder_ / "run.json"; }
  Path checkpoints() const { return folder_ / "checkpoints"; }
  Path samples() const { return folder_ / "samples"; }
  Path tokenizer() const { return folder_ / "tokenizer"; }

  // run.json as it was found; null for a new run, or where it was lost.
  const nlohmann::json& found_record() const { return found_; }
  // What is known of the run that goes on: run.json, or where that was lost "recipe" and "data" as
  // its newest checkpoint carries them; null for a new run.
  const nlohmann::json& known() const { return known_; }
  // A run's own name, which its record and all its checkpoints carry: hexadecimal, drawn when it
  // began; "" in runs of programs that knew none.
  const std::string& run() const { return run_; }

  // Once, where the folder was moved or removed since it was opened: what is written from `step` on
  // lies in a new one of its name.
  void warn_if_moved(std::int64_t step);

  // Writes run.json, before anything else of a run; afterwards makes the folders that are missing.
  void write_record(const nlohmann::json& record);

 private:
  Path folder_;
  std::vector<Path> made_;  // the folder and those above it, innermost first
  std::unique_ptr<FolderLock> lock_;
  std::optional<FolderId> id_;  // nothing where it was said that it is another one
  nlohmann::json found_, known_;
  std::string run_;
};

// run.json of a run: an object with an object "recipe"; nothing else of it is checked. DataError
// E0643, at `name`; of reading a file, also E0601.
nlohmann::json parse_run_record(std::string_view text, const std::string& name);
nlohmann::json read_run_record(const Path& path);

// The name of the run whose run.json this is; "" where it has none.
std::string run_name(const nlohmann::json& record);

// The name of the device that the run of this run.json ran on last; "" where it has none.
std::string recorded_device(const nlohmann::json& record);

// The step of a checkpoint that was saved, as run.json says; 0 where it says of none.
std::int64_t saved_step(const nlohmann::json& record);

}  // namespace aloft

// What steps held, as files in msprobe's layout: docs/probe.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "graph/tap.h"
#include "observe/probe/dump.h"
#include "observe/probe/dump_text.h"
#include "recipe/recipe.h"
#include "train/file_queue.h"
#include "train/probe_tensors.h"
#include "train/written_file.h"

namespace aloft {

namespace nn {
class Module;
}

// A model's modules, as a dump names them.
std::vector<probe::DumpedModule> dumped_modules(nn::Module& model);

// UserError E0811 where steps of a dump lie in the folder: those that the new one does not make
// would be taken for its own.
void refuse_old_dump(const Path& folder);

class ProbeWriter {
 public:
  // The folders of steps go into `folder`, which is made.
  ProbeWriter(ProbeSection probe, Path folder);

  // What the steps of a program, or one eager step, have to be looked at.
  struct Seen {
    std::shared_ptr<const probe::Dump> dump;  // which the tensors refer to
    std::shared_ptr<const probe::DumpText> text;
    std::shared_ptr<const std::string> construct, stack;
    std::optional<ProbeTensors> tensors = {};
  };
  // `find`: of task "tensor" where the values are. UserError E0327 where nothing is meant by
  // probe.list, probe.scope and probe.data_mode.
  Seen of(std::vector<probe::LookedAt> values, const std::vector<probe::DumpedModule>& modules,
          const FindTensor& find) const;

  // The files of step `step`, counted from 0, which left the statistics `all`: each is whole or
  // not there, dump.json the last. They are written while training goes on; those of the step
  // before are there when this returns. `training`: what the loop says of the step; null: nothing.
  // EnvironmentError E0603, also of the step before.
  void write(std::int64_t step, const Seen& seen, std::span<const double> all,
             const nlohmann::ordered_json& training = {});
  // What there is to look at, without any step.
  void write_structure(const Seen& seen) const;
  // Which values there are not, and why: missing.json.
  void write_missing(const std::vector<RefusedTap>& refused) const;
  // Waits for all files, so that whoever goes on from here finds them. EnvironmentError E0603.
  void settle();
  // settle(), and says what was written: written.json.
  void finish();

 private:
  void put_counted(const Path& path, const std::string& text);

  ProbeSection probe_;
  Path folder_;
  bool is_loss_said_ = false;
  WrittenByProbe written_;  // dump_bytes: by the queue's thread, until it is waited for
  FileQueue queue_;
};

}  // namespace aloft

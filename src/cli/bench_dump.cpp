#include "cli/bench_dump.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/error.h"

namespace aloft::cli {

namespace {

Path new_folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "aloft-bench-XXXXXX").string();
  if (!mkdtemp(pattern.data()))
    throw EnvironmentError("E0603", "cannot make a folder for what the probe writes")
        .at(pattern)
        .saw(std::strerror(errno))
        .advice("TMPDIR=FOLDER names another place");
  return pattern;
}

}  // namespace

BenchDump::BenchDump(const Session& session, const std::unique_ptr<Runner>& runner)
    : folder_(new_folder()), files_(std::make_unique<ProbeFiles>(session, runner, folder_)) {
  Control nobody_stops;
  files_->run_begun({.folder = folder_, .task = task_kind(session.recipe), .rollbacks = {}},
                    nobody_stops);
}

BenchDump::~BenchDump() {
  files_.reset();  // what waits is written
  std::error_code none;
  std::filesystem::remove_all(folder_, none);
}

void BenchDump::write(std::int64_t number, const StepNumbers& said) {
  Control nobody_stops;
  files_->step_done({.step = number + 1,
                     .loss = said.loss,
                     .lr = said.lr,
                     .grad_norm = said.grad_norm,
                     .loss_scale = said.loss_scale,
                     .skipped = !said.finite},
                    nobody_stops);
}

void BenchDump::settle() { files_->settle(); }

}  // namespace aloft::cli

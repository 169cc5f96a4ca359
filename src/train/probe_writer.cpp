#include "train/probe_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/module.h"
#include "observe/probe/step_folder.h"
#include "passes/tap_pattern.h"
#include "train/overflow_file.h"
#include "train/probe_selection.h"

namespace aloft {

namespace {

// Bytes of tensors that wait to be written.
constexpr std::uint64_t kRoom = std::uint64_t{256} << 20;

std::string text_of(const nlohmann::ordered_json& json) { return json_text(json, 1); }

// Whole or not there, whatever ends the program; a step does not wait for the disk.
void put(const Path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit_unflushed();
}

}  // namespace

std::vector<probe::DumpedModule> dumped_modules(nn::Module& model) {
  std::vector<probe::DumpedModule> all;
  for (const nn::Module* m : model.modules()) all.push_back({m->path(), std::string(m->kind())});
  return all;
}

void refuse_old_dump(const Path& folder) {
  std::error_code none;
  for (const auto& at : std::filesystem::directory_iterator(folder, none)) {
    if (at.path().filename() == kOverflowFile || probe::is_step_of_dump(at.path()))
      throw UserError("E0811", "the folder holds a dump already")
          .at(at.path().string())
          .need("a folder without steps and overflow.json, so that none is taken for this dump's")
          .advice("another folder, or remove what is in this one");
  }
}

ProbeWriter::ProbeWriter(ProbeSection probe, Path folder)
    : probe_(std::move(probe)), folder_(std::move(folder)), queue_(kRoom) {
  make_folder(folder_);
}

ProbeWriter::Seen ProbeWriter::of(std::vector<probe::LookedAt> values,
                                  const std::vector<probe::DumpedModule>& modules,
                                  const FindTensor& find) const {
  Seen seen;
  const auto dump = std::make_shared<probe::Dump>(std::move(values), modules, probe_.level);
  seen.dump = dump;
  if (probe_.task == "tensor") {
    seen.tensors.emplace(find, probe_, *dump);
  } else if (selects(probe_)) {
    const Selected chosen = selected(probe_, *dump);
    if (!chosen.has_any) refuse_empty_selection(probe_, *dump, modules);
    dump->keep(chosen.values, chosen.taken);
  }
  seen.text = std::make_shared<const probe::DumpText>(dump);
  seen.construct = std::make_shared<const std::string>(text_of(dump->construct()));
  seen.stack = std::make_shared<const std::string>(text_of(dump->stack()));
  return seen;
}

// A program that is ended loses the step that it makes: numbers are there when this returns. Whole
// tensors, which may be as large as all that a step holds, are written while the next step is made,
// and waited for at its end.
void ProbeWriter::write(std::int64_t step, const Seen& seen, std::span<const double> all,
                        const nlohmann::ordered_json& training) {
  settle();
  const Path folder = probe::step_folder(folder_, step);
  make_folder(folder);
  const Path tensors = folder / "dump_tensor_data";
  // msprobe takes a dump with checksums, and no files, for one of statistics.
  const bool has_files = seen.tensors && probe_.summary == "statistics";
  if (has_files) make_folder(tensors);
  ProbeTensors::Taken taken;
  if (seen.tensors) taken = seen.tensors->take(all, tensors, queue_);
  written_.files += taken.files;
  written_.bytes += taken.bytes;
  ++written_.dumps;
  auto write = [this, folder, training, text = seen.text, construct = seen.construct,
                stack = seen.stack, added = std::move(taken.added),
                of_tensors = has_files ? std::filesystem::absolute(tensors).string() : "",
                numbers = std::vector(all.begin(), all.end())] {
    // The numbers last: where they are, the rest is.
    put_counted(folder / "construct.json", *construct);
    put_counted(folder / "stack.json", *stack);
    put_counted(folder / "dump.json", text->of(numbers, {of_tensors, added, training}));
  };
  queue_.add(all.size_bytes(), std::move(write));
  if (!has_files) settle();
}

void ProbeWriter::write_structure(const Seen& seen) const {
  const Path folder = probe::step_folder(folder_, 0);
  make_folder(folder);
  put(folder / "construct.json", *seen.construct);
  put(folder / "stack.json", *seen.stack);
  put(folder / "dump.json", text_of(seen.dump->structure()));
}

void ProbeWriter::write_missing(const std::vector<RefusedTap>& refused) const {
  nlohmann::ordered_json missing = nlohmann::ordered_json::object();
  for (const RefusedTap& tap : refused)
    missing[tap.name.substr(shown_prefix(tap.name).size())] = tap.why;
  put(folder_ / "missing.json", text_of(missing));
}

void ProbeWriter::put_counted(const Path& path, const std::string& text) {
  put(path, text);
  written_.dump_bytes += text.size();
}

// Where the disk has failed, what is missing is said before the error is.
void ProbeWriter::settle() {
  try {
    queue_.wait();
  } catch (...) {
    written_.dropped = queue_.dropped();
    if (!std::exchange(is_loss_said_, true))  // the end of the run, too, waits for the files
      log_warning("the probe has lost {} files, which could not be written", written_.dropped);
    throw;
  }
}

void ProbeWriter::finish() {
  if (written_.dumps == 0) return;
  settle();
  written_.waited_s = queue_.waited_s();
  write_written(folder_, written_);
  log_info("the probe has written {}", written_.text());
}

}  // namespace aloft

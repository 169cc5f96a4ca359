#include "train/probe_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/module.h"
#include "train/overflow_file.h"
#include "train/probe_selection.h"

namespace aloft {

namespace {

// Bytes of tensors that wait to be written.
constexpr std::uint64_t kRoom = std::uint64_t{256} << 20;

constexpr const char* kNoSuchGradient =
    "the step has no value that is just that: nobody needs it, or a sum takes it in parts";

std::string text_of(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

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
    const std::string name = at.path().filename().string();
    if (name == kOverflowFile || (name.starts_with("step") && path_exists(at.path() / "rank")))
      throw UserError("E0811", "the folder holds a dump already")
          .at(at.path().string())
          .need("a folder without steps and overflow.json, so that none is taken for this dump's")
          .advice("another folder, or remove what is in this one");
  }
}

ProbeWriter::ProbeWriter(ProbeSection probe, Path folder)
    : probe_(std::move(probe)), folder_(std::move(folder)) {
  if (probe_.task == "tensor") queue_ = std::make_unique<FileQueue>(kRoom);
  make_folder(folder_);
}

ProbeWriter::Seen ProbeWriter::of(std::vector<probe::LookedAt> values,
                                  const std::vector<probe::DumpedModule>& modules,
                                  const FindTensor& find) const {
  Seen seen;
  seen.dump = std::make_unique<probe::Dump>(std::move(values), modules, probe_.level);
  if (probe_.task == "tensor") {
    seen.tensors.emplace(find, probe_, *seen.dump);
  } else if (selects(probe_)) {
    const std::vector<bool> chosen = selected(probe_, *seen.dump);
    if (std::ranges::find(chosen, true) == chosen.end())
      refuse_empty_selection(probe_, *seen.dump, modules);
    seen.dump->keep(chosen);
  }
  seen.construct = text_of(seen.dump->construct());
  seen.stack = text_of(seen.dump->stack());
  return seen;
}

void ProbeWriter::write(std::int64_t step, const Seen& seen, std::span<const double> all,
                        const nlohmann::ordered_json& training) {
  const Path folder = folder_ / ("step" + std::to_string(step)) / "rank";
  make_folder(folder);
  // The numbers last: where they are, the rest is.
  put_counted(folder / "construct.json", seen.construct);
  put_counted(folder / "stack.json", seen.stack);
  write_numbers(seen, all, training, folder);
  ++written_.dumps;
}

void ProbeWriter::write_numbers(const Seen& seen, std::span<const double> all,
                                const nlohmann::ordered_json& training, const Path& folder) {
  if (!seen.tensors) {
    auto numbers = seen.dump->numbers(all);
    if (!training.is_null()) numbers["training"] = training;
    return put_counted(folder / "dump.json", text_of(numbers));
  }
  const bool has_files = probe_.summary != "md5";
  const Path tensors = folder / "dump_tensor_data";
  if (has_files) make_folder(tensors);
  const ProbeTensors::Taken taken = seen.tensors->take(all, tensors, *queue_);
  written_.files += taken.files;
  written_.bytes += taken.bytes;
  auto numbers = seen.dump->numbers(all, [&](std::size_t i, nlohmann::ordered_json& record) {
    if (!taken.added[i].is_null()) record.update(taken.added[i]);
  });
  if (!training.is_null()) numbers["training"] = training;
  // msprobe takes a dump with checksums, and no files, for one of statistics.
  if (has_files) {
    numbers["task"] = "tensor";
    numbers["dump_data_dir"] = std::filesystem::absolute(tensors).string();
  }
  std::string text = text_of(numbers);
  const std::uint64_t size = text.size();
  written_.dump_bytes += size;
  queue_->add(size, [path = folder / "dump.json", text = std::move(text)] { put(path, text); });
}

void ProbeWriter::write_structure(const Seen& seen) const {
  const Path folder = folder_ / "step0" / "rank";
  make_folder(folder);
  put(folder / "construct.json", seen.construct);
  put(folder / "stack.json", seen.stack);
  put(folder / "dump.json", text_of(seen.dump->structure()));
}

void ProbeWriter::write_missing(const std::vector<RefusedTap>& refused) const {
  nlohmann::ordered_json missing = nlohmann::ordered_json::object();
  for (const RefusedTap& tap : refused) missing[tap.name.substr(tap.name.find(':') + 1)] = tap.why;
  put(folder_ / "missing.json", text_of(missing));
}

void ProbeWriter::write_missing(const std::vector<std::string>& gradients) const {
  std::vector<RefusedTap> refused;
  for (const std::string& name : gradients) refused.push_back({name, kNoSuchGradient});
  write_missing(refused);
}

void ProbeWriter::put_counted(const Path& path, const std::string& text) {
  put(path, text);
  written_.dump_bytes += text.size();
}

// Where the disk has failed, what is missing is said before the error is.
void ProbeWriter::finish() {
  if (written_.dumps == 0) return;
  if (queue_) try {
      queue_->wait();
    } catch (...) {
      written_.dropped = queue_->dropped();
      log_warning("the probe has lost {} files, which could not be written", written_.dropped);
      throw;
    }
  if (queue_) written_.waited_s = queue_->waited_s();
  write_written(folder_, written_);
  log_info("the probe has written {}", written_.text());
}

}  // namespace aloft

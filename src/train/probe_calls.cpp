#include "train/probe_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "files/linked_file.h"
#include "files/tensor_files.h"
#include "frontend/programs.h"
#include "observe/probe/step_folder.h"
#include "observe/redo/bit_watch.h"
#include "ops/evaluate.h"
#include "ops/host_array.h"
#include "plan/plan.h"
#include "runtime/observer.h"
#include "train/call_figures.h"

namespace aloft {

namespace {

using Json = nlohmann::ordered_json;

// Bytes of tensors that wait to be written.
constexpr std::uint64_t kRoom = std::uint64_t{256} << 20;

std::string torch_name(DType t) {
  constexpr std::string_view names[] = {"float64", "float32", "bfloat16", "float16", "int64",
                                        "int32",   "uint8",   "int8",     "bool"};
  return "torch." + std::string(names[static_cast<int>(t)]);
}

// Range, mean and norm.
void put_figures(Json& record, const TensorType& type, std::span<const std::byte> bytes) {
  HostArray values = HostArray::zeros(type.dtype, type.shape.max_extents());
  if (!values.values.empty() && is_float(type.dtype)) load_bytes(values, bytes.data());
  record.update(call_figures(values));
}

// Evaluations are no part of a step; moving bytes has no meaning beside the bytes.
bool is_of_step(std::string_view program, const CallSpec& call) {
  return program != "evaluate" && call.op != Name(kCopyOp);
}

bool is_listed(const ProbeSection& probe, std::string_view call) {
  return probe.list.empty() || std::ranges::any_of(probe.list, [&](const std::string& part) {
           return call.find(part) != std::string_view::npos || glob_match(part, call);
         });
}

}  // namespace

// Of one step: copies what each instruction takes and gives.
class ProbeCalls::Taking : public Observer {
 public:
  Taking(Device& device, const ProbeSection& probe, Path folder, FileQueue& queue)
      : probe_(probe), folder_(std::move(folder)), queue_(queue), looking_(device, *this) {}

  void before(const OpEvent& e) override {
    if (!is_wanted(e)) return;
    name_ = name_of_call(e);
    entry_ = {{is_backward(e) ? "input" : "input_args", Json::array()}, {"output", Json::array()}};
    for (std::size_t i = 0; i < e.in.size(); ++i)
      entry_.begin()->push_back(record(e, e.in[i], e.call.in[i], "input", i));
  }
  void after(const OpEvent& e) override {
    if (!is_wanted(e)) return;
    for (std::size_t i = 0; i < e.out.size(); ++i)
      entry_["output"].push_back(record(e, e.out[i], e.call.out[i], "output", i));
    SymbolValues lengths;
    const std::vector<Name> symbols = e.call.symbols();
    for (std::size_t s = 0; s < symbols.size(); ++s) lengths[symbols[s]] = e.lengths[s];
    entry_["call"] = {{"op", e.call.op.str()},
                      {"attrs", bind_lengths(e.call.attrs, lengths).str()},
                      {"kernel", std::string(e.kernel)},
                      {"name", std::string(e.identity)},
                      {"module", std::string(e.path)},
                      {"phase", name_of(e.phase)},
                      {"program", std::string(e.program)},
                      {"instruction", e.instruction}};
    data_[name_] = std::move(entry_);
  }

  Json dump() const {
    return {{"task", "tensor"},
            {"level", "L2"},
            {"framework", "pytorch"},
            {"dump_data_dir", std::filesystem::absolute(folder_).string()},
            {"data", data_}};
  }
  std::uint64_t files() const { return files_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  static bool is_backward(const OpEvent& e) { return e.phase != Phase::Forward; }

  bool is_wanted(const OpEvent& e) const {
    return e.instruction >= 0 && is_of_step(e.program, e.call) && is_listed(probe_, e.identity);
  }

  std::string name_of_call(const OpEvent& e) {
    const std::string kind = e.call.op.str() + (is_backward(e) ? "b" : "f");
    return fmt::format("Torch.{}.{}.{}", e.call.op.str(), counts_[kind]++,
                       is_backward(e) ? "backward" : "forward");
  }

  // A tensor that was written already, as another's result, has one more name: msprobe calls a
  // record as its file.
  Json record(const OpEvent& e, const Buffer& buffer, const TensorType& type, const char* what,
              std::size_t n) {
    const TensorType bound = redo::bound_type(type, e.call.symbols(), e.lengths);
    std::vector<std::byte> bytes(bound.max_bytes());
    if (buffer && !bytes.empty()) buffer.read_into(bytes);
    Json record = {{"type", "torch.Tensor"},
                   {"dtype", torch_name(bound.dtype)},
                   {"shape", bound.shape.max_extents()}};
    put_figures(record, bound, bytes);
    record["requires_grad"] = false;
    const std::string name = fmt::format("{}.{}.{}.pt", name_, what, n);
    record["data_name"] = name;
    const auto [known, is_new] = written_.emplace(std::pair(hash64(bytes), bound.str()), name);
    if (!is_new) {
      queue_.add(
          0, [file = folder_ / known->second, path = folder_ / name] { link_file(file, path); });
      return record;
    }
    ++files_;
    bytes_ += bytes.size();
    const std::uint64_t size = bytes.size();
    queue_.add(size, [path = folder_ / name, bound, kept = std::move(bytes)] {
      write_torch_tensor(path, {bound.dtype, bound.shape.max_extents(), kept});
    });
    return record;
  }

  const ProbeSection& probe_;
  Path folder_;
  FileQueue& queue_;
  std::string name_;
  Json entry_, data_ = Json::object();
  std::map<std::string, int> counts_;
  std::map<std::pair<std::uint64_t, std::string>, std::string> written_;  // by bytes and type
  std::uint64_t files_ = 0, bytes_ = 0;
  const Observing looking_;
};

ProbeCalls::ProbeCalls(const Session& session, const std::unique_ptr<Runner>& runner, Path folder)
    : session_(session), runner_(runner), folder_(std::move(folder)) {}
ProbeCalls::~ProbeCalls() = default;

void ProbeCalls::run_begun(const RunBegun& e, Control&) {
  if (folder_.empty()) folder_ = e.folder / "probe";
  if (const Programs* programs = runner_->programs()) refuse_empty_list(*programs);
  queue_.emplace(kRoom);
}

// A list that means no call leaves a dump that nothing can be checked of.
void ProbeCalls::refuse_empty_list(const Programs& programs) const {
  const std::vector<std::string>& list = session_.recipe.probe.list;
  std::vector<std::string> calls, names;
  for (const Program& program : programs.plan().programs)
    for (const Instruction& i : program.instructions) {
      if (!is_of_step(program.name, i.call)) continue;
      if (is_listed(session_.recipe.probe, i.identity)) return;
      calls.push_back(i.identity);
      for (const std::string& name : {i.path, i.identity})
        if (!i.path.empty()) names.push_back(name);
    }
  if (calls.empty()) return;
  UserError error("E0327", "no call of a step is meant by probe.list");
  error.add_line("saw", join(list, ", "));
  error.add_line("need", "parts of the names of calls, or patterns of them, such as " +
                             (names.empty() ? calls : names).back());
  const std::string near = nearest_name(list.front(), names);
  error.add_line("try", near.empty() ? "no probe.list: dump.json names all calls"
                                     : in_quotes(near) + " for " + in_quotes(list.front()));
  throw error;
}

void ProbeCalls::step_begun(const StepBegun& e) {
  const std::int64_t step = e.step - 1;  // of a run the first is 1, of a dump 0
  taking_ = nullptr;
  if (look_at(session_.recipe.probe, step) == Look::Nothing) return;
  const Path tensors = probe::step_folder(folder_, step) / "dump_tensor_data";
  make_folder(tensors);
  taking_ = std::make_unique<Taking>(runner_->programs()->device(), session_.recipe.probe, tensors,
                                     *queue_);
}

// The file that names the others comes behind them.
void ProbeCalls::step_done(const StepDone& e, Control&) {
  if (!taking_) return;
  written_.files += taking_->files();
  written_.bytes += taking_->bytes();
  std::string text = json_text(taking_->dump(), 1);
  taking_ = nullptr;
  const Path path = probe::step_folder(folder_, e.step - 1) / "dump.json";
  const std::uint64_t size = text.size();
  ++written_.dumps;
  written_.dump_bytes += size;
  queue_->add(size, [path, text = std::move(text)] {
    AtomicFile file(path);
    file.write(text);
    file.commit_unflushed();
  });
}

void ProbeCalls::steps_over(const StepsOver&) {
  taking_ = nullptr;
  if (!queue_) return;
  queue_->wait();
  if (written_.dumps == 0) return;
  written_.waited_s = queue_->waited_s();
  write_written(folder_, written_);
  log_info("the probe has written calls of {}", written_.text());
}

}  // namespace aloft

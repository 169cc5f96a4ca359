#include "train/probe_tensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "files/crc32.h"
#include "files/safetensors.h"
#include "files/tensor_files.h"

namespace aloft {

namespace {

bool has_any(std::string_view name, const std::vector<std::string>& parts) {
  return std::ranges::any_of(
      parts, [&](const std::string& p) { return name.find(p) != std::string_view::npos; });
}

// Whether a name in the list is one of the module's, or a part of one.
bool is_asked(const nn::Module& m, const std::vector<std::string>& list) {
  const std::string base = fmt::format("Module.{}.", m.path());
  const std::string own = base + std::string(m.kind().empty() ? "Module" : m.kind());
  return std::ranges::any_of(list, [&](const std::string& name) {
    return name.starts_with(own + ".") || (own + ".").find(name) != std::string::npos ||
           std::string_view(".forward.backward.parameters_grad").find(name) !=
               std::string_view::npos;
  });
}

// Whether one of the words of a kind is given and none of these fits.
bool is_left_out(const std::vector<std::string>& mode, std::initializer_list<const char*> kind,
                 std::string_view own) {
  const auto is_given = [&](std::string_view word) {
    return std::ranges::find(mode, word) != mode.end();
  };
  return std::ranges::any_of(kind, is_given) && !is_given(own);
}

bool fits_mode(const std::string& name, const std::vector<std::string>& mode) {
  if (mode.empty() || std::ranges::find(mode, "all") != mode.end()) return true;
  const bool is_backward = name.find(".backward") != std::string::npos ||
                           name.find(".parameters_grad") != std::string::npos;
  const bool is_output = name.find(".output.") != std::string::npos;
  return !is_left_out(mode, {"forward", "backward"}, is_backward ? "backward" : "forward") &&
         !is_left_out(mode, {"input", "output"}, is_output ? "output" : "input");
}

// The numbers of the entries that the scope begins and ends with.
std::pair<std::size_t, std::size_t> range_of(const std::vector<std::string>& scope,
                                             const std::vector<std::string>& entries) {
  if (scope.empty()) return {0, entries.size()};
  const auto place = [&](const std::string& name) {
    const auto it = std::ranges::find(entries, name);
    if (it != entries.end()) return static_cast<std::size_t>(it - entries.begin());
    const std::string near = nearest_name(name, entries);
    throw UserError("E0327", "probe.scope names an entry that there is not")
        .saw(in_quotes(name))
        .need("an entry of dump.json")
        .advice(near.empty() ? "probe.task = \"statistics\" lists them" : near);
  };
  if (scope.size() != 2)
    throw UserError("E0327", "probe.scope does not say from where to where")
        .saw(std::to_string(scope.size()) + " names")
        .need("two entries of dump.json, or none");
  return {place(scope[0]), place(scope[1]) + 1};
}

void write_tensor(const std::string& format, const Path& path, const std::string& name,
                  const TensorBytes& tensor) {
  if (format == "npy") return write_npy(path, tensor);
  if (format == "pt") return write_torch_tensor(path, tensor);
  std::vector<Dim> extents(tensor.shape.begin(), tensor.shape.end());
  const TensorView view{name, {tensor.type, Shape(std::move(extents))}, tensor.bytes};
  write_safetensors(path, {&view, 1});
}

}  // namespace

void tap_tensors(Programs& programs, const ProbeSection& probe, nn::Module& model) {
  if (probe.level == "op") {
    if (probe.list.empty())
      for (const char* all : {"*", "backward:*"}) programs.tap(all);
    for (const std::string& pattern : probe.list) programs.tap(pattern);
    return;
  }
  std::vector<std::string> paths;
  for (const nn::Module* m : model.modules())
    if (probe.list.empty() || is_asked(*m, probe.list)) paths.push_back(m->path());
  programs.tap_calls(&model, "", [paths](const std::string& path) {
    return std::ranges::find(paths, path) != paths.end();
  });
  for (const VariablePtr& p : model.parameters()) {
    const std::string& name = p->name.str();
    const std::string path = name.substr(0, std::min(name.rfind('.'), name.size()));
    if (std::ranges::find(paths, path) != paths.end()) programs.tap("parameter:" + name);
  }
}

ProbeTensors::ProbeTensors(const Programs& programs, const std::string& program,
                           const ProbeSection& probe, const probe::Dump& dump)
    : probe_(probe), dump_(dump), ports_(dump.values().size()) {
  const auto [from, to] = range_of(probe.scope, dump.entries());
  std::vector<std::string> taps;
  for (const Tap& t : programs.taps(program)) taps.push_back(t.name);
  bool is_any = false;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    const std::string name = dump.data_name(i);
    const auto place = static_cast<std::size_t>(
        std::ranges::find(dump.entries(), dump.entry_of(i)) - dump.entries().begin());
    if (place < from || place >= to || !fits_mode(name, probe.data_mode)) continue;
    if (probe.level != "op" && !probe.list.empty() && !has_any(name, probe.list)) continue;
    if (std::ranges::find(taps, dump.values()[i].name) == taps.end()) continue;
    ports_[i] = programs.output<std::byte>(program, dump.values()[i].name);
    is_any = true;
  }
  if (!is_any)
    throw UserError("E0327", "no value is meant by probe.list, probe.scope and probe.data_mode")
        .saw(join(probe.list, ", "))
        .need("names of entries of dump.json, or parts of them; at level op patterns of taps")
        .advice("probe.task = \"statistics\" lists them");
}

ProbeTensors::Taken ProbeTensors::take(std::span<const double> all, const Path& folder,
                                       FileQueue& queue) const {
  Taken taken;
  taken.added.resize(ports_.size());
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (!ports_[i]) continue;
    const probe::LookedAt& v = dump_.values()[i];
    TensorBytes tensor{v.type.dtype, probe::shape_of(v, probe::statistics_of(v, all)), {}};
    std::uint64_t bytes = size_of(v.type.dtype);
    for (const std::int64_t extent : tensor.shape) bytes *= static_cast<std::uint64_t>(extent);
    const auto read = ports_[i]->read();
    const auto own = std::span(read.data(), read.size()).first(static_cast<std::size_t>(bytes));
    if (probe_.summary == "md5") {
      taken.added[i] = {{"md5", fmt::format("{:08x}", crc32(own))}};
      continue;
    }
    const bool is_too_large = probe_.format == "pt" && bytes > kMostOfTorchTensor;
    const std::string format = is_too_large ? "npy" : probe_.format;
    const std::string stem = dump_.data_name(i), name = stem + "." + format;
    queue.add(bytes, [tensor, format, path = folder / name, stem,
                      kept = std::vector<std::byte>(own.begin(), own.end())]() mutable {
      tensor.bytes = kept;
      write_tensor(format, path, stem, tensor);
    });
    taken.added[i] = {{"data_name", name}};
    ++taken.files;
    taken.bytes += bytes;
  }
  return taken;
}

}  // namespace aloft

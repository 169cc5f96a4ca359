#include "train/probe_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "files/crc32.h"
#include "files/linked_file.h"
#include "files/safetensors.h"
#include "files/tensor_files.h"
#include "train/probe_selection.h"

namespace aloft {

namespace {

void write_tensor(const std::string& format, const Path& path, const std::string& name,
                  const TensorBytes& tensor) {
  if (format == "npy") return write_npy(path, tensor);
  if (format == "pt") return write_torch_tensor(path, tensor);
  std::vector<Dim> extents(tensor.shape.begin(), tensor.shape.end());
  const TensorView view{name, {tensor.type, Shape(std::move(extents))}, tensor.bytes};
  write_safetensors(path, {&view, 1});
}

// All words of 8 bytes together, the last filled up with zeros.
std::uint64_t xor64(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    sum ^= word;
  }
  return sum;
}

}  // namespace

ProbeTensors::ProbeTensors(const FindTensor& find, const ProbeSection& probe,
                           const probe::Dump& dump)
    : probe_(probe), dump_(dump), sources_(dump.values().size()), operands_(dump.values().size()) {
  const Selected chosen = selected(probe, dump);
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (chosen.values[i]) sources_[i] = find(dump.values()[i].name);
  for (std::size_t i = 0; i < dump.taken().size(); ++i)
    if (const std::optional<std::size_t>& value = dump.taken()[i].value; value && chosen.taken[i])
      operands_[*value].push_back(i);
  const bool is_any = std::ranges::any_of(
      sources_, [](const TensorSource& source) { return static_cast<bool>(source); });
  if (!is_any) refuse_empty_selection(probe, dump);
}

ProbeTensors::Taken ProbeTensors::take(std::span<const double> all, const Path& folder,
                                       FileQueue& queue) const {
  Taken taken;
  taken.added.resize(dump_.records());
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (!sources_[i]) continue;
    const probe::LookedAt& v = dump_.values()[i];
    TensorBytes tensor{v.type.dtype, probe::shape_of(v, probe::statistics_of(v, all)), {}};
    std::uint64_t bytes = size_of(v.type.dtype);
    for (const std::int64_t extent : tensor.shape) bytes *= static_cast<std::uint64_t>(extent);
    std::vector<std::byte> own = sources_[i](static_cast<std::size_t>(bytes));
    if (probe_.summary == "md5" || probe_.summary == "xor") {
      taken.added[i] = {{"md5", probe_.summary == "md5" ? fmt::format("{:08x}", crc32(own))
                                                        : fmt::format("0x{:016x}", xor64(own))}};
      for (const std::size_t t : operands_[i]) taken.added[sources_.size() + t] = taken.added[i];
      continue;
    }
    const bool is_too_large = probe_.format == "pt" && bytes > kMostOfTorchTensor;
    const std::string format = is_too_large ? "npy" : probe_.format;
    const std::string stem = dump_.data_name(i), name = stem + "." + format;
    queue.add(bytes, [tensor, format, path = folder / name, stem, kept = std::move(own)]() mutable {
      tensor.bytes = kept;
      write_tensor(format, path, stem, tensor);
    });
    taken.added[i] = {{"data_name", name}};
    for (const std::size_t t : operands_[i]) {
      const std::string also = dump_.taken()[t].data_name() + "." + format;
      queue.add(0, [file = folder / name, path = folder / also] { link_file(file, path); });
      taken.added[sources_.size() + t] = {{"data_name", also}};
    }
    ++taken.files;
    taken.bytes += bytes;
  }
  return taken;
}

}  // namespace aloft

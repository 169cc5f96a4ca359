#include "observe/compare/tensor_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/npy.h"
#include "files/torch_file.h"
#include "files/zip_entry.h"
#include "observe/compare/noise.h"
#include "observe/compare/stored_elements.h"

namespace aloft::compare {

namespace {

using Bytes = std::span<const std::byte>;

constexpr double kUnitF32 = 0x1p-24;

[[noreturn]] void refuse(const Path& file, std::string_view saw) {
  throw DataError("E0650", "a file of a dump cannot be read")
      .at(file.string())
      .saw(saw)
      .need("a dense tensor that torch.save or numpy.save wrote, as dump.json describes it")
      .advice("make the dump again");
}

// "neither torch.save's file nor numpy's"; of others' errors what they are, too.
std::string why_of(const Error& e) {
  std::string why = e.code() == "E0650" ? "" : e.headline();
  for (const std::string_view line : split(e.what(), '\n')) {
    std::string_view fact = trim(line);
    if (fact == line || !fact.starts_with("saw ")) continue;
    why += (why.empty() ? "" : ": ") + std::string(trim(fact.substr(4)));
  }
  return why;
}

Elements of_torch(Bytes bytes, const std::string& file) {
  const TorchFile saved = TorchFile::parse(bytes, file);
  return torch_elements(saved, saved.root(), bytes, file);
}

// Statistics in the tensor's own type are as exact as that, and a norm may be more than it can
// hold. Beside elements that are not finite programs have various figures.
void look_for_contradiction(const Path& file, const std::vector<double>& values,
                            const Record& record) {
  const auto is_finite = [](double v) { return std::isfinite(v); };
  if (values.empty() || !std::ranges::all_of(values, is_finite)) return;
  const auto [least, most] = std::ranges::minmax(values);
  const double largest = std::max(std::abs(least), std::abs(most));
  const double noise = 4 * std::max(unit_of(record.type), kUnitF32) * largest;
  const auto hold = [&](const char* name, const Figure& said, double is) {
    if (said.number && !(std::abs(*said.number - is) <= noise))
      refuse(file, fmt::format("{} {:.9g}, and in dump.json {}", name, is, said.text));
  };
  hold("Max", record.max, most), hold("Min", record.min, least);
  if (record.norm.number && std::isnan(*record.norm.number))
    refuse(file, "numbers alone, and in dump.json the norm nan");
}

Elements read_elements(const Path& file, const Record& record) {
  if (!path_exists(file)) refuse(file, "no such file");
  const MappedFile mapped(file);
  const Bytes bytes = mapped.bytes();
  if (!is_zip(bytes) && !is_npy(bytes)) refuse(file, "neither torch.save's file nor numpy's");
  Elements e;
  try {
    e = is_zip(bytes) ? of_torch(bytes, file.string()) : numpy_elements(bytes);
  } catch (const NoElements& problem) {
    refuse(file, problem.what());
  }
  if (static_cast<double>(e.values.size()) != record.elements())
    refuse(file, "another shape than dump.json says");
  look_for_contradiction(file, e.values, record);
  // What is kept wider than it was computed, as bfloat16 by MindSpore, is as exact as it was.
  if (unit_of(record.type) > unit_of(e.type)) e.type = record.type;
  return e;
}

}  // namespace

Elements read_tensor_file(const Path& file, const std::string& type,
                          const std::vector<std::int64_t>& shape) {
  Record record;
  record.shape = shape;
  Elements e = read_elements(file, record);
  if (e.shape != shape) refuse(file, "another shape than dump.json says");
  if (e.type != type)
    throw DataError("E0650", "a tensor is of another type than dump.json says")
        .at(file.string())
        .saw(e.type)
        .need(type)
        .advice("make the dump again");
  return e;
}

const ElementFigures* TensorReader::figures(const RecordPair& pair) {
  if (!pair.npu || !pair.bench) return nullptr;
  const std::pair key(pair.npu, pair.factor);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second.get();
  if (pair.factor != 1) {  // a file that cannot be read is said once
    RecordPair as_it_is = pair;
    as_it_is.factor = 1;
    const ElementFigures* const plain = figures(as_it_is);
    if (!plain || !plain->unreadable.empty()) return plain;
  }
  std::unique_ptr<ElementFigures>& figures = known_[key];
  const Path ours = npu_.elements_of(*pair.npu), theirs = bench_.elements_of(*pair.bench);
  // Of a dump that was moved without its folder of elements the statistics are left.
  if (!ours.empty() && !theirs.empty() && path_exists(ours.parent_path()) &&
      path_exists(theirs.parent_path()))
    figures = std::make_unique<ElementFigures>(compared(pair, ours, theirs));
  return figures.get();
}

bool TensorReader::may_be_turned(const RecordPair& pair) {
  if (pair.npu->part == Part::Output) return false;
  if (pair.npu->part != Part::Input) return true;
  if (pair.npu->shape.size() != 2) return false;
  if (!matrices_) {
    matrices_.emplace();
    for (const DumpFile* const dump : {&npu_, &bench_})
      for (const Entry& e : dump->entries)
        for (const Record& r : e.records)
          if (r.part == Part::Parameter && r.shape.size() == 2) matrices_->push_back(&r);
  }
  return std::ranges::any_of(*matrices_, [&](const Record* r) {
    return is_same_value(*r, *pair.npu) || is_same_value(*r, *pair.bench);
  });
}

ElementFigures TensorReader::compared(const RecordPair& pair, const Path& ours,
                                      const Path& theirs) {
  Elements elements[2];
  std::string why;
  const std::pair<const Record*, const Path*> sides[] = {{pair.npu, &ours}, {pair.bench, &theirs}};
  for (int i = 0; i < 2; ++i) try {
      elements[i] = read_elements(*sides[i].second, *sides[i].first);
    } catch (const Error& e) {
      why = why_of(e);
      unreadable_.push_back({sides[i].first->name, *sides[i].second, why});
    }
  if (pair.factor != 1)
    for (double& v : elements[0].values) v *= pair.factor;
  if (why.empty()) return figures_of(elements[0], elements[1], may_be_turned(pair));
  ElementFigures none;
  none.problem = "unreadable";
  none.unreadable = why;
  return none;
}

}  // namespace aloft::compare

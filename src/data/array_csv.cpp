// Reading and dividing the arrays of array_loader.h.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "data/array_loader.h"

namespace aloft {
namespace {

// A line of words, none of them a number.
bool is_heading(std::span<const std::string_view> cells) {
  for (std::string_view cell : cells)
    if (parse_double(trim(cell))) return false;
  return true;
}

}  // namespace

ArrayData read_labelled_csv(const Path& path, float scale) {
  const MappedFile file(path);
  ArrayData data;
  std::size_t number = 0;
  const auto wrong = [&](const std::string& saw, const std::string& need) {
    return DataError("E0515", "a table cannot be read")
        .at(path.string() + ":" + std::to_string(number))
        .saw(saw)
        .need(need);
  };
  for (std::string_view rest = file.text(); !rest.empty();) {
    ++number;
    const std::size_t end = rest.find('\n');
    const std::string_view line = trim(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.empty()) continue;
    const std::vector<std::string_view> cells = split(line, ',');
    if (data.labels.empty() && number == 1 && is_heading(cells)) continue;
    const std::int64_t features = static_cast<std::int64_t>(cells.size()) - 1;
    if (data.labels.empty()) data.features = features;
    if (features < 1 || features != data.features)
      throw wrong(std::to_string(cells.size()) + " cells",
                  data.labels.empty()
                      ? "at least one feature and a label"
                      : std::to_string(data.features + 1) + " as in the lines before");
    for (std::int64_t i = 0; i < features; ++i) {
      const auto value = parse_double(trim(cells[static_cast<std::size_t>(i)]));
      if (!value || !(std::abs(*value) <= std::numeric_limits<float>::max()))
        throw wrong("cell " + std::to_string(i + 1) + " is " +
                        in_quotes(cells[static_cast<std::size_t>(i)]),
                    "a finite number");
      data.values.push_back(static_cast<float>(*value) * scale);
    }
    const auto label = parse_int(trim(cells.back()));
    if (!label || *label < 0 || *label > std::numeric_limits<std::int32_t>::max())
      throw wrong("the label " + in_quotes(cells.back()), "a whole number from 0 on");
    data.labels.push_back(static_cast<std::int32_t>(*label));
  }
  if (data.labels.empty()) throw wrong("no sample", "lines of numbers, the last one the label");
  return data;
}

ArraySplit split_arrays(const ArrayData& data, std::int64_t held_out, std::uint64_t seed) {
  if (held_out < 0 || held_out >= data.samples())
    throw UserError("E0512", "the share for validation is out of range")
        .saw(std::to_string(held_out) + " of " + std::to_string(data.samples()) + " samples")
        .need("fewer than all");
  const auto samples = static_cast<std::size_t>(data.samples());
  const Permutation shuffle(samples, mix_keys(seed, samples));
  ArraySplit split;
  split.train.features = split.held_out.features = data.features;
  split.train.outputs = split.held_out.outputs = data.outputs;
  const auto append = [](const std::vector<float>& rows, std::size_t row, std::int64_t width,
                         std::vector<float>& to) {
    const auto from = rows.begin() + static_cast<std::ptrdiff_t>(row) * width;
    to.insert(to.end(), from, from + width);
  };
  for (std::size_t i = 0; i < samples; ++i) {
    ArrayData& to = static_cast<std::int64_t>(shuffle(i)) < held_out ? split.held_out : split.train;
    append(data.values, i, data.features, to.values);
    append(data.targets, i, data.outputs, to.targets);
    if (data.outputs == 0) to.labels.push_back(data.labels[i]);
  }
  return split;
}

}  // namespace aloft

// Reading and dividing the arrays of array_loader.h.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "data/array_loader.h"
#include "data/held_out.h"

namespace aloft {
namespace {

// One cell, as it looks where columns are parted otherwise.
bool is_of_semicolons(std::span<const std::string_view> cells) {
  return cells.size() == 1 && cells[0].find_first_of(";\t") != std::string_view::npos;
}

// A line of words, none of them a number, in quotes or not.
bool is_heading(std::span<const std::string_view> cells) {
  for (std::string_view cell : cells) {
    cell = trim(cell);
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
      cell = trim(cell.substr(1, cell.size() - 2));
    if (parse_double(cell)) return false;
  }
  return !is_of_semicolons(cells);
}

// One file, line by line. `outputs` 0: the last cell is a label.
class CsvReader {
 public:
  CsvReader(const Path& path, std::int64_t outputs, float scale)
      : path_(path), outputs_(outputs), scale_(scale) {
    data_.outputs = outputs;
  }

  ArrayData read() {
    const MappedFile file(path_);
    for (std::string_view rest = file.text(); !rest.empty();) {
      ++number_;
      const std::size_t end = rest.find('\n');
      const std::string_view line = trim(rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      if (!line.empty()) take(split(line, ','));
    }
    if (data_.samples() == 0)
      throw wrong("no sample",
                  outputs_ > 0 ? "lines of numbers" : "lines of numbers, the last one the label");
    return std::move(data_);
  }

 private:
  DataError wrong(const std::string& saw, const std::string& need) const {
    return DataError("E0515", "a table cannot be read")
        .at(path_.string() + ":" + std::to_string(number_))
        .saw(saw)
        .need(need);
  }

  void take(const std::vector<std::string_view>& cells) {
    const bool is_first = data_.samples() == 0;
    if (is_first && number_ == 1 && is_heading(cells)) return;
    const std::int64_t goal = std::max<std::int64_t>(outputs_, 1);
    const std::int64_t features = static_cast<std::int64_t>(cells.size()) - goal;
    if (is_first) data_.features = features;
    if (is_of_semicolons(cells)) throw wrong(in_quotes(cells[0]), "commas between the columns");
    if (features < 1 || features != data_.features)
      throw wrong(std::to_string(cells.size()) + " cells",
                  !is_first      ? std::to_string(data_.features + goal) + " as in the lines before"
                  : outputs_ > 0 ? "at least one feature and " + std::to_string(goal) + " outputs"
                                 : "at least one feature and a label");
    for (std::int64_t i = 0; i < features; ++i) {
      const float scaled = number_in(cells, i) * scale_;
      if (!std::isfinite(scaled))
        throw wrong("cell " + std::to_string(i + 1) + " is " +
                        in_quotes(cells[static_cast<std::size_t>(i)]) + ", times data.scale",
                    "a product that f32 holds");
      data_.values.push_back(scaled);
    }
    if (outputs_ == 0) return data_.labels.push_back(label_in(cells.back()));
    for (std::int64_t i = features; i < features + goal; ++i)
      data_.targets.push_back(number_in(cells, i));
  }

  float number_in(const std::vector<std::string_view>& cells, std::int64_t i) const {
    const std::string_view cell = cells[static_cast<std::size_t>(i)];
    const auto value = parse_double(trim(cell));
    if (!value || !(std::abs(*value) <= std::numeric_limits<float>::max()))
      throw wrong("cell " + std::to_string(i + 1) + " is " + in_quotes(cell), "a finite number");
    return static_cast<float>(*value);
  }

  std::int32_t label_in(std::string_view cell) const {
    const auto label = parse_int(trim(cell));
    if (!label || *label < 0 || *label > std::numeric_limits<std::int32_t>::max())
      throw wrong("the label " + in_quotes(cell), "a whole number from 0 on")
          .advice("number the classes 0, 1, 2, ...; for numbers to be predicted set data.outputs");
    return static_cast<std::int32_t>(*label);
  }

  Path path_;
  std::int64_t outputs_;
  float scale_;
  std::size_t number_ = 0;
  ArrayData data_;
};
}  // namespace

ArrayData read_labelled_csv(const Path& path, float scale) {
  return CsvReader(path, 0, scale).read();
}

ArrayData read_table_csv(const Path& path, std::int64_t outputs, float scale) {
  if (outputs < 1)
    throw UserError("E0512", "a table has nothing to be predicted")
        .saw(std::to_string(outputs) + " outputs")
        .need("1 or more");
  return CsvReader(path, outputs, scale).read();
}

ArraySplit split_arrays(const ArrayData& data, std::int64_t held_out, std::uint64_t seed) {
  if (held_out < 0 || held_out >= data.samples())
    throw UserError("E0512", "the share for validation is out of range")
        .saw(std::to_string(held_out) + " of " + std::to_string(data.samples()) + " samples")
        .need("fewer than all");
  const auto samples = static_cast<std::size_t>(data.samples());
  const std::vector<bool> is_held =
      held_out_of(samples, static_cast<std::uint64_t>(held_out), seed);
  ArraySplit split;
  split.train.features = split.held_out.features = data.features;
  split.train.outputs = split.held_out.outputs = data.outputs;
  split.train.shape = split.held_out.shape = data.shape;
  const auto append = [](const std::vector<float>& rows, std::size_t row, std::int64_t width,
                         std::vector<float>& to) {
    const auto from = rows.begin() + static_cast<std::ptrdiff_t>(row) * width;
    to.insert(to.end(), from, from + width);
  };
  for (std::size_t i = 0; i < samples; ++i) {
    ArrayData& to = is_held[i] ? split.held_out : split.train;
    if (!is_held[i]) split.rows.push_back(i);
    append(data.values, i, data.features, to.values);
    append(data.targets, i, data.outputs, to.targets);
    if (data.outputs == 0) to.labels.push_back(data.labels[i]);
  }
  return split;
}

}  // namespace aloft

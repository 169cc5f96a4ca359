#include "sources/batches_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/error.h"
#include "files/safetensors.h"
#include "recipe/run_length.h"
#include "tasks/task.h"

namespace aloft {

namespace {

// More micro-batches, or more bytes, are a mistake.
constexpr std::int64_t kMostBatches = 1 << 20;
constexpr double kMostBytes = 1e12;

// Ids of I32: torch takes indices in 64 bits.
std::vector<std::int64_t> wide(std::span<const std::byte> ids) {
  std::vector<std::int64_t> out(ids.size() / sizeof(std::int32_t));
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int32_t id = 0;
    std::memcpy(&id, ids.data() + i * sizeof id, sizeof id);
    out[i] = id;
  }
  return out;
}

TensorType type_of(const Column& column, std::int64_t batches, std::int64_t rows) {
  std::vector<Dim> shape = {batches, rows};
  shape.insert(shape.end(), column.shape.begin(), column.shape.end());
  return {column.type == DType::I32 ? DType::I64 : column.type, Shape(std::move(shape))};
}

void refuse_too_many(const Recipe& recipe, std::int64_t steps, const std::vector<Column>& columns) {
  if (steps > recipe.train.steps)
    throw UserError("E0898", "more batches are asked for than the run is given")
        .saw(fmt::format("{} steps of {}", steps, recipe.train.steps))
        .advice("fewer --steps, or a larger train.steps");
  double bytes = 0;
  for (const Column& column : columns) {
    double own = static_cast<double>(size_of(column.type)) * static_cast<double>(steps) *
                 static_cast<double>(recipe.train.accumulate) *
                 static_cast<double>(recipe.train.batch);
    for (const std::int64_t extent : column.shape) own *= static_cast<double>(extent);
    bytes += own;
  }
  if (steps > kMostBatches / recipe.train.accumulate || bytes > kMostBytes)
    throw UserError("E0898", "more batches are asked for than a file has room for")
        .saw(fmt::format("{} steps of {} micro-batches, {:.3g} bytes", steps,
                         recipe.train.accumulate, bytes))
        .need(fmt::format("at most {} micro-batches and {:.0e} bytes", kMostBatches, kMostBytes))
        .advice("fewer --steps");
}

// All batches of one column, which lie behind one another in the file.
void write_column(SafetensorsWriter& file, const RunData& data, const Recipe& recipe,
                  const Column& column, std::size_t number, std::int64_t batches) {
  const std::unique_ptr<ExampleSource> source = data.training(recipe, 0, 0);
  for (std::int64_t i = 0; i < batches; ++i) {
    const ExampleBatch* const batch = source->next();
    ensure(batch != nullptr, "training goes on without end");
    const std::span<const std::byte> bytes = batch->columns[number];
    if (column.type == DType::I32) {
      const std::vector<std::int64_t> ids = wide(bytes);
      file.write(std::as_bytes(std::span(ids)));
    } else {
      file.write(bytes);
    }
  }
}

}  // namespace

WrittenBatches write_batches(Recipe recipe, const RunData& data, std::int64_t steps,
                             const Path& path) {
  settle_length(recipe, data.examples(recipe));
  const SettingValues facts = data.facts(recipe);
  const std::vector<Column> columns = task_kind(recipe).columns(model_spec(recipe, facts), facts);
  refuse_too_many(recipe, steps, columns);
  WrittenBatches written{steps, steps * recipe.train.accumulate, 0, {}};
  written.examples = written.batches * recipe.train.batch;
  std::vector<TensorEntry> entries;
  for (const Column& column : columns) {
    const TensorType type = type_of(column, written.batches, recipe.train.batch);
    entries.push_back({column.name, type});
    written.columns.push_back({column.name, type});
  }
  SafetensorsWriter file(path, std::move(entries),
                         {{"accumulate", std::to_string(recipe.train.accumulate)},
                          {"seed", std::to_string(recipe.train.seed)},
                          {"steps", std::to_string(steps)}});
  for (const TensorEntry& entry : file.order()) {
    const auto column = std::ranges::find(columns, entry.name, &Column::name);
    write_column(file, data, recipe, *column, static_cast<std::size_t>(column - columns.begin()),
                 written.batches);
  }
  file.finish();
  return written;
}

}  // namespace aloft

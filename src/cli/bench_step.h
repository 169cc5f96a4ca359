// What `aloft bench step` times: a subject is a model with its compiled training step, run on the
// same made-up data every time. bench.cpp is the verb, bench_subject.cpp the subject, of a recipe
// or of a model by name, bench_measure.cpp what is timed, bench_turns.h in which order,
// bench_probe.cpp what it costs to look on, bench_profile.cpp the clock, bench_limit.cpp what the
// machine could do.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/shared_options.h"
#include "frontend/programs.h"
#include "plan/choices.h"
#include "precision/recipe.h"
#include "recipe/recipe.h"

namespace aloft::cli {

// The models that have a name here: families and their sizes.
std::vector<std::string> models_by_name();
// The first size of the family that a recipe begins with.
std::string usual_model();

// The settings that an option of the verb stands for: the whole numbers of all families.
std::vector<std::string> sizes_by_option();
// "--layers"; what others call otherwise has two names: "--seq,--context".
std::string option_of(const std::string& size);

struct BenchOptions {
  RecipeWords recipe{usual_model(), {}, ""};  // or a model by name
  std::string precision;
  std::map<std::string, std::string> sizes;  // of sizes_by_option(), those that are given
  std::int64_t batch = 0;                    // 0: the recipe's
  int steps = 6;
  std::optional<std::int64_t> threads;
  bool as_json = false, no_limit = false;
  std::string probe;             // what its cost is measured of; empty: of what the recipe asks for
  std::int64_t probe_every = 1;  // every how many-th step looks
};

class BenchSubject {
 public:
  virtual ~BenchSubject() = default;
  virtual Programs& programs() = 0;  // with a program "train", planned
  // Makes the weights, so that steps can run. EnvironmentError E0401 where the plan does not fit.
  virtual void start() = 0;
  virtual double step() = 0;  // the loss
  virtual const PrecisionRecipe& precision() const = 0;
  virtual const Choices& choices() const = 0;  // made by measurement
  // Model, precision, batch and whatever else says what is timed.
  virtual nlohmann::json description() const = 0;
  // Things a step gets through: "tokens" or "examples", and how many.
  virtual std::string unit() const = 0;
  virtual std::int64_t units_a_step() const = 0;
  // Of the parameters' bytes, in their order; and how many steps made them what they are.
  virtual std::string parameters_hash() const = 0;
  virtual int steps_made() const = 0;
  // What looks at steps, as --probe names it: "statistics", "trends"; "" where nothing does.
  virtual std::string looked_at_by() const = 0;
  // Until the files of steps that are over are written.
  virtual void settle() = 0;
  // What the next step is looked at for, and after how many steps that begins anew.
  virtual Look look() const = 0;
  virtual std::int64_t steps_a_round() const = 0;
  // Runs of a program a step: above 1 the gradients of several batches are summed.
  virtual int micro_batches() const { return 1; }
};

// UserError E0724: the option or key means nothing for this model.
[[noreturn]] void refuse_option(const BenchOptions& options, const std::string& what);

// A recipe, or a model by name. UserError E0721 where the name is neither.
std::unique_ptr<BenchSubject> open_bench(const BenchOptions& options);

// Times the subject's steps; `process_start` is when the process began, on the steady clock.
nlohmann::json measure_bench(BenchSubject& subject, const BenchOptions& options,
                             double process_start);

}  // namespace aloft::cli

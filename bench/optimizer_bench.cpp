// The end of a training step on GPT-2 124M's parameters: an optimizer's sweep and the gradients'
// statistics, in GB/s of the bytes that they cannot avoid, and as a share of the stream measured in
// the same round. The stream reads two bytes for each that it writes; AdamW's mix is nearer to half
// and half, which some memories move faster: its share may exceed 1.
//
//   optimizer_bench [ROUNDS] [FORMULA]     (OMP_NUM_THREADS sets the threads; adamw)
//   optimizer_bench ROUNDS FORMULA FORM    of one form alone (fp32, bf16, ...), as JSON
//
// A formula that needs sums over each tensor (LAMB, LARS) has two sweeps, which are timed and
// counted together. One of tensors (Muon, Adafactor) is no sweep: `aloft bench step --set
// optimizer.kind=muon`.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "backends/cpu/measure.h"
#include "ops/grad_stats.h"
#include "ops/update_layout.h"
#include "optim/kind.h"
#include "scalar/split_float.h"
#include "timed_kernel.h"

namespace {

using namespace aloft;

// The tensors of GPT-2 124M: embeddings, twelve blocks, the last norm.
std::vector<std::int64_t> sizes() {
  constexpr std::int64_t kDim = 768;
  std::vector<std::int64_t> all = {50304 * kDim, 1024 * kDim};
  for (int layer = 0; layer < 12; ++layer)
    for (std::int64_t n : {kDim, kDim, 3 * kDim * kDim, 3 * kDim, kDim * kDim, kDim, kDim, kDim,
                           4 * kDim * kDim, 4 * kDim, 4 * kDim * kDim, kDim})
      all.push_back(n);
  all.insert(all.end(), {kDim, kDim});
  return all;
}

// How parameters, gradients, masters and states are kept.
struct Form {
  const char* name;
  DType type;  // of parameters and gradients
  const char* master = "";
  const char* states = "f32";
  const char* rounding = "nearest";
};
const Form kForms[] = {{"bf16", DType::BF16, "f32"},
                       {"bf16-split", DType::BF16, "split"},
                       {"fp16", DType::F16, "f32"},
                       {"fp32", DType::F32},
                       {"bf16-alone", DType::BF16},
                       {"bf16-stochastic", DType::BF16, "", "f32", "stochastic"},
                       {"bf16-states", DType::BF16, "f32", "bf16"},
                       {"8bit-states", DType::BF16, "f32", "8bit"}};

UpdateLayout layout_of(const optim::FormulaRecord& formula, const CallSpec& call) {
  return update_layout(update_attrs(call.attrs), formula);
}

// The formula's update of everything, all of which decays.
CallSpec update_call(const optim::FormulaRecord& formula, const Form& form) {
  const auto all = sizes();
  UpdateAttrs a{.count = static_cast<std::int64_t>(all.size()),
                .master = form.master,
                .states = form.states,
                .rounding = form.rounding};
  a.decay.assign(all.size(), 1);
  for (std::size_t i = 0; i < all.size(); ++i) a.keys.push_back(static_cast<std::int64_t>(i));
  a.weight_decay = 0.1;
  CallSpec call{std::string(formula.name) + "_update", to_attrs(a), {}, {}};
  for (const auto& [name, value] : formula.options.all()) call.attrs.set(name, value);
  call.in = {{DType::F32, {}}, {DType::F32, {}}, {DType::I32, {}}, {DType::I64, {}}};
  const auto add = [&](std::vector<TensorType>& list, DType t) {
    for (std::int64_t n : all) list.push_back({t, {n}});
  };
  add(call.in, form.type);
  add(call.in, form.type);
  add(call.out, form.type);
  const UpdateLayout layout = layout_of(formula, call);
  for (auto* list : {&call.in, &call.out}) {
    if (layout.is_split())
      for (std::int64_t n : all) list->push_back({DType::U8, {scalar::rest_bytes(n)}});
    else if (layout.has_master())
      add(*list, DType::F32);
    for (int state = 0; state < layout.states; ++state)
      for (std::int64_t n : all) list->push_back(type_of(layout.state_format, {n}));
  }
  if (layout.has_sums) call.in.push_back({DType::F64, {a.count, formula.sums}});
  if (layout.has_random) call.in.push_back({DType::I64, {3}});
  return call;
}

// What sums over the tensors before, of a formula that needs it: the same operands, but for the
// sums.
CallSpec sums_call(const optim::FormulaRecord& formula, const CallSpec& update) {
  CallSpec sums{std::string(formula.name) + "_sums", update.attrs, {}, {}};
  const UpdateLayout layout = sums_layout(update_attrs(update.attrs), formula);
  sums.in.assign(update.in.begin(), update.in.begin() + layout.sums());
  sums.out = {{DType::F64, {layout.count, formula.sums}}};
  return sums;
}

// What reads the gradients before: their norm, and the sums that the formula needs.
CallSpec statistics(const CallSpec& update) {
  const std::size_t n = sizes().size();
  CallSpec stats{"grad_stats", to_attrs(GradStatsAttrs{.clip_norm = 1}), {{DType::F32, {}}}, {}};
  for (std::size_t i = 0; i < n; ++i) stats.in.push_back(update.in[4 + n + i]);
  stats.out = {{DType::F32, {}}, {DType::F32, {}}, {DType::I32, {}}, {DType::I32, {}}};
  return stats;
}

std::vector<std::pair<int, int>> in_place(const CallSpec& call) {
  return choose_kernel(cpu_backend(), call).kernel->in_place(call);
}

// Everything that ends a step: norm, check and clipping, then the update that they decide.
class Step {
 public:
  Step(const optim::FormulaRecord& formula, const Form& form)
      : spec_(update_call(formula, form)),
        update_(spec_, in_place(spec_)),
        stats_(statistics(spec_)) {
    set_step(update_);
    if (formula.sums > 0) set_step(sums_.emplace(sums_call(formula, spec_)));
    stats_.set(0, 1.0);
    const UpdateLayout layout = layout_of(formula, spec_);
    for (int i = 0; i < layout.count && layout.states > 1; ++i)
      update_.set(layout.state(1, i), 0.01);
  }
  double stats_ms() { return stats_.run(); }
  double update_ms() { return (sums_ ? sums_->run() : 0) + update_.run(); }

 private:
  static void set_step(bench::TimedKernel& kernel) {
    for (const auto& [i, value] : {std::pair{0, 1e-4}, {1, 1.0}, {2, 1.0}, {3, 10.0}})
      kernel.set(i, value);
  }

  CallSpec spec_;
  bench::TimedKernel update_, stats_;
  std::optional<bench::TimedKernel> sums_;
};

void measure(const optim::FormulaRecord& formula, const Form& form, int rounds, bool as_json) {
  Step step(formula, form);
  std::vector<double> sweep, read, stream;
  for (int i = 0; i < rounds; ++i) {
    stream.push_back(cpu::measure_stream_rate(1));
    read.push_back(step.stats_ms());
    sweep.push_back(step.update_ms());
  }
  double count = 0;
  for (std::int64_t n : sizes()) count += static_cast<double>(n);
  // States and the full-precision values are read and written; the gradient is read; a parameter
  // beside its master is only written.
  const double low = static_cast<double>(size_of(form.type));
  const std::string_view master = form.master;
  const double values = master == "split" ? 2 * (low + 2) : master == "f32" ? 8 + low : 2 * low;
  constexpr std::int64_t kBlock = scalar::kBlock;
  const std::string_view kept = form.states;
  const double state = kept == "8bit"   ? double(scalar::block_bytes(kBlock)) / kBlock
                       : kept == "bf16" ? 2
                                        : 4;
  const double states = state * static_cast<double>(formula.states.size());
  // Sums read values and gradients, and the states where they are of the step.
  const bool reads_states = std::ranges::any_of(
      formula.squares, [](std::string_view name) { return name != "p" && name != "g"; });
  const double whole = master == "f32" ? 4 : values / 2;
  const double sums = formula.sums == 0 ? 0 : whole + low + (reads_states ? states : 0);
  const double rate = count * (2 * states + low + values + sums) / bench::median(sweep) / 1e6,
               norm_rate = count * low / bench::median(read) / 1e6, limit = bench::median(stream);
  if (as_json) {
    std::printf(
        "{\"optimizer\": \"%s\", \"form\": \"%s\", \"step_ms\": %.4f, \"share\": %.4f, "
        "\"stream_gb_s\": %.2f}\n",
        std::string(formula.name).c_str(), form.name, bench::median(sweep), rate / limit, limit);
    return;
  }
  std::printf(
      "%-10s stream %5.1f GB/s   %s %7.1f ms %6.1f GB/s %4.2f   norm %6.1f ms %6.1f GB/s %4.2f\n",
      form.name, limit, std::string(formula.name).c_str(), bench::median(sweep), rate, rate / limit,
      bench::median(read), norm_rate, norm_rate / limit);
  std::fflush(stdout);
}

const optim::FormulaRecord* find(std::string_view name) {
  for (const optim::FormulaRecord* f : optim::formulas())
    if (f->name == name && !f->is_of_tensors) return f;
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  const std::string name = argc > 2 ? argv[2] : "adamw", only = argc > 3 ? argv[3] : "";
  const optim::FormulaRecord* formula = find(name);
  if (!formula)
    return std::fprintf(stderr, "there is no optimizer '%s' of elements\n", name.c_str()), 2;
  for (const Form& form : kForms)
    if (only.empty() || only == form.name) measure(*formula, form, rounds, !only.empty());
}

// The end of a training step on GPT-2 124M's parameters: an optimizer's sweep and the gradients'
// statistics, in GB/s of the bytes that they cannot avoid, and as a share of a stream over the same
// arrays that computes nothing (stream_of.h), which takes turns with them.
//
//   optimizer_bench [ROUNDS] [FORMULA]     (OMP_NUM_THREADS sets the threads; adamw)
//   optimizer_bench ROUNDS FORMULA FORM    of one form alone (fp32, bf16, ...), as JSON
//   optimizer_bench turns FORMULA FORM     one round for each line that is read: "SWEEP_MS
//   STREAM_MS"
//
// A formula that needs sums over each tensor (LAMB, LARS) has two sweeps, which are timed and
// counted together. One of tensors (Muon, Adafactor) is no sweep: `aloft bench step --set
// optimizer.kind=muon`.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include "ops/grad_stats.h"
#include "ops/update_layout.h"
#include "optim/kind.h"
#include "scalar/split_float.h"
#include "stream_of.h"
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

using bench::Array;
using bench::Use;

Array operand(bench::TimedKernel& kernel, const CallSpec& call, int i, Use use) {
  return {kernel.in(i), static_cast<std::int64_t>(call.in[i].max_bytes()), use};
}

// What a kernel goes through of each tensor.
template <class ArraysOf>
bench::StreamOf stream_of(int count, const ArraysOf& arrays_of) {
  std::vector<std::vector<Array>> tensors;
  for (int i = 0; i < count; ++i) tensors.push_back(arrays_of(i));
  return bench::StreamOf(std::move(tensors));
}

// Gradients are read; states and values in full precision are read and written; a parameter beside
// its master is only written.
bench::StreamOf stream_of_update(bench::TimedKernel& kernel, const CallSpec& call,
                                 const UpdateLayout& l) {
  const auto in = [&](int i, Use use) { return operand(kernel, call, i, use); };
  return stream_of(l.count, [&](int i) {
    std::vector<Array> all = {in(l.gradient(i), Use::Read)};
    const bool is_written = l.master == StateFormat::F32;
    all.push_back(in(l.parameter(i), is_written ? Use::Write : Use::Update));
    if (l.has_master()) all.push_back(in(l.master_of(i), Use::Update));
    for (int k = 0; k < l.states; ++k) all.push_back(in(l.state(k, i), Use::Update));
    return all;
  });
}

// Sums read gradients, and values and states where these are of what is squared.
bench::StreamOf stream_of_sums(bench::TimedKernel& kernel, const CallSpec& call,
                               const UpdateLayout& l, const optim::FormulaRecord& formula) {
  const auto reads = [&](auto... names) {
    return std::ranges::any_of(formula.squares,
                               [&](auto name) { return ((name != names) && ...); });
  };
  const auto in = [&](int i) { return operand(kernel, call, i, Use::Read); };
  return stream_of(l.count, [&](int i) {
    std::vector<Array> all = {in(l.gradient(i))};
    if (reads("g") && l.master != StateFormat::F32) all.push_back(in(l.parameter(i)));
    if (reads("g") && l.has_master()) all.push_back(in(l.master_of(i)));
    for (int k = 0; reads("g", "p") && k < l.states; ++k) all.push_back(in(l.state(k, i)));
    return all;
  });
}

// Everything that ends a step: norm, check and clipping, then the update that they decide; and
// beside each what memory needs for it.
class Step {
 public:
  Step(const optim::FormulaRecord& formula, const Form& form)
      : spec_(update_call(formula, form)),
        update_(spec_, in_place(spec_)),
        stats_(statistics(spec_)) {
    const UpdateLayout layout = layout_of(formula, spec_);
    set_step(update_);
    for (int i = 0; i < layout.count && layout.states > 1; ++i)
      update_.set(layout.state(1, i), 0.01);
    streams_.push_back(stream_of_update(update_, spec_, layout));
    if (formula.sums > 0) {
      const CallSpec call = sums_call(formula, spec_);
      set_step(sums_.emplace(call));
      streams_.push_back(stream_of_sums(*sums_, call, layout, formula));
    }
    stats_.set(0, 1.0);
    const CallSpec norm = statistics(spec_);
    stats_stream_.emplace(stream_of(
        layout.count, [&](int i) { return std::vector{operand(stats_, norm, 1 + i, Use::Read)}; }));
  }
  double update_ms() { return (sums_ ? sums_->run() : 0) + update_.run(); }
  double update_stream_ms() const {
    double ms = 0;
    for (const bench::StreamOf& stream : streams_) ms += stream.run();
    return ms;
  }
  double update_bytes() const {
    double bytes = 0;
    for (const bench::StreamOf& stream : streams_) bytes += stream.bytes();
    return bytes;
  }
  double stats_ms() { return stats_.run(); }
  double stats_stream_ms() const { return stats_stream_->run(); }
  double stats_bytes() const { return stats_stream_->bytes(); }

 private:
  static void set_step(bench::TimedKernel& kernel) {
    for (const auto& [i, value] : {std::pair{0, 1e-4}, {1, 1.0}, {2, 1.0}, {3, 10.0}})
      kernel.set(i, value);
  }

  CallSpec spec_;
  bench::TimedKernel update_, stats_;
  std::optional<bench::TimedKernel> sums_;
  std::vector<bench::StreamOf> streams_;  // of the update, and of its sums
  std::optional<bench::StreamOf> stats_stream_;
};

// Rounds of a kernel and of the stream beside it, which is first in every other one.
struct Rounds {
  std::vector<double> kernel_ms, stream_ms, share;
  template <class Kernel, class Stream>
  void add(const Kernel& kernel, const Stream& stream) {
    const bool is_stream_first = share.size() % 2 == 0;
    if (is_stream_first) stream_ms.push_back(stream());
    kernel_ms.push_back(kernel());
    if (!is_stream_first) stream_ms.push_back(stream());
    share.push_back(stream_ms.back() / kernel_ms.back());
  }
};

void measure(const optim::FormulaRecord& formula, const Form& form, int rounds, bool as_json) {
  Step step(formula, form);
  step.update_ms(), step.stats_ms();  // the first times do not count
  Rounds update, norm;
  for (int i = 0; i < rounds; ++i) {
    norm.add([&] { return step.stats_ms(); }, [&] { return step.stats_stream_ms(); });
    update.add([&] { return step.update_ms(); }, [&] { return step.update_stream_ms(); });
  }
  const auto gb_s = [](double bytes, const std::vector<double>& ms) {
    return bytes / bench::median(ms) / 1e6;
  };
  const double share = bench::median(update.share),
               limit = gb_s(step.update_bytes(), update.stream_ms);
  if (as_json) {
    std::printf(
        "{\"optimizer\": \"%s\", \"form\": \"%s\", \"step_ms\": %.4f, \"share\": %.4f, "
        "\"stream_gb_s\": %.2f}\n",
        std::string(formula.name).c_str(), form.name, bench::median(update.kernel_ms), share,
        limit);
    return;
  }
  std::printf(
      "%-15s %s %7.1f ms %6.1f of %6.1f GB/s %4.2f   norm %6.1f ms %6.1f of %6.1f GB/s %4.2f\n",
      form.name, std::string(formula.name).c_str(), bench::median(update.kernel_ms),
      gb_s(step.update_bytes(), update.kernel_ms), limit, share, bench::median(norm.kernel_ms),
      gb_s(step.stats_bytes(), norm.kernel_ms), gb_s(step.stats_bytes(), norm.stream_ms),
      bench::median(norm.share));
  std::fflush(stdout);
}

// A round whenever who holds the other end wants one.
void take_turns(const optim::FormulaRecord& formula, const Form& form) {
  Step step(formula, form);
  Rounds rounds;
  for (std::string line; std::getline(std::cin, line);) {
    rounds.add([&] { return step.update_ms(); }, [&] { return step.update_stream_ms(); });
    std::printf("%.4f %.4f\n", rounds.kernel_ms.back(), rounds.stream_ms.back());
    std::fflush(stdout);
  }
}

const optim::FormulaRecord* find(std::string_view name) {
  for (const optim::FormulaRecord* f : optim::formulas())
    if (f->name == name && !f->is_of_tensors) return f;
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "7", name = argc > 2 ? argv[2] : "adamw",
                    only = argc > 3 ? argv[3] : "";
  const optim::FormulaRecord* formula = find(name);
  if (!formula)
    return std::fprintf(stderr, "there is no optimizer '%s' of elements\n", name.c_str()), 2;
  for (const Form& form : kForms) {
    if (!only.empty() && only != form.name) continue;
    if (first == "turns")
      take_turns(*formula, form);
    else
      measure(*formula, form, std::max(1, std::atoi(first.c_str())), !only.empty());
  }
}

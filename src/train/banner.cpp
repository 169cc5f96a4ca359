#include "train/banner.h"

#include <fmt/format.h>

#include "base/text.h"
#include "precision/decide.h"
#include "recipe/run_length.h"
#include "runtime/current_device.h"

namespace aloft {
namespace {

std::string line(std::string_view label, const std::string& text) {
  return fmt::format("{:<12} {}\n", label, text);
}

std::string model_line(const Session& s) {
  return line("model",
              fmt::format("{}: {} parameters", models::describe(s.spec),
                          human_count(static_cast<double>(models::parameter_count(s.model())))));
}

// Of examples with padding, whose steps differ in what is read: its mean.
std::string padded_length_text(const BannerFacts& f, double mean) {
  const Recipe& r = f.session.recipe;
  const std::int64_t each = windows_a_step(r);
  const double tokens = static_cast<double>(f.tokens_before) +
                        mean * static_cast<double>(each * (r.train.steps - f.begin.step));
  return fmt::format("{} steps of {} of up to {} {}: about {} {} without padding",
                     grouped(r.train.steps), counted(each, "example"), units_an_example(r),
                     f.data.unit(), human_count(tokens), f.data.unit());
}

std::string length_line(const BannerFacts& f) {
  const Recipe& r = f.session.recipe;
  const std::int64_t each = tokens_a_step(r);
  std::string batch = std::to_string(r.train.batch);
  if (const std::int64_t tokens = units_an_example(r); tokens > 1)
    batch += " x " + std::to_string(tokens);
  if (r.train.accumulate > 1) batch += fmt::format(" x {} micro-batches", r.train.accumulate);
  const std::int64_t tokens = f.tokens_before + each * (r.train.steps - f.begin.step);
  const bool is_one_size = f.tokens_before == each * f.begin.step;
  std::string text = fmt::format(
      "{} steps{} of {} {} ({}): {} {}", grouped(r.train.steps),
      is_one_size ? "" : fmt::format(", from {} on", grouped(f.begin.step + 1)), grouped(each),
      f.data.unit(), batch, human_count(static_cast<double>(tokens)), f.data.unit());
  if (const auto mean = f.data.units_without_padding()) text = padded_length_text(f, *mean);
  text += fmt::format(", {:.3g} epochs", epochs_of(r, f.data.examples(r), f.begin));
  if (f.begin.step > 0) text += fmt::format("; going on behind step {}", grouped(f.begin.step));
  return line("run", text);
}

// What updates, and how its rate moves.
std::string optimizer_line(const Recipe& r) {
  std::string text =
      fmt::format("{}, rate {:g}, {} schedule", r.optimizer.kind, r.optimizer.lr, r.schedule.kind);
  if (r.schedule.warmup > 0) text += fmt::format(" behind {} of warmup", r.schedule.warmup);
  if (r.optimizer.states != "f32") text += "; states in " + r.optimizer.states;
  return line("optimizer", text);
}

// Where samples were to be expected and there are none.
std::string samples_line(const BannerFacts& f) {
  if (f.session.recipe.train.sample_tokens == 0 || !f.session.task->writer() || f.data.tokenizer())
    return "";
  return line("samples", "none: the tokens come without their tokenizer (data.tokenizer.path)");
}

// "recipes/gpt-cpp.toml:17" as it is; what nobody set is a default.
std::string precision_line(const Recipe& r) {
  const auto it = r.origin.find("precision.level");
  const std::string from = it == r.origin.end() ? "the default" : "asked for by " + it->second;
  const std::string why =
      r.precision.auto_reason.empty() ? from : "measured: " + r.precision.auto_reason;
  const scalar::ScalerRule scaler = scaler_rule(r.precision);
  std::string scale = "no loss scale";
  if (scaler.kind != scalar::ScalerKind::None)
    scale =
        fmt::format("{} loss scale from {:g}",
                    scaler.kind == scalar::ScalerKind::Fixed ? "fixed" : "dynamic", scaler.init);
  return line("precision", fmt::format("{}, {} ({})", print_precision(r.precision), scale, why));
}

// What a low precision was weighed by on this machine.
std::string products_line(const Session& s) {
  if (!s.rates) return "";
  std::string text = line("products", describe(*s.rates));
  if (s.recipe.precision.level != Level::O0 && s.recipe.precision.low == DType::F16)
    text += line("",
                 "fp16 is stored in 16 bits and summed in fp32; what multiplies it here: "
                 "aloft explain kernels");
  return text;
}

std::string memory_line(const BannerFacts& f) {
  const std::string threads = counted(f.threads, "thread");
  if (f.planned_bytes == 0) return line("memory", "not planned in eager mode; " + threads);
  return line("memory",
              fmt::format("{} planned for the step; {}; {} in {:.1f} s",
                          human_bytes(f.planned_bytes), threads,
                          f.is_from_cache ? "taken from the plan cache" : "compiled", f.compile_s));
}

// Where it is not this machine's processor, or another device than before.
std::string device_line(const BannerFacts& f) {
  const Features& features = current_device().features();
  const std::string& name = current_device().name();
  const bool is_other = !f.device_before.empty() && f.device_before != name;
  if (name == "cpu" && !is_other) return "";
  std::string text = name;
  if (is_other) text += "; the run was on " + f.device_before;
  if (features.is_simulated)
    text += "; simulated: rates and times here are the simulation's (its own: aloft bench step)";
  return line("device", text);
}

std::string checkpoint_line(const TrainSection& t, bool has_validation) {
  std::string text;
  const bool keeps_best = has_validation && t.keep_best > 0;
  if (t.checkpoint_every > 0) text += fmt::format("every {} steps, ", grouped(t.checkpoint_every));
  if (t.keep_every > 0) text += fmt::format("every {} steps for good, ", grouped(t.keep_every));
  if (t.checkpoint_minutes > 0) text += fmt::format("every {:g} minutes, ", t.checkpoint_minutes);
  if (keeps_best && t.eval_every > 0) text += "at every better validation, ";
  text += "at the end, and when interrupted";
  text += t.keep_checkpoints > 0 ? fmt::format("; the newest {} are kept", t.keep_checkpoints)
                                 : "; all are kept";
  if (t.keep_checkpoints > 0 && keeps_best)
    text += t.keep_best == 1 ? " and the best" : fmt::format(" and the best {}", t.keep_best);
  return line("checkpoints", text);
}

}  // namespace

std::string start_banner(const BannerFacts& f) {
  const Recipe& r = f.session.recipe;
  return model_line(f.session) + line("data", f.data.describe()) + length_line(f) +
         optimizer_line(r) + precision_line(r) + products_line(f.session) + device_line(f) +
         memory_line(f) + checkpoint_line(r.train, f.data.has_validation()) + samples_line(f) +
         line("to look at",
              fmt::format("{}: metrics.jsonl on the way, report.html at the end", f.out.string()));
}

}  // namespace aloft

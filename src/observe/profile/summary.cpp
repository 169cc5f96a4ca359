#include "observe/profile/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace aloft::profile {

namespace {

using Json = nlohmann::json;

constexpr double kGiga = 1e9;

double product_rate(const Rates& rates, DType type) {
  if (type == DType::BF16) return rates.bf16_gflops;
  return type == DType::F16 ? rates.f16_gflops : rates.f32_gflops;
}

double seconds_at(const Rates& rates, const Work& w) {
  const double products = product_rate(rates, w.type);
  if (rates.memory_gb_s <= 0 || (w.has_products && products <= 0)) return 0;
  return std::max(w.has_products ? w.flops / products / kGiga : 0,
                  w.bytes / rates.memory_gb_s / kGiga);
}

std::vector<Step> steps_of(const Recorder& recorder) {
  std::map<std::int64_t, Step> steps;
  std::map<std::int64_t, double> ends;
  for (const Timed& t : recorder.times()) {
    const auto [it, is_new] = steps.emplace(t.step, Step{t.step, t.begin, 0, 0});
    it->second.begin = std::min(it->second.begin, t.begin);
    it->second.in_calls += t.end - t.begin;
    double& end = is_new ? (ends[t.step] = t.end) : ends[t.step];
    end = std::max(end, t.end);
  }
  std::vector<Step> all;
  for (auto& [number, step] : steps) {
    step.seconds = ends[number] - step.begin;
    all.push_back(step);
  }
  return all;
}

double mean_step(const Summary& s) {
  double all = 0;
  for (const Step& step : s.steps) all += step.seconds;
  return s.steps.empty() ? 0 : all / static_cast<double>(s.steps.size());
}

double in_calls(const Summary& s) {
  double all = 0;
  for (const Step& step : s.steps) all += step.in_calls;
  return all;
}

// "12.3": the same digits for large and small.
std::string number(double x) {
  if (x <= 0) return "";
  return x >= 100 ? fmt::format("{:.0f}", x) : fmt::format("{:.3g}", x);
}

std::string line_of(const std::string& op, std::string_view phase, const std::string& calls,
                    const std::string& ms, const std::string& share, const std::string& flops,
                    const std::string& bytes, const std::string& reached) {
  std::string line = fmt::format("  {:<28} {:<9} {:>7} {:>9} {:>7} {:>9} {:>8} {:>9}",
                                 op.substr(0, 28), phase, calls, ms, share, flops, bytes, reached);
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string line_of(const Row& r, double steps, double all) {
  return line_of(r.op, name_of(r.phase),
                 fmt::format("{:.6g}", static_cast<double>(r.calls) / steps),
                 fmt::format("{:.3f}", 1e3 * r.seconds / steps),
                 fmt::format("{:.1f} %", all > 0 ? 100 * r.seconds / all : 0),
                 r.has_products && r.seconds > 0 ? number(r.flops / r.seconds / kGiga) : "",
                 r.seconds > 0 ? number(r.bytes / r.seconds / kGiga) : "",
                 r.seconds_at_rates > 0 && r.seconds > 0
                     ? fmt::format("{:.0f} %", 100 * r.seconds_at_rates / r.seconds)
                     : "");
}

std::string rates_line(const Rates& r) {
  if (r.memory_gb_s <= 0) return "";
  return fmt::format(
      "  of rates: what the work would take at f32 {:.4g}, bf16 {:.4g} GFLOP/s, memory {:.3g} GB/s;"
      "\n  above 100 % where operands lay in the caches\n  products {}\n",
      r.f32_gflops, r.bf16_gflops, r.memory_gb_s, r.source);
}

// Shown whole; the others in a line. The file has all.
constexpr std::size_t kRows = 14;

Json json_of(const Row& r) {
  return {{"op", r.op},
          {"phase", name_of(r.phase)},
          {"calls", r.calls},
          {"ms", 1e3 * r.seconds},
          {"flops", r.flops},
          {"bytes", r.bytes},
          {"has_products", r.has_products},
          {"ms_at_rates", r.seconds_at_rates > 0 ? Json(1e3 * r.seconds_at_rates) : Json()}};
}

constexpr int kProcess = 1, kStepTrack = 0;
int track_of(int stream) { return stream + 1; }

Json track_name(int track, const std::string& name) {
  return {{"ph", "M"},
          {"name", "thread_name"},
          {"pid", kProcess},
          {"tid", track},
          {"args", {{"name", name}}}};
}

Json slice(const std::string& name, std::string_view category, double from, double seconds,
           int track, Json args) {
  constexpr double kMicro = 1e6;
  return {{"ph", "X"},
          {"name", name},
          {"cat", category},
          {"ts", kMicro * from},
          {"dur", kMicro * seconds},
          {"pid", kProcess},
          {"tid", track},
          {"args", std::move(args)}};
}

Json args_of(const Call& c, const Timed& t) {
  Json args = {{"name", c.name}, {"module", c.path}, {"kernel", c.kernel}};
  if (c.instruction >= 0) {
    args["program"] = c.program;
    args["instruction"] = c.instruction;
  }
  args.update({{"step", t.step}, {"in", c.in}, {"out", c.out}, {"bytes", c.work.bytes}});
  if (c.work.flops > 0) args["flops"] = c.work.flops;
  if (c.source.line > 0) args["source"] = c.source.file + ":" + std::to_string(c.source.line);
  if (t.micro_batch > 0) args["micro_batch"] = t.micro_batch;
  return args;
}

}  // namespace

Summary summary_of(const Recorder& recorder, const Rates& rates) {
  Summary s;
  s.rates = rates;
  s.steps = steps_of(recorder);
  std::map<std::pair<std::string, Phase>, Row> rows;
  for (const Timed& t : recorder.times()) {
    const Call& c = recorder.calls()[t.call];
    Row& r = rows[{c.op, c.phase}];
    r.op = c.op;
    r.phase = c.phase;
    ++r.calls;
    r.seconds += t.end - t.begin;
    r.flops += c.work.flops;
    r.bytes += c.work.bytes;
    r.has_products |= c.work.has_products;
    r.seconds_at_rates += seconds_at(rates, c.work);
  }
  for (auto& [key, row] : rows) s.rows.push_back(std::move(row));
  std::ranges::stable_sort(s.rows,
                           [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  return s;
}

std::string text_of(const Summary& s) {
  if (s.steps.empty()) return "";
  const auto steps = static_cast<double>(s.steps.size());
  const double all = in_calls(s);
  std::string text = fmt::format("where the time goes, a step: the mean of {} on {}, {}\n",
                                 counted(static_cast<std::int64_t>(s.steps.size()), "step"),
                                 s.device, counted(s.threads, "thread"));
  text += line_of("op", "phase", "calls", "ms", "share", "GFLOP/s", "GB/s", "of rates");
  Row others;
  for (std::size_t i = 0; i < s.rows.size(); ++i) {
    if (i < kRows || s.rows.size() == kRows + 1) {
      text += line_of(s.rows[i], steps, all);
      continue;
    }
    others.calls += s.rows[i].calls;
    others.seconds += s.rows[i].seconds;
  }
  if (others.calls > 0)
    text += line_of(fmt::format("{} other kinds", s.rows.size() - kRows), "",
                    fmt::format("{:.6g}", static_cast<double>(others.calls) / steps),
                    fmt::format("{:.3f}", 1e3 * others.seconds / steps),
                    fmt::format("{:.1f} %", all > 0 ? 100 * others.seconds / all : 0), "", "", "");
  text += fmt::format("  instructions {:.3f} ms, from the first to the last {:.3f} ms\n",
                      1e3 * all / steps, 1e3 * mean_step(s));
  text += fmt::format("  the clock alone shows {:.2g} us each time", 1e6 * s.timer_seconds);
  if (s.host_step_seconds > 0)
    text += fmt::format("; a step that is timed takes {:.2f} ms", 1e3 * s.host_step_seconds);
  if (s.host_step_seconds > 0 && s.plain_step_seconds > 0)
    text += fmt::format(", before {:.2f} ms", 1e3 * s.plain_step_seconds);
  text += '\n';
  return text + rates_line(s.rates);
}

Json json_of(const Summary& s) {
  const auto unless_zero = [](double x) { return x > 0 ? Json(x) : Json(); };
  Json steps = Json::array(), rows = Json::array();
  for (const Step& step : s.steps)
    steps.push_back({{"step", step.step},
                     {"ms", 1e3 * step.seconds},
                     {"ms_in_instructions", 1e3 * step.in_calls}});
  for (const Row& r : s.rows) rows.push_back(json_of(r));
  return {{"device", s.device},
          {"threads", s.threads},
          {"timer_us", 1e6 * s.timer_seconds},
          {"step_ms", unless_zero(1e3 * s.host_step_seconds)},
          {"plain_step_ms", unless_zero(1e3 * s.plain_step_seconds)},
          {"rates",
           {{"f32_gflops", unless_zero(s.rates.f32_gflops)},
            {"bf16_gflops", unless_zero(s.rates.bf16_gflops)},
            {"f16_gflops", unless_zero(s.rates.f16_gflops)},
            {"memory_gb_s", unless_zero(s.rates.memory_gb_s)},
            {"source", s.rates.source}}},
          {"steps", std::move(steps)},
          {"ops", std::move(rows)}};
}

std::string trace_text(const Recorder& recorder, const Summary& s) {
  double zero = std::numeric_limits<double>::infinity();
  int streams = 1;
  for (const Timed& t : recorder.times()) zero = std::min(zero, t.begin);
  for (const Call& c : recorder.calls()) streams = std::max(streams, c.stream + 1);
  Json events = Json::array();
  events.push_back({{"ph", "M"},
                    {"name", "process_name"},
                    {"pid", kProcess},
                    {"args", {{"name", "aloft on " + s.device}}}});
  events.push_back(track_name(kStepTrack, "steps"));
  for (int stream = 0; stream < streams; ++stream)
    events.push_back(track_name(track_of(stream), "stream " + std::to_string(stream)));
  for (const Step& step : s.steps)
    events.push_back(slice("step " + std::to_string(step.step), "step", step.begin - zero,
                           step.seconds, kStepTrack, {{"step", step.step}}));
  for (const Timed& t : recorder.times()) {
    const Call& c = recorder.calls()[t.call];
    events.push_back(slice(c.op, name_of(c.phase), t.begin - zero, t.end - t.begin,
                           track_of(c.stream), args_of(c, t)));
  }
  // A line an event: what is long is read by programs, and found by people.
  std::string text = "{\n\"displayTimeUnit\": \"ms\",\n\"aloft\": " + json_text(json_of(s)) +
                     ",\n\"traceEvents\": [\n";
  for (std::size_t i = 0; i < events.size(); ++i)
    text += json_text(events[i]) + (i + 1 < events.size() ? ",\n" : "\n");
  return text + "]\n}\n";
}

}  // namespace aloft::profile

// What a profile makes of the moments that a device names: whose they are, sums, shares, and what
// the work would take at the device's rates.
#include "observe/report/profile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "observe/profile/summary.h"

namespace aloft::profile {
namespace {

using nlohmann::json;

class At : public Event::State {
 public:
  explicit At(double time) : time_(time) {}
  bool has_happened() const override { return true; }
  void wait() const override {}
  double time() const override { return time_; }

 private:
  double time_;
};

Event at(double time) { return Event(std::make_shared<At>(time)); }

CallSpec call(const char* op, const char* type) {
  CallSpec c;
  c.op = Name(op);
  c.in = c.out = {parse_tensor_type(type)};
  return c;
}

// Of a product 8 GFLOP in 2 GB, of anything else 1 GB.
Work work(const OpEvent& e) {
  if (e.call.op != Name("matmul")) return {1e9, 1e9, false, DType::F32};
  return {8e9, 2e9, true, e.call.in[0].dtype};
}

void tell(Recorder& r, const CallSpec& c, int instruction, double begin, double end,
          Phase phase = Phase::Forward, int stream = 0, std::int64_t micro_batch = 0) {
  r.after(OpEvent{.program = instruction < 0 ? "" : "train",
                  .instruction = instruction,
                  .call = c,
                  .kernel = "cpu.x",
                  .path = "h.0",
                  .identity = "h.0/x#0",
                  .phase = phase,
                  .stream = stream,
                  .at = {0, micro_batch},
                  .begin = at(begin),
                  .end = at(end)});
}

Recorder two_steps() {
  const CallSpec product = call("matmul", "bf16[4,8]"), sum = call("add", "f32[4]");
  Recorder r(work, [](std::string_view program, int instruction) {
    return Source{std::string(program) + ".cpp", 10 + instruction};
  });
  for (int step : {3, 4}) {
    r.begin_step(step);
    r.program_begins({"train", {}, {}});
    tell(r, product, 0, 10 * step, 10 * step + 2);
    tell(r, product, 1, 10 * step + 2, 10 * step + 3, Phase::Backward, 1);
    tell(r, sum, 2, 10 * step + 4, 10 * step + 5);
    r.end_step();
  }
  return r;
}

TEST(Profile, SumsByOpAndPhase) {
  const Recorder r = two_steps();
  EXPECT_EQ(r.calls().size(), 3u);  // the second step's are the first's
  const Summary s = summary_of(r, {4, 16, 8, 2, "measured"});
  ASSERT_EQ(s.steps.size(), 2u);
  EXPECT_EQ(s.steps[1].step, 4);
  EXPECT_EQ(s.steps[1].seconds, 5);   // from the first to the last
  EXPECT_EQ(s.steps[1].in_calls, 4);  // nothing ran for a second
  ASSERT_EQ(s.rows.size(), 3u);
  EXPECT_EQ(s.rows[0].op, "matmul");
  EXPECT_EQ(s.rows[0].phase, Phase::Forward);
  EXPECT_EQ(s.rows[0].calls, 2);
  EXPECT_EQ(s.rows[0].seconds, 4);
  EXPECT_EQ(s.rows[0].seconds_at_rates, 2);  // 2 GB at 2 GB/s, above 8 GFLOP at the 16 of bf16
  EXPECT_EQ(s.rows[1].seconds + s.rows[2].seconds, 4);
  // With rates that are not known nothing is held against them.
  EXPECT_EQ(summary_of(r, {}).rows[0].seconds_at_rates, 0);
  EXPECT_EQ(summary_of(r, {4, 16, 8, 0, ""}).rows[0].seconds_at_rates, 0);
  // The slower type is f32.
  EXPECT_EQ(summary_of(r, {4, 0.5, 8, 2, ""}).rows[0].seconds_at_rates, 32);
}

TEST(Profile, TheTableAddsUp) {
  Summary s = summary_of(two_steps(), {4, 16, 8, 2, "measured"});
  s.device = "cpu";
  s.timer_seconds = 2e-7;
  const std::string text = text_of(s);
  EXPECT_NE(text.find("the mean of 2 steps on cpu, 1 thread\n"), std::string::npos) << text;
  EXPECT_NE(text.find("2000.000  50.0 %         4        1      50 %"), std::string::npos) << text;
  EXPECT_NE(text.find("instructions 4000.000 ms, from the first to the last 5000.000 ms"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("the clock alone shows 0.2 us"), std::string::npos) << text;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = text.find('\n', from);
    EXPECT_LE(end - from, 100u);
    from = end + 1;
  }
  EXPECT_EQ(text_of(Summary()), "");
}

TEST(Profile, TheTraceHasATrackAStream) {
  const Recorder r = two_steps();
  const json trace = json::parse(trace_text(r, summary_of(r, {})));
  std::vector<json> slices;
  std::map<int, std::string> tracks;
  for (const json& e : trace["traceEvents"]) {
    if (e["ph"] == "X") slices.push_back(e);
    if (e["name"] == "thread_name") tracks[e["tid"]] = e["args"]["name"];
  }
  EXPECT_EQ(tracks, (std::map<int, std::string>{{0, "steps"}, {1, "stream 0"}, {2, "stream 1"}}));
  ASSERT_EQ(slices.size(), 8u);
  EXPECT_EQ(slices[0]["name"], "step 3");
  EXPECT_EQ(slices[0]["ts"], 0);
  EXPECT_EQ(slices[0]["dur"], 5e6);
  const json& second = slices[3];
  EXPECT_EQ(second["tid"], 2);
  EXPECT_EQ(second["ts"], 2e6);
  EXPECT_EQ(second["cat"], "backward");
  EXPECT_EQ(second["args"]["source"], "train.cpp:11");
  EXPECT_EQ(second["args"]["in"], json({"bf16[4,8]"}));
  EXPECT_EQ(profile_of(trace_text(r, summary_of(r, {})))["ops"].size(), 3u);
}

TEST(Profile, WhatAnotherThreadDoesIsNotTheSteps) {
  Recorder r = two_steps();
  const std::size_t calls = r.times().size();
  const CallSpec sum = call("add", "f32[4]");
  std::thread([&] { tell(r, sum, -1, 0, 1); }).join();
  EXPECT_EQ(r.times().size(), calls);
  r.begin_step(5);
  tell(r, sum, -1, 0, 1);
  r.drop_step();
  EXPECT_EQ(r.times().size(), calls);
}

TEST(Profile, OtherLengthsAreAnotherCall) {
  Recorder r(work);
  const CallSpec c = call("add", "f32[B<=8,3]");
  r.begin_step(0);
  for (const std::int64_t rows : {8, 8, 5}) {
    const std::int64_t lengths[] = {rows};
    r.program_begins({"train", lengths, {}});
    r.after(OpEvent{.program = "train",
                    .instruction = 0,
                    .call = c,
                    .lengths = lengths,
                    .begin = at(0),
                    .end = at(1)});
  }
  r.end_step();
  ASSERT_EQ(r.calls().size(), 2u);
  EXPECT_EQ(r.calls()[0].in[0], "f32[8,3]");
  EXPECT_EQ(r.calls()[1].in[0], "f32[5,3]");
  EXPECT_EQ(r.times().size(), 3u);
}

}  // namespace
}  // namespace aloft::profile

// The Plan's two text forms, and the placement of buffers: random instances against a judge written
// apart (find_overlap), and published ones (minimalloc's) where they are there.
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <sstream>

#include "base/error.h"
#include "plan/lifetime.h"
#include "plan/place_search.h"

namespace aloft {
namespace {

using nlohmann::json;

// y = softmax(x + w), with scratch, an output and a symbol.
Plan small_plan() {
  const TensorType row{DType::BF16, {Dim::symbolic("B", 8), 16}};
  const TensorType weight{DType::F32, {Dim(1), Dim(16)}};
  Program p;
  p.name = "train";
  p.symbols = {"B"};
  p.bounds = {8};
  const auto buffer = [&](std::string name, Arena arena, std::size_t bytes, std::size_t offset,
                          int first, int last) {
    p.buffers.push_back({std::move(name), arena, bytes, offset, first, last});
  };
  buffer("input:x", Arena::Staging, 256, 0, 0, 2);
  buffer("w", Arena::Parameters, 64, 0, 0, 2);
  buffer("h/add#0", Arena::Activations, 256, 64, 0, 1);
  buffer("h/softmax#0", Arena::Activations, 256, 320, 1, 2);
  buffer("scratch", Arena::Activations, 40, 0, 1, 1);
  Instruction add;
  add.call = {"add", {}, {row, weight}, {row}, 2};
  add.kernel = "cpu.add";
  add.in = {{0, row}, {1, weight}};
  add.out = {{2, row}};
  add.identity = "h/add#0";
  add.path = "h";
  add.file = "model.cpp";
  add.line = 12;
  Instruction softmax = add;
  softmax.call = {
      "softmax", parse_attrs("{axis=-1, scale=0.1, mode=\"a \\\"b\"}"), {row}, {row}, 2};
  softmax.kernel = "cpu.softmax";
  softmax.refusals = {"cpu.fast_softmax: rows < 1024"};
  softmax.in = {{2, row}};
  softmax.out = {{3, row}};
  softmax.scratch = 4;
  softmax.identity = "h/softmax#0";
  softmax.phase = Phase::Backward;
  p.instructions = {add, softmax};
  p.inputs = {{"x", {0, row}, false}};
  p.outputs = {{"y", {3, row}, true}};
  p.activation_lower_bound = 576;
  p.gradient_names = {"w"};
  Plan plan;
  plan.backend = "cpu";
  plan.threads = 2;
  plan.choices = {{"tile", "8x16"}};
  StateSlot w;
  w.name = "w";
  w.type = weight;
  w.is_norm = true;
  add_program(plan, p, {w});
  verify(plan);
  return plan;
}

TEST(PlanJson, RoundTrip) {
  const Plan plan = small_plan();
  const std::string text = to_json(plan);
  const Plan again = plan_from_json(text);
  EXPECT_EQ(to_json(again), text);
  EXPECT_EQ(again.signature(), plan.signature());
  EXPECT_EQ(again.peak_bytes(), plan.peak_bytes());
  EXPECT_EQ(print(again), print(plan));
  const Instruction& i = again.programs[0].instructions[1];
  EXPECT_EQ(i.call.attrs, plan.programs[0].instructions[1].call.attrs);
  EXPECT_EQ(i.call.in, plan.programs[0].instructions[1].call.in);
  EXPECT_EQ(i.phase, Phase::Backward);
  EXPECT_TRUE(again.programs[0].outputs[0].is_tap);
  EXPECT_TRUE(again.state[0].is_norm);
}

void expect_refused(const json& j);

TEST(PlanJson, AFusedCallCarriesItsProgramAndItsMembers) {
  json good = json::parse(to_json(small_plan()));
  json& call = good["programs"][0]["instructions"][1];
  std::string steps;
  const std::size_t inputs = call["in"].size();
  std::string out;
  for (std::size_t i = 0; i < call["out"].size(); ++i) {
    const std::string number = "%" + std::to_string(inputs + i);
    steps += number + " = neg(%0) : f32; ";
    out += (i ? ", " : "") + number;
  }
  call["op"] = "fused";
  const auto attrs = [](const std::string& program) {
    Attrs a;
    a.set("program", program);
    return a.str();
  };
  call["attrs"] = attrs(steps + "return " + out);
  call["members"] = {"a/neg#0", "b/neg#0"};
  const Plan plan = plan_from_json(good.dump());
  EXPECT_EQ(plan.programs[0].instructions[1].members,
            (std::vector<std::string>{"a/neg#0", "b/neg#0"}));
  EXPECT_EQ(json::parse(to_json(plan)), good);
  for (const std::string& wrong :
       {attrs(""), attrs("return %0"), attrs(steps + "return " + out + ", " + out), attrs(steps),
        std::string("{program=3}"), std::string("")}) {
    call["attrs"] = wrong;
    expect_refused(good);
  }
}

void expect_refused(const json& j) {
  try {
    plan_from_json(j.dump());
    FAIL() << "accepted: " << j.dump().substr(0, 2000);
  } catch (const DataError& e) {
    EXPECT_EQ(e.code(), "E0640");
  }
}

TEST(PlanJson, EveryNumberIsChecked) {
  const json good = json::parse(to_json(small_plan()));
  const auto with = [&](const char* pointer, const json& value) {
    json j = good;
    const json::json_pointer at(pointer);
    EXPECT_TRUE(j.contains(at)) << pointer;
    j[at] = value;
    return j;
  };
  const char* instruction = "/programs/0/instructions/1";
  for (const json& bad : {json(99), json(-1), json(1e18), json("0"), json(nullptr)})
    expect_refused(with((std::string(instruction) + "/in/0/0").c_str(), bad));
  expect_refused(with((std::string(instruction) + "/in/0/1").c_str(), "f32[1000000]"));
  expect_refused(with((std::string(instruction) + "/in/0/1").c_str(), "f32[-4]"));
  expect_refused(
      with((std::string(instruction) + "/in/0/1").c_str(), "f32[9999999999,9999999999]"));
  // 2^61 elements of 8 bytes: 0 bytes, where the product wraps.
  expect_refused(with((std::string(instruction) + "/in/0/1").c_str(), "f64[2305843009213693952]"));
  expect_refused(with((std::string(instruction) + "/scratch").c_str(), 5));
  expect_refused(with((std::string(instruction) + "/phase").c_str(), "sideways"));
  expect_refused(with((std::string(instruction) + "/attrs").c_str(), "{axis="));
  expect_refused(with("/programs/0/buffers/2/offset", 1 << 20));
  expect_refused(with("/programs/0/buffers/2/offset", 18446744073709551615ull));
  expect_refused(with("/programs/0/buffers/2/bytes", 18446744073709551615ull));
  expect_refused(with("/programs/0/buffers/2/offset", 320));  // lies on the softmax's result
  expect_refused(with("/programs/0/buffers/2/last", 3));
  expect_refused(with("/programs/0/buffers/2/first", -1));
  expect_refused(with("/programs/0/buffers/2/arena", "cellar"));
  expect_refused(with("/programs/0/bounds", json::array()));
  expect_refused(with("/programs/0/bounds", {1e67}));
  expect_refused(with("/programs/0/bounds", {-1}));
  expect_refused(with("/programs/0/outputs/0/ref/0", 5));
  expect_refused(with("/state/0/offset", 64));
  expect_refused(with("/state/0/type", "f32[1000,1000]"));
  expect_refused(with("/threads", 0));
  expect_refused(with("/aloft_plan", 2));
  expect_refused(json::array());
}

TEST(PlanJson, APathOfAnyBytesIsWritten) {
  Plan plan = small_plan();
  plan.programs[0].instructions[0].file = "caf\xe9.cpp";
  const Plan again = plan_from_json(to_json(plan));
  EXPECT_EQ(again.programs[0].instructions[0].file, "caf\xef\xbf\xbd.cpp");
  EXPECT_EQ(again.signature(), plan.signature());
}

TEST(PlanJson, DeepNestingIsRefused) {
  const int depth = 1'000'000;
  const std::string deep = std::string(depth, '[') + std::string(depth, ']');
  EXPECT_THROW(plan_from_json("{\"aloft_plan\": " + deep + "}"), DataError);
}

TEST(PlanJson, CutTextIsRefused) {
  const std::string text = to_json(small_plan());
  for (std::size_t n = 0; n + 2 < text.size(); n += 7)
    EXPECT_THROW(plan_from_json(text.substr(0, n)), DataError) << n;
}

TEST(PlanPrint, NamesThePeakAndItsTensors) {
  const std::string text = print(small_plan());
  for (const char* part : {"program train: 2 instructions", "h/softmax#0", "most activations at",
                           "B<=8", "cpu.softmax", "scratch %4", "tap y"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Placement, RandomInstances) {
  std::mt19937 random(7);
  for (int instance = 0; instance < 2000; ++instance) {
    std::vector<Lifetime> buffers(1 + random() % 40);
    for (Lifetime& b : buffers) {
      b.first = static_cast<int>(random() % 30);
      b.last = b.first + static_cast<int>(random() % (random() % 4 ? 4 : 30));
      b.bytes = random() % 5 ? random() % 5000 : 0;
    }
    const Placement p = place(buffers);
    ASSERT_EQ(p.offsets.size(), buffers.size());
    const auto overlap = find_overlap(buffers, p.offsets);
    ASSERT_FALSE(overlap) << instance << ": " << overlap->first << " and " << overlap->second;
    std::size_t end = 0;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      ASSERT_EQ(p.offsets[i] % kAlignment, 0u);
      end = std::max(end, p.offsets[i] + aligned(buffers[i].bytes));
    }
    ASSERT_EQ(end, p.peak);
    ASSERT_GE(p.peak, p.lower_bound);
    ASSERT_EQ(place(buffers).offsets, p.offsets);  // deterministic
  }
}

// Every order of lowest-gap placement of a few buffers: some order gives the smallest peak.
std::size_t smallest_peak(const std::vector<Lifetime>& buffers) {
  std::vector<int> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::size_t best = SIZE_MAX;
  do {
    std::vector<std::size_t> top(16, 0);  // in order of offset, every buffer rests on the skyline
    std::size_t peak = 0;
    for (int b : order) {
      std::size_t at = 0;
      for (int t = buffers[b].first; t <= buffers[b].last; ++t) at = std::max(at, top[t]);
      for (int t = buffers[b].first; t <= buffers[b].last; ++t) top[t] = at + buffers[b].bytes;
      peak = std::max(peak, at + buffers[b].bytes);
    }
    best = std::min(best, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Placement, TheSearchIsExactOnSmallInstances) {
  std::mt19937 random(11);
  for (int instance = 0; instance < 150; ++instance) {
    std::vector<Lifetime> buffers(2 + random() % 6);
    for (Lifetime& b : buffers) {
      b.first = static_cast<int>(random() % 8);
      b.last = b.first + static_cast<int>(random() % 6);
      b.bytes = 64 * (1 + random() % 12);
    }
    const std::size_t best = smallest_peak(buffers);
    const auto offsets = place_within(buffers, best, 100000);
    ASSERT_TRUE(offsets) << instance;
    ASSERT_FALSE(find_overlap(buffers, *offsets)) << instance;
    for (std::size_t i = 0; i < buffers.size(); ++i)
      ASSERT_LE((*offsets)[i] + buffers[i].bytes, best);
    ASSERT_FALSE(place_within(buffers, best - 64, 2000)) << instance;
  }
}

TEST(Placement, TheJudgeSeesAnOverlap) {
  const std::vector<Lifetime> buffers{{0, 2, 100}, {2, 3, 100}, {3, 4, 100}};
  EXPECT_FALSE(find_overlap(buffers, std::vector<std::size_t>{0, 128, 0}));
  EXPECT_TRUE(find_overlap(buffers, std::vector<std::size_t>{0, 64, 0}));
}

// Rows "id,lower,upper,size", upper excluded; the capacity is the number in the file's name.
std::vector<Lifetime> read_instance(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::vector<Lifetime> out;
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream row(line);
    long id = 0, lower = 0, upper = 0;
    Lifetime b;
    if (row >> id >> lower >> upper >> b.bytes) {
      b.first = static_cast<int>(lower);
      b.last = static_cast<int>(upper) - 1;
      out.push_back(b);
    }
  }
  return out;
}

TEST(Placement, PublishedInstances) {
  const std::filesystem::path folder = "../shared/data/minimalloc";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not here";
  int instances = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".csv") continue;
    const std::vector<Lifetime> buffers = read_instance(entry.path());
    ASSERT_FALSE(buffers.empty()) << entry.path();
    const std::size_t capacity = std::stoull(entry.path().stem().extension().string().substr(1));
    const auto offsets = place_within(buffers, capacity, 4'000'000);
    ASSERT_TRUE(offsets) << entry.path();
    EXPECT_FALSE(find_overlap(buffers, *offsets)) << entry.path();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_EQ((*offsets)[i] % kAlignment, 0u);
      EXPECT_LE((*offsets)[i] + buffers[i].bytes, capacity);
    }
    ++instances;
  }
  EXPECT_GT(instances, 0);
}

}  // namespace
}  // namespace aloft

// aloft bench step: times the training step of a recipe or of a model by size, and says what share
// of the machine's limit it reaches. The Plan is the recipe's own, nothing lighter.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "backends/cpu/measure.h"
#include "base/process.h"
#include "cli/machine.h"
#include "cli/verb.h"
#include "frontend/programs.h"
#include "ops/op.h"
#include "scalar/philox.h"
#include "train/recipe.h"
#include "train/session.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

struct Options {
  std::string model = "gpt2-124m", precision;
  std::vector<std::string> set;
  std::int64_t batch = 0, seq = 0, layers = 0, heads = 0, dim = 0, vocab = 0;
  int steps = 6, threads = 0;
  bool as_json = false, no_limit = false;
};

constexpr std::int64_t kVocab = 4096;  // of a recipe that leaves it to a tokenizer

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

bool is_recipe(const std::string& model) { return model.size() > 5 && model.ends_with(".toml"); }

// The recipe that is timed: the file's own, or the defaults with the model's size.
Recipe recipe_of(const Options& o) {
  std::vector<Override> set;
  const auto put = [&](const char* key, std::int64_t v) {
    if (v > 0) set.push_back({key, std::to_string(v)});
  };
  put("model.layers", o.layers);
  put("model.heads", o.heads);
  put("model.dim", o.dim);
  put("model.vocab", o.vocab);
  put("model.context", o.seq);
  put("train.batch", o.batch);
  put("train.threads", o.threads);
  set.push_back({"train.mode", "\"graph\""});  // it is the Plan that is timed
  if (!o.precision.empty()) set.push_back({"precision", "\"" + o.precision + "\""});
  for (const std::string& text : o.set) set.push_back(parse_override(text));
  if (is_recipe(o.model)) return load_recipe(o.model, set);
  models::gpt2_config(o.model);  // refuses a name that does not exist
  set.push_back({"model.size", "\"" + o.model + "\""});
  return parse_recipe("", "bench", set);
}

// Random tokens; the same for every step.
struct RandomBatch {
  std::vector<std::int32_t> inputs, targets;
  RandomBatch(std::int64_t count, std::int64_t vocab) {
    for (std::int64_t i = 0; i < 2 * count; ++i)
      (i % 2 ? targets : inputs)
          .push_back(static_cast<std::int32_t>(scalar::random_bits({1, 0, 0, 0}, i) %
                                               static_cast<std::uint64_t>(vocab)));
  }
};

// Milliseconds that the program's matrix products take, each alone at its best layout.
struct MatmulLimit {
  double limit_ms = 0;
  double flops = 0;
  json products = json::array();  // each kind, with its rate
};

MatmulLimit matmul_limit(const Program& program) {
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, DType>;
  std::map<Key, int> products;
  MatmulLimit total;
  for (const Instruction& ins : program.instructions) {
    const OpDef& op = op_named(ins.call.op);
    if (!op.products) continue;
    for (const Product& p : op.products(ins.call.attrs, ins.call.in, ins.call.out))
      ++products[{p.batch, p.m, p.n, p.k, ins.call.in[0].dtype}];
  }
  for (const auto& [key, count] : products) {
    const auto& [batch, m, n, k, type] = key;
    const cpu::MatmulProblem problem{batch, m, n, k, type};
    const double ms = cpu::best_layout_ms(problem);
    total.limit_ms += count * ms;
    total.flops += count * problem.flops();
    total.products.push_back({{"count", count},
                              {"batch", batch},
                              {"m", m},
                              {"n", n},
                              {"k", k},
                              {"type", name_of(type)},
                              {"limit_ms", count * ms},
                              {"gflops", problem.flops() / (ms * 1e6)}});
  }
  return total;
}

// Times each instruction of a program: which share the products and the update take.
class Clock : public Observer {
 public:
  explicit Clock(const Program& program) : seconds_(program.instructions.size(), 0) {}
  void before(std::string_view, int) override { start_ = now(); }
  void after(std::string_view, int i, std::span<void* const>) override {
    seconds_[i] += now() - start_;
  }
  double of(int i) const { return seconds_[i]; }

 private:
  std::vector<double> seconds_;
  double start_ = 0;
};

// Bytes that the update cannot avoid: every gradient once for its norm, once for the update; every
// parameter, master and moment read and written once.
double update_bytes(const Plan& plan) {
  double state = 0, gradients = 0;
  for (const StateSlot& s : plan.state) {
    if (s.cls == StateClass::Optimizer || (s.cls == StateClass::Parameter && s.requires_grad))
      state += static_cast<double>(s.type.max_bytes());
    if (s.cls == StateClass::Parameter && s.requires_grad)
      gradients += static_cast<double>(s.type.max_bytes());
  }
  return 2 * state + 2 * gradients;
}

double process_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Shares {
  double matmul_s = 0, update_s = 0;
};

// Milliseconds a step by op and phase, longest first, from `steps` observed ones.
json times_by_op(const Program& program, const Clock& clock, int steps) {
  struct Sum {
    int count = 0;
    double ms = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& ins = program.instructions[i];
    Sum& s = sums[{ins.call.op.str(), std::string(name_of(ins.phase))}];
    ++s.count;
    s.ms += clock.of(static_cast<int>(i)) / steps * 1e3;
  }
  std::vector<json> rows;
  for (const auto& [key, s] : sums)
    rows.push_back({{"op", key.first}, {"phase", key.second}, {"count", s.count}, {"ms", s.ms}});
  std::stable_sort(rows.begin(), rows.end(), [](const json& a, const json& b) {
    return a["ms"].get<double>() > b["ms"].get<double>();
  });
  return rows;
}

// Seconds a step in ops with matrix products, and in the update, from `steps` observed ones.
Shares shares_of(const Program& program, const Clock& clock, int steps) {
  Shares s;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& ins = program.instructions[i];
    if (op_named(ins.call.op).products) s.matmul_s += clock.of(static_cast<int>(i)) / steps;
    if (ins.phase == Phase::Update) s.update_s += clock.of(static_cast<int>(i)) / steps;
  }
  return s;
}

// Adds what the machine could do, measured now.
void add_limit(json& j, const Program& program, double bytes) {
  const MatmulLimit limit = matmul_limit(program);
  const double stream = cpu::measure_stream_rate();
  const double limit_ms = limit.limit_ms + bytes / (stream * 1e9) * 1e3;
  j["matmul_limit_ms"] = limit.limit_ms;
  j["products"] = limit.products;
  j["matmul_gflops"] = limit.flops / (limit.limit_ms * 1e6);
  j["stream_gb_s"] = stream;
  j["limit_ms"] = limit_ms;
  j["limit_fraction"] = limit_ms / j["step_ms"].get<double>();
}

json measure(const Options& o, double process_start) {
  const Recipe recipe = recipe_of(o);
  const std::int64_t vocab = recipe.model.vocab > 0 ? recipe.model.vocab : kVocab;
  Session session = open_session(recipe, vocab, /*measure=*/nullptr);
  const auto runner = make_runner(session);
  const std::int64_t rows = recipe.train.batch, context = session.config.context;
  const RandomBatch data(rows * context, session.config.vocab);
  Batch batch;
  batch.inputs = data.inputs;
  batch.targets = data.targets;
  batch.rows = rows;
  Programs& programs = *runner->programs();
  const Program& program = *programs.plan().find("train");
  std::vector<double> times;
  StepNumbers last;
  double startup = 0;
  for (int i = 0; i < o.steps; ++i) {
    const double start = now();
    last = runner->step(batch);
    times.push_back(now() - start);
    if (i == 0) startup = now() - process_start;
  }
  if (times.size() > 1) times.erase(times.begin());
  const double step = median(times);
  const std::uint64_t rss = peak_rss_bytes();

  Clock clock(program);
  programs.executor().attach(&clock);
  constexpr int kProfiled = 3;
  for (int i = 0; i < kProfiled; ++i) runner->step(batch);
  programs.executor().attach(nullptr);
  const auto [matmul_s, update_s] = shares_of(program, clock, kProfiled);
  const double bytes = update_bytes(programs.plan());
  json j = {{"model", o.model},
            {"precision", print_precision(session.recipe.precision)},
            {"batch", rows},
            {"seq", context},
            {"threads", omp_get_max_threads()},
            {"tokens_per_s", static_cast<double>(rows * context) / step},
            {"step_ms", step * 1e3},
            {"compile_ms", programs.compile_seconds() * 1e3},
            {"startup_ms", startup * 1e3},
            {"planned_peak_bytes", programs.plan().peak_bytes()},
            {"peak_rss_bytes", rss},
            {"matmul_ms", matmul_s * 1e3},
            {"optimizer_gb_s", update_s > 0 ? bytes / update_s / 1e9 : 0},
            {"ops", times_by_op(program, clock, kProfiled)},
            {"loss", last.loss}};
  if (!o.no_limit) add_limit(j, program, bytes);
  return j;
}

void print_table(const json& j) {
  const auto mib = [](const json& v) { return v.get<double>() / (1 << 20); };
  fmt::print("{} {} batch {} x {} tokens, {} threads\n", j["model"].get<std::string>(),
             j["precision"].get<std::string>(), j["batch"].dump(), j["seq"].dump(),
             j["threads"].dump());
  fmt::print("  {:>10.1f} tokens/s   step {:.1f} ms   loss {:.4f}\n",
             j["tokens_per_s"].get<double>(), j["step_ms"].get<double>(), j["loss"].get<double>());
  fmt::print("  {:>10.1f} ms compile  first step after {:.0f} ms\n", j["compile_ms"].get<double>(),
             j["startup_ms"].get<double>());
  fmt::print("  {:>10.1f} MiB planned, {:.1f} MiB resident at the peak\n",
             mib(j["planned_peak_bytes"]), mib(j["peak_rss_bytes"]));
  fmt::print("  {:>10.1f} ms in ops with matrix products, update at {:.1f} GB/s\n",
             j["matmul_ms"].get<double>(), j["optimizer_gb_s"].get<double>());
  if (j.contains("limit_ms"))
    fmt::print(
        "  {:>10.1f} ms limit: products {:.1f} ms ({:.0f} GFLOP/s), memory {:.1f} GB/s; "
        "{:.0f} % of it reached\n",
        j["limit_ms"].get<double>(), j["matmul_limit_ms"].get<double>(),
        j["matmul_gflops"].get<double>(), j["stream_gb_s"].get<double>(),
        100 * j["limit_fraction"].get<double>());
  fmt::print("  where the time goes, ms a step:\n");
  for (const json& row : j["ops"]) {
    const double ms = row["ms"].get<double>();
    if (ms < 0.01 * j["step_ms"].get<double>()) break;
    fmt::print("  {:>10.1f} {} x {} ({})\n", ms, row["count"].dump(), row["op"].get<std::string>(),
               row["phase"].get<std::string>());
  }
}

}  // namespace

Action bench_verb(CLI::App& app) {
  const double start = now() - process_seconds();
  auto o = std::make_shared<Options>();
  CLI::App* step = app.add_subcommand("step", "time a training step");
  app.require_subcommand(1);
  step->add_option("--model", o->model, "gpt2-124m, gpt2-NAME, or a recipe (*.toml)");
  step->add_option("--batch", o->batch, "sequences")->check(at_least(1));
  step->add_option("--seq", o->seq, "tokens a sequence")->check(at_least(1));
  step->add_option("--precision", o->precision, "O0, O1, O2:bf16, O2:fp16 ...");
  step->add_option("--steps", o->steps, "timed steps; the first does not count")
      ->check(CLI::Range(1, 100000));
  step->add_option("--layers", o->layers, "overrides the model's")->check(at_least(1));
  step->add_option("--heads", o->heads, "overrides the model's")->check(at_least(1));
  step->add_option("--dim", o->dim, "overrides the model's")->check(at_least(1));
  step->add_option("--vocab", o->vocab, "overrides the model's")->check(at_least(1));
  step->add_option("--threads", o->threads, "0: all")->check(at_least(0));
  step->add_option("--set", o->set, "KEY=VALUE of the recipe, as in aloft train");
  step->add_flag("--json", o->as_json, "print an object");
  step->add_flag("--no-limit", o->no_limit, "do not measure the machine's limit");
  return [o, start] {
    const json j = measure(*o, start);
    if (o->as_json)
      fmt::print("{}\n", j.dump());
    else
      print_table(j);
    return ExitCode::Ok;
  };
}

}  // namespace aloft::cli

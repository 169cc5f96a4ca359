#include "backends/sim/sim_backend.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/sim/compute_pool.h"
#include "backends/sim/sim_device.h"
#include "base/error.h"
#include "ops/evaluate.h"
#include "ops/op.h"

namespace aloft::sim {
namespace {

// Where an operand without elements lies: copies of no bytes take no null either.
alignas(64) std::byte nothing[64];

// By the op's own cost: the arithmetic or the memory, whichever takes longer.
double seconds_of(const CallSpec& call, const Profile& p) {
  const OpDef* op = find_op(call.op);
  if (!op) return p.launch_seconds;
  const Cost cost = op->cost(call.attrs, call.in, call.out);
  const bool is_low =
      op->numeric == Numeric::Narrow && std::ranges::any_of(call.in, [](const TensorType& t) {
        return t.dtype == DType::BF16 || t.dtype == DType::F16;
      });
  return p.launch_seconds + std::max(cost.flops / (is_low ? p.low_flops : p.f32_flops),
                                     cost.bytes / p.memory_bandwidth);
}

class SimPrepared : public Prepared {
 public:
  SimPrepared(std::shared_ptr<const Prepared> kernel, const CallSpec& call, const Profile& profile)
      : kernel_(std::move(kernel)),
        threads_(call.threads),
        symbols_(call.symbols()),
        call_(call),
        profile_(profile),
        seconds_(seconds_of(call, profile)) {}

  std::size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  std::string how() const override { return kernel_->how(); }
  bool is_cut_by_bound() const override { return kernel_->is_cut_by_bound(); }

  void run(const RunArgs& args) const override {
    ensure(args.stream != nullptr, "a kernel of a software device is given its stream");
    try {
      hand_over(args);
    } catch (Error& e) {
      e.add_line("instr", std::string(args.name));
      throw;
    }
  }

 private:
  void hand_over(const RunArgs& args) const {
    auto& stream = static_cast<SimStream&>(*args.stream);
    const SimDevice& device = stream.device();
    Work work{kernel_, {}, {}, {}, {args.symbols.begin(), args.symbols.end()}, {}};
    for (std::size_t i = 0; i < call_.in.size(); ++i)
      work.in.push_back(operand(device, args.in[i], call_.in[i], work));
    for (std::size_t i = 0; i < call_.out.size(); ++i)
      work.out.push_back(operand(device, args.out[i], call_.out[i], work));
    if (const std::size_t bytes = kernel_->scratch_bytes())
      work.scratch = device.real(args.scratch, bytes);
    stream.enqueue(std::string(args.name), seconds_at(args.symbols),
                   [work, threads = threads_] { compute(threads, [&] { work.run(); }); });
  }

  // With the lengths of this run: a short batch takes less.
  double seconds_at(std::span<const std::int64_t> lengths) const {
    if (symbols_.empty()) return seconds_;
    SymbolValues values;
    for (std::size_t i = 0; i < symbols_.size(); ++i) values[symbols_[i]] = lengths[i];
    CallSpec call = call_;
    call.attrs = bind_lengths(call.attrs, values);
    for (auto* types : {&call.in, &call.out})
      for (TensorType& t : *types) t = bind_lengths(t, values);
    return seconds_of(call, profile_);
  }

  // A call with its operands' real memory, which it keeps.
  struct Work {
    std::shared_ptr<const Prepared> kernel;
    std::vector<Buffer> held;
    std::vector<void*> in, out;
    std::vector<std::int64_t> symbols;
    Buffer scratch;
    void run() const {
      kernel->run({in, out, scratch ? scratch.address() : nullptr, symbols, nullptr, {}});
    }
  };

  static void* operand(const SimDevice& device, void* address, const TensorType& type, Work& work) {
    const std::size_t bytes = type.max_bytes();
    if (bytes == 0) return nothing;
    return work.held.emplace_back(device.real(address, bytes)).address();
  }

  std::shared_ptr<const Prepared> kernel_;
  int threads_;
  std::vector<Name> symbols_;
  CallSpec call_;
  const Profile& profile_;
  double seconds_;  // at the lengths' bounds
};

}  // namespace

SimBackend::SimBackend(const Backend& underneath, const Profile& profile)
    : underneath_(underneath), profile_(profile) {
  features_ = underneath.features();
  if (!profile.name.empty()) {
    features_.capability = profile.capability;
  }
  if (profile.says_products) {
    features_.f32_flops = profile.f32_flops;
    features_.low_flops = profile.low_flops;
  }
  if (profile.says_moves) {
    features_.memory_bandwidth = profile.memory_bandwidth;
    features_.host_bandwidth = profile.host_bandwidth;
    features_.launch_seconds = profile.launch_seconds;
  }
  features_.streams = 2;
  features_.is_asynchronous = true;
  features_.is_simulated = true;
  features_.shares_host_memory = false;
  features_.spaces = {{Space::Device, profile.memory}, {Space::Host, 0}};
  for (const double number : {profile.low_flops, profile.f32_flops, profile.memory_bandwidth,
                              profile.host_bandwidth, profile.launch_seconds})
    features_.variant += " " + std::to_string(number);
  for (const std::string& op : profile.f32_ops) features_.variant += " f32:" + op;
}

std::optional<Refusal> SimBackend::refuses(const CallSpec& call) const {
  if (std::ranges::find(profile_.f32_ops, call.op.str()) == profile_.f32_ops.end())
    return std::nullopt;
  const auto is_low_type = [](const TensorType& t) { return is_low(t.dtype); };
  if (std::ranges::none_of(call.in, is_low_type)) return std::nullopt;
  return Refusal{"the profile has " + call.op.str() + " in f32 alone"};
}

std::shared_ptr<const Prepared> SimBackend::prepare(const Kernel& kernel,
                                                    const CallSpec& call) const {
  return std::make_shared<SimPrepared>(underneath_.prepare(kernel, call), call, profile_);
}

}  // namespace aloft::sim

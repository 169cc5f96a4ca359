// fused: chunks of the steps' common shape, a tile at a time.
#include "ops/fused.h"

#include "backends/cpu/parallel.h"
#include "backends/cpu/tile_program.h"

namespace aloft::cpu {
namespace {

std::variant<TileProgram, Refusal> program_of(const CallSpec& call) {
  try {
    const auto a = from_attrs<FusedAttrs>(call.attrs);
    return TileProgram::make(call, parse_step_program(a.program, static_cast<int>(call.in.size())));
  } catch (const UserError& e) {
    return Refusal{e.headline()};
  }
}

std::optional<Refusal> accepts(const CallSpec& call) {
  const auto program = program_of(call);
  if (const Refusal* why = std::get_if<Refusal>(&program)) return *why;
  return std::nullopt;
}

class Fused : public Prepared {
 public:
  explicit Fused(const CallSpec& call) : program_(std::get<TileProgram>(program_of(call))) {
    for (const TensorType& t : call.out) out_.push_back(t.dtype);
  }

  void run(const RunArgs& args) override {
    const std::int64_t count = program_.operands().numel(args);
    parallel_for(count, program_.cost(), [&](std::int64_t begin, std::int64_t end) {
      TileProgram::Tiles tiles(program_, args);
      void* places[kMostSteps];
      while (begin < end) {
        const std::int64_t n = program_.operands().tile_at(begin, end);
        for (std::size_t i = 0; i < out_.size(); ++i) places[i] = at(args.out[i], begin, out_[i]);
        program_.run(tiles, begin, n, places);
        begin += n;
      }
    });
  }

 private:
  TileProgram program_;
  std::vector<DType> out_;
};

std::vector<std::pair<int, int>> in_place(const CallSpec& call) {
  const TileProgram program = std::get<TileProgram>(program_of(call));
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < static_cast<int>(call.in.size()); ++i)
    for (int o = 0; o < static_cast<int>(call.out.size()); ++o)
      if (program.may_share(i, o)) pairs.emplace_back(i, o);
  return pairs;
}

}  // namespace

std::vector<Kernel> fused_kernels() {
  return {{"cpu.fused", "fused", accepts,
           [](const CallSpec& call) -> std::unique_ptr<Prepared> {
             return std::make_unique<Fused>(call);
           },
           in_place}};
}

}  // namespace aloft::cpu

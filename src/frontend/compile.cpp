#include "frontend/compile.h"

#include "base/error.h"
#include "frontend/call_programs.h"

namespace aloft {

void check_compile(const CompileOptions& options) {
  check_programs(options.threads, options.passes);
  if (options.most_rows < 0)
    throw UserError("E0700", "a batch cannot have so many rows")
        .saw("CompileOptions::most_rows = " + std::to_string(options.most_rows))
        .need("the rows of the largest batch, or 0: those of the first call");
}

CompiledCall::CompiledCall(CompileOptions options, SourceLocation place)
    : programs_(std::make_unique<CallPrograms>(std::move(options), place)) {}

CompiledCall::~CompiledCall() = default;

const std::vector<Tensor>& CompiledCall::operator()(const CallArguments& arguments) {
  return (*programs_)(arguments);
}

const std::shared_ptr<const void>& CompiledCall::like() const { return programs_->like(); }

void CompiledCall::hand_over() { programs_->hand_over(); }

Programs* CompiledCall::programs() { return programs_->programs(); }

Tensor CompiledCall::tap(const std::string& name) const { return programs_->tap(name); }

std::vector<Tap> CompiledCall::taps() const { return programs_->taps(); }

std::vector<RefusedTap> CompiledCall::refused_taps() const { return programs_->refused_taps(); }

}  // namespace aloft

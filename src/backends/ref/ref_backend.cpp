#include "backends/ref/ref_backend.h"

#include <cstdlib>
#include <new>
#include <unordered_map>

#include "base/error.h"
#include "ops/evaluate.h"
#include "ops/op.h"

namespace aloft {
namespace {

class Meaning : public Prepared {
 public:
  explicit Meaning(const CallSpec& call) : op_(op_named(call.op)), call_(call) {}

  void run(const RunArgs& args) const override {
    SymbolValues values;
    const std::vector<Name> symbols = call_.symbols();
    for (std::size_t i = 0; i < symbols.size(); ++i) values[symbols[i]] = args.symbols[i];
    std::vector<HostArray> in;
    for (std::size_t i = 0; i < call_.in.size(); ++i) {
      const TensorType type = aloft::bind_lengths(call_.in[i], values);
      in.push_back(HostArray::zeros(type.dtype, type.shape.max_extents()));
      load_bytes(in.back(), args.in[i]);
    }
    const std::vector<HostArray> out =
        evaluate_op(op_, aloft::bind_lengths(call_.attrs, values), in);
    for (std::size_t i = 0; i < out.size(); ++i) {
      ensure(aloft::bind_lengths(call_.out[i], values) ==
                 TensorType{out[i].dtype, Shape::of(out[i].shape)},
             "a meaning has the type that was inferred: " + call_.op.str());
      store_bytes(out[i], args.out[i]);
    }
  }

 private:
  const OpDef& op_;
  CallSpec call_;
};

std::unique_ptr<Prepared> prepare(const CallSpec& call) { return std::make_unique<Meaning>(call); }

class RefBackend : public Backend {
 public:
  RefBackend() {
    for (const OpDef& op : op_table())
      kernels_.emplace(op.name, Kernel{"ref.meaning", op.name, always, prepare});
  }

  std::string_view name() const override { return "ref"; }

  std::vector<const Kernel*> candidates(Name op) const override {
    const auto it = kernels_.find(op);
    return it == kernels_.end() ? std::vector<const Kernel*>{}
                                : std::vector<const Kernel*>{&it->second};
  }

  std::shared_ptr<void> allocate(std::size_t bytes) const override {
    void* p = bytes <= SIZE_MAX / 2 ? std::aligned_alloc(64, (bytes + 64) / 64 * 64) : nullptr;
    if (p == nullptr)
      throw EnvironmentError("E0401", "not enough memory")
          .need(std::to_string(bytes) + " bytes in one block");
    return {p, std::free};
  }

 private:
  std::unordered_map<Name, Kernel> kernels_;
};

}  // namespace

const Backend& ref_backend() {
  static const RefBackend backend;
  return backend;
}

}  // namespace aloft

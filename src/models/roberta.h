// The RoBERTa family (Liu et al. 2019), for classification: BERT with positions counted behind the
// padding token's number, and a head of two layers on the first token. Parameters have Hugging
// Face's names without "roberta." (encoder.h).
#pragma once

#include "models/encoder_settings.h"

namespace aloft::models {

// The sizes of a RoBERTa; the defaults are those of RoBERTa base.
struct RobertaConfig : EncoderConfig {
  // RoBERTa base.
  RobertaConfig() { vocab = 50265, token_types = 1, norm_eps = 1e-5; }
  std::int64_t padding = 1;      // the token that is padding
  std::int64_t positions = 514;  // rows of the table of positions
  std::int64_t context = 0;      // the longest text; 0: what positions leave
  friend bool operator==(const RobertaConfig&, const RobertaConfig&) = default;

  // The rows up to the padding token's number are no text's.
  std::int64_t longest() const { return context > 0 ? context : positions - padding - 1; }

  template <class C = RobertaConfig>
  static auto fields() {
    using I = std::int64_t;
    return joined(
        FieldList{
            setting("positions", &C::positions, {2, 1 << 20},
                    "rows of the table of positions: padding + 1, and one for each token of a text",
                    {.published = "max_position_embeddings", .assumed = I{512}}),
            setting("padding", &C::padding, {0, 1 << 20}, "the token that is padding",
                    {.published = "pad_token_id", .assumed = I{1}, .null_is = I{-1}}),
            setting("context", &C::context, {0, 1 << 20},
                    "longest text, in tokens; 0: what positions leave",
                    {.derived = [](const SettingValues& v) { return config_of<C>(v).longest(); }})},
        encoder_fields<C>(50265));
  }
};

// A RoBERTa.
class Roberta : public Encoder {
 public:
  // UserError E0210, E0211: sizes that are out of range, or do not fit together.
  explicit Roberta(const RobertaConfig& config);
};

}  // namespace aloft::models

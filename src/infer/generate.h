// Text from a language model with a key/value cache: a program for one token and one for a stretch
// of the prompt, compiled once; each token that is drawn costs one run of the first.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/programs.h"
#include "models/model.h"

namespace aloft {

// Whether the rows of a generator are of one length, or each of its own: then those that are
// shorter stand behind padding, which nobody sees. Renewed: of its own, and one may begin anew
// while the others go on, for which there are keys and values of one row more.
enum class RowLengths { Equal, Own, Renewed };

// Sequences that grow side by side, each in a row of its own: what is read of the weights for a
// token is read once for all of them.
class Generator {
 public:
  // Compiles for `rows` sequences of up to the model's context, or of so many tokens as will come
  // (`tokens`, prompts included), if those are fewer: keys and values of a long context take more
  // room than the model. The model's parameters move into the generator's arenas; they keep their
  // values. With advice for less memory, what does not fit
  // is refused before it is made: EnvironmentError E0401. (A training run has its weights at hand.)
  // UserError E0215 where the model decodes to other logits than [rows, n, vocab()].
  explicit Generator(models::CausalLm& model, int threads = 0, std::int64_t rows = 1,
                     std::string_view less_memory = "",
                     std::int64_t tokens = std::numeric_limits<std::int64_t>::max(),
                     RowLengths lengths = RowLengths::Equal);

  // How many sequences there are.
  std::int64_t rows() const { return std::ssize(rows_); }

  // Starts every row anew with `tokens` (at least one: UserError E0812; the last longest() - 1 of
  // them count); afterwards logits() are those of the next token. Here and below DataError E0522
  // for a token outside the model's vocabulary.
  void start(std::span<const std::int32_t> tokens);
  // The same with tokens of its own for each row: UserError E0812 for another number of rows, or
  // for other lengths than the rows may have.
  void start_each(std::span<const std::vector<std::int32_t>> rows);
  // start(), of which what the rows begin with already is not fed again. Returns how many tokens
  // these are. Of rows that are of one text.
  std::size_t start_again(std::span<const std::int32_t> tokens);
  // Feeds one more token a row. When a row is full, its older part is let go and the newer half or
  // so is fed again, so that a token costs about the same wherever it stands: positions are learnt,
  // and a cache that slid by one would hold none of them. UserError E0812 before start(), or for
  // another number of tokens.
  void feed(std::span<const std::int32_t> tokens);
  void feed(std::int32_t token) { feed({&token, 1}); }
  // Nobody asks for this row's logits until the next start(): it takes no more room.
  void leave(std::int64_t row);
  // This row begins anew with `tokens`, of which the last longest() - 1 count, while the others
  // stand where they are. The last of them goes with the others' next tokens, whatever feed() is
  // given for this row then; until that has been called, no row has logits. UserError E0812
  // before start(), for no token, or where the rows are not RowLengths::Renewed.
  void begin(std::int64_t row, std::span<const std::int32_t> tokens);
  bool renews() const { return alone_ != nullptr; }
  // Row r goes on from what row from[r] is. UserError E0812 for another number of rows.
  void reorder(std::span<const std::int64_t> from);
  // Of a row's next token; of the first `ids` tokens only where a padded head has more rows than
  // the tokenizer has pieces. UserError E0812 before start(), or where there is no such row; E0700
  // where ids are below 1.
  HostRead<float> logits(std::int64_t ids = INT64_MAX, std::int64_t row = 0) const;

  // Positions that a row has room for, and the bytes of all rows' keys and values.
  std::int64_t longest() const { return cache_.longest; }
  std::uint64_t cache_bytes() const;
  const Plan& plan() const { return programs_.plan(); }
  // How often a row was full, and how many tokens went through the model a row, those that were fed
  // again included.
  std::int64_t times_full() const { return times_full_; }
  std::int64_t tokens_fed() const { return tokens_fed_; }

 private:
  struct Row {
    std::vector<std::int32_t> tokens;
    std::size_t start = 0;  // its first position, behind padding
    bool is_left = false;
    bool is_beyond = false;  // read as a text of more tokens than the model's first length
    std::optional<std::int32_t> first = {};  // fed next, where it has begun
  };
  // What reads the tokens of a row that begins: a cache of one row.
  struct Alone {
    models::DecodeCache cache;
    int stretch = -1, token = -1;
    InputPort<std::int32_t> of_stretch, of_token;
  };
  void check(std::span<const std::int32_t> tokens) const;
  void need_start() const;
  void need_row(std::int64_t row) const;
  void need_a_row_each(std::size_t count, const char* what) const;
  void set(Row& row, std::span<const std::int32_t> tokens) const;
  void run(int program, const InputPort<std::int32_t>& input, std::size_t from, std::size_t count,
           std::size_t width);
  void feed_from(std::size_t at);
  void feed_all();
  void write_starts();
  bool is_beyond(std::size_t tokens) const;
  void add_alone();
  void read_alone(std::span<const std::int32_t> tokens);
  void take_alone(std::size_t row, std::size_t count);
  void move_to(std::size_t width);
  std::size_t bytes_of_position(const Variable& v, std::size_t rows) const;

  models::CausalLm& model_;
  models::DecodeCache cache_;
  Programs programs_;
  std::int64_t stretch_ = 1;  // tokens that prefill takes at a time
  int decode_ = -1, prefill_ = -1;
  InputPort<std::int32_t> token_, prompt_;
  OutputPort<float> logits_;
  std::vector<Row> rows_;
  std::unique_ptr<Alone> alone_;
  std::size_t width_ = 0;  // positions that are filled, padding included
  std::int64_t times_full_ = 0, tokens_fed_ = 0;
};

}  // namespace aloft

// A conversation with a model: a line is said, the answer is shown as it grows.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/generate_options.h"
#include "cli/said_lines.h"
#include "infer/chat_prompt.h"
#include "infer/draw_texts.h"

namespace aloft::cli {
namespace {

constexpr std::int64_t kContext = 4096;
constexpr const char* kHelp =
    "/clear  forgets the conversation\n"
    "/exit   ends it, as Ctrl-D does\n"
    "/help   this\n"
    "Ctrl-C stops an answer. A space before a slash makes it a message.\n";

// A line of talk, in whole words where the terminal is narrow.
void say(std::string_view text) { print_talk("{}\n", fit_for(Output::Err, text)); }

class Conversation {
 public:
  Conversation(const GenerateOptions& o, SavedModel& saved)
      : o_(o),
        tokenizer_(*saved.tokenizer),
        prompt_(saved, o.chat_template),
        is_at_terminal_(::isatty(STDIN_FILENO) == 1),
        context_(context_of(o, *saved.model)),
        generator_(make_generator(o, saved, context_)) {
    saved.load();
    clear();
  }

  void run() {
    const StopKey key;
    const std::unique_ptr<SaidLines> lines = said_lines();
    if (is_at_terminal_)
      say(fmt::format("{} tokens of context; /help lists what else can be said", context_));
    for (;;) {
      bool interrupted = false;
      const std::optional<std::string> line = lines->next(interrupted);
      if (!line) break;
      if (interrupted) {
        say("Ctrl-D or /exit ends the conversation");
        continue;
      }
      if (line->empty()) continue;
      if (!is_command(*line)) {
        answer(*line);
      } else if (*line == "/exit") {
        return;
      } else {
        obey(*line);
      }
    }
  }

 private:
  static std::int64_t context_of(const GenerateOptions& o, const models::CausalLm& model) {
    if (o.context <= model.context())
      return o.context > 0 ? o.context : std::min(model.context(), kContext);
    throw UserError("E0700", "--context is more than the model reads")
        .saw(std::to_string(o.context))
        .need("at most " + std::to_string(model.context()));
  }
  static Generator make_generator(const GenerateOptions& o, SavedModel& saved,
                                  std::int64_t context) {
    give_room(saved);
    return Generator(*saved.model, static_cast<int>(o.threads.value_or(0)), 1,
                     "a smaller --context, a smaller model, or a machine with more memory",
                     context);
  }

  // One word behind a slash.
  static bool is_command(std::string_view line) {
    return line.starts_with('/') && is_identifier(line.substr(1));
  }

  void obey(std::string_view line) {
    if (line == "/help") return print_talk("{}", kHelp);
    if (line == "/clear") {
      clear();
      return say(o_.system.empty() ? "(forgotten)" : "(forgotten, but for --system)");
    }
    say(fmt::format(
        "there is no {}; /help lists what there is, a space before it makes it a message",
        harmless(line)));
  }

  void clear() {
    messages_ = nlohmann::ordered_json::array();
    if (!o_.system.empty()) add("system", o_.system);
  }

  void add(const char* role, const std::string& content) {
    messages_.push_back({{"role", role}, {"content", content}});
  }
  void forget_last() { messages_.erase(messages_.end() - 1); }

  // What the model is given, or nothing where the conversation cannot go on so: then it is as it
  // was before. In a pipe nobody would read why.
  std::optional<std::vector<std::int32_t>> rendered() {
    try {
      return prompt_.tokens(prompt_.text(messages_));
    } catch (const DataError& e) {
      forget_last();
      if (!is_at_terminal_) throw;
      say(e.what());
      return std::nullopt;
    }
  }

  void answer(const std::string& said) {
    add("user", said);
    const auto tokens = rendered();
    if (!tokens) return;
    // The last token of an answer is never fed.
    const std::int64_t room = context_ - std::ssize(*tokens);
    if (room < 1) {
      forget_last();
      say(fmt::format(
          "the conversation would have {} tokens, and there is room for {}: this was not "
          "said. /clear forgets it; --context N has room for more where the model has",
          tokens->size(), context_));
      return;
    }
    StopKey::take();
    const std::size_t kept = generator_.start_again(*tokens);
    GrowingText text(tokenizer_, o_.stop, true);
    DrawOptions draw{o_.has_tokens || o_.has_published_tokens ? std::min(o_.tokens, room) : room,
                     tokenizer_.vocab_size(), prompt_.ends(), o_.sampling};
    draw.sampling.stream = turn_;
    draw.stops = [&](std::int64_t, std::int32_t) {
      return text.has_ended() || StopKey::is_pressed();
    };
    const DrawnText drawn =
        draw_on(generator_, *tokens, draw, [&](std::int64_t, std::int32_t token) {
          const std::string more = text.add(token);
          if (!o_.as_json) show(more);
        });
    if (const std::string rest = text.rest(); !o_.as_json) show(rest);
    const bool is_stopped_here = StopKey::take();
    const bool is_full = drawn.end == TextEnd::Tokens && std::ssize(drawn.tokens) == room;
    if (!o_.as_json) show("\n");
    if (o_.as_json) print(said, text.text(), drawn, kept, is_stopped_here, is_full);
    if (is_stopped_here) say("(stopped)");
    if (is_full)
      say(fmt::format(
          "the {} tokens of the context are full: the answer ends here. /clear forgets the "
          "conversation; --context N has room for more where the model has",
          context_));
    add("assistant", text.text());
    ++turn_;
  }

  void print(const std::string& said, const std::string& text, const DrawnText& drawn,
             std::size_t kept, bool is_stopped_here, bool is_full) const {
    const char* finish = is_stopped_here              ? "interrupted"
                         : is_full                    ? "context"
                         : drawn.end == TextEnd::End  ? "end"
                         : drawn.end == TextEnd::Stop ? "stop"
                                                      : "tokens";
    const double rate =
        drawn.seconds > 0 ? static_cast<double>(drawn.tokens.size()) / drawn.seconds : 0;
    print_result(json_text(nlohmann::json{{"index", turn_},
                                          {"prompt", said},
                                          {"text", text},
                                          {"tokens", drawn.tokens},
                                          {"ended", drawn.ended()},
                                          {"finish", finish},
                                          {"seed", o_.sampling.seed},
                                          {"seconds", drawn.seconds},
                                          {"tokens_per_s", rate},
                                          {"kept", kept}}) +
                 "\n");
    flush_results();
  }

  const GenerateOptions& o_;
  const Tokenizer& tokenizer_;
  ChatPrompt prompt_;
  bool is_at_terminal_;
  std::int64_t context_;  // tokens that a conversation may have
  Generator generator_;
  nlohmann::ordered_json messages_;
  std::uint64_t turn_ = 0;
};

}  // namespace

void generate_chat(const GenerateOptions& o, SavedModel& saved) { Conversation(o, saved).run(); }

}  // namespace aloft::cli

// aloft generate MODEL: texts of prompts, answers, a conversation.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/generate_options.h"
#include "cli/option_checks.h"
#include "cli/verb.h"
#include "frontend/amp.h"
#include "infer/beam_search.h"
#include "infer/chat_prompt.h"
#include "infer/prompt_file.h"
#include "models/published_files.h"
#include "recipe/what_lies_there.h"
#include "runtime/threads.h"

namespace aloft::cli {
namespace {

constexpr std::int64_t kAnswerTokens = 1024;  // at most, where nobody says how many

// Nothing is drawn at temperature 0. A script that tries several may leave the others where they
// are, so this is said and not refused.
void say_unused(const GenerateOptions& o) {
  if (o.sampling.temperature > 0 || o.draws.empty()) return;
  log_warning("{} {} nothing at --temperature 0, which always takes the likeliest token",
              join(o.draws, ", "), o.draws.size() == 1 ? "does" : "do");
}

void need_one_way(const GenerateOptions& o) {
  const int ways = o.has_prompt + !o.prompts.empty() + o.has_message + o.is_chat;
  if (ways == 1) return;
  throw UserError("E0700", ways > 1 ? "two kinds of prompt" : "there is no prompt")
      .need(
          "--prompt TEXT, --prompts FILE with one a line, --message TEXT to a model that chats, "
          "or --chat");
}

nlohmann::ordered_json said_by(const char* role, const std::string& content) {
  auto message = nlohmann::ordered_json::object();
  message["role"] = role;
  message["content"] = content;
  return message;
}

std::vector<AskedPrompt> asked_prompts(const GenerateOptions& o) {
  if (!o.prompts.empty()) return read_prompts(o.prompts);
  AskedPrompt asked;
  asked.text = o.prompt;
  if (!o.has_message) return {asked};
  asked.messages = nlohmann::ordered_json::array();
  asked.messages.push_back(said_by("user", o.message));
  return {asked};
}

// An empty prompt begins where a document begins: behind the token that separates documents.
std::vector<std::int32_t> first_tokens(const Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<std::int32_t> tokens = tokenizer.framed(tokenizer.encode(prompt));
  if (!tokens.empty()) return tokens;
  if (const auto separator = tokenizer.end_of_text()) return {*separator};
  throw UserError("E0812", "the prompt is empty")
      .saw("a " + std::string(tokenizer.kind()) +
           " tokenizer, which has no token between documents to begin with")
      .advice("--prompt \"some text\"");
}

// The system's words stand before a conversation that does not begin with its own.
void add_system(const GenerateOptions& o, nlohmann::ordered_json& messages) {
  if (o.system.empty()) return;
  const auto role = messages[0].find("role");
  if (role != messages[0].end() && *role == "system") return;
  messages.insert(messages.begin(), said_by("system", o.system));
}

// What is asked, as tokens; errors name the line that asks it.
ModelPrompt prompt_of(const GenerateOptions& o, AskedPrompt& asked, const Tokenizer& tokenizer,
                      const ChatPrompt* chat) {
  try {
    if (!chat) return {asked.text, first_tokens(tokenizer, asked.text), asked.place};
    add_system(o, asked.messages);
    const std::string text = chat->text(asked.messages, asked.tools);
    return {text, chat->tokens(text), asked.place};
  } catch (Error& e) {
    if (!asked.place.empty()) e.add_line("in", asked.place);
    throw;
  }
}

// Where nobody says how many tokens, none are written that the context has no room for: an answer
// would lose the beginning of its conversation, and beams forget nothing.
void keep_to_context(const GenerateOptions& o, bool is_answer, std::int64_t context,
                     std::vector<ModelPrompt>& prompts) {
  if ((o.has_tokens && o.context == 0) || (!is_answer && o.beams == 1)) return;
  for (ModelPrompt& p : prompts) p.room = std::max<std::int64_t>(1, context - std::ssize(p.tokens));
}

// Options that nobody gave are those of the model's generation_config.json. Beams draw nothing: of
// it they have the number of tokens.
void take_published(GenerateOptions& o, const SavedModel& saved) {
  if (saved.published.empty()) return;
  const models::PublishedDrawing said = models::published_drawing(saved.published);
  std::vector<std::string> taken;
  const auto take = [&](const char* option, const auto& published, auto& value) {
    if (!published || *published == value || o.given.contains(option)) return false;
    value = *published;
    taken.push_back(fmt::format("{} {}", option, *published));
    return true;
  };
  if (!o.given.contains("--tokens") && said.max_new_tokens) {
    o.has_published_tokens = true;
    o.tokens = *said.max_new_tokens;
    taken.push_back(fmt::format("--tokens {}", o.tokens));
  }
  if (o.beams == 1) {
    SamplingOptions& s = o.sampling;
    take("--repetition-penalty", said.repetition_penalty, s.repetition_penalty);
    const bool asks_to_draw = !o.draws.empty() || o.samples > 1;
    if (said.temperature != 0.0 || !asks_to_draw)
      take("--temperature", said.temperature, s.temperature);
    if (s.temperature > 0) {
      take("--top-k", said.top_k, s.top_k);
      take("--top-p", said.top_p, s.top_p);
      take("--min-p", said.min_p, s.min_p);
      take("--typical-p", said.typical_p, s.typical_p);
    }
  }
  if (!taken.empty()) log_info("of the model's generation_config.json: {}", join(taken, " "));
}

// Tokens that a text has room for. `--context` is of conversations.
std::int64_t room_of(const GenerateOptions& o, bool is_answer, std::int64_t context) {
  if (o.context == 0) return context;
  if (!is_answer)
    throw UserError("E0700", "--context is of a conversation")
        .saw("a prompt that is none")
        .need("--chat, --message TEXT, or --prompts FILE.jsonl with \"messages\"");
  if (o.context <= context) return o.context;
  throw UserError("E0700", "--context is more than the model reads")
      .saw(std::to_string(o.context))
      .need("at most " + std::to_string(context));
}

ExitCode generate(GenerateOptions o) {
  need_one_way(o);
  std::vector<AskedPrompt> asked;
  if (!o.is_chat) asked = asked_prompts(o);
  const bool is_answer = o.is_chat || asked[0].is_chat();
  if (!is_answer && (!o.system.empty() || !o.chat_template.empty()))
    throw UserError("E0700", "the prompt is no conversation")
        .saw("--system or --chat-template")
        .need("--chat, --message TEXT, or --prompts FILE.jsonl with \"messages\"");
  say_unused(o);
  if (o.threads.value_or(0) > 0) host_threads().set_count(static_cast<int>(*o.threads));
  SavedModel saved = describe_saved_model(o.model.path, o.model.checkpoint, o.model.average);
  if (!saved.tokenizer) refuse_without_tokenizer(o.model.path);
  if (const PrecisionRecipe precision = precision_of(o.precision); precision != PrecisionRecipe{})
    amp::prepare(*saved.model, precision);
  take_published(o, saved);
  if (o.is_chat) {
    generate_chat(o, saved);
    return ExitCode::Ok;
  }
  const InterruptScope interrupts("what was written stays");
  std::optional<ChatPrompt> chat;
  if (is_answer) chat.emplace(saved, o.chat_template);
  std::vector<ModelPrompt> prompts;
  for (AskedPrompt& a : asked)
    prompts.push_back(prompt_of(o, a, *saved.tokenizer, chat ? &*chat : nullptr));
  std::vector<std::int32_t> ends = chat ? chat->ends() : saved.ends;
  if (is_answer && !o.has_tokens && !o.has_published_tokens) o.tokens = kAnswerTokens;
  const std::int64_t room = room_of(o, is_answer, saved.model->context());
  keep_to_context(o, is_answer, room, prompts);
  o.context = room;
  if (o.past_end) ends.clear();
  give_room(saved);
  (o.beams > 1 ? generate_beams : generate_texts)(o, saved, prompts, is_answer, ends);
  return ExitCode::Ok;
}

// Options of which one makes the other senseless.
void refuse_together(const CLI::App& app, const char* one, const std::vector<const char*>& others,
                     const std::string& why) {
  if (app.count(one) == 0) return;
  for (const char* other : others)
    if (app.count(other) > 0)
      throw UserError("E0700", std::string(one) + " and " + other + " do not go together")
          .saw(std::string(one) + " " + other)
          .need("one of the two: " + why);
}

void refuse_senseless(const CLI::App& app, const GenerateOptions& o) {
  static_cast<void>(StopStrings(o.stop));  // before a model is read, not when its text begins
  if (o.beams > 1)
    refuse_together(app, "--beams",
                    {"--temperature", "--top-k", "--top-p", "--min-p", "--typical-p", "--seed",
                     "--samples", "--batch", "--repetition-penalty", "--presence-penalty",
                     "--frequency-penalty", "--stop", "--chat"},
                    "beams draw nothing, and are judged by the model's own probabilities");
  else if (app.count("--length-penalty") > 0)
    throw UserError("E0700", "--length-penalty is of beam search")
        .saw("one beam")
        .need("--beams 2 or more");
  refuse_together(app, "--chat", {"--samples", "--batch", "--past-end"},
                  "a conversation is one text");
}

}  // namespace

Action generate_verb(CLI::App& app) {
  auto o = std::make_shared<GenerateOptions>();
  add_saved_model(app, o->model);
  const CLI::Option* prompt =
      app.add_option("--prompt", o->prompt, "text to go on from; empty: where a document begins");
  app.add_option("--prompts", o->prompts,
                 "a prompt a line (\\n, \\t, \\\\ as in C); empty lines are passed over;\n"
                 "of *.jsonl an object a line, with \"prompt\" or \"messages\"; - is stdin");
  const CLI::Option* message = app.add_option(
      "--message", o->message, "what is said to a model that chats, by its chat template");
  app.add_flag("--chat", o->is_chat, "a conversation, a line a turn; /help lists what else");
  app.add_option("--system", o->system, "the system's words, before a conversation");
  add_chat_template(app, o->chat_template);
  app.add_option("--context", o->context, "most tokens of a conversation; 0: the model's, to 4096")
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--samples", o->samples, "texts a prompt, drawn with seed, seed + 1, ...")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--batch", o->batch, "texts at a time; 0: 8, or --samples where that is more")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--beams", o->beams, "beam search: the likeliest text by so many beams; 1: none")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--length-penalty", o->length_penalty,
                 "a beam's log-probability is divided by its length to this power")
      ->check(number_between(-BeamOptions::kMostPenalty, BeamOptions::kMostPenalty))
      ->capture_default_str();
  const CLI::Option* tokens =
      app.add_option("--tokens", o->tokens,
                     "most tokens of a text; if not given, 1024 of an answer, and of\n"
                     "answers and beams no more than the context has room for")
          ->check(CLI::Range(0, 1 << 24))
          ->capture_default_str();
  app.add_option("--temperature", o->sampling.temperature, "0: always the likeliest token")
      ->check(number_between(0, SamplingOptions::kMostTemperature))
      ->capture_default_str();
  app.add_option("--top-k", o->sampling.top_k, "only the k likeliest tokens; 0: all")
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--top-p", o->sampling.top_p, "only the likeliest with this total probability")
      ->check(number_between(0, 1))
      ->capture_default_str();
  app.add_option("--min-p", o->sampling.min_p,
                 "only those with this share of the likeliest's probability")
      ->check(number_between(0, 1))
      ->capture_default_str();
  app.add_option("--typical-p", o->sampling.typical_p,
                 "only the most typical with this total probability")
      ->check(number_between(0, 1))
      ->capture_default_str();
  app.add_option("--repetition-penalty", o->sampling.repetition_penalty,
                 "logits of tokens that the text has are divided by it, where positive")
      ->check(number_between(1e-3, SamplingOptions::kMostPenalty))
      ->capture_default_str();
  for (const auto& [name, target, help] :
       {std::tuple{"--presence-penalty", &o->sampling.presence_penalty,
                   "taken from the logits of tokens that were drawn before"},
        std::tuple{"--frequency-penalty", &o->sampling.frequency_penalty,
                   "the same, for each time"}})
    app.add_option(name, *target, help)
        ->check(number_between(-SamplingOptions::kMostPenalty, SamplingOptions::kMostPenalty))
        ->capture_default_str();
  app.add_option("--stop", o->stop, "a string that ends the text; repeatable (default: none)");
  app.add_option("--seed", o->sampling.seed, "same seed, same text")
      ->check(at_least(0))
      ->capture_default_str();
  add_precision(app, o->precision);
  add_threads(app, o->threads);
  app.add_flag("--past-end", o->past_end, "go on where the model ends the text");
  add_json(app, o->as_json, "an object a line: index, prompt, text, tokens, finish ...");
  add_device(app);
  return [o, prompt, message, tokens, &app] {
    o->has_prompt = prompt->count() > 0;
    o->has_message = message->count() > 0;
    o->has_tokens = tokens->count() > 0;
    for (const char* option : {"--top-k", "--top-p", "--min-p", "--typical-p", "--seed"})
      if (app.count(option) > 0) o->draws.emplace_back(option);
    for (const char* option : {"--tokens", "--temperature", "--top-k", "--top-p", "--min-p",
                               "--typical-p", "--repetition-penalty"})
      if (app.count(option) > 0) o->given.insert(option);
    refuse_senseless(app, *o);
    return generate(*o);
  };
}

}  // namespace aloft::cli

#include "runner/replies/parser.h"

#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "runner/replies/text.h"

namespace mote {

using reply::Format;
using reply::is_white_space;
using reply::kAgain;
using reply::kAny;
using reply::kBegin;
using reply::kComplete;
using reply::kEnd;
using reply::kFirst;
using reply::kRoute;
using reply::Rule;
using reply::State;
using reply::Step;

namespace {

constexpr size_t kMaxHeaderBytes = 256;
constexpr size_t kMaxKeyBytes = 1024;

bool is_content(State state) { return state == State::kContent || state == State::kAnswer; }

// Text that is part of the message, or lies between parts: none of it may be part of a call.
bool is_plain(State state) {
  return is_content(state) || state == State::kReasoning || state == State::kStart || state == State::kOutside;
}

// Calls use(rule) for each rule of the format until that returns true.
template <typename Use>
void for_each_rule(const Format& format, Use use) {
  for (const Rule& rule : format.reasoning) {
    if (use(rule)) return;
  }
  for (const Rule& rule : format.calls) {
    if (use(rule)) return;
  }
}

}  // namespace

std::vector<std::string_view> reply_format_names() {
  std::vector<std::string_view> names;
  for (const Format& format : reply::formats()) {
    if (names.empty() || names.back() != format.name) names.push_back(format.name);
  }
  return names;
}

Result<std::unique_ptr<ReplyParser>> ReplyParser::make(const ReplyOptions& options) {
  const Format* format =
      options.format.empty() ? &reply::recognise_format(options.chat_template) : reply::find_format(options.format);
  if (format == nullptr) {
    std::string names;
    for (const std::string_view name : reply_format_names()) names += (names.empty() ? "" : ", ") + std::string(name);
    return Status(Code::kInvalidArgument, "format = \"" + std::string(options.format) + "\": must be one of " + names);
  }
  MOTE_ASSIGN(reply::ToolTypes types, reply::ToolTypes::read(options.tools));
  std::unique_ptr<ReplyParser> parser(new ReplyParser(*format, std::move(types)));
  const reply::Beginning beginning = reply::beginning_after(*format, options.prompt);
  const bool is_reasoning = options.is_reasoning && !format->reasoning.empty();
  parser->state_ = is_reasoning ? reply::State::kReasoning : beginning.state;
  if (beginning.follows_mark && !is_reasoning) parser->message_.content().mark();
  return parser;
}

ReplyParser::ReplyParser(const Format& format, reply::ToolTypes types)
    : format_(format), types_(std::move(types)), message_(format.trims, format.trims_reasoning), state_(format.start) {
  message_.reasoning().divide();
}

Status ReplyParser::push(std::string_view text, std::vector<ReplyEvent>& events) {
  MOTE_REQUIRE(!is_finished_, Code::kInvalidArgument, "the reply is finished: open another one for more text");
  MOTE_REQUIRE(text.size() <= kMaxBytes - num_bytes_, Code::kInvalidArgument, "the reply has more than %zu bytes",
               kMaxBytes);
  num_bytes_ += text.size();
  bytes_ += text;
  const size_t complete = bytes_.size() - incomplete_utf8_suffix(bytes_);
  const std::string characters = replace_invalid_utf8(std::string_view(bytes_).substr(0, complete));
  bytes_.erase(0, complete);
  message_.set_events(&events);
  consume(characters);
  message_.set_events(nullptr);
  return {};
}

void ReplyParser::finish(std::vector<ReplyEvent>& events) {
  if (std::exchange(is_finished_, true)) return;
  message_.set_events(&events);
  consume(replace_invalid_utf8(std::exchange(bytes_, {})));
  resolve_held();
  if (!is_plain(state_) && (message_.in_call() || !reply::is_blank(written_))) {
    fail();
    resolve_held();
  }
  message_.finish(format_.trims_end);
  message_.set_events(nullptr);
}

void ReplyParser::consume(std::string_view bytes) {
  for (const char c : bytes) step(c);
}

void ReplyParser::step(char c) {
  if (reader_ == nullptr || is_complete_) {
    if (!is_plain(state_)) written_ += c;
    return match(c);
  }
  const Step read = reader_->feed(c);
  if (read == Step::kMore || read == Step::kEnd) written_ += c;
  if (read == Step::kMore) return;
  if (read == Step::kError) {
    fail();
    return step(c);
  }
  is_complete_ = true;
  if (const Rule* rule = rule_for(kComplete); rule != nullptr) apply(*rule, {});
  if (read == Step::kEndBefore) step(c);
}

bool ReplyParser::is_active(const Rule& rule) const {
  return rule.from == state_ && ((rule.effects & kFirst) == 0 || !message_.has_content());
}

const Rule* ReplyParser::rule_for(std::string_view mark) const {
  const Rule* found = nullptr;
  for_each_rule(format_, [&](const Rule& rule) {
    if (is_active(rule) && rule.mark == mark) found = &rule;
    return found != nullptr;
  });
  return found;
}

// The longest mark that the held text begins with.
ReplyParser::Found ReplyParser::find_mark() const {
  Found found;
  const auto consider = [&](std::string_view mark, const Rule* rule) {
    if (mark == kAny || mark == kComplete) return;
    if (mark.size() > held_.size()) {
      found.may_grow = found.may_grow || mark.starts_with(held_);
    } else if (mark.size() > found.mark.size() && std::string_view(held_).starts_with(mark)) {
      found.mark = mark;
      found.rule = rule;
    }
  };
  for_each_rule(format_, [&](const Rule& rule) {
    if (is_active(rule)) consider(rule.mark, &rule);
    return false;
  });
  if (is_content(state_)) {
    for (const std::string_view end : format_.ends) consider(end, nullptr);
  }
  return found;
}

void ReplyParser::match(char c) {
  held_ += c;
  while (!held_.empty()) {
    const Found found = find_mark();
    if (found.may_grow) return;
    if (!take_held(found)) return;
  }
}

void ReplyParser::resolve_held() {
  while (!held_.empty()) {
    if (!take_held(find_mark())) continue;
  }
}

// Takes the mark, or else a byte of text. false: what is held is read anew, in another state.
bool ReplyParser::take_held(const Found& found) {
  if (found.mark.empty()) {
    const char c = held_[0];
    held_.erase(0, 1);
    return take_text(c);
  }
  const std::string rest = std::exchange(held_, {}).substr(found.mark.size());
  if (found.rule == nullptr) {
    message_.content().hold(found.mark);
  } else {
    if (!is_plain(state_)) written_.resize(written_.size() - rest.size());
    apply(*found.rule, found.mark);
  }
  consume(rest);
  return false;
}

// A byte that is no part of a mark. false as for take_held.
bool ReplyParser::take_text(char c) {
  switch (state_) {
    case State::kContent:
    case State::kAnswer: message_.add_content(c); return true;
    case State::kReasoning: message_.add_reasoning(c); return true;
    case State::kStart:
      if (is_white_space(c)) {
        message_.add_content(c);
        return true;
      }
      break;
    case State::kHeader:
    case State::kId:
    case State::kName:
    case State::kKey:
    case State::kText:
    case State::kTyped: return take_captured(c);
    default:
      if (is_white_space(c)) return true;
  }
  take_any(c);
  return false;
}

// Names are checked as they come, so that text that is no call is not held back for long.
bool ReplyParser::may_capture(char c) const {
  const bool is_space = is_white_space(c);
  switch (state_) {
    case State::kName: {
      const bool has_ended = !captured_.empty() && is_white_space(captured_.back());
      return captured_.size() < kMaxHeaderBytes && (is_space || (!has_ended && reply::is_name_character(c)));
    }
    case State::kHeader:
    case State::kId: return captured_.size() < kMaxHeaderBytes && static_cast<unsigned char>(c) >= 0x20;
    case State::kKey: return captured_.size() < kMaxKeyBytes && c != '\n';
    default: return true;
  }
}

// Text before the mark that says what it was.
bool ReplyParser::take_captured(char c) {
  if (may_capture(c)) {
    const bool is_margin = state_ == State::kName && captured_.empty() && is_white_space(c);
    if (!is_margin) captured_ += c;
    return true;
  }
  held_.insert(held_.begin(), c);
  fail();
  return false;
}

// The state takes no text, or has a rule for any.
void ReplyParser::take_any(char c) {
  held_.insert(held_.begin(), c);
  const Rule* rule = rule_for(kAny);
  if (rule == nullptr) return fail();
  const std::string again = std::exchange(held_, {});
  if (!is_plain(state_)) written_.resize(written_.size() - again.size());
  apply(*rule, {});
  consume(again);
}

// `mark` was read; it is the end of written_ unless the state is plain.
void ReplyParser::apply(const Rule& rule, std::string_view mark) {
  if (is_plain(state_)) written_ = mark;
  State to = rule.to;
  if (!leave(rule)) return fail();
  if ((rule.effects & kRoute) != 0 && !route(to)) return fail();
  if ((rule.effects & kBegin) != 0 && !begin_call()) return fail();
  if ((rule.effects & kEnd) != 0) {
    if (std::exchange(has_parameters_, false)) message_.add_arguments("}");
    message_.end_call();
    name_.clear();
    written_.clear();
  }
  const bool is_again = (rule.effects & kAgain) != 0;
  if (is_again) written_.resize(written_.size() - mark.size());
  enter(to);
  if (is_again) consume(mark);
}

// Takes what the state captured. false: that is malformed.
bool ReplyParser::leave(const Rule& rule) {
  if (reader_ != nullptr && !is_complete_) return false;
  reader_ = nullptr;
  is_complete_ = false;
  const std::string captured = std::exchange(captured_, {});
  switch (state_) {
    case State::kHeader: header_ = captured; break;
    case State::kId: message_.set_id(reply::stripped(captured)); break;
    case State::kName: name_ = reply::stripped(captured); break;
    case State::kKey: key_ = captured; break;
    case State::kText: add_parameter(captured, false); break;
    case State::kTyped: add_parameter(captured, true); break;
    default: break;
  }
  if (rule.to == State::kNested) add_key();
  return true;
}

void ReplyParser::enter(State state) {
  const bool was_plain = is_plain(state_);
  const bool is_new_part = is_content(state) && (state_ == State::kHeader || state_ == State::kOutside);
  if (is_new_part) {
    message_.content().divide();
  } else if (is_plain(state) ? state_ != State::kStart : was_plain) {
    message_.content().mark();
  }
  if (state == State::kReasoning) message_.reasoning().divide();
  if (is_plain(state)) written_.clear();
  state_ = state;
  switch (state) {
    case State::kArguments: reader_ = make_arguments_reader(message_, *format_.syntax); break;
    case State::kObject:
    case State::kBareObject: reader_ = make_object_reader(message_, state == State::kBareObject); break;
    case State::kPython: reader_ = make_python_reader(message_); break;
    case State::kNested:
      reader_ = make_nested_reader(message_, format_.element_prefix, key_, types_.is_string(name_, key_));
      break;
    default: break;
  }
}

bool ReplyParser::begin_call() {
  std::string_view name = name_.empty() ? format_.default_name : name_;
  if (format_.name_is_id) {
    message_.set_id(name);
    const size_t colon = name.rfind(':');
    const bool is_numbered = colon != name.npos && name.find_first_not_of("0123456789", colon + 1) == name.npos;
    if (is_numbered) name = name.substr(0, colon);
  }
  if (name.starts_with(format_.name_prefix)) name.remove_prefix(format_.name_prefix.size());
  name_ = name;
  return message_.begin_call(name_);
}

// The header says where to go. false: it names a call that cannot be.
bool ReplyParser::route(State& to) {
  for (const reply::Route& route : format_.routes) {
    const size_t found = header_.find(route.word);
    if (found == std::string::npos) continue;
    to = route.to;
    if (to != State::kArguments) return true;
    const std::string_view name = std::string_view(header_).substr(found + route.word.size());
    name_ = name.substr(0, name.find_first_of(" <"));
    return begin_call();
  }
  return true;
}

void ReplyParser::add_key() {
  message_.add_arguments((has_parameters_ ? ", " : "{") + json_string(key_) + ": ");
  has_parameters_ = true;
}

void ReplyParser::add_parameter(std::string_view text, bool is_typed) {
  if (format_.has_padded_values) {
    if (text.starts_with('\n')) text.remove_prefix(1);
    if (text.ends_with('\n')) text.remove_suffix(1);
  }
  add_key();
  std::optional<std::string> json;
  const bool is_quoted = text.starts_with('"') || text.starts_with('\'');
  if (is_typed && !is_quoted && !types_.is_string(name_, key_)) {
    json = reply::value_as_json(text, reply::kJsonSyntax);
    if (!json) json = reply::value_as_json(text, *format_.syntax);
  }
  message_.add_arguments(json ? *json : json_string(text));
}

// What was written since the mark that opened it is content after all. What may begin a mark is read anew.
void ReplyParser::fail() {
  const std::string again = std::exchange(held_, {});
  std::string written = std::exchange(written_, {});
  written.resize(written.size() - again.size());
  message_.discard_call();
  reader_ = nullptr;
  is_complete_ = false;
  has_parameters_ = false;
  captured_.clear();
  name_.clear();
  state_ = State::kContent;
  message_.content().unmark();
  for (const char c : written) message_.add_content(c);
  consume(again);
}

}  // namespace mote

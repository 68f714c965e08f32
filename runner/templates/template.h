// Jinja templates as transformers renders them, within a budget. Source: transformers utils/chat_template_utils.py,
// jinja2
//
//   MOTE_ASSIGN(std::shared_ptr<const Template> parsed, Template::parse(source));
//   MOTE_ASSIGN(Rendered prompt, parsed->render({{"messages", json, true}}, {}));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runner/templates/budget.h"

namespace mote::jinja {

class Interpreter;
struct Program;
class Tokens;
class Runtime;
struct Value;
struct Text;

// Bytes [begin, end) of a text.
struct Span {
  size_t begin = 0;
  size_t end = 0;
};

struct Rendered {
  std::string text;
  std::vector<Span> marked;  // what came from marked variables; ascending, apart from each other
};

struct Variable {
  std::string_view name;
  std::string_view json;
  bool is_marked = false;  // its strings are a user's, and stay marked whatever the template does to them
};

struct RenderOptions {
  Limits limits;
  int64_t now = 0;  // seconds since 1970, for strftime_now; 0: the clock
};

inline constexpr size_t kMaxTemplateBytes = size_t{1} << 20;

// Immutable; may be used from any number of threads.
class Template {
 public:
  // Errors: kInvalidTemplate with the message that jinja2 has for it. Cost: O(source).
  static Result<std::shared_ptr<const Template>> parse(std::string_view source);
  ~Template();
  Template(const Template&) = delete;
  Template& operator=(const Template&) = delete;

  // Errors: kInvalidTemplate with the message that jinja2 raises, or that says which budget is spent or which variable
  // is no JSON. Cost: within the limits.
  Result<Rendered> render(const std::vector<Variable>& variables, const RenderOptions& options) const;

  // The same with variables that `prepare` sets, and what `finish` makes of the text. Both may throw Error.
  using Prepare = std::function<void(Interpreter&)>;
  using Finish = std::function<Text(Interpreter&, const Text&)>;
  Result<Rendered> render_with(const Prepare& prepare, const Finish& finish, const RenderOptions& options) const;

  std::string_view source() const { return source_; }

 private:
  explicit Template(std::string_view source);

  std::string source_;
  std::unique_ptr<Tokens> tokens_;
  std::unique_ptr<Program> program_;
};

}  // namespace mote::jinja

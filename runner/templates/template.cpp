#include "runner/templates/template.h"

#include <chrono>
#include <new>

#include "base/parts.h"
#include "base/utf8.h"
#include "runner/templates/interpreter.h"
#include "runner/templates/json_input.h"
#include "runner/templates/parser.h"

namespace mote::jinja {
namespace {

// Runs `body`, which may throw, and returns what it returns.
template <typename T, typename Body>
Result<T> guarded(Body body) {
  try {
    return body();
  } catch (const Error& error) { return Status(Code::kInvalidTemplate, error.message); } catch (const std::bad_alloc&) {
    return Status(Code::kOutOfMemory, "out of memory for a chat template");
  } catch (const std::exception& error) { return Status(Code::kInvalidTemplate, error.what()); }
}

Rendered rendered_of(const Text& text) {
  Rendered rendered;
  rendered.text.reserve(text.size);
  for_each_piece(text, [&](std::string_view piece, bool is_marked) {
    if (is_marked) {
      const size_t begin = rendered.text.size();
      if (!rendered.marked.empty() && rendered.marked.back().end == begin) {
        rendered.marked.back().end += piece.size();
      } else {
        rendered.marked.push_back({begin, begin + piece.size()});
      }
    }
    rendered.text += piece;
  });
  return rendered;
}

int64_t clock_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Template::Template(std::string_view source)
    : source_(source),
      tokens_(std::make_unique<Tokens>(source)),
      program_(std::make_unique<Program>(jinja::parse(*tokens_))) {}

Template::~Template() = default;

Result<std::shared_ptr<const Template>> Template::parse(std::string_view source) {
  MOTE_REQUIRE_PART("templates", Code::kInvalidTemplate);
  MOTE_REQUIRE(source.size() <= kMaxTemplateBytes, Code::kInvalidTemplate,
               "the template has %zu bytes: at most %zu are accepted", source.size(), kMaxTemplateBytes);
  const size_t valid = valid_utf8_prefix(source);
  MOTE_REQUIRE(valid == source.size(), Code::kInvalidTemplate, "the template is not UTF-8 at byte %zu", valid);
  return guarded<std::shared_ptr<const Template>>([&]() -> Result<std::shared_ptr<const Template>> {
    return std::shared_ptr<const Template>(new Template(source));
  });
}

Result<Rendered> Template::render(const std::vector<Variable>& variables, const RenderOptions& options) const {
  const auto prepare = [&](Interpreter& interpreter) {
    for (const Variable& variable : variables) {
      try {
        interpreter.set_variable(variable.name, read_json(interpreter, variable.json, variable.is_marked));
      } catch (const Error& error) { fail(std::string(variable.name) + ": " + error.message); }
    }
  };
  return render_with(prepare, {}, options);
}

Result<Rendered> Template::render_with(const Prepare& prepare, const Finish& finish,
                                       const RenderOptions& options) const {
  MOTE_REQUIRE_PART("templates", Code::kInvalidTemplate);
  return guarded<Rendered>([&]() -> Result<Rendered> {
    Interpreter interpreter(*program_, options.limits, options.now != 0 ? options.now : clock_seconds());
    prepare(interpreter);
    Text text = interpreter.run();
    if (finish) text = finish(interpreter, text);
    return rendered_of(text);
  });
}

}  // namespace mote::jinja

// Names of models: `org/name`, with `@revision`, and with `:tag` where a repository has several files.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace mote::store {

// repo: `org/name`   revision: branch, tag or commit; "": the default branch   tag: as for `choose`
struct Name {
  std::string repo, revision, tag;

  std::string model() const { return revision.empty() ? repo : repo + "@" + revision; }  // without the tag
  std::string text() const { return tag.empty() ? model() : model() + ":" + tag; }
  bool operator==(const Name&) const = default;
};

// Nothing: the text can be no name.
std::optional<Name> parse_name(std::string_view text);
// Errors: kInvalidArgument.
Result<Name> require_name(std::string_view text);
// Where the file of an URL goes: `host/folder` or `host/stem`, with the rest of the path as the tag. Nothing: it is no
// URL of HTTP with a file's name in it.
std::optional<Name> name_of_url(std::string_view url);

// The file that a tag means; nothing: none or several.
// tag: the file, its name without .mote, or a word of that in any case; "": the only file, or that of a default tag
std::optional<std::string> choose(std::span<const std::string> files, std::string_view tag);

// Whether a repository's path stays inside of a folder.
bool is_safe(std::string_view path);

std::string_view without_suffix(std::string_view text, std::string_view suffix);

// Percent-encoding of all but letters, digits, "_.-~" and `kept`; and back, what is no code staying as it is.
std::string quote(std::string_view text, std::string_view kept = "");
std::string unquote(std::string_view text);

}  // namespace mote::store

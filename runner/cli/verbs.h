// The verbs of mote-runner. Each adds its subcommand; `run` returns the exit status.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace mote::cli {

inline constexpr int kExitMismatch = 1;
inline constexpr int kExitBadInput = 2;
inline constexpr int kExitOutput = 3;  // standard output cannot be written
inline constexpr int kExitInterrupted = 130;
inline constexpr int kExitClosedPipe = 141;  // as a shell shows SIGPIPE

// What main calls after parsing: the verb that was chosen.
using Action = std::function<int()>;

void add_run(CLI::App& app, Action& action);
void add_chat(CLI::App& app, Action& action);
void add_embed(CLI::App& app, Action& action);
void add_advise(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_render(CLI::App& app, Action& action);
void add_tokenize(CLI::App& app, Action& action);

}  // namespace mote::cli

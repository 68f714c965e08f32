// Line editing by libedit (NetBSD's editline).
#include <histedit.h>
#include <langinfo.h>
#include <signal.h>
#include <unistd.h>

#include <clocale>
#include <cstring>
#include <memory>

#include "runner/cli/chat/input.h"
#include "runner/cli/interrupts.h"
#include "runner/cli/terminal.h"

namespace mote::cli {
namespace {

// libedit reads characters as the locale says.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0) return;
  for (const char* name : {"C.UTF-8", "en_US.UTF-8", "UTF-8"}) {
    if (std::setlocale(LC_CTYPE, name) != nullptr) return;
  }
}

class LineEditor : public Input {
 public:
  LineEditor(History history, std::vector<std::string> completions)
      : entries_(std::move(history)), completions_(std::move(completions)) {}
  ~LineEditor() override {
    if (edit_ != nullptr) el_end(edit_);
    if (history_ != nullptr) history_end(history_);
  }

  bool open() {
    use_utf8();
    stream_ = isatty(fileno(stdout)) != 0 ? stdout : stderr;
    edit_ = el_init("mote", stdin, stream_, stderr);
    history_ = history_init();
    if (edit_ == nullptr || history_ == nullptr) return false;
    HistEvent event{};
    history(history_, &event, H_SETSIZE, static_cast<int>(2 * History::kMaxEntries));
    for (const std::string& entry : entries_.entries()) history(history_, &event, H_ENTER, entry.c_str());
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT_ESC, &LineEditor::prompt, '\1');
    el_set(edit_, EL_HIST, ::history, history_);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_SIGNAL, 1);  // a window that changes its size, Ctrl-Z
    bind_keys();
    el_source(edit_, nullptr);  // ~/.editrc
    return true;
  }

  InputLine read_line(const std::string& prompt) override {
    prompt_ = has_colour(stream_) ? "\1\x1b[1m\1" + prompt.substr(0, 1) + "\1\x1b[0m\1" + prompt.substr(1) : prompt;
    is_interrupted_ = false;
    set_bracketed_paste(true);
    // libedit itself does this behind the prompt, and a Ctrl-D typed in between is lost.
    el_set(edit_, EL_PREP_TERM, 1);
    int count = 0;
    const char* line = el_gets(edit_, &count);
    set_bracketed_paste(false);
    if (is_interrupted_) return {InputEvent::kInterrupt, ""};
    if (line == nullptr && Interrupts::happened()) {
      std::fputc('\n', stream_);
      return {InputEvent::kInterrupt, ""};
    }
    if (line == nullptr || count <= 0) {
      std::fputc('\n', stream_);
      return {};
    }
    std::string text(line, static_cast<size_t>(count));
    if (text.ends_with('\n')) text.pop_back();
    return {InputEvent::kLine, text};
  }

  void remember(const std::string& text) override {
    entries_.add(text);
    HistEvent event{};
    if (!text.empty()) history(history_, &event, H_ENTER, text.c_str());
  }

 private:
  static LineEditor& self(EditLine* edit) {
    void* data = nullptr;
    el_get(edit, EL_CLIENTDATA, &data);
    return *static_cast<LineEditor*>(data);
  }

  static char* prompt(EditLine* edit) { return self(edit).prompt_.data(); }

  void bind_keys() {
    // While a line is edited, Ctrl-C is a key that gives the line up: libedit goes on with the line after a signal.
    el_set(edit_, EL_SETTY, "-d", "-isig", nullptr);
    // Between two lines a Ctrl-D is kept for the next one: the terminal would take it for itself.
    el_set(edit_, EL_SETTY, "-x", "eof=", nullptr);
    el_set(edit_, EL_ADDFN, "mote-give-up", "Gives the line up", &LineEditor::give_up);
    el_set(edit_, EL_ADDFN, "mote-suspend", "Suspends the process", &LineEditor::suspend);
    el_set(edit_, EL_ADDFN, "mote-paste", "Takes pasted text as it is", &LineEditor::paste);
    el_set(edit_, EL_ADDFN, "mote-complete", "Completes a command", &LineEditor::complete);
    static constexpr const char* kKeys[][2] = {
        {"^C", "mote-give-up"},        {"^Z", "mote-suspend"},       {"\\e[200~", "mote-paste"},
        {"^I", "mote-complete"},       {"^R", "em-inc-search-prev"}, {"\\e[3~", "ed-delete-next-char"},
        {"\\e[1;5D", "ed-prev-word"},  {"\\e[1;5C", "em-next-word"}, {"\\e[H", "ed-move-to-beg"},
        {"\\e[F", "ed-move-to-end"},   {"\\e[1~", "ed-move-to-beg"}, {"\\e[4~", "ed-move-to-end"},
        {"^W", "ed-delete-prev-word"},
    };
    for (const auto& [key, function] : kKeys) el_set(edit_, EL_BIND, key, function, nullptr);
  }

  void set_bracketed_paste(bool is_on) const {
    const char* term = std::getenv("TERM");
    if (term == nullptr || std::strcmp(term, "dumb") == 0) return;
    std::fputs(is_on ? "\x1b[?2004h" : "\x1b[?2004l", stream_);
    std::fflush(stream_);
  }

  static unsigned char give_up(EditLine* edit, int) {
    self(edit).is_interrupted_ = true;
    el_push(edit, "\n");
    return CC_NORM;
  }

  static unsigned char suspend(EditLine*, int) {
    raise(SIGTSTP);
    return CC_REDISPLAY;
  }

  // Up to the sequence that ends it; line breaks are part of the text.
  static unsigned char paste(EditLine* edit, int) {
    static constexpr std::string_view kEnd = "\x1b[201~";
    std::string text;
    char c = '\0';
    while (!text.ends_with(kEnd)) {
      if (el_getc(edit, &c) != 1) return CC_EOF;
      text += c == '\r' ? '\n' : c;
    }
    text.resize(text.size() - kEnd.size());
    while (text.ends_with('\n')) text.pop_back();
    if (!text.empty()) el_insertstr(edit, text.c_str());
    return CC_REFRESH;
  }

  static unsigned char complete(EditLine* edit, int) {
    const LineInfo* line = el_line(edit);
    const std::string typed(line->buffer, line->cursor);
    std::string common;
    size_t count = 0;
    for (const std::string& name : self(edit).completions_) {
      if (!name.starts_with(typed)) continue;
      size_t same = 0;
      while (same < common.size() && same < name.size() && common[same] == name[same]) ++same;
      common = count == 0 ? name : common.substr(0, same);
      ++count;
    }
    if (typed.empty() || !typed.starts_with('/') || count == 0) return CC_ERROR;
    const std::string added = common.substr(typed.size()) + (count == 1 ? " " : "");
    if (added.empty() || el_insertstr(edit, added.c_str()) != 0) return CC_ERROR;
    return CC_REFRESH;
  }

  ::History* history_ = nullptr;
  EditLine* edit_ = nullptr;
  FILE* stream_ = stdout;
  mote::cli::History entries_;
  std::vector<std::string> completions_;
  std::string prompt_;
  bool is_interrupted_ = false;
};

}  // namespace

std::unique_ptr<Input> make_line_editor(History history, const std::vector<std::string>& completions) {
  if (isatty(STDIN_FILENO) == 0) return nullptr;
  auto editor = std::make_unique<LineEditor>(std::move(history), completions);
  if (!editor->open()) return nullptr;
  return editor;
}

}  // namespace mote::cli

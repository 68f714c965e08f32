/* The C API of Mote. Every binding and the command line go through it.
 *
 * Ownership: *_open and *_begin give handles that the caller closes; a session keeps its model alive and a generation
 * its session, so they may be closed in any order. Text passed in is UTF-8, copied, and a pointer with a length; paths
 * and names are NUL-terminated, and so is a text in a struct whose length there is 0. Strings returned through `char**`
 * are NUL-terminated, which is enough for JSON, and freed with mote_string_free. Handles are numbers and no addresses:
 * one that was closed, also by another thread, or is of another kind or was never given is MOTE_ERROR_INVALID_ARGUMENT,
 * and closing it does nothing. What a handle was closed of lives until the calls on it have returned. Threads: models,
 * adapters, prefix caches, vocabularies, grammars, chat templates, prompts and beams may be used from any number of
 * threads. Sessions, generations, constraints, replies, chats and turns take one call at a time, a generation or a turn
 * and its session together: another call meanwhile, from any thread, is MOTE_ERROR_INVALID_STATE, and so is one on a
 * session that a batch continues. Only closing, mote_session_cancel, mote_generation_cancel, mote_chat_turn_cancel and
 * mote_session_position may come at any time; mote_session_cancel may be called in a signal handler. A batch: see
 * there. Errors: functions return MOTE_OK or a MOTE_ERROR_* code and, if `error` is not NULL, fill it. NULL where a
 * pointer is needed is MOTE_ERROR_INVALID_ARGUMENT. What returns no code gives what its comment says: of a handle that
 * may not be used as of NULL. Nothing aborts and no C++ exception leaves. Structs start with struct_size, set by the
 * caller to sizeof; fields are only ever added at the end. */
#ifndef MOTE_H_
#define MOTE_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define MOTE_API __declspec(dllexport)
#else
#define MOTE_API __attribute__((visibility("default")))
#endif

/* The name of an enum that has the width of int32_t, and may be given values by a newer library that are not listed
 * here: docs/decisions/0011-capi-enums.md. */
#if defined(__clang__)
#define MOTE_ENUM(name)                           \
  __attribute__((enum_extensibility(open))) name: \
  int32_t
#elif defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define MOTE_ENUM(name) \
  name:                 \
  int32_t
#else
#define MOTE_ENUM(name) name
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mote_options mote_options;
typedef struct mote_model mote_model;
typedef struct mote_session mote_session;
typedef struct mote_prefix_cache mote_prefix_cache;
typedef struct mote_adapter mote_adapter;
typedef struct mote_generation mote_generation;
/* A JSON Schema, a regular expression or a grammar compiled for a vocabulary. */
typedef struct mote_grammar mote_grammar;
typedef struct mote_batch mote_batch;
typedef struct mote_chat_template mote_chat_template;
typedef struct mote_prompt mote_prompt;
typedef struct mote_reply mote_reply;
typedef struct mote_chat mote_chat;
typedef struct mote_chat_turn mote_chat_turn;

/* 0..999 */
typedef enum MOTE_ENUM(mote_error_code) {
  MOTE_OK = 0,
  MOTE_ERROR_FILE_NOT_FOUND = 10,
  MOTE_ERROR_FILE_UNREADABLE = 11,
  MOTE_ERROR_FILE_CHANGED = 12,
  MOTE_ERROR_FILE_UNWRITABLE = 13,
  MOTE_ERROR_INVALID_PROGRAM = 20,
  MOTE_ERROR_UNSUPPORTED_VERSION = 21,
  MOTE_ERROR_UNSUPPORTED_OP = 22,
  MOTE_ERROR_INVALID_SESSION = 23,
  MOTE_ERROR_UNSUPPORTED_BACKEND = 24,
  MOTE_ERROR_INVALID_TOKENIZER = 30,
  MOTE_ERROR_TEMPLATE = 31,
  MOTE_ERROR_INVALID_ARGUMENT = 40,
  MOTE_ERROR_CONTEXT_FULL = 41,
  MOTE_ERROR_INVALID_STATE = 42, /* what the call is made on does not take it now */
  MOTE_ERROR_OUT_OF_MEMORY = 50,
  MOTE_ERROR_CANCELLED = 60,
  MOTE_ERROR_INTERNAL = 70
} mote_error_code;
/* "FILE_NOT_FOUND" for MOTE_ERROR_FILE_NOT_FOUND, "OK" for MOTE_OK; NULL for another number. */
MOTE_API const char* mote_error_name(mote_error_code code);

typedef struct {
  uint32_t struct_size;
  mote_error_code code;
  char message[1024]; /* one sentence, truncated if longer */
} mote_error;

MOTE_API const char* mote_version(void);
/* *json is an object: "version"; "commit", with "-dirty" where files differed from it, "" where it is not known;
 * "compiler", "system", "architecture"; "instruction_sets" that there are kernels for, beside code for every CPU;
 * "backends" of this build. */
MOTE_API mote_error_code mote_describe_build(char** json, mote_error* error);
MOTE_API void mote_string_free(char* text);

typedef struct {
  uint32_t struct_size;
  uint64_t peak_rss_bytes;         /* of the process */
  uint64_t peak_private_bytes;     /* anonymous memory, the most seen at any call and end of a generation; 0 where the
                                      system does not tell */
  uint64_t peak_file_backed_bytes; /* pages of mapped files, which the system can drop; likewise */
} mote_memory;

MOTE_API mote_error_code mote_get_memory(mote_memory* memory, mote_error* error);

typedef struct {
  uint32_t struct_size;
  double read_gb_s;        /* 10^9 bytes a second that the threads read from memory, caches not counted */
  double int8_gmac_s;      /* 10^9 multiply-accumulates a second of their vector units, of int8 and codes of 4 bits */
  double int8_wide_gmac_s; /* the same with codes of 8 bits, which take more instructions on some CPUs */
} mote_limits;

/* Measures what kernels are compared with, for about a second. num_threads: 0: the number of physical cores available.
 */
MOTE_API mote_error_code mote_measure_limits(int32_t num_threads, mote_limits* limits, mote_error* error);

typedef struct {
  uint32_t struct_size;
  int32_t num_threads;
  int64_t context_length;
  double prefill_tokens_per_second;
  double decode_tokens_per_second;
  uint64_t file_bytes;    /* pages of the file, which the system can drop */
  uint64_t state_bytes;   /* of the caches when the context is full */
  uint64_t working_bytes; /* of program, activations, tokenizer, and what kernels pack */
  uint64_t device_bytes;  /* memory of this device; 0: not known */
} mote_advice;

/* Predicts what the CPU of this device does with a file of which perhaps only the beginning is there, up to the end of
 * its program: some hundred kilobytes. Its instructions run on weights that stand in for its own, for some seconds.
 * options (may be NULL): those of a session. A prompt of prompt_tokens is read, and a token behind `depth` others is
 * decoded. Errors: MOTE_ERROR_INVALID_ARGUMENT naming the bytes that are missing, and where the weights are in a file
 * of their own; those of mote_model_open and mote_session_open. */
MOTE_API mote_error_code mote_advise(const char* path, const mote_options* options, int64_t prompt_tokens,
                                     int64_t depth, mote_advice* advice, mote_error* error);
/* Of bytes in memory. name: for messages. */
MOTE_API mote_error_code mote_advise_memory(const char* name, const void* beginning, size_t count,
                                            const mote_options* options, int64_t prompt_tokens, int64_t depth,
                                            mote_advice* advice, mote_error* error);

typedef enum MOTE_ENUM(mote_log_level) {
  MOTE_LOG_OFF = 0,
  MOTE_LOG_ERROR = 1,
  MOTE_LOG_INFO = 2,
  MOTE_LOG_DEBUG = 3
} mote_log_level;

/* Takes a line of a log: UTF-8 without newline, not NUL-terminated, the callback's only while it runs. It is called
 * from any thread, by several at the same time, and may call anything of this header. */
typedef void (*mote_log_sink)(void* user_data, mote_log_level level, const char* text, size_t text_bytes);
/* Called once, when a pointer that was given with it is not used any more; from any thread. */
typedef void (*mote_release)(void* user_data);

/* Lines up to `level` go to `sink` from now on, in this process and whatever MOTE_LOG says; NULL: they are printed on
 * standard error again, up to the level that the environment variable MOTE_LOG names. Lines that are being written go
 * to the sink before it, whose `release` (may be NULL) comes when they are. */
MOTE_API mote_error_code mote_set_log_sink(mote_log_level level, mote_log_sink sink, void* user_data,
                                           mote_release release, mote_error* error);

/* *json is an object: "cpu": its name, as far as it tells; "clusters": the CPUs that this process may use, those that
 * are alike together, with cpus ("0-3"), max_mhz (null: not told), identity (MIDR_EL1 of Arm, else "") and capacity
 * (work a second, of the fastest one 1024; null: not told); "cpu_features": what kernels may use; "kernels": every one
 * of this build with role, name, needs, rank, min_tokens, max_tokens (null: any) and runs_here; "choices": what was
 * chosen in this process so far, that is for the models that were opened: role, weights, min_tokens, max_tokens, kernel
 * and reason. */
MOTE_API mote_error_code mote_describe_kernels(char** json, mote_error* error);

/* ---- options ----
 *
 * What users may set has one table: mote_describe_options gives it, docs/sampling.md and docs/capi.md show it. A handle
 * of options holds what was given by name; whatever was not has the model's default. It may be used again and changed
 * between calls, and belongs to one thread at a time while it is changed. */

/* What an option belongs to. */
typedef enum MOTE_ENUM(mote_option_scope) {
  MOTE_SCOPE_GENERATION = 1,  /* mote_generation_begin, mote_chat_reply, mote_batch_add, ... */
  MOTE_SCOPE_BEAM_SEARCH = 2, /* mote_session_beam_search, which also takes those of a generation */
  MOTE_SCOPE_SESSION = 4,     /* mote_session_open, mote_batch_open */
  MOTE_SCOPE_MODEL = 8        /* mote_model_open, ... */
} mote_option_scope;

/* *json is a list of objects, one an option: "name"; "other_names", by which other software knows the same and which
 * are taken everywhere; "scope": generation, beam_search, session or model; "type": flag,
 * integer, number, choice, text, texts, token_ids, tokens (texts or ids), token_id_lists or biases; "choices" of a
 * choice; "minimum" and "maximum", null where there is none; "default", null for none; "unit"; "asks_for_sampling":
 * whether giving it turns sampling on; "accepted" and "help" in words. */
MOTE_API mote_error_code mote_describe_options(char** json, mote_error* error);
/* scopes: a sum of MOTE_SCOPE_*; options of others are refused. */
MOTE_API mote_error_code mote_options_open(int32_t scopes, mote_options** out, mote_error* error);
MOTE_API void mote_options_close(mote_options* options);
/* ("top_p", "0.9"), ("stop_strings", "[\"###\"]"): lists are JSON. NULL: as if it had never been given. Errors:
 * MOTE_ERROR_INVALID_ARGUMENT with the name, the value and what would be accepted. */
MOTE_API mote_error_code mote_options_set(mote_options* options, const char* name, const char* value,
                                          mote_error* error);
/* An object of values by name, such as {"top_p": 0.9}; null: as if it had never been given. After an error nothing has
 * changed. */
MOTE_API mote_error_code mote_options_set_json(mote_options* options, const char* json, size_t json_bytes,
                                               mote_error* error);
/* What generated text is to follow, compiled for the model's own vocabulary; in the place of json_schema, regex and
 * grammar. NULL: none. */
MOTE_API mote_error_code mote_options_set_grammar(mote_options* options, const mote_grammar* grammar,
                                                  mote_error* error);
/* Where sessions look when a text begins. NULL: nowhere. */
MOTE_API mote_error_code mote_options_set_prefix_cache(mote_options* options, mote_prefix_cache* cache,
                                                       mote_error* error);
/* Told how much of the opening of a model is done, 0..1 and never less than before, by the thread that opens it. Not 0
 * ends it with MOTE_ERROR_CANCELLED, and nothing is left behind. */
typedef int32_t (*mote_progress)(void* user_data, double fraction);
/* NULL: none. */
MOTE_API mote_error_code mote_options_set_progress(mote_options* options, mote_progress on_progress, void* user_data,
                                                   mote_error* error);
/* *json is an object of all options of the handle's scopes with what was given, else the default of the model (NULL: of
 * any); null where there is none. */
MOTE_API mote_error_code mote_options_values(const mote_options* options, const mote_model* model, char** json,
                                             mote_error* error);
/* Whether a generation of the model takes them. Errors: what mote_generation_begin would say of them. */
MOTE_API mote_error_code mote_options_check(const mote_options* options, const mote_model* model, mote_error* error);

/* ---- model ---- */

/* Maps or reads, verifies and binds a .mote file. Mapped weights are not read; the tokenizer is when it is first
 * needed, and if it is bad that call returns MOTE_ERROR_INVALID_TOKENIZER. options may be NULL: the defaults.
 *
 * A mapped file that is changed in place, or becomes shorter, makes this and later calls return
 * MOTE_ERROR_FILE_CHANGED; one that is replaced by another (rename) or removed is used as it was. For that the first
 * model that is mapped installs a handler of SIGBUS in the process, which passes on what is not about a file of Mote's
 * to the handler that was there; one that is installed later must do the same. With the option sigbus_handler = false
 * nothing is installed, and a file that becomes shorter while a call reads it ends the process. */
MOTE_API mote_error_code mote_model_open(const char* path, const mote_options* options, mote_model** out,
                                         mote_error* error);
/* The same for a part of a regular file that is open for reading, such as an asset of a package: `length` bytes (-1: to
 * the end) from `offset` on. The file's position is not used, and the descriptor may be closed after the call. A part
 * that does not begin at a multiple of 64 bytes is read instead of mapped. Without a path there is no place beside the
 * file where a backend could keep what it packs: it does that in memory, unless there is a cache_dir. */
MOTE_API mote_error_code mote_model_open_fd(int32_t fd, int64_t offset, int64_t length, const mote_options* options,
                                            mote_model** out, mote_error* error);
/* The same for bytes in memory. Those that begin at a multiple of 64 are used where they are and must not change,
 * unless mmap = false asks for a copy; the others are copied. `release` (may be NULL) is called with `owner` when the
 * bytes are not used any more: with the model and all that was opened with it closed, or before this returns if they
 * were copied or it fails. */
MOTE_API mote_error_code mote_model_open_memory(const void* data, size_t bytes, mote_release release, void* owner,
                                                const mote_options* options, mote_model** out, mote_error* error);
MOTE_API void mote_model_close(mote_model* model);

typedef struct {
  uint32_t struct_size;
  int32_t vocab_size;
  int32_t max_position_embeddings;
  int32_t bos_token_id; /* -1: none */
  int32_t has_tokenizer;
  int32_t has_chat_template;
  uint64_t file_bytes;
  uint64_t weight_bytes;
  int32_t generates; /* text: sessions can be opened */
  int32_t embeds;    /* texts: embedders can */
} mote_model_info;

MOTE_API mote_error_code mote_model_get_info(const mote_model* model, mote_model_info* info, mote_error* error);
/* Everything that `mote inspect` prints, as a JSON object. */
MOTE_API mote_error_code mote_model_describe(const mote_model* model, char** json, mote_error* error);
/* The same of a file that need not work on this device: "target" is null if it does not, and "targets" says why. */
MOTE_API mote_error_code mote_describe_file(const char* path, char** json, mote_error* error);
/* The chat template, or "" if the file has none; as for mote_detokenize. */
MOTE_API mote_error_code mote_model_chat_template(const mote_model* model, char** text, size_t* text_bytes,
                                                  mote_error* error);
/* generation_config.json of the checkpoint, with eos_token_id always a list. */
MOTE_API mote_error_code mote_model_generation_config(const mote_model* model, char** json, mote_error* error);
/* Checks the checksums of all segments. */
MOTE_API mote_error_code mote_model_check_segments(const mote_model* model, mote_error* error);
/* Gives the memory of the mapped file back to the system, which reads pages again when a call needs them: for an app
 * that leaves the screen. Sessions keep their caches, and may run meanwhile. */
MOTE_API mote_error_code mote_model_release_pages(const mote_model* model, mote_error* error);

/* ---- adapters ----
 *
 * What a .mote-adapter file adds to the weights of the model that it was made for (docs/adapters.md). Sessions mix
 * adapters by weight; the option `adapters` of a session names files instead. */

/* Reads a file into memory, unless something uses it already, and checks all of it. weight: NULL, and `path` is one; or
 * where the weight goes of a `path` that may have the form FILE=WEIGHT (1 where it has none). Errors:
 * MOTE_ERROR_INVALID_ARGUMENT for an adapter of another base, MOTE_ERROR_INVALID_PROGRAM for a file that is damaged or
 * does not fit, MOTE_ERROR_UNSUPPORTED_BACKEND where a backend reads the weights: load the model for the backend cpu.
 */
MOTE_API mote_error_code mote_adapter_open(const mote_model* model, const char* path, float* weight, mote_adapter** out,
                                           mote_error* error);
/* Sessions keep theirs. */
MOTE_API void mote_adapter_close(mote_adapter* adapter);
/* *json is an object: "name" of the file without folder and ending, "path", "bytes" of memory. */
MOTE_API mote_error_code mote_adapter_describe(const mote_adapter* adapter, char** json, mote_error* error);

/* ---- tokenizer ---- */

/* 0 if the text of this tokenizer.json is one that a .mote file may hold, else MOTE_ERROR_INVALID_TOKENIZER and why. */
MOTE_API mote_error_code mote_tokenizer_check(const char* json, size_t json_bytes, mote_error* error);

/* Writes up to `capacity` ids and sets *count to the number there are; call again with more room if it is larger.
 * parse_special: special tokens spelled in the text become their ids; add_special: BOS and such as the tokenizer asks.
 * Ill-formed UTF-8 is read as U+FFFD. */
MOTE_API mote_error_code mote_tokenize(const mote_model* model, const char* text, size_t text_bytes,
                                       int32_t add_special, int32_t parse_special, int32_t* ids, size_t capacity,
                                       size_t* count, mote_error* error);
/* *text is NUL-terminated; text_bytes (may be NULL) counts without that NUL, for text that has NULs of its own. */
MOTE_API mote_error_code mote_detokenize(const mote_model* model, const int32_t* ids, size_t count,
                                         int32_t skip_special, char** text, size_t* text_bytes, mote_error* error);

/* ---- chat templates ---- */

/* Parses a Jinja template, at most 1 MiB of UTF-8. It may be used from any number of threads. Errors:
 * MOTE_ERROR_TEMPLATE with the message that jinja2 has for it. */
MOTE_API mote_error_code mote_chat_template_open(const char* source, size_t source_bytes, mote_chat_template** out,
                                                 mote_error* error);
MOTE_API void mote_chat_template_close(mote_chat_template* chat_template);

typedef struct {
  uint32_t struct_size;
  int32_t add_generation_prompt;
  const char* messages;  /* a JSON list of objects */
  const char* tools;     /* likewise; NULL: none */
  const char* documents; /* likewise; NULL: none */
  const char* variables; /* a JSON object: further variables of the template, such as enable_thinking or bos_token;
                            NULL: none */
  const char* continue_final_message; /* the last message's field that the model is to go on with, such as "content";
                                         NULL: none */
  size_t messages_bytes;              /* of the texts; 0: up to a NUL */
  size_t tools_bytes;
  size_t documents_bytes;
  size_t variables_bytes;
} mote_conversation;

/* Renders as transformers' apply_chat_template does. Errors: MOTE_ERROR_TEMPLATE with the message that jinja2 or
 * transformers has for it, or because the rendering took more than 10^6 steps, 64 MB of memory, 16 MiB of output or a
 * depth of 64. */
MOTE_API mote_error_code mote_chat_template_render(const mote_chat_template* chat_template,
                                                   const mote_conversation* conversation, mote_prompt** out,
                                                   mote_error* error);
MOTE_API void mote_prompt_close(mote_prompt* prompt);
/* NUL-terminated; lives as long as the prompt. text_bytes may be NULL. */
MOTE_API mote_error_code mote_prompt_text(const mote_prompt* prompt, const char** text, size_t* text_bytes,
                                          mote_error* error);
/* Writes up to `capacity` pairs begin, end: the bytes of the text that came from messages, tools and documents, in
 * order. *count is the number of pairs there are. */
MOTE_API mote_error_code mote_prompt_user_text(const mote_prompt* prompt, size_t* pairs, size_t capacity, size_t* count,
                                               mote_error* error);

/* As mote_tokenize with parse_special and without add_special, except that a special token that the conversation spells
 * is text. */
MOTE_API mote_error_code mote_prompt_tokenize(const mote_model* model, const mote_prompt* prompt, int32_t* ids,
                                              size_t capacity, size_t* count, mote_error* error);
/* With the model's own template, parsed when it is first needed; MOTE_ERROR_INVALID_ARGUMENT if the file has none. It
 * sees the model's bos_token and eos_token, unless conversation->variables name them. */
MOTE_API mote_error_code mote_model_render(const mote_model* model, const mote_conversation* conversation,
                                           mote_prompt** out, mote_error* error);

/* ---- replies ---- */

typedef struct {
  uint32_t struct_size;
  const char* format;        /* how the model writes, a name of mote_reply_formats; NULL: recognised by chat_template */
  const char* chat_template; /* the source of the model's chat template; NULL: none, the reply is text */
  const char* prompt; /* what the reply follows, or its last 4 kB: it may have begun the reasoning; NULL: not known */
  const char*
      tools; /* those of the conversation, a JSON list: parameters that are strings stay strings; NULL: not known */
  size_t chat_template_bytes; /* of the texts; 0: up to a NUL */
  size_t prompt_bytes;
  size_t tools_bytes;
} mote_reply_options;

/* *json is a list of the formats' names. */
MOTE_API mote_error_code mote_reply_formats(char** json, mote_error* error);
/* Begins to read a reply. A reply belongs to one thread at a time. Errors: MOTE_ERROR_INVALID_ARGUMENT naming the
 * option. */
MOTE_API mote_error_code mote_reply_open(const mote_reply_options* options, mote_reply** out, mote_error* error);
/* The same with the model's own chat template where `options` (may be NULL) names none. */
MOTE_API mote_error_code mote_model_reply_open(const mote_model* model, const mote_reply_options* options,
                                               mote_reply** out, mote_error* error);
MOTE_API void mote_reply_close(mote_reply* reply);
/* The format that was chosen; lives as long as the process. */
MOTE_API mote_error_code mote_reply_format(const mote_reply* reply, const char** name, mote_error* error);
/* Reads a piece of text of any length, with special tokens spelled out, 16 MiB in all. */
MOTE_API mote_error_code mote_reply_push(mote_reply* reply, const char* text, size_t text_bytes, mote_error* error);
/* The reply is over: what was held back, because it might have become a mark, gets its events. Nothing if called again.
 */
MOTE_API mote_error_code mote_reply_finish(mote_reply* reply, mote_error* error);

typedef enum MOTE_ENUM(mote_reply_event_kind) {
  MOTE_REPLY_NONE = 0,           /* there is nothing until more is pushed */
  MOTE_REPLY_CONTENT = 1,        /* text: what was added */
  MOTE_REPLY_REASONING = 2,      /* likewise */
  MOTE_REPLY_CALL_BEGIN = 3,     /* text: the tool's name; id: the call's, or "" */
  MOTE_REPLY_CALL_ARGUMENTS = 4, /* text: a piece of the arguments as JSON */
  MOTE_REPLY_CALL_END = 5,       /* id: likewise */
  MOTE_REPLY_CALL_DISCARDED = 6  /* the call that was begun is malformed: what was written of it follows as content */
} mote_reply_event_kind;

typedef struct {
  uint32_t struct_size;
  mote_reply_event_kind kind;
  int32_t call_index; /* from 0; the call after one that was discarded has its index */
  const char* text;   /* whole UTF-8 characters, NUL-terminated; lives until the next call on the reply */
  size_t text_bytes;
  const char* id; /* likewise */
} mote_reply_event;

/* Takes the oldest event that was not taken yet. */
MOTE_API mote_error_code mote_reply_next_event(mote_reply* reply, mote_reply_event* event, mote_error* error);
/* What was read so far as a JSON object: "role", "content", "reasoning_content" if there is any, "tool_calls" if there
 * are any:
 * [{"type": "function", "id": .., "function": {"name": .., "arguments": {..}}}], with an id where the model wrote one.
 * It can be appended to the messages of the conversation. */
MOTE_API mote_error_code mote_reply_message(const mote_reply* reply, char** json, mote_error* error);

/* ---- session ---- */

/* Keeps what sessions have computed of texts of at least 16 tokens, up to max_bytes, for other sessions whose text
 * begins alike: after such a prefill, when a session goes to another text, and when a session and all that was begun on
 * it are closed. What is used by several is one memory. It may be given to sessions of any models and used from any
 * number of threads; it lives until it is closed and so are the sessions that were opened with it. */
MOTE_API mote_error_code mote_prefix_cache_open(uint64_t max_bytes, mote_prefix_cache** out, mote_error* error);
MOTE_API void mote_prefix_cache_close(mote_prefix_cache* cache);
MOTE_API mote_error_code mote_prefix_cache_clear(mote_prefix_cache* cache, mote_error* error);

typedef struct {
  uint32_t struct_size;
  uint64_t bytes;    /* memory that it holds; sessions may use the same */
  int64_t snapshots; /* texts that it knows */
  int64_t hits;      /* look-ups that found something, and that did not */
  int64_t misses;
  int64_t reused_tokens; /* that were not computed again */
} mote_prefix_cache_info;

MOTE_API mote_error_code mote_prefix_cache_get_info(const mote_prefix_cache* cache, mote_prefix_cache_info* info,
                                                    mote_error* error);

/* options may be NULL: the defaults. */
MOTE_API mote_error_code mote_session_open(mote_model* model, const mote_options* options, mote_session** out,
                                           mote_error* error);
MOTE_API void mote_session_close(mote_session* session);
/* Appends `count` ids (at least 1), in chunks. logits: NULL, or room for vocab_size floats (those after the last id).
 */
MOTE_API mote_error_code mote_session_prefill(mote_session* session, const int32_t* ids, size_t count, float* logits,
                                              mote_error* error);
/* The same without the logits; no ids: nothing is done. */
MOTE_API mote_error_code mote_session_append(mote_session* session, const int32_t* ids, size_t count,
                                             mote_error* error);
/* As mote_tokenize for a text that the session goes on with: BOS and such, as the tokenizer asks, only at its start. */
MOTE_API mote_error_code mote_session_tokenize(mote_session* session, const char* text, size_t text_bytes,
                                               int32_t parse_special, int32_t* ids, size_t capacity, size_t* count,
                                               mote_error* error);
/* Appends the ids that mote_session_tokenize gives. */
MOTE_API mote_error_code mote_session_append_text(mote_session* session, const char* text, size_t text_bytes,
                                                  int32_t parse_special, mote_error* error);
/* Makes `ids` (at least 1) the tokens of the session: what it has of them from the first on is kept, what it has beyond
 * is forgotten, the rest is computed. *kept (may be NULL): how many were not computed. */
MOTE_API mote_error_code mote_session_set_tokens(mote_session* session, const int32_t* ids, size_t count, int64_t* kept,
                                                 mote_error* error);
/* Goes back or forth to the longest beginning of a text, but for its last id, that the session has or its prefix cache:
 * to go on with the text then costs the ids from *kept on. Computes nothing else. */
MOTE_API mote_error_code mote_session_rewind_to_prefix(mote_session* session, const int32_t* ids, size_t count,
                                                       int64_t* kept, mote_error* error);
/* As mote_session_set_tokens, for the prompt of a conversation, rendered with the model's chat template: a turn costs
 * what is new in it. */
MOTE_API mote_error_code mote_session_append_messages(mote_session* session, const mote_conversation* conversation,
                                                      int64_t* kept, mote_error* error);
/* Those after the last id: vocab_size floats. Errors: MOTE_ERROR_INVALID_ARGUMENT at position 0. */
MOTE_API mote_error_code mote_session_logits(mote_session* session, float* logits, mote_error* error);
MOTE_API mote_error_code mote_session_decode(mote_session* session, int32_t id, float* logits, mote_error* error);
/* Appends ids and gives the logits after each: count * vocab_size floats. */
MOTE_API mote_error_code mote_session_verify(mote_session* session, const int32_t* ids, size_t count, float* logits,
                                             mote_error* error);
/* Appends ids and gives ln P(ids[i + 1] | everything before), by the model's own distribution: count - 1 floats. */
MOTE_API mote_error_code mote_session_score(mote_session* session, const int32_t* ids, size_t count, float* logprobs,
                                            mote_error* error);

typedef struct {
  uint32_t struct_size;
  int32_t context_length;
  int32_t num_threads;
  int64_t position;          /* tokens so far */
  uint64_t state_bytes;      /* of the caches when the context is full */
  uint64_t arena_bytes;      /* activations and scratch */
  uint64_t held_state_bytes; /* of the caches as far as tokens have reached, in pages of 256 of them; those that other
                                sessions share are counted in each */
  int64_t forgotten_tokens;  /* by overflow = shift */
} mote_session_info;

MOTE_API mote_error_code mote_session_get_info(const mote_session* session, mote_session_info* info, mote_error* error);
/* At any time and from any thread, so that a long call can be watched; -1 if session is NULL. */
MOTE_API int64_t mote_session_position(const mote_session* session);
/* From now on the session computes with `count` adapters, each multiplied by its weight (NULL: 1); none: the model
 * alone. Where that is another mix than before, its tokens stay and the next call computes them again. Errors:
 * MOTE_ERROR_INVALID_ARGUMENT for an adapter of another model or a weight that is no finite number. */
MOTE_API mote_error_code mote_session_set_adapters(mote_session* session, const mote_adapter* const* adapters,
                                                   const float* weights, size_t count, mote_error* error);
/* Forgets every position. */
MOTE_API mote_error_code mote_session_reset(mote_session* session, mote_error* error);
/* Goes back to the first `position` ids, and the next call goes on from there. What a sliding window or a recurrent
 * state no longer holds is computed again. */
MOTE_API mote_error_code mote_session_rewind(mote_session* session, int64_t position, mote_error* error);
/* From now on this one of the model file's "targets" (mote_model_describe) computes: "cpu", "vulkan", ... Tokens and
 * position stay. Keys and values go along where both can read them, else the next call computes the tokens again. The
 * first move to a target loads it, over the same weights. A session also moves to "cpu" by itself, and its text goes
 * on, where a backend fails and the file has that target. Errors: MOTE_ERROR_INVALID_ARGUMENT naming the targets that
 * there are, and for a session of a batch; MOTE_ERROR_UNSUPPORTED_BACKEND, also where the session has adapters and
 * backends read the weights; none changes the session. */
MOTE_API mote_error_code mote_session_move_to(mote_session* session, const char* backend, mote_error* error);
/* *backend: the target that computes. *moved_because, unless that is NULL: why the session left another one by itself,
 * in one sentence; "": it did not. Both are strings for mote_string_free. */
MOTE_API mote_error_code mote_session_get_backend(const mote_session* session, char** backend, char** moved_because,
                                                  mote_error* error);
/* The ids at all positions: *count of them, of which at most `capacity` are written to `ids`. */
MOTE_API mote_error_code mote_session_tokens(const mote_session* session, int32_t* ids, size_t capacity, size_t* count,
                                             mote_error* error);
/* A session of its own with the same options and tokens. What they have in common stays one memory. */
MOTE_API mote_error_code mote_session_fork(const mote_session* session, mote_session** out, mote_error* error);
/* Writes tokens and caches to a file, whole or not at all, for its owner only. */
MOTE_API mote_error_code mote_session_save(const mote_session* session, const char* path, mote_error* error);
/* Goes on from a saved session of the same model file. Where kv_dtype, or prefill_chunk of a model with sliding
 * windows, differ from those it was saved with, its tokens are computed again. Errors: MOTE_ERROR_INVALID_SESSION,
 * MOTE_ERROR_CONTEXT_FULL and those of reading, which leave the session as it was. */
MOTE_API mote_error_code mote_session_restore(mote_session* session, const char* path, mote_error* error);
/* From any thread: the running or next call on the session returns MOTE_ERROR_CANCELLED as soon as it can. */
MOTE_API void mote_session_cancel(mote_session* session);
/* Takes back a cancel that no call has reported, such as one that came while the last call returned. Not during another
 * call on the session. */
MOTE_API void mote_session_forget_cancel(mote_session* session);

/* Gives the session a smaller model that proposes tokens (docs/speculative-decoding.md), with caches of its own; NULL
 * takes it away. Errors: MOTE_ERROR_INVALID_ARGUMENT if its tokens are others, naming the first difference, or it keeps
 * recurrent states. */
MOTE_API mote_error_code mote_session_set_draft_model(mote_session* session, mote_model* draft_model,
                                                      mote_error* error);

/* Replays the golden samples, resetting the session before and after; *report is a JSON object
 * {"samples": [...], "passed": bool}. Samples that do not pass are no error. */
MOTE_API mote_error_code mote_session_check_golden(mote_session* session, char** report, mote_error* error);

/* From now on every instruction is measured, at the cost of 7 MB and two looks at the clock; starting anew forgets. */
MOTE_API mote_error_code mote_session_start_profile(mote_session* session, mote_error* error);
/* Ends that. *trace is a JSON object that chrome://tracing and Perfetto open: "traceEvents" has an event with
 * args.tokens for each call of a method, and inside of it one for each instruction, named as its op, with
 * args.instruction, args.origin (its place in the Hugging Face module), args.bytes and args.macs. "otherData": model,
 * threads, forgotten_calls and forgotten_instructions, which are more than 0 when the oldest made room for new ones. */
MOTE_API mote_error_code mote_session_stop_profile(mote_session* session, char** trace, mote_error* error);

/* What an instruction has computed. All of it is the callback's only while it runs. */
typedef struct {
  uint32_t struct_size;
  int32_t method;      /* its place in "methods" of mote_model_describe */
  int32_t instruction; /* in "instructions" of the method */
  int32_t output;      /* in "outputs" of the instruction */
  const char* dtype;   /* as there, such as "float32" */
  const int64_t* shape;
  size_t rank;
  void* data; /* row-major; what is written here takes the place of the value, but for that of a view */
  size_t bytes;
} mote_value;
/* Comes from the thread that called the session, after each instruction. Not 0 ends the call with MOTE_ERROR_CANCELLED.
 */
typedef int32_t (*mote_value_sink)(void* user_data, const mote_value* value);

/* From now on `sink` gets what every instruction computes, views too but for expanded ones; NULL: nobody does, at no
 * cost. Of a part that a backend runs there is what leaves it only, and nothing of what a batch computes for the
 * session. The sink makes no calls on the session. `release` as for mote_set_log_sink. */
MOTE_API mote_error_code mote_session_set_value_sink(mote_session* session, mote_value_sink sink, void* user_data,
                                                     mote_release release, mote_error* error);

/* ---- grammars ---- */

/* Keeps a copy of the tokens of a model, or of other tokens, as bytes. */
typedef struct mote_vocabulary mote_vocabulary;
/* How far one text has come in a grammar. */
typedef struct mote_constraint mote_constraint;

/* Vocabularies and grammars keep what they are made of, and may be used from any number of threads. A constraint
 * belongs to one thread at a time. Errors: MOTE_ERROR_INVALID_ARGUMENT if the model has no tokenizer, or one whose
 * tokens have no bytes of their own. */
MOTE_API mote_error_code mote_model_vocabulary(const mote_model* model, mote_vocabulary** out, mote_error* error);
/* tokens[i]: the token_bytes[i] bytes of id i; none: a token that no grammar allows, such as a special token. */
MOTE_API mote_error_code mote_vocabulary_open(const char* const* tokens, const size_t* token_bytes, size_t count,
                                              const int32_t* eos_ids, size_t num_eos_ids, mote_vocabulary** out,
                                              mote_error* error);
MOTE_API void mote_vocabulary_close(mote_vocabulary* vocabulary);

typedef enum MOTE_ENUM(mote_syntax) {
  MOTE_SYNTAX_JSON_SCHEMA = 0,
  MOTE_SYNTAX_REGEX = 1,
  MOTE_SYNTAX_GBNF = 2,
  MOTE_SYNTAX_LARK = 3
} mote_syntax;
typedef enum MOTE_ENUM(mote_json_whitespace) {
  MOTE_JSON_WHITESPACE_FLEXIBLE = 0,
  MOTE_JSON_WHITESPACE_COMPACT = 1,
  MOTE_JSON_WHITESPACE_SPACED = 2
} mote_json_whitespace;

/* Asked now and then by the thread that compiles a grammar. Not 0 ends its call with MOTE_ERROR_CANCELLED. */
typedef int32_t (*mote_is_cancelled)(void* user_data);

typedef struct {
  uint32_t struct_size;
  mote_syntax syntax;
  const char* source; /* at most 1 MiB */
  size_t source_bytes;
  mote_json_whitespace json_whitespace; /* between the parts of JSON */
  mote_is_cancelled is_cancelled;       /* NULL: nobody is asked */
  void* user_data;                      /* for is_cancelled */
} mote_grammar_options;

/* Compiles, or takes what a model keeps: the last 32 that were compiled for its own vocabulary. Steps and bytes are
 * counted and bounded, see docs/constrained-output.md. Errors: MOTE_ERROR_INVALID_ARGUMENT with the place and what is
 * not supported or too large; MOTE_ERROR_CANCELLED. */
MOTE_API mote_error_code mote_grammar_open(const mote_vocabulary* vocabulary, const mote_grammar_options* options,
                                           mote_grammar** out, mote_error* error);
/* Generations and constraints keep theirs. */
MOTE_API void mote_grammar_close(mote_grammar* grammar);

/* At the beginning of a text. For logits of one's own: mask, draw an allowed id, accept it. */
MOTE_API mote_error_code mote_constraint_open(const mote_grammar* grammar, mote_constraint** out, mote_error* error);
/* Cheap: to try tokens and go back is to keep a copy. */
MOTE_API mote_error_code mote_constraint_copy(const mote_constraint* constraint, mote_constraint** out,
                                              mote_error* error);
MOTE_API void mote_constraint_close(mote_constraint* constraint);
/* Fills (tokens + 31) / 32 words: bit id % 32 of word id / 32 tells whether the token may come next. */
MOTE_API mote_error_code mote_constraint_mask(const mote_constraint* constraint, uint32_t* words, size_t num_words,
                                              mote_error* error);
/* Errors: MOTE_ERROR_INVALID_ARGUMENT for a token that may not come, and nothing changes. */
MOTE_API mote_error_code mote_constraint_accept(mote_constraint* constraint, int32_t id, mote_error* error);

typedef struct {
  uint32_t struct_size;
  int32_t may_end;      /* the text so far is one of the grammar */
  int32_t is_complete;  /* nothing but its end may follow */
  int32_t forced_token; /* what a generation takes next without the model; -1: there is a choice */
  int32_t num_tokens;   /* of the vocabulary */
} mote_constraint_info;

MOTE_API mote_error_code mote_constraint_get_info(const mote_constraint* constraint, mote_constraint_info* info,
                                                  mote_error* error);

/* ---- generation ---- */

typedef enum MOTE_ENUM(mote_finish_reason) {
  MOTE_FINISH_NONE = -1, /* not finished */
  MOTE_FINISH_EOS = 0,
  MOTE_FINISH_LENGTH = 1,
  MOTE_FINISH_STOP_STRING = 2,
  MOTE_FINISH_CANCELLED = 3,
  MOTE_FINISH_STOP_TOKEN = 4,
  MOTE_FINISH_TIME = 5
} mote_finish_reason;
/* "stop_string" for MOTE_FINISH_STOP_STRING; NULL for MOTE_FINISH_NONE and other numbers. */
MOTE_API const char* mote_finish_reason_name(mote_finish_reason reason);

typedef struct {
  int32_t id;
  float logprob;
} mote_token_logprob;

typedef struct {
  uint32_t struct_size;
  int32_t id;        /* the token that was sampled; -1: none */
  const char* text;  /* whole UTF-8 characters, NUL-terminated; lives until the next call on the generation */
  size_t text_bytes; /* may be 0: text is held back while a character or a stop string may go on */
  int32_t finished;  /* 1: the last piece */
  mote_finish_reason finish_reason;
  float logprob; /* of the token, natural logarithm; 0 unless options.logprobs or options.top_logprobs */
  const mote_token_logprob* top_logprobs; /* likeliest first; lives until the next call on the generation */
  size_t num_top_logprobs;
} mote_piece;

typedef struct {
  uint32_t struct_size;
  mote_finish_reason finish_reason;
  int64_t prompt_tokens;
  int64_t generated_tokens;
  double prefill_seconds;
  double decode_seconds; /* after the first token */
  double time_to_first_token_seconds;
  uint64_t peak_rss_bytes;     /* of the process */
  uint64_t peak_private_bytes; /* anonymous memory of the process, 0 where the system does not tell */
  int64_t forced_tokens;       /* of those generated: the grammar left no choice, and the model was not run for them */
  int64_t proposed_tokens;     /* that were verified in the model's calls, beside the tokens themselves */
  int64_t accepted_tokens;     /* of them, those that were generated */
  int64_t num_drafts;          /* calls that verified proposed tokens */
  double mean_run_length; /* tokens that such a call gave: the accepted ones and the one behind; 0: there was none */
  double speculative_speed_up; /* of decoding, by the measured cost of a call without proposals; 1: none were made */
  const char* speculative_off_reason; /* why none were made; lives as long as the process; NULL: they may be */
} mote_statistics;

/* Checks prompt and options (NULL: the model's defaults); computes nothing yet. No ids: goes on from what the session
 * has. */
MOTE_API mote_error_code mote_generation_begin(mote_session* session, const int32_t* ids, size_t count,
                                               const mote_options* options, mote_generation** out, mote_error* error);
/* The first call prefills the prompt, each one samples a token. A cancelled session ends the generation with
 * MOTE_FINISH_CANCELLED, which is no error. After the last piece the calls give empty ones that are finished. Errors:
 * also MOTE_ERROR_INVALID_STATE if calls on the session, or another generation of it, may have changed its tokens since
 * the last piece, and after MOTE_ERROR_OUT_OF_MEMORY came half-way through a piece; the session then goes on from what
 * mote_session_tokens gives. */
MOTE_API mote_error_code mote_generation_next(mote_generation* generation, mote_piece* piece, mote_error* error);
/* From any thread, before mote_generation_end: the running or next call of mote_generation_next ends the generation
 * with MOTE_FINISH_CANCELLED. The session keeps what it had before that call (of a prompt: the whole chunks that it
 * read), and what follows on it is as it would have been. Does nothing to a generation that has ended. */
MOTE_API void mote_generation_cancel(mote_generation* generation);
MOTE_API mote_error_code mote_generation_statistics(const mote_generation* generation, mote_statistics* statistics,
                                                    mote_error* error);
/* May be called before the last piece. */
MOTE_API void mote_generation_end(mote_generation* generation);

/* ---- batch ----
 *
 * Sequences that decode together: a step reads the weights once for all of them, and each gets what it would get alone,
 * to the bit. Sequences join and end at any step. mote_batch_add, _cancel and _num_sequences may be called from any
 * thread, also during a step; the rest of a batch takes one call at a time. */

/* max_sequences: that are computed at the same time, 1..256, 0: 16; more wait for their turn. options (NULL: the
 * defaults): of sequences without a session of their own; threads, cpus and priority are the batch's. Errors: also
 * MOTE_ERROR_UNSUPPORTED_OP naming the instruction of a program whose tokens depend on each other otherwise than
 * through their caches. */
MOTE_API mote_error_code mote_batch_open(mote_model* model, int32_t max_sequences, const mote_options* options,
                                         mote_batch** out, mote_error* error);
/* Its sequences end here, or when a call that runs has returned; those of mote_session_set_batch are cancelled. */
MOTE_API void mote_batch_close(mote_batch* batch);
/* A new sequence, which the next steps compute; computes nothing itself. session: what the sequence continues, with its
 * own context_length and kv_dtype; it may be closed, but has no other calls until its sequence's last piece. NULL: a
 * new one. *sequence is its number, counted up from 0. Errors: those of mote_session_open and mote_generation_begin. A
 * call on a session that is in a batch gives MOTE_ERROR_INVALID_STATE. */
MOTE_API mote_error_code mote_batch_add(mote_batch* batch, mote_session* session, const int32_t* ids, size_t count,
                                        const mote_options* options, int64_t* sequence, mote_error* error);
/* The same with a fork of the session, which computes with the batch's threads: several samples from one prefill. Not
 * during another call on the session. */
MOTE_API mote_error_code mote_batch_add_fork(mote_batch* batch, const mote_session* session, const int32_t* ids,
                                             size_t count, const mote_options* options, int64_t* sequence,
                                             mote_error* error);
/* The sequence's next piece is its last, finished with MOTE_FINISH_CANCELLED: a chunk of its prompt that is being
 * computed stops as soon as it can, a step of all goes to its end. Nothing happens if it is over. */
MOTE_API void mote_batch_cancel(mote_batch* batch, int64_t sequence);
/* Sequences that are not over; -1 if batch is NULL. */
MOTE_API int64_t mote_batch_num_sequences(const mote_batch* batch);
/* A chunk of one prompt, if a sequence has not read its own yet, and a token of each that has. *count is the number of
 * pieces, at most one a sequence and perhaps 0. */
MOTE_API mote_error_code mote_batch_step(mote_batch* batch, size_t* count, mote_error* error);
/* The index-th piece of the last step and its sequence; text and top_logprobs live until the next step. Returns the
 * error that the sequence ended with, if it did: *sequence is filled then too, and there is no piece. */
MOTE_API mote_error_code mote_batch_piece(mote_batch* batch, size_t index, int64_t* sequence, mote_piece* piece,
                                          mote_error* error);
/* Of the sequence of the index-th piece of the last step, which is its last. */
MOTE_API mote_error_code mote_batch_statistics(const mote_batch* batch, size_t index, mote_statistics* statistics,
                                               mote_error* error);

/* From now on the generations and chat turns of the session are sequences of the batch: they decode together with those
 * of other sessions, and each has what it would have alone. Whoever asks for a next piece or event makes a step, unless
 * another thread is in one, which it waits for; nobody needs to call mote_batch_step. While one goes on, other calls on
 * the session give MOTE_ERROR_INVALID_STATE. NULL: alone again. The session computes its other calls by itself. Errors:
 * MOTE_ERROR_INVALID_ARGUMENT for a batch of another model. */
MOTE_API mote_error_code mote_session_set_batch(mote_session* session, mote_batch* batch, mote_error* error);

/* ---- chats ----
 *
 * A chat is a conversation: messages, tools and what else a prompt is made of. A turn is a reply to it: it is rendered,
 * the session goes back to what it shares with the prompt and reads the rest, the reply is split while it is written.
 * Messages are those of OpenAI's API: contents are text or parts of type "text", the arguments of calls objects or the
 * text of one. A chat belongs to one thread at a time, a turn likewise, together with its session. */

typedef enum MOTE_ENUM(mote_chat_field) {
  MOTE_CHAT_MESSAGES = 0,  /* a JSON list of objects */
  MOTE_CHAT_TOOLS = 1,     /* likewise */
  MOTE_CHAT_DOCUMENTS = 2, /* likewise */
  MOTE_CHAT_VARIABLES = 3, /* a JSON object: further variables of the template, {"enable_thinking": false} */
  MOTE_CHAT_TEMPLATE = 4,  /* the source of another template than the model's */
  MOTE_CHAT_CONTINUE_FINAL_MESSAGE = 5, /* the last message's field that the reply goes on with, such as content */
  MOTE_CHAT_TOOL_CHOICE = 6, /* auto, none, required, or {"type": "function", "function": {"name": ..}} to be called */
  MOTE_CHAT_RESPONSE_FORMAT = 7 /* {"type": "text" | "json_object"} or {"type": "json_schema", "json_schema": {"schema":
                                   ..}} */
} mote_chat_field;

/* Errors: MOTE_ERROR_INVALID_ARGUMENT if the file has no tokenizer. */
MOTE_API mote_error_code mote_chat_open(const mote_model* model, mote_chat** out, mote_error* error);
MOTE_API void mote_chat_close(mote_chat* chat);
/* No text: the field is not set any more. What is wrong with a field may be told by the turn. */
MOTE_API mote_error_code mote_chat_set(mote_chat* chat, mote_chat_field field, const char* text, size_t text_bytes,
                                       mote_error* error);
/* Asked while mote_chat_prompt, or the call that begins a turn, compiles what tool_choice or response_format ask for.
 * NULL: nobody is asked. */
MOTE_API mote_error_code mote_chat_set_is_cancelled(mote_chat* chat, mote_is_cancelled is_cancelled, void* user_data,
                                                    mote_error* error);
/* Adds a message, a JSON object. */
MOTE_API mote_error_code mote_chat_append(mote_chat* chat, const char* message, size_t message_bytes,
                                          mote_error* error);
/* Replaces the index-th message and drops those that followed. */
MOTE_API mote_error_code mote_chat_edit(mote_chat* chat, size_t index, const char* message, size_t message_bytes,
                                        mote_error* error);
/* Keeps the first `count` messages. */
MOTE_API mote_error_code mote_chat_truncate(mote_chat* chat, size_t count, mote_error* error);
/* *json is the list of messages; count (may be NULL): how many there are. */
MOTE_API mote_error_code mote_chat_messages(const mote_chat* chat, char** json, size_t* count, mote_error* error);
/* The prompt of the next reply: *count ids, of which at most `capacity` are written. Errors: MOTE_ERROR_TEMPLATE with
 * the message of jinja2 or transformers; MOTE_ERROR_INVALID_ARGUMENT naming the field. */
MOTE_API mote_error_code mote_chat_prompt(mote_chat* chat, int32_t* ids, size_t capacity, size_t* count,
                                          mote_error* error);

/* Begins a reply. The next mote_chat_next reads the prompt. Where the session's overflow is shift and num_keep was not
 * given, the system message and the tools stay. A cancel of the session from before does not count. options may be
 * NULL: the model's defaults, but as long as the context allows unless max_new_tokens is given; skip_special_tokens
 * = false shows special tokens that are no marks. Errors: those of mote_chat_prompt and mote_generation_begin. */
MOTE_API mote_error_code mote_chat_reply(mote_chat* chat, mote_session* session, const mote_options* options,
                                         mote_chat_turn** out, mote_error* error);
/* The same to one message more, a JSON object. If no reply begins, the message is not the chat's. */
MOTE_API mote_error_code mote_chat_send(mote_chat* chat, mote_session* session, const char* message,
                                        size_t message_bytes, const mote_options* options, mote_chat_turn** out,
                                        mote_error* error);
/* As mote_chat_reply, after the last reply and what followed it was dropped. Errors: also MOTE_ERROR_INVALID_STATE if
 * there is nothing to reply to. */
MOTE_API mote_error_code mote_chat_regenerate(mote_chat* chat, mote_session* session, const mote_options* options,
                                              mote_chat_turn** out, mote_error* error);
/* The same, going on with the last message, a reply that was cut off. Errors: also MOTE_ERROR_INVALID_STATE if the last
 * message is none. */
MOTE_API mote_error_code mote_chat_continue(mote_chat* chat, mote_session* session, const mote_options* options,
                                            mote_chat_turn** out, mote_error* error);
/* Appends the message of a turn, or adds it to the message that the turn went on with. */
MOTE_API mote_error_code mote_chat_take_reply(mote_chat* chat, const mote_chat_turn* turn, mote_error* error);

typedef enum MOTE_ENUM(mote_chat_event_kind) {
  MOTE_CHAT_NONE = 0,           /* a token of which nothing is known yet: its text may be part of a mark */
  MOTE_CHAT_CONTENT = 1,        /* text: what was added */
  MOTE_CHAT_REASONING = 2,      /* likewise */
  MOTE_CHAT_CALL_BEGIN = 3,     /* text: the tool's name; call_id */
  MOTE_CHAT_CALL_ARGUMENTS = 4, /* text: a piece of the arguments as JSON */
  MOTE_CHAT_CALL_END = 5,       /* call_id: as the message has it, also where the model wrote one behind the name */
  MOTE_CHAT_CALL_DISCARDED = 6, /* the call that was begun is malformed: what was written of it follows as content */
  MOTE_CHAT_DONE = 7            /* finish_reason */
} mote_chat_event_kind;

typedef struct {
  uint32_t struct_size;
  mote_chat_event_kind kind;
  int32_t call_index;  /* of a call, from 0; the call after one that was discarded has its index */
  int32_t num_pending; /* events that follow without computing */
  const char* text;    /* whole UTF-8 characters, NUL-terminated; lives until the next call on the turn */
  size_t text_bytes;
  const char* call_id;                    /* likewise */
  int32_t token_id;                       /* the first event of a step has its token; -1: none */
  float logprob;                          /* of the token, 0 unless options.logprobs or options.top_logprobs */
  const mote_token_logprob* top_logprobs; /* likeliest first; lives until the next call on the turn */
  size_t num_top_logprobs;
  mote_finish_reason finish_reason; /* of MOTE_CHAT_DONE; MOTE_FINISH_NONE after an error */
} mote_chat_event;

/* At most one step of the model. After MOTE_CHAT_DONE it comes again. Errors: those of mote_generation_next; the turn
 * is then over and its message is what was written. */
MOTE_API mote_error_code mote_chat_turn_next(mote_chat_turn* turn, mote_chat_event* event, mote_error* error);
/* From any thread: the step under way, or the next one, ends the turn with MOTE_FINISH_CANCELLED. */
MOTE_API void mote_chat_turn_cancel(mote_chat_turn* turn);
/* Ends the turn here, without its further events: the message is what was written. */
MOTE_API mote_error_code mote_chat_turn_stop(mote_chat_turn* turn, mote_error* error);
/* What was written so far, a JSON object to append to the conversation: "role", "content", and where there are any
 * "reasoning_content" and "tool_calls": [{"type": "function", "id": .., "function": {"name": .., "arguments": {..}}}].
 */
MOTE_API mote_error_code mote_chat_turn_message(const mote_chat_turn* turn, char** json, mote_error* error);

typedef struct {
  uint32_t struct_size;
  int64_t prompt_tokens;
  int64_t kept_tokens;      /* of the prompt, that needed no computation */
  int64_t forgotten_tokens; /* of the conversation, because the context was full */
  int64_t position;         /* of the session */
  int64_t context_length;
} mote_chat_statistics;

/* Each may be NULL. Those of the generation count the tokens of the prompt that were not kept. */
MOTE_API mote_error_code mote_chat_turn_statistics(const mote_chat_turn* turn, mote_chat_statistics* of_chat,
                                                   mote_statistics* of_generation, mote_error* error);
/* May come before MOTE_CHAT_DONE. */
MOTE_API void mote_chat_turn_close(mote_chat_turn* turn);

/* ---- beam search ---- */

typedef struct mote_beams mote_beams;

/* Appends the prompt (which may be empty if the session has tokens) and finds the likeliest continuations. options
 * (NULL: the defaults): those of a beam search, and of a generation max_new_tokens, ignore_eos and what changes logits;
 * nothing is sampled. The session then has the prompt and the best sequence but for its last token. A step costs
 * num_beams decode steps. */
MOTE_API mote_error_code mote_session_beam_search(mote_session* session, const int32_t* ids, size_t count,
                                                  const mote_options* options, mote_beams** out, mote_error* error);
MOTE_API void mote_beams_close(mote_beams* beams);
MOTE_API size_t mote_beams_count(const mote_beams* beams);
/* The sequence at `index`, the best first; *ids lives as long as the beams. score may be NULL. */
MOTE_API mote_error_code mote_beams_get(const mote_beams* beams, size_t index, const int32_t** ids, size_t* count,
                                        float* score, mote_error* error);

/* What sampling with `options` draws from: the probability of each of `count` ids, given their logits and the text so
 * far, of which the last num_generated ids are output. Greedy: 1 for the id that is chosen. What was not given is off.
 */
MOTE_API mote_error_code mote_sampling_probabilities(const float* logits, size_t count, const int32_t* previous_ids,
                                                     size_t num_previous_ids, size_t num_generated,
                                                     const mote_options* options, float* probabilities,
                                                     mote_error* error);

/* ---- embeddings ----
 *
 * A file that was exported with a method for it gives one vector a text (docs/embeddings.md). An embedder takes one
 * call at a time. */

typedef struct mote_embedder mote_embedder;

/* *json is an object: "pooling", "dimensions", "max_tokens", "bidirectional", "include_prompt", "prompts" by name,
 * "default_prompt_name" (null: none). Errors: MOTE_ERROR_INVALID_ARGUMENT if the file gives no embeddings. */
MOTE_API mote_error_code mote_model_embedding_config(const mote_model* model, char** json, mote_error* error);

/* options (NULL: the defaults): those of a session that say how to compute; context_length: the most tokens of a text,
 * 0: as many as the model takes. */
MOTE_API mote_error_code mote_embedder_open(mote_model* model, const mote_options* options, mote_embedder** out,
                                            mote_error* error);
MOTE_API void mote_embedder_close(mote_embedder* embedder);

typedef struct {
  const char* text; /* NULL: ids, which are taken as they are, without a prompt */
  size_t text_bytes;
  const int32_t* ids;
  size_t num_ids;
} mote_embed_input;

typedef struct {
  uint32_t struct_size;
  int32_t dimensions;      /* the first ones of each vector; 0: all */
  const char* prompt_name; /* of the file's prompts; NULL: its default, if it has one */
  const char* prompt;      /* put before each text; NULL: prompt_name tells */
  size_t prompt_bytes;     /* 0: up to a NUL */
  int32_t keep_length;     /* 1: vectors are not divided by their length */
  int32_t refuse_long;     /* 1: MOTE_ERROR_CONTEXT_FULL for a text that is too long; else its end is cut off */
  int32_t plain_text;      /* 1: special tokens spelled in texts stay text */
} mote_embed_options;

/* How many floats a vector has. options may be NULL. */
MOTE_API mote_error_code mote_embedder_dimensions(const mote_embedder* embedder, const mote_embed_options* options,
                                                  size_t* dimensions, mote_error* error);
/* Writes `count` vectors one after another, and to num_tokens (NULL, or room for `count`) how many tokens were read.
 * Texts are computed together; what one gives does not depend on the others. options may be NULL. */
MOTE_API mote_error_code mote_embedder_embed(mote_embedder* embedder, const mote_embed_input* inputs, size_t count,
                                             const mote_embed_options* options, float* vectors, int64_t* num_tokens,
                                             mote_error* error);
/* From any thread: the running or next call on the embedder returns MOTE_ERROR_CANCELLED as soon as it can. */
MOTE_API void mote_embedder_cancel(mote_embedder* embedder);
/* Replays the golden samples of embeddings; *report as of mote_session_check_golden. */
MOTE_API mote_error_code mote_embedder_check_golden(mote_embedder* embedder, char** report, mote_error* error);

/* ---- store ----
 *
 * The models of a user: a folder of files with names, and how they get there (docs/store.md). A store has no network of
 * its own: a download says what to ask for and is told what came, and the caller's HTTP client is in between. Stores
 * may be used from any number of threads; a download takes one call at a time. */

typedef struct mote_store mote_store;
typedef struct mote_store_files mote_store_files;
typedef struct mote_download mote_download;

/* root: the folder, which need not exist; NULL: that of MOTE_HOME, or the user's own, which Android and iOS have not.
 */
MOTE_API mote_error_code mote_store_open(const char* root, mote_store** out, mote_error* error);
MOTE_API void mote_store_close(mote_store* store);
/* *path: the store's folder; of a name (NULL: none) the folder where its files are, or will be. */
MOTE_API mote_error_code mote_store_folder(const mote_store* store, const char* name, char** path, mote_error* error);

typedef struct {
  uint32_t struct_size;
  const char* name;     /* org/name@revision:tag; texts live as long as the list */
  const char* path;     /* of the file, or of its part */
  const char* manifest; /* where it came from as a JSON object; "": not known */
  uint64_t bytes;       /* that are there */
  uint64_t total_bytes; /* of the whole file; 0: not known */
  int32_t is_whole;     /* 0: a part, which a download of the name goes on with */
  int64_t last_used_s;  /* since 1970, in seconds */
} mote_store_file;

/* Those of the name, parts included: without a tag all of the model. NULL: all that there are. Errors:
 * MOTE_ERROR_FILE_NOT_FOUND, with the closest name, if there is none of the name. */
MOTE_API mote_error_code mote_store_list(const mote_store* store, const char* name, mote_store_files** out,
                                         mote_error* error);
MOTE_API size_t mote_store_files_count(const mote_store_files* files);
MOTE_API mote_error_code mote_store_files_get(const mote_store_files* files, size_t index, mote_store_file* file,
                                              mote_error* error);
MOTE_API void mote_store_files_close(mote_store_files* files);

/* The file of a name, for mote_model_open; it is noted as used now. Errors: MOTE_ERROR_FILE_NOT_FOUND if it has to be
 * downloaded, MOTE_ERROR_INVALID_ARGUMENT if the name may mean several, which are named. */
MOTE_API mote_error_code mote_store_find(const mote_store* store, const char* name, char** path, mote_error* error);
/* Deletes the files of a name, parts included; *freed_bytes may be NULL. Errors: MOTE_ERROR_INVALID_STATE while one is
 * downloaded. */
MOTE_API mote_error_code mote_store_remove(mote_store* store, const char* name, uint64_t* freed_bytes,
                                           mote_error* error);
/* Deletes whole files, those first that were used longest ago, until all take at most max_bytes. What is being
 * downloaded or open stays. *out (may be NULL): what was deleted. */
MOTE_API mote_error_code mote_store_evict(mote_store* store, uint64_t max_bytes, mote_store_files** out,
                                          mote_error* error);
/* Writes where a file of the store came from that was not downloaded, but exported say; the caller holds a download of
 * its name meanwhile. manifest: a JSON object with "repo", "revision", "commit", "file", "source" and "license". */
MOTE_API mote_error_code mote_store_record(mote_store* store, const char* path, const char* manifest,
                                           mote_error* error);

/* *json: "repo", "revision" and "tag" of a name, as texts, or null if the text can be none. */
MOTE_API mote_error_code mote_parse_model_name(const char* text, char** json, mote_error* error);
/* Which of `count` files a tag means: *index, -1: none or several. */
MOTE_API mote_error_code mote_choose_model_file(const char* const* files, size_t count, const char* tag, int64_t* index,
                                                mote_error* error);

typedef struct {
  uint32_t struct_size;
  const char* endpoint;    /* of the hub; NULL: that of HF_ENDPOINT, or https://huggingface.co */
  const char* token;       /* of the hub, or of the URL's server; NULL: for the hub that of HF_TOKEN */
  const char* sha256;      /* of an URL's file, 64 hexadecimal digits; NULL: not known */
  int32_t allow_metered;   /* 1: a file may come over a metered network */
  int64_t keep_free_bytes; /* on the disk; -1: 64 MiB */
} mote_download_options;

/* what: a name, or the URL of a .mote file. options may be NULL. Nobody else downloads to the model until the download
 * is closed. What has come stays, unless it proved to be wrong, and a download of the same goes on with it. */
MOTE_API mote_error_code mote_download_begin(const mote_store* store, const char* what,
                                             const mote_download_options* options, mote_download** out,
                                             mote_error* error);
MOTE_API void mote_download_close(mote_download* download);

typedef enum MOTE_ENUM(mote_download_action) {
  MOTE_DOWNLOAD_REQUEST = 1, /* GET `url` with `headers`, redirects not followed and nothing decoded; then respond,
                                write, end */
  MOTE_DOWNLOAD_WAIT = 2,    /* for wait_ms, which may be 0, because of `reason`; then ask again */
  MOTE_DOWNLOAD_DONE = 3     /* the file is in the store */
} mote_download_action;

typedef struct {
  uint32_t struct_size;
  mote_download_action action;
  const char* url;     /* texts live until the next call on the download */
  const char* headers; /* lines "Name: value" that end with CR LF */
  int64_t wait_ms;
  const char* reason;
} mote_download_step;

/* What to do now. Reads up to 32 MiB of what an earlier process has left. Errors, here and below, of which the download
 * is over: MOTE_ERROR_FILE_NOT_FOUND, FILE_UNREADABLE: it cannot be had, or arrived damaged; FILE_UNWRITABLE: the disk
 * has no room; INVALID_STATE: the network is metered; those of mote_model_open, as soon as the first bytes tell them,
 * for a file that this device cannot run. */
MOTE_API mote_error_code mote_download_next(mote_download* download, mote_download_step* step, mote_error* error);
/* The header of the answer: lines "Name: value". *wants_body: 0: the connection may be closed. */
MOTE_API mote_error_code mote_download_respond(mote_download* download, int32_t status, const char* headers,
                                               size_t headers_bytes, int32_t* wants_body, mote_error* error);
/* The next bytes of the body, in their order. */
MOTE_API mote_error_code mote_download_write(mote_download* download, const void* data, size_t bytes,
                                             mote_error* error);
/* The answer is over. broken: why, if it came to no proper end or did not come at all; NULL: all of it has come. */
MOTE_API mote_error_code mote_download_end(mote_download* download, const char* broken, mote_error* error);
/* From any thread: whether the network is metered now. Where that is not allowed, the download ends before more comes.
 */
MOTE_API void mote_download_set_metered(mote_download* download, int32_t is_metered);

typedef struct {
  uint32_t struct_size;
  const char* name;    /* of the model; texts live until the next call on the download */
  const char* path;    /* where the file goes; "": not known yet */
  int64_t bytes;       /* that are there */
  int64_t total_bytes; /* -1: not known yet */
  int32_t is_done;
  int32_t is_new; /* once done: 0: the store had the file already */
} mote_download_info;

MOTE_API mote_error_code mote_download_get_info(mote_download* download, mote_download_info* info, mote_error* error);

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(mote_error_code) == sizeof(int32_t), "needs -fno-short-enums");
#endif

#ifdef __cplusplus
}
#endif

#endif /* MOTE_H_ */

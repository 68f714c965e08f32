/* The C API of Mote's tokenizers, which need no model and no runner.
 *
 * Ownership: what a function gives through an out-pointer belongs to the caller, who lets go of it with the function
 * named beside it. Errors: every function that can fail returns 0 or a code (MOTE_TOKENIZER_ERROR_*) and fills `error`,
 * which may be NULL. Handles are numbers and no addresses: NULL, one that was closed or none at all is
 * MOTE_TOKENIZER_ERROR_INVALID_ARGUMENT, and is taken for a tokenizer without ids where there is no error; closing it
 * does nothing. What is closed lives until the calls on it have returned. Threads: a tokenizer may be used from any
 * number of threads at once. */
#ifndef MOTE_TOKENIZER_H
#define MOTE_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define MOTE_TOKENIZER_API
#else
#define MOTE_TOKENIZER_API __attribute__((visibility("default")))
#endif

enum {
  MOTE_TOKENIZER_OK = 0,
  MOTE_TOKENIZER_ERROR_INVALID_FILE = 30,
  MOTE_TOKENIZER_ERROR_INVALID_ARGUMENT = 40,
  MOTE_TOKENIZER_ERROR_OUT_OF_MEMORY = 50,
  MOTE_TOKENIZER_ERROR_INTERNAL = 70
};

typedef struct mote_tokenizer_error {
  uint32_t struct_size; /* sizeof(mote_tokenizer_error), set by the caller; so for all structs here */
  int32_t code;
  char message[1024]; /* UTF-8 */
} mote_tokenizer_error;

typedef struct mote_tokenizer_handle mote_tokenizer_handle;

/* A tokenizer file. Only tiktoken vocabularies need more than its bytes. */
typedef struct mote_tokenizer_source {
  uint32_t struct_size;
  const void* bytes; /* a tokenizer.json, SentencePiece .model, .tiktoken, tekken.json, or a compiled tokenizer */
  size_t num_bytes;
  const char* name;                  /* of the file; may be NULL. Tells known tiktoken vocabularies apart */
  const char* pattern;               /* tiktoken: the regular expression; NULL: as the name says */
  const char* const* special_tokens; /* tiktoken: special_ids[i] is the id of special_tokens[i] */
  const int32_t* special_ids;
  size_t num_special;
} mote_tokenizer_source;

/* Compiles a file. A compiled tokenizer comes back as it is. *segment: freed by mote_tokenizer_free. */
MOTE_TOKENIZER_API int32_t mote_tokenizer_compile(const mote_tokenizer_source* source, void** segment,
                                                  size_t* num_bytes, mote_tokenizer_error* error);

/* Opens a compiled tokenizer. copy 0: the bytes stay the caller's, start at a multiple of 8 and outlive the handle.
 * *tokenizer: let go of with mote_tokenizer_close. */
MOTE_TOKENIZER_API int32_t mote_tokenizer_open(const void* segment, size_t num_bytes, int32_t copy,
                                               mote_tokenizer_handle** tokenizer, mote_tokenizer_error* error);
MOTE_TOKENIZER_API void mote_tokenizer_close(mote_tokenizer_handle* tokenizer);

typedef struct mote_tokenizer_range {
  size_t begin;
  size_t end;
} mote_tokenizer_range;

typedef struct mote_tokenizer_options {
  uint32_t struct_size;
  int32_t add_special;               /* BOS and such, as the file asks */
  int32_t parse_special;             /* special tokens spelled in the text become their ids */
  int32_t offsets;                   /* 0: none, 1: in bytes, 2: in characters */
  const mote_tokenizer_range* plain; /* ascending ranges of bytes where added tokens are ordinary text */
  size_t num_plain;
} mote_tokenizer_options;

/* offsets, type_ids: NULL unless offsets were asked for; offsets are two numbers an id, begin and end, in the text that
 * it is from; a type id tells the texts of a pair apart, as the post-processor numbers them. */
typedef struct mote_tokenizer_encoding {
  uint32_t struct_size;
  int32_t* ids;
  uint32_t* offsets;
  size_t count;
  uint32_t* type_ids;
} mote_tokenizer_encoding;

/* options may be NULL: add and parse special tokens, no offsets. *encoding: emptied by mote_tokenizer_encoding_clear.
 */
MOTE_TOKENIZER_API int32_t mote_tokenizer_encode(const mote_tokenizer_handle* tokenizer, const char* text,
                                                 size_t num_bytes, const mote_tokenizer_options* options,
                                                 mote_tokenizer_encoding* encoding, mote_tokenizer_error* error);
MOTE_TOKENIZER_API void mote_tokenizer_encoding_clear(mote_tokenizer_encoding* encoding);

/* A text, and the text that it is encoded together with. pair NULL: none. */
typedef struct mote_tokenizer_input {
  uint32_t struct_size;
  const char* text;
  size_t num_bytes;
  const char* pair;
  size_t num_pair_bytes;
} mote_tokenizer_input;

/* Encodes `count` inputs, the same for any number of threads. num_threads 0: as many as the process may use. `plain` of
 * the options must be empty. encodings: of `count` elements, each with its struct_size; each emptied by
 * mote_tokenizer_encoding_clear. After an error, which is that of the first input that has one, all are empty. */
MOTE_TOKENIZER_API int32_t mote_tokenizer_encode_batch(const mote_tokenizer_handle* tokenizer,
                                                       const mote_tokenizer_input* inputs, size_t count,
                                                       const mote_tokenizer_options* options, int32_t num_threads,
                                                       mote_tokenizer_encoding* encodings, mote_tokenizer_error* error);

/* *text: UTF-8, ends with a zero byte that num_bytes does not count; freed by mote_tokenizer_free. */
MOTE_TOKENIZER_API int32_t mote_tokenizer_decode(const mote_tokenizer_handle* tokenizer, const int32_t* ids,
                                                 size_t count, int32_t skip_special, char** text, size_t* num_bytes,
                                                 mote_tokenizer_error* error);

/* Token ids, and the text that they are decoded to: as that of mote_tokenizer_decode. */
typedef struct mote_tokenizer_sequence {
  uint32_t struct_size;
  const int32_t* ids;
  size_t count;
  char* text;
  size_t num_bytes;
} mote_tokenizer_sequence;

/* Decodes `count` sequences, the same for any number of threads. After an error every text is NULL. */
MOTE_TOKENIZER_API int32_t mote_tokenizer_decode_batch(const mote_tokenizer_handle* tokenizer,
                                                       mote_tokenizer_sequence* sequences, size_t count,
                                                       int32_t skip_special, int32_t num_threads,
                                                       mote_tokenizer_error* error);

/* One more than the largest id. */
MOTE_TOKENIZER_API int32_t mote_tokenizer_num_ids(const mote_tokenizer_handle* tokenizer);
/* The id of a spelling, -1: none. */
MOTE_TOKENIZER_API int32_t mote_tokenizer_token_to_id(const mote_tokenizer_handle* tokenizer, const char* token,
                                                      size_t num_bytes);
/* How the file spells an id; *token is NULL for an id that no token has. Freed by mote_tokenizer_free. */
MOTE_TOKENIZER_API int32_t mote_tokenizer_id_to_token(const mote_tokenizer_handle* tokenizer, int32_t id, char** token,
                                                      size_t* num_bytes, mote_tokenizer_error* error);
MOTE_TOKENIZER_API int32_t mote_tokenizer_is_special(const mote_tokenizer_handle* tokenizer, int32_t id);

MOTE_TOKENIZER_API void mote_tokenizer_free(void* memory);

#ifdef __cplusplus
}
#endif
#endif

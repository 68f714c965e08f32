/* complete MODEL PROMPT: prints what a model makes of a prompt. */
#include <mote.h>
#include <stdio.h>
#include <string.h>

static int failed(const mote_error* error) {
  fprintf(stderr, "%s (%s)\n", error->message, mote_error_name(error->code));
  return 1;
}

static int generate(mote_session* session, const char* prompt, mote_error* error) {
  int32_t ids[256];
  size_t count = 0;
  if (mote_session_tokenize(session, prompt, strlen(prompt), 1, ids, 256, &count, error) != MOTE_OK) return 1;
  if (count > 256) count = 256; /* more need a longer array */
  mote_generation* generation = NULL;
  if (mote_generation_begin(session, ids, count, NULL, &generation, error) != MOTE_OK) return 1;
  mote_piece piece = {.struct_size = sizeof piece};
  while (piece.finished == 0 && mote_generation_next(generation, &piece, error) == MOTE_OK)
    fwrite(piece.text, 1, piece.text_bytes, stdout);
  mote_generation_end(generation);
  putchar('\n');
  return piece.finished == 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  mote_error error = {.struct_size = sizeof error};
  mote_model* model = NULL;
  mote_session* session = NULL;
  if (mote_model_open(argv[1], NULL, &model, &error) != MOTE_OK) return failed(&error);
  if (mote_session_open(model, NULL, &session, &error) != MOTE_OK || generate(session, argv[2], &error) != 0)
    failed(&error);
  mote_session_close(session); /* in any order: a session keeps its model */
  mote_model_close(model);
  return error.code != MOTE_OK;
}

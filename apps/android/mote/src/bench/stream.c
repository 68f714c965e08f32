/* stream MODEL RUNS: nanoseconds a token of a text that a grammar forces, so that the model does not run: the C API
 * alone. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runner/capi/mote.h"

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int check(mote_error_code code, const mote_error* error) {
  if (code == MOTE_OK) return 0;
  fprintf(stderr, "%s\n", error->message);
  return 1;
}

static double run(mote_session* session, const mote_options* options, mote_error* error) {
  const int32_t prompt = 1;
  mote_generation* generation = NULL;
  mote_session_reset(session, error);
  if (check(mote_generation_begin(session, &prompt, 1, options, &generation, error), error)) exit(1);
  mote_piece piece = {.struct_size = sizeof piece};
  if (check(mote_generation_next(generation, &piece, error), error)) exit(1);
  double begin = now();
  int64_t count = 0;
  for (; piece.finished == 0; ++count) {
    if (check(mote_generation_next(generation, &piece, error), error)) exit(1);
  }
  double seconds = now() - begin;
  mote_generation_end(generation);
  return seconds / (double)count;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  mote_error error = {.struct_size = sizeof error};
  mote_model* model = NULL;
  mote_session* session = NULL;
  mote_options* options = NULL;
  if (check(mote_model_open(argv[1], NULL, &model, &error), &error)) return 1;
  if (check(mote_session_open(model, NULL, &session, &error), &error)) return 1;
  if (check(mote_options_open(MOTE_SCOPE_GENERATION, &options, &error), &error)) return 1;
  if (check(mote_options_set(options, "regex", "(def f [(]x[)]: return x; ){100}", &error), &error)) return 1;
  double least = 1e18;
  for (int i = 0; i < atoi(argv[2]); ++i) {
    double time = run(session, options, &error);
    if (time < least) least = time;
  }
  printf("%.0f\n", least);
  mote_options_close(options);
  mote_session_close(session);
  mote_model_close(model);
  return 0;
}

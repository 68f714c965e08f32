/* What an embedder's first program does: open a file that is not there and read the error. */
#include <mote.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  mote_model* model = NULL;
  mote_error error = {.struct_size = sizeof error};
  const int32_t code = mote_model_open("missing.mote", NULL, &model, &error);
  printf("mote %s: %s\n", mote_version(), error.message);
  return code == MOTE_ERROR_FILE_NOT_FOUND && model == NULL && strstr(error.message, "missing.mote") ? 0 : 1;
}

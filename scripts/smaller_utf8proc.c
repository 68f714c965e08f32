// Makes utf8proc half as large. Its table of properties has a row for nearly each character that maps to another, since
// the row says to which; here maps are tables of their own, and 200 rows are left.
//   smaller_utf8proc tables     prints another utf8proc_data.c
//   smaller_utf8proc answers    prints a digest of what utf8proc says of all characters
// build_dependencies.sh runs it on the machine that builds, and compiles it again, with SMALLER, beside the new tables.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utf8proc.c"

enum { kCharacters = 0x110000, kPage = 256, kPages = kCharacters / kPage };

#ifndef SMALLER

static void begin_table(const char* type, const char* name) { printf("static const %s %s[] = {", type, name); }

static void print_numbers(const char* type, const char* name, const uint16_t* numbers, size_t count) {
  begin_table(type, name);
  for (size_t i = 0; i < count; ++i) printf("%s%u,", i % 16 == 0 ? "\n" : "", numbers[i]);
  printf("\n};\n");
}

// The characters for which a field at `offset` of their rows is not UINT16_MAX, in order and without their planes,
// which begin at the indices NAME_planes; and those fields.
static void print_map(const char* name, size_t offset) {
  static uint16_t keys[kCharacters], values[kCharacters];
  uint16_t planes[kCharacters / 0x10000 + 1] = {0}, count = 0;
  for (int32_t c = 0; c < kCharacters; ++c) {
    memcpy(&values[count], (const char*)utf8proc_get_property(c) + offset, sizeof(values[count]));
    keys[count] = (uint16_t)c;
    if (values[count] != UINT16_MAX) ++count;
    planes[(c >> 16) + 1] = count;
  }
  const struct {
    const char* suffix;
    const uint16_t* numbers;
    size_t count;
  } tables[] = {
      {"planes", planes, sizeof(planes) / sizeof(planes[0])}, {"keys", keys, count}, {"values", values, count}};
  for (int i = 0; i < 3; ++i) {
    char whole[64];
    snprintf(whole, sizeof(whole), "%s_%s", name, tables[i].suffix);
    print_numbers("utf8proc_uint16_t", whole, tables[i].numbers, tables[i].count);
  }
  printf(
      "static utf8proc_uint16_t %s_of(utf8proc_int32_t c) { return find_in_map(%s_planes, %s_keys, %s_values, c); }\n",
      name, name, name, name);
}

static int same_row(const utf8proc_property_t* a, const utf8proc_property_t* b) {
  return a->category == b->category && a->combining_class == b->combining_class && a->decomp_type == b->decomp_type &&
         a->comp_exclusion == b->comp_exclusion && a->ignorable == b->ignorable &&
         a->control_boundary == b->control_boundary && a->charwidth == b->charwidth && a->boundclass == b->boundclass;
}

// The row of each character, in two stages of pages; without classes for bidirectional text. The first is for what is
// no character.
static void print_rows(void) {
  static const utf8proc_property_t* rows[256];
  static uint16_t row_of[kCharacters], stage1[kPages], stage2[kCharacters];
  size_t num_rows = 0, length = 0;
  begin_table("utf8proc_property_t", "utf8proc_properties");
  for (int32_t c = -1; c < kCharacters; ++c) {
    const utf8proc_property_t* p = utf8proc_get_property(c);
    size_t row = 0;
    while (row < num_rows && !same_row(rows[row], p)) ++row;
    if (row == num_rows) {
      if (num_rows == sizeof(rows) / sizeof(rows[0])) exit(1);
      rows[num_rows++] = p;
      printf("\n{%d,%d,0,%d,0,%d,%d,%d,%d,0,%d},", p->category, p->combining_class, p->decomp_type, p->comp_exclusion,
             p->ignorable, p->control_boundary, p->charwidth, p->boundclass);
    }
    if (c >= 0) row_of[c] = (uint16_t)row;
  }
  printf("\n};\n");
  for (size_t page = 0; page < kPages; ++page) {
    const uint16_t* page_rows = row_of + page * kPage;
    size_t at = 0;
    while (at < length && memcmp(stage2 + at, page_rows, kPage * sizeof(*page_rows)) != 0) at += kPage;
    memcpy(stage2 + at, page_rows, kPage * sizeof(*page_rows));
    if (at == length) length += kPage;
    stage1[page] = (uint16_t)at;
  }
  print_numbers("utf8proc_uint16_t", "utf8proc_stage1table", stage1, kPages);
  print_numbers("utf8proc_uint8_t", "utf8proc_stage2table", stage2, length);
}

static void print_tables(void) {
  const size_t num_sequences = sizeof(utf8proc_sequences) / sizeof(utf8proc_sequences[0]);
  const size_t num_combinations = sizeof(utf8proc_combinations) / sizeof(utf8proc_combinations[0]);
  print_numbers("utf8proc_uint16_t", "utf8proc_sequences", utf8proc_sequences, num_sequences);
  print_numbers("utf8proc_uint16_t", "utf8proc_combinations", utf8proc_combinations, num_combinations);
  print_rows();
  printf(
      "static utf8proc_uint16_t find_in_map(const utf8proc_uint16_t* planes, const utf8proc_uint16_t* keys,\n"
      "                                     const utf8proc_uint16_t* values, utf8proc_int32_t c) {\n"
      "  unsigned first, last;\n"
      "  if (c < 0 || c >= 0x110000) return UINT16_MAX;\n"
      "  first = planes[c >> 16], last = planes[(c >> 16) + 1];\n"
      "  while (first < last) {\n"
      "    const unsigned middle = (first + last) / 2;\n"
      "    if (keys[middle] == (c & 0xFFFF)) return values[middle];\n"
      "    if (keys[middle] < (c & 0xFFFF)) first = middle + 1; else last = middle;\n"
      "  }\n"
      "  return UINT16_MAX;\n"
      "}\n");
  print_map("decomp_seqindex", offsetof(utf8proc_property_t, decomp_seqindex));
  print_map("casefold_seqindex", offsetof(utf8proc_property_t, casefold_seqindex));
  print_map("uppercase_seqindex", offsetof(utf8proc_property_t, uppercase_seqindex));
  print_map("lowercase_seqindex", offsetof(utf8proc_property_t, lowercase_seqindex));
  print_map("titlecase_seqindex", offsetof(utf8proc_property_t, titlecase_seqindex));
  print_map("comb_index", offsetof(utf8proc_property_t, comb_index));
}

#endif

static uint64_t digest = 14695981039346656037u;
static void add(int64_t answer) { digest = (digest ^ (uint64_t)answer) * 1099511628211u; }

static void add_decomposition(int32_t c, int options) {
  int32_t to[32];
  int boundary = 0;
  const utf8proc_ssize_t length = utf8proc_decompose_char(c, to, 32, (utf8proc_option_t)options, &boundary);
  add(length);
  for (utf8proc_ssize_t i = 0; i < length; ++i) add(to[i]);
  if (length <= 0) return;
  const utf8proc_ssize_t composed =
      utf8proc_normalize_utf32(to, length, (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  for (utf8proc_ssize_t i = 0; i < composed; ++i) add(to[i]);
}

static void print_answers(void) {
  static const int32_t kNeighbours[] = {'\r',   'a',    0x300,  0x600,  0x903,   0x1100,
                                        0x1160, 0x11A8, 0xAC00, 0x200D, 0x1F1E6, 0x1F468};
  for (int32_t c = -1; c <= kCharacters; ++c) {
    const utf8proc_property_t* p = utf8proc_get_property(c);
    add(p->category), add(p->combining_class), add(p->decomp_type), add(p->ignorable), add(p->charwidth);
    add(utf8proc_tolower(c)), add(utf8proc_toupper(c)), add(utf8proc_totitle(c)), add(utf8proc_islower(c)),
        add(utf8proc_isupper(c));
    add_decomposition(c, UTF8PROC_DECOMPOSE);
    add_decomposition(c, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
    add_decomposition(c, UTF8PROC_CASEFOLD);
    for (size_t i = 0; i < sizeof(kNeighbours) / sizeof(kNeighbours[0]); ++i) {
      int32_t state = 0;
      add(utf8proc_grapheme_break_stateful(kNeighbours[i], c, &state));
      add(utf8proc_grapheme_break_stateful(c, kNeighbours[i], &state));
    }
  }
  printf("%016" PRIx64 "\n", digest);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
#ifndef SMALLER
  if (strcmp(argv[1], "tables") == 0) print_tables();
#endif
  if (strcmp(argv[1], "answers") == 0) print_answers();
  return 0;
}

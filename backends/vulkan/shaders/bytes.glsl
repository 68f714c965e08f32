// Products of digits of weights, a byte each of 4 neighbouring columns, with codes + 128 of rows as quantize.glsl writes them:
// for integer dot products (DOT) 4 bytes of a word, else in halves of words, so that one multiplication of 32 bits makes two
// products. Either way the sums are the same.
#ifdef DOT
// OpUDot of two words with 4 bytes each.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4451)
uint unsigned_dot(uint a, uint b, spirv_literal uint packed_format);

#define QUAD uint    // codes of 4 columns
#define OCTET uvec2  // of 8
#define FIRST_QUAD(octet) (octet).x
#define SECOND_QUAD(octet) (octet).y

// Of 4 rows.
uvec4 products_of_bytes(uvec4 digits, uint q) {
  return uvec4(unsigned_dot(digits.x, q, 0u), unsigned_dot(digits.y, q, 0u), unsigned_dot(digits.z, q, 0u),
               unsigned_dot(digits.w, q, 0u));
}

uvec4 sums_of_bytes(uvec4 digits) { return products_of_bytes(digits, 0x01010101u); }

// The products of digits with less than 8 bits, which begin at a bit of each byte: parts of what sum_of_parts ends.
uvec4 parts_of_products(uvec4 digits, uint shift, uint plane, uint q) {
  return products_of_bytes(digits >> shift & ((1u << plane) - 1) * 0x01010101u, q);
}
uvec4 sum_of_parts(uvec4 parts) { return parts; }
#else
#define QUAD uvec2
#define OCTET uvec4
#define FIRST_QUAD(octet) (octet).xy
#define SECOND_QUAD(octet) (octet).zw

uvec4 products_of_bytes(uvec4 digits, uvec2 q) {
  return (digits & 0xff) * (q.x >> 16) + (digits >> 8 & 0xff) * (q.y >> 16) + (digits >> 16 & 0xff) * (q.x & 0xffff) +
         (digits >> 24) * (q.y & 0xffff);
}

uvec4 sums_of_bytes(uvec4 digits) {
  return (digits & 0xff) + (digits >> 8 & 0xff) + (digits >> 16 & 0xff) + (digits >> 24);
}

// Upper halves hold the sums, of 8 columns at most.
uvec4 parts_of_products(uvec4 digits, uint shift, uint plane, uvec2 q) {
  uint mask = ((1u << plane) - 1) * 0x00010001u;
  return (digits >> shift & mask) * q.x + (digits >> (shift + 8) & mask) * q.y;
}
uvec4 sum_of_parts(uvec4 parts) { return parts >> 16; }
#endif

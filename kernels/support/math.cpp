#include "kernels/support/math.h"

#include <cmath>

namespace mote::math {

namespace {

__extension__ using Wide = unsigned __int128;

struct Reduced {
  double remainder;  // in [-pi/4, pi/4]
  unsigned quadrant;
};

// The first 256 bits of 2 / pi behind the point.
constexpr uint32_t kTwoOverPi[8] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                    0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561};

uint64_t two_over_pi_bit(int index) {
  if (index < 0 || index >= 256) return 0;
  return (kTwoOverPi[index / 32] >> (31 - index % 32)) & 1u;
}

// Payne and Hanek: bits of 2/pi that only add multiples of four quarter turns are left out.
Reduced reduce_large(float magnitude) {
  const uint32_t bits = std::bit_cast<uint32_t>(magnitude);
  const int exponent = static_cast<int>(bits >> 23) - 150;
  const uint32_t mantissa = (bits & 0x7fffffu) | 0x800000u;
  Wide window = 0;
  for (int i = 0; i < 128; ++i) window = (window << 1) | two_over_pi_bit(exponent - 2 + i);
  const Wide turns = window * mantissa;  // quarter turns, in units of 2^-126, modulo 4
  const unsigned quadrant = static_cast<unsigned>(turns >> 126);
  const int64_t fraction = static_cast<int64_t>(static_cast<uint64_t>((turns << 2) >> 64) >> 1);  // 63 bits
  const double part = static_cast<double>(fraction) * 0x1p-63;
  const bool upper = part > 0.5;
  return {(upper ? part - 1.0 : part) * 1.5707963267948966, upper ? quadrant + 1 : quadrant};
}

Reduced reduce(float magnitude) {
  if (magnitude > 0x1p20f) return reduce_large(magnitude);
  const double x = static_cast<double>(magnitude);
  const double n = std::floor(x * 0.63661977236758134308 + 0.5);
  // pi/2 in two parts; the first has 33 bits, so that its product with n is exact.
  const double remainder = (x - n * 1.57079632673412561417e+00) - n * 6.07710050650619224932e-11;
  return {remainder, static_cast<unsigned>(n)};
}

// ln(m) for m = (1 + s) / (1 - s), |s| < 0.2
double twice_atanh(double s) {
  const double s2 = s * s;
  double p = 0.0;
  for (int k = 23; k >= 3; k -= 2) p = p * s2 + 1.0 / k;
  return 2.0 * s + 2.0 * s * s2 * p;
}

bool is_odd(double y) { return std::fabs(y) < 0x1p53 && std::fmod(std::fabs(y), 2.0) == 1.0; }

}  // namespace

SinCos sin_cos(float angle) {
  const float magnitude = std::fabs(angle);
  if (!(magnitude <= std::numeric_limits<float>::max())) {
    return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  }
  const Reduced reduced = reduce(magnitude);
  const double r = reduced.remainder, r2 = r * r;
  const double sine =
      r + r * r2 * (-1.0 / 6 + r2 * (1.0 / 120 + r2 * (-1.0 / 5040 + r2 * (1.0 / 362880 - r2 / 39916800))));
  const double cosine =
      1.0 +
      r2 * (-0.5 + r2 * (1.0 / 24 + r2 * (-1.0 / 720 + r2 * (1.0 / 40320 + r2 * (-1.0 / 3628800 + r2 / 479001600)))));
  const bool swap = (reduced.quadrant & 1u) != 0;
  const double s = swap ? cosine : sine, c = swap ? sine : cosine;
  const bool negative_sine = ((reduced.quadrant & 2u) != 0) != std::signbit(angle);
  const bool negative_cosine = ((reduced.quadrant + 1u) & 2u) != 0;
  return {negative_sine ? -s : s, negative_cosine ? -c : c};
}

double erf(double x) {
  const double magnitude = std::fabs(x);
  if (magnitude < 1.0) {  // interpolates erf(x) / x at Chebyshev nodes of x^2
    const double u = x * x;
    double p = -1.0469110332151208e-7;
    p = p * u + 1.5306373163641084e-6;
    p = p * u - 1.4795031400662045e-5;
    p = p * u + 0.00012046261269779797;
    p = p * u - 0.00085479337365196332;
    p = p * u + 0.0052239671935438997;
    p = p * u - 0.026866169050599324;
    p = p * u + 0.11283791658548713;
    p = p * u - 0.37612638902808614;
    p = p * u + 1.1283791670954938;
    return x * p;
  }
  if (!(magnitude < 6.0)) return std::isnan(x) ? x : std::copysign(1.0, x);
  const double t = 1.0 / (1.0 + 0.5 * magnitude);  // interpolates erfc(x) e^(x^2) at Chebyshev nodes of t
  double p = -0.052426476862185204;
  p = p * t + 0.28272736824748696;
  p = p * t - 0.614236758570066;
  p = p * t + 0.61609626284031938;
  p = p * t - 0.15629966816785653;
  p = p * t - 0.18631684240357174;
  p = p * t + 0.11303083814564842;
  p = p * t - 0.10171460237197707;
  p = p * t + 0.11934476301291652;
  p = p * t + 0.16739650427627883;
  p = p * t + 0.24836574274354405;
  p = p * t + 0.28192064730518717;
  p = p * t + 0.28210660601694709;
  p = p * t - 3.63268936459147e-7;
  return std::copysign(1.0 - p * exp(-magnitude * magnitude), x);
}

double log1p(double x) { return x > -0.3 && x < 0.4 ? twice_atanh(x / (2.0 + x)) : log(1.0 + x); }

double pow(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude = std::fabs(x);
  if (std::isinf(y)) {
    if (magnitude == 1.0) return 1.0;
    return (magnitude > 1.0) == (y > 0.0) ? std::numeric_limits<double>::infinity() : 0.0;
  }
  const bool negative = std::signbit(x) && is_odd(y);
  if (magnitude == 0.0 || std::isinf(magnitude)) {
    const double result = (magnitude == 0.0) == (y > 0.0) ? 0.0 : std::numeric_limits<double>::infinity();
    return negative ? -result : result;
  }
  if (x < 0.0 && std::floor(y) != y) return std::numeric_limits<double>::quiet_NaN();
  const double result = exp(y * log(magnitude));
  return negative ? -result : result;
}

}  // namespace mote::math

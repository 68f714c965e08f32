// What a prompt takes, from a part of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/program/profile.h"
#include "runner/program/program.h"

namespace mote {

// Instructions of one op, of weights of one format and of one shape take one time: layers are alike.
class Prediction {
 public:
  explicit Prediction(const Bound& bound) : bound_(bound) {}

  // A step of the decode method.
  void add_decode(const Profile& profile);

  // Seconds of a prompt of which the profile has the first instructions. Those of a kind that it has not reached take
  // as long as in a step of decode if they compute one token only, else as many times as long as the others do.
  double of_prompt(const Profile& profile, int64_t tokens) const;

 private:
  struct Time {
    double seconds = 0;
    int64_t count = 0;

    void add(double more) {
      seconds += more;
      ++count;
    }
    double mean() const { return seconds / static_cast<double>(count); }
  };
  using Times = std::map<std::string, Time>;  // by kind

  double of_call(uint32_t method, const Times& seen) const;

  const Bound& bound_;
  Times decode_;
};

}  // namespace mote

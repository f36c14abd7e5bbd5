#include "chip/interval.h"

#include <algorithm>

namespace headway::chip {

Picoseconds length_of_union(std::vector<Interval>& intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::size_t joined = 0;
  Picoseconds length = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (joined > 0 && intervals[i].first <= intervals[joined - 1].second) {
      Interval& last = intervals[joined - 1];
      length += std::max<Picoseconds>(0, intervals[i].second - last.second);
      last.second = std::max(last.second, intervals[i].second);
    } else {
      length += intervals[i].second - intervals[i].first;
      intervals[joined++] = intervals[i];
    }
  }
  intervals.resize(joined);
  return length;
}

}  // namespace headway::chip

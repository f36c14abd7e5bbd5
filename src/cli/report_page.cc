#include "cli/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>
#include <string_view>

#include "show/embedded_page.h"

namespace headway::show {

// The committed bundle web/dist/report.html, generated into the binary by cmake/embed.cmake.
extern const unsigned char kReportTemplate[];
extern const std::size_t kReportTemplateSize;

}  // namespace headway::show

namespace headway::cli {

using train::RunFigures;
using train::RunRecord;
using train::StepRecord;

namespace {

using nlohmann::json;

constexpr std::size_t kMostPoints = 4000;

std::string quoted(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// Six digits are more than a pixel shows; full doubles would triple the page.
void append_number(std::string& out, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(out), "{:.6g}", value);
  } else {
    out += "null";
  }
}
void append_number(std::string& out, std::int64_t value) { out += std::to_string(value); }

template <typename Values, typename Get>
std::string column(const Values& values, const Get& get) {
  std::string out = "[";
  for (const auto& value : values) {
    if (out.size() > 1) out += ',';
    append_number(out, get(value));
  }
  return out + "]";
}

// A step that is shown, with the mean loss of the group it stands for.
struct Point {
  const StepRecord* step;
  double loss_mean;
};

// All steps when they are few; else the smallest and largest loss of equal groups, so that no spike is lost.
std::vector<Point> thinned(const std::vector<StepRecord>& steps) {
  std::vector<Point> points;
  if (steps.size() <= kMostPoints) {
    for (const StepRecord& step : steps) points.push_back({&step, step.loss});
    return points;
  }
  const std::size_t groups = kMostPoints / 2;
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t begin = g * steps.size() / groups;
    const std::size_t end = (g + 1) * steps.size() / groups;
    std::size_t low = begin;
    std::size_t high = begin;
    double sum = 0;
    std::size_t finite = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(steps[i].loss)) continue;
      if (finite == 0 || steps[i].loss < steps[low].loss) low = i;
      if (finite == 0 || steps[i].loss > steps[high].loss) high = i;
      sum += steps[i].loss;
      ++finite;
    }
    const double mean = finite > 0 ? sum / static_cast<double>(finite) : steps[begin].loss;
    points.push_back({&steps[std::min(low, high)], mean});
    if (low != high) points.push_back({&steps[std::max(low, high)], mean});
  }
  // The last step is where the run stands, whatever its loss.
  if (points.back().step != &steps.back()) points.push_back({&steps.back(), points.back().loss_mean});
  return points;
}

std::string points_json(const std::vector<StepRecord>& steps) {
  const std::vector<Point> points = thinned(steps);
  std::set<std::string> groups;
  for (const StepRecord& step : steps) {
    for (const auto& rate : step.learning_rates) groups.insert(rate.first);
  }
  std::string rates;
  for (const std::string& group : groups) {
    rates += (rates.empty() ? "" : ",") + quoted(group) + ":" + column(points, [&](const Point& p) {
               const auto it = p.step->learning_rates.find(group);
               return it == p.step->learning_rates.end() ? std::nan("") : it->second;
             });
  }
  const auto field = [&](const char* name, auto member) {
    return fmt::format("\"{}\":{},", name, column(points, [&](const Point& p) { return p.step->*member; }));
  };
  return "{" + field("step", &StepRecord::step) + field("tokens", &StepRecord::tokens) +
         field("charged_seconds", &StepRecord::charged_seconds) +
         field("host_seconds", &StepRecord::host_seconds) + field("loss", &StepRecord::loss) +
         field("tokens_per_second", &StepRecord::tokens_per_second) + field("mfu", &StepRecord::mfu) +
         field("momentum", &StepRecord::momentum) +
         "\"loss_mean\":" + column(points, [](const Point& p) { return p.loss_mean; }) + ",\"lr\":{" + rates +
         "}}";
}

std::string evaluations_json(const std::vector<StepRecord>& steps) {
  std::vector<const StepRecord*> evaluated;
  for (const StepRecord& step : steps) {
    if (step.val_bpb) evaluated.push_back(&step);
  }
  const auto field = [&](const char* name, auto member) {
    return fmt::format("\"{}\":{},", name,
                       column(evaluated, [&](const StepRecord* s) { return s->*member; }));
  };
  return "{" + field("step", &StepRecord::step) + field("tokens", &StepRecord::tokens) +
         field("charged_seconds", &StepRecord::charged_seconds) +
         field("host_seconds", &StepRecord::host_seconds) +
         "\"val_bpb\":" + column(evaluated, [](const StepRecord* s) { return *s->val_bpb; }) + "}";
}

json figures_json(const RunFigures& f) {
  const auto or_null = [](const auto& value) { return value ? json(*value) : json(nullptr); };
  return {{"val_bpb", or_null(f.val_bpb)},
          {"val_bpb_step", f.val_bpb_step},
          {"corpus_hash", or_null(f.corpus_hash)},
          {"steps", f.steps},
          {"tokens", f.tokens},
          {"tokens_per_second", or_null(f.tokens_per_second)},
          {"mfu", or_null(f.mfu)},
          {"charged_seconds", or_null(f.charged_seconds)},
          {"host_seconds", or_null(f.host_seconds)},
          {"parameters", or_null(f.parameters)},
          {"flops_per_token", or_null(f.flops_per_token)}};
}

std::string run_json(const RunRecord& run, const std::string& name) {
  const json result = run.result.value_or(json::object());
  // While a run is unfinished only its environment knows the price it runs under.
  const auto announced = run.environment.find("price");
  const json price =
      announced != run.environment.end() && announced->is_object() ? *announced : json::object();
  const auto part = [&](const char* key, const json& absent) {
    const auto it = result.find(key);
    return text_of(it != result.end() && it->type() == absent.type() ? *it : absent);
  };
  return fmt::format(
      R"({{"name":{},"state":"{}","void_reason":{},"torn_lines":{},"environment":{},"figures":{},"recipe":{},)"
      R"("price":{},"times":{},"phases":{},"memory":{},"points":{},"evaluations":{}}})",
      quoted(name), run.state(), quoted(run.void_reason()), run.torn_lines, text_of(run.environment),
      text_of(figures_json(run.figures())), text_of(run.recipe_values()), part("price", price),
      part("times", json::array()), part("phases", json::array()), part("memory", json::object()),
      points_json(run.steps), evaluations_json(run.steps));
}

}  // namespace

std::string report_page(const std::vector<RunRecord>& runs) {
  std::multiset<std::string> names;
  for (const RunRecord& run : runs) names.insert(run.name);
  std::string data = R"({"format":1,"runs":[)";
  for (const RunRecord& run : runs) {
    if (&run != &runs.front()) data += ",\n";
    data += run_json(run, names.count(run.name) > 1 ? run.folder.lexically_normal().string() : run.name);
  }
  data += "]}";

  return show::page_with({reinterpret_cast<const char*>(show::kReportTemplate), show::kReportTemplateSize},
                         data);
}

}  // namespace headway::cli

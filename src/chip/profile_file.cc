#include "chip/profile_file.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace headway::chip {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "headway-profile";
constexpr int kVersion = 1;
constexpr std::array<std::string_view, 4> kMemories = {"sbuf", "psum", "private_hbm", "shared_hbm"};
constexpr std::array<std::string_view, 3> kModes = {"static", "software", "hardware"};
constexpr std::array<std::string_view, 4> kTags = {"documented", "measured", "fitted", "assumed"};

// A column of whole numbers: one member of every record. A delta column holds differences to the record
// before.
template <class Record>
struct Column {
  std::string_view name;
  bool delta;
  std::int64_t (*get)(const Record&);
  void (*set)(Record&, std::int64_t);
  std::int64_t low, high;  // what the member can hold
};

template <class Record, auto Member>
constexpr Column<Record> column(std::string_view name, bool delta = false) {
  using Value = std::remove_cvref_t<decltype(std::declval<Record>().*Member)>;
  Column<Record> c{name,
                   delta,
                   [](const Record& r) { return static_cast<std::int64_t>(r.*Member); },
                   [](Record& r, std::int64_t value) { r.*Member = static_cast<Value>(value); },
                   0,
                   0};
  if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>) {
    c.low = std::numeric_limits<Value>::min();
    c.high = std::numeric_limits<Value>::max();
  } else {
    c.high = 255;  // enumerations: `parse_profile` knows their names
  }
  return c;
}

using E = ProfileEvent;
constexpr Column<E> kEventColumns[] = {
    column<E, &E::start>("start", true),   column<E, &E::busy>("busy"),
    column<E, &E::latency>("latency"),     column<E, &E::engine>("engine"),
    column<E, &E::operation>("operation"), column<E, &E::source>("source"),
    column<E, &E::cause>("cause"),         column<E, &E::by>("by"),
    column<E, &E::transfer>("transfer"),   column<E, &E::calibrated>("calibrated")};

using T = ProfileTransfer;
constexpr Column<T> kTransferColumns[] = {column<T, &T::event>("event", true),
                                          column<T, &T::queue>("queue"),
                                          column<T, &T::mode>("mode"),
                                          column<T, &T::from>("from"),
                                          column<T, &T::to>("to"),
                                          column<T, &T::descriptors>("descriptors"),
                                          column<T, &T::descriptor_bytes>("descriptor_bytes"),
                                          column<T, &T::bytes>("bytes"),
                                          column<T, &T::start>("start", true),
                                          column<T, &T::length>("length"),
                                          column<T, &T::arrival>("arrival"),
                                          column<T, &T::engines>("engines")};

// --- Writing. Columns are written as text at once: as values of a JSON library a million events would fill
// gigabytes. ---

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

template <class Record, std::size_t N>
std::string columns_json(const std::vector<Record>& records, const Column<Record> (&columns)[N]) {
  std::string out = "{";
  for (const Column<Record>& column : columns) {
    out += fmt::format("{}\n\"{}\":[", out.size() > 1 ? "," : "", column.name);
    std::int64_t before = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::int64_t value = column.get(records[i]);
      fmt::format_to(std::back_inserter(out), "{}{}", i > 0 ? "," : "",
                     column.delta ? value - before : value);
      before = value;
    }
    out += ']';
  }
  return out + "}";
}

template <class Value>
json deltas(const std::vector<Value>& values) {
  json out = json::array();
  std::int64_t before = 0;
  for (const Value& value : values) {
    out.push_back(static_cast<std::int64_t>(value) - before);
    before = static_cast<std::int64_t>(value);
  }
  return out;
}

template <class Name>
json names_json(std::span<const Name> names) {
  json out = json::array();
  for (const std::string_view name : names) out.push_back(name);
  return out;
}

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

// --- Reading. ---

// A value of the file with the place it has there.
class Place {
 public:
  Place(const json& value, std::string file, std::string path)
      : value_(value), file_(std::move(file)), path_(std::move(path)) {}

  [[noreturn]] void refuse(const std::string& rule, const std::string& remedy = "") const {
    throw InputError(file_, fmt::format("{}{}{}", path_, path_.empty() ? "" : ": ", rule), remedy);
  }
  Place operator[](std::string_view key) const {
    if (!value_.is_object()) refuse("isn't an object");
    const auto at = value_.find(key);
    if (at == value_.end()) refuse(fmt::format("'{}' is missing", key));
    return Place(*at, file_, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key));
  }
  Place operator[](std::size_t i) const { return Place(value_[i], file_, fmt::format("{}[{}]", path_, i)); }
  // Entries of a list.
  std::size_t size() const {
    if (!value_.is_array()) refuse("isn't a list");
    return value_.size();
  }
  std::string text() const {
    if (!value_.is_string()) refuse("isn't a text");
    return value_.get<std::string>();
  }
  double number() const {
    if (value_.is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!value_.is_number()) refuse("isn't a number");
    return value_.get<double>();
  }
  std::int64_t whole(std::int64_t low, std::int64_t high) const {
    if (!value_.is_number_integer()) refuse("isn't a whole number");
    const bool huge =
        value_.is_number_unsigned() &&
        value_.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::int64_t n = huge ? 0 : value_.get<std::int64_t>();
    if (huge || n < low || n > high) refuse(fmt::format("is {}, must be {} to {}", value_.dump(), low, high));
    return n;
  }
  // One of `names`, by its position.
  template <class Name>
  std::size_t one_of(std::span<const Name> names) const {
    const std::string name = text();
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return i;
    refuse(fmt::format("'{}' isn't known", name));
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < size(); ++i) all.push_back((*this)[i].text());
    return all;
  }
  const json& value() const { return value_; }

 private:
  const json& value_;
  std::string file_, path_;
};

constexpr std::int64_t kMostEvents = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 4;  // sums of two stay whole numbers

template <class Record, std::size_t N>
void read_columns(const Place& place, std::vector<Record>& records, const Column<Record> (&columns)[N]) {
  for (const Column<Record>& column : columns) {
    const Place values = place[column.name];
    const std::size_t size = values.size();
    if (&column == columns) records.resize(size);
    if (size != records.size())
      values.refuse(fmt::format("has {} entries, '{}' has {}", size, columns[0].name, records.size()));
    std::int64_t before = 0;
    for (std::size_t i = 0; i < size; ++i) {
      // A place is named only where something is wrong: naming costs more than reading.
      const json& entry = values.value()[i];
      if (!entry.is_number_integer()) values[i].refuse("isn't a whole number");
      if (entry.is_number_unsigned() &&
          entry.template get<std::uint64_t>() > static_cast<std::uint64_t>(kFar))
        values[i].refuse("is out of range");
      std::int64_t value = entry.template get<std::int64_t>();
      if (column.delta && value >= -kFar) value += before;
      if (value < std::max(column.low, -kFar) || value > std::min(column.high, kFar))
        values[i].refuse("is out of range");
      column.set(records[i], value);
      before = value;
    }
  }
}

// Names whose positions the columns use: they must be ours, since ours have meanings.
template <class Name>
void same_names(const Place& place, std::span<const Name> ours) {
  const std::vector<std::string> names = place.texts();
  if (!std::equal(names.begin(), names.end(), ours.begin(), ours.end()))
    place.refuse("has other names than this version knows");
}

// Indices must lie in their tables.
void check(const Place& root, const Profile& p) {
  const auto in = [](std::int64_t i, std::size_t n) { return i >= 0 && i < static_cast<std::int64_t>(n); };
  const auto bad = [&](std::string_view table, std::string_view name, std::size_t i, std::int64_t value) {
    root[table][name][i].refuse(fmt::format("refers to entry {} that isn't there", value));
  };
  for (std::size_t i = 0; i < p.events.size(); ++i) {
    const ProfileEvent& e = p.events[i];
    if (!in(e.operation, p.operations.size())) bad("events", "operation", i, e.operation);
    if (!in(e.source, p.sources.size())) bad("events", "source", i, e.source);
    if (!in(static_cast<std::int64_t>(e.engine), names_of(Engine{}).size()))
      bad("events", "engine", i, static_cast<int>(e.engine));
    if (!in(static_cast<std::int64_t>(e.cause), names_of(Cause{}).size()))
      bad("events", "cause", i, static_cast<int>(e.cause));
    if (e.transfer != 0 && !in(e.transfer - 1, p.transfers.size())) bad("events", "transfer", i, e.transfer);
    if (!in(static_cast<std::int64_t>(i) - e.by, p.events.size())) bad("events", "by", i, e.by);
    if (e.busy < 0) root["events"]["busy"][i].refuse("is negative");
    if (e.latency < 0) root["events"]["latency"][i].refuse("is negative");
    if (e.start < 0) root["events"]["start"][i].refuse("leads before the start");
  }
  for (std::size_t i = 0; i < p.advice.size(); ++i)
    for (std::size_t r = 0; r < p.advice[i].events.size(); ++r) {
      const auto [first, count] = p.advice[i].events[r];
      if (std::uint64_t{first} + count > p.events.size())
        root["advice"][i]["events"][r].refuse("refers to events that aren't there");
    }
  for (std::size_t i = 0; i < p.transfers.size(); ++i) {
    const ProfileTransfer& t = p.transfers[i];
    if (!in(t.event, p.events.size())) bad("transfers", "event", i, t.event);
    if (!in(t.queue, p.queues.size())) bad("transfers", "queue", i, t.queue);
    if (!in(static_cast<std::int64_t>(t.mode), kModes.size()))
      bad("transfers", "mode", i, static_cast<int>(t.mode));
    if (!in(static_cast<std::int64_t>(t.from), kMemories.size()))
      bad("transfers", "from", i, static_cast<int>(t.from));
    if (!in(static_cast<std::int64_t>(t.to), kMemories.size()))
      bad("transfers", "to", i, static_cast<int>(t.to));
    if (t.start < 0) root["transfers"]["start"][i].refuse("leads before the start");
    if (t.length < 0) root["transfers"]["length"][i].refuse("is negative");
    if (t.arrival < 0) root["transfers"]["arrival"][i].refuse("is negative");
  }
}

Counter read_counter(const Place& place, std::int32_t cores) {
  Counter counter;
  counter.name = place["name"].text();
  counter.unit = place["unit"].text();
  counter.core = static_cast<std::int32_t>(place["core"].whole(0, cores - 1));
  counter.limit = place["limit"].number();
  const Place times = place["time"], values = place["value"];
  if (times.size() != values.size())
    values.refuse(fmt::format("has {} entries, 'time' has {}", values.size(), times.size()));
  std::int64_t now = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    now += times[i].whole(i == 0 ? 0 : 1, kFar);
    if (now > kFar) times[i].refuse("is out of range");
    counter.time.push_back(now);
    counter.value.push_back(values[i].number());
  }
  return counter;
}

json critical_json(const Profile& p) {
  constexpr std::size_t kMost = 100000;  // the last ones: a page draws them one by one
  std::vector<std::uint32_t> events = p.critical_events;
  if (events.size() > kMost) events.erase(events.begin(), events.end() - static_cast<std::ptrdiff_t>(kMost));
  return deltas(events);
}

}  // namespace

std::string summary_json(const Profile& p) {
  json figures = json::object();
  for (const auto& [name, value] : p.figures.all()) figures[name] = number(value);
  json order = json::array();
  for (const auto& [name, value] : p.figures.all()) order.push_back(name);
  json trust = {{"low", p.trust.low}, {"high", p.trust.high}, {"uncalibrated", p.trust.uncalibrated}};
  for (std::size_t tag = 0; tag < kTags.size(); ++tag) trust[std::string(kTags[tag])] = p.trust.shares[tag];
  json limits = json::array();
  for (const Limit& limit : p.bound.limits)
    limits.push_back({{"by", limit.by}, {"name", limit.name}, {"time", limit.time}, {"share", limit.share}});
  json path = json::array();
  for (const PathPart& part : p.critical_path)
    path.push_back({{"what", part.what},
                    {"cause", names_of(Cause{})[static_cast<std::size_t>(part.cause)]},
                    {"time", part.time},
                    {"share", part.share},
                    {"count", part.count}});
  json advice = json::array();
  for (const Advice& a : p.advice) {
    json events = json::array();
    for (const auto& [first, count] : a.events) events.push_back({first, count});
    advice.push_back({{"id", a.id},
                      {"title", a.title},
                      {"text", a.text},
                      {"time", a.time},
                      {"share", a.share},
                      {"sources", a.sources},
                      {"events", std::move(events)}});
  }
  json lines = json::array();
  for (const LineFigures& line : p.lines)
    lines.push_back({{"source", line.source},
                     {"operations", line.operations},
                     {"time", line.time},
                     {"critical", line.critical},
                     {"count", line.count}});
  json engines = json::array();
  for (const auto& core : p.engines) {
    json all = json::array();
    for (const EngineFigures& e : core)
      all.push_back({{"engine", e.engine},
                     {"active", e.active},
                     {"instruction_time", e.instruction_time},
                     {"occupied", e.occupied},
                     {"instructions", e.instructions}});
    engines.push_back(std::move(all));
  }
  std::string out = fmt::format("{{\"format\":\"{}\",\"version\":{}", kFormat, kVersion);
  const auto add = [&](std::string_view key, const std::string& value) {
    out += fmt::format(",\"{}\":{}", key, value);
  };
  add("kernel", text_of(p.kernel));
  add("chip", text_of(p.chip));
  add("chip_hash", text_of(p.chip_hash));
  add("core", text_of(p.core));
  add("generation", std::to_string(p.generation));
  add("cores", std::to_string(p.cores));
  add("arguments", text_of(p.arguments));
  add("figures", text_of(figures));
  add("figure_order", text_of(order));
  add("trust", text_of(trust));
  add("bound", text_of({{"by", p.bound.by},
                        {"name", p.bound.name},
                        {"reason", p.bound.reason},
                        {"share", p.bound.share},
                        {"limits", limits}}));
  add("critical_path", text_of(path));
  add("advice", text_of(advice));
  add("lines", text_of(lines));
  add("warnings", text_of(p.warnings));
  add("engine_figures", text_of(engines));
  return out + "}";
}

std::string to_json(const Profile& p) {
  json counters = json::array();
  for (const Counter& c : p.counters) {
    json values = json::array();
    for (const double value : c.value) values.push_back(number(value));
    counters.push_back({{"name", c.name},
                        {"unit", c.unit},
                        {"core", c.core},
                        {"limit", c.limit},
                        {"time", deltas(c.time)},
                        {"value", std::move(values)}});
  }
  std::string out = summary_json(p);
  out.pop_back();
  const auto add = [&](std::string_view key, const std::string& value) {
    out += fmt::format(",\n\"{}\":{}", key, value);
  };
  add("critical_events", text_of(critical_json(p)));
  add("counters", text_of(counters));
  add("engines", text_of(names_json(names_of(Engine{}))));
  add("causes", text_of(names_json(names_of(Cause{}))));
  add("memories", text_of(names_json(std::span<const std::string_view>(kMemories))));
  add("modes", text_of(names_json(std::span<const std::string_view>(kModes))));
  json operations = json::array();
  for (std::size_t i = 0; i < p.operations.size(); ++i)
    operations.push_back({p.operations[i][0], p.operations[i][1], p.operation_flops[i]});
  add("operations", text_of(operations));
  json peaks = json::array();
  for (const auto& [dtype, flops] : p.roofline.peaks) peaks.push_back({{"dtype", dtype}, {"flops", flops}});
  add("roofline", text_of({{"bandwidth", p.roofline.bandwidth},
                           {"mfu_peak", p.roofline.mfu_peak},
                           {"dtype", p.roofline.dtype},
                           {"peaks", peaks}}));
  add("sources", text_of(p.sources));
  add("queues", text_of(p.queues));
  add("core_from", text_of(p.core_from));
  add("events", columns_json(p.events, kEventColumns));
  add("transfers", columns_json(p.transfers, kTransferColumns));
  return out + "}\n";
}

Profile parse_profile(std::string_view text, const std::string& where) {
  json parsed;
  try {
    parsed = json::parse(text);
  } catch (const json::parse_error& error) {
    const std::size_t at = std::min<std::size_t>(error.byte, text.size());
    throw InputError(
        where,
        fmt::format("byte {} of {}: {}", at, text.size(),
                    error.byte > text.size() ? "the file ends in the middle" : "this is no JSON"),
        "Write the profile again with `headway kernel profile --save`");
  } catch (const json::out_of_range&) {
    throw InputError(where, "holds a number that is too large");
  }
  const Place root(parsed, where, "");
  if (!parsed.is_object() || parsed.value("format", json()) != json(kFormat))
    root.refuse("isn't a profile of Headway", "Give what `headway kernel profile --save` wrote");
  if (root["version"].whole(0, kFar) != kVersion)
    root["version"].refuse(fmt::format("is {}, known is {}", parsed["version"].dump(), kVersion),
                           "Use the version of Headway that wrote it");
  same_names(root["engines"], names_of(Engine{}));
  same_names(root["causes"], names_of(Cause{}));
  same_names(root["memories"], std::span<const std::string_view>(kMemories));
  same_names(root["modes"], std::span<const std::string_view>(kModes));

  Profile p;
  p.kernel = root["kernel"].text();
  p.chip = root["chip"].text();
  // Profiles from before the hash was kept lack it.
  if (parsed.contains("chip_hash")) p.chip_hash = root["chip_hash"].text();
  p.core = root["core"].text();
  p.generation = static_cast<std::int32_t>(root["generation"].whole(2, 100));
  p.cores = static_cast<std::int32_t>(root["cores"].whole(1, 255));
  p.arguments = root["arguments"].texts();
  for (const std::string& name : root["figure_order"].texts())
    p.figures.set(name, root["figures"][name].number());
  p.trust.low = root["trust"]["low"].number();
  p.trust.high = root["trust"]["high"].number();
  p.trust.uncalibrated = root["trust"]["uncalibrated"].whole(0, kFar);
  for (std::size_t tag = 0; tag < kTags.size(); ++tag)
    p.trust.shares[tag] = root["trust"][kTags[tag]].number();
  const Place bound = root["bound"];
  p.bound = {bound["by"].text(), bound["name"].text(), bound["reason"].text(), bound["share"].number(), {}};
  for (std::size_t i = 0; i < bound["limits"].size(); ++i) {
    const Place limit = bound["limits"][i];
    p.bound.limits.push_back(
        {limit["by"].text(), limit["name"].text(), limit["time"].number(), limit["share"].number()});
  }
  const Place path = root["critical_path"];
  for (std::size_t i = 0; i < path.size(); ++i)
    p.critical_path.push_back(
        {path[i]["what"].text(), static_cast<Cause>(path[i]["cause"].one_of(names_of(Cause{}))),
         path[i]["time"].number(), path[i]["share"].number(), path[i]["count"].whole(0, kFar)});
  const Place advice = root["advice"];
  for (std::size_t i = 0; i < advice.size(); ++i) {
    p.advice.push_back({advice[i]["id"].text(),
                        advice[i]["title"].text(),
                        advice[i]["text"].text(),
                        advice[i]["time"].number(),
                        advice[i]["share"].number(),
                        advice[i]["sources"].texts(),
                        {}});
    const Place runs = advice[i]["events"];
    for (std::size_t r = 0; r < runs.size(); ++r) {
      if (runs[r].size() != 2) runs[r].refuse("isn't a first event and how many");
      p.advice.back().events.emplace_back(runs[r][0].whole(0, kMostEvents), runs[r][1].whole(1, kMostEvents));
    }
  }
  const Place lines = root["lines"];
  for (std::size_t i = 0; i < lines.size(); ++i)
    p.lines.push_back({lines[i]["source"].text(), lines[i]["operations"].text(), lines[i]["time"].number(),
                       lines[i]["critical"].number(), lines[i]["count"].whole(0, kFar)});
  p.warnings = root["warnings"].texts();
  const Place engines = root["engine_figures"];
  for (std::size_t core = 0; core < engines.size(); ++core) {
    p.engines.emplace_back();
    for (std::size_t e = 0; e < engines[core].size(); ++e) {
      const Place figures = engines[core][e];
      p.engines.back().push_back({figures["engine"].text(), figures["active"].number(),
                                  figures["instruction_time"].number(), figures["occupied"].number(),
                                  figures["instructions"].whole(0, kFar)});
    }
  }
  for (std::size_t i = 0; i < root["counters"].size(); ++i)
    p.counters.push_back(read_counter(root["counters"][i], p.cores));
  const Place operations = root["operations"];
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].size() != 3) operations[i].refuse("isn't a name, what it writes and its FLOPs");
    p.operations.push_back({operations[i][0].text(), operations[i][1].text()});
    p.operation_flops.push_back(operations[i][2].number());
  }
  const Place roofline = root["roofline"], peaks = roofline["peaks"];
  p.roofline = {roofline["bandwidth"].number(), roofline["mfu_peak"].number(), roofline["dtype"].text(), {}};
  for (std::size_t i = 0; i < peaks.size(); ++i)
    p.roofline.peaks.emplace_back(peaks[i]["dtype"].text(), peaks[i]["flops"].number());
  p.sources = root["sources"].texts();
  p.queues = root["queues"].texts();
  read_columns(root["events"], p.events, kEventColumns);
  read_columns(root["transfers"], p.transfers, kTransferColumns);
  const Place cores = root["core_from"];
  if (cores.size() != static_cast<std::size_t>(p.cores) + 1)
    cores.refuse(fmt::format("must have {} entries", p.cores + 1));
  for (std::size_t i = 0; i < cores.size(); ++i) {
    const auto low = static_cast<std::int64_t>(i == 0 ? 0 : p.core_from[i - 1]);
    const auto high = static_cast<std::int64_t>(i == 0 ? 0 : p.events.size());
    p.core_from.push_back(static_cast<std::size_t>(cores[i].whole(i + 1 == cores.size() ? high : low, high)));
  }
  std::int64_t critical = 0;
  const Place critical_events = root["critical_events"];
  for (std::size_t i = 0; i < critical_events.size(); ++i) {
    critical += critical_events[i].whole(-kFar, kFar);
    if (critical < 0 || critical >= static_cast<std::int64_t>(p.events.size()))
      critical_events[i].refuse("refers to an event that isn't there");
    p.critical_events.push_back(static_cast<std::uint32_t>(critical));
  }
  check(root, p);
  return p;
}

}  // namespace headway::chip

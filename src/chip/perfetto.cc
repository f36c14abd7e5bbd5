#include "chip/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "chip/protobuf.h"

namespace headway::chip {
namespace {

// Field numbers of docs/perfetto/headway_trace.proto.
namespace trace {
constexpr int packet = 1;
}
namespace packet {
constexpr int timestamp = 8, sequence_id = 10, event = 11, interned = 12, sequence_flags = 13, track = 60;
}
namespace interned {
constexpr int event_names = 2, annotation_names = 3, iid = 1, name = 2;
}
namespace track {
constexpr int uuid = 1, name = 2, process = 3, parent = 5, counter = 8, child_ordering = 11, rank = 12;
constexpr int pid = 1, process_name = 6, unit = 3, unit_name = 6;
constexpr std::uint64_t explicit_order = 3, count = 2, bytes = 3;
}  // namespace track
namespace event {
constexpr int annotations = 4, type = 9, name_iid = 10, track_uuid = 11, value = 44, flow_ids = 47;
constexpr int annotation_name_iid = 1, uint_value = 3, string_value = 6;
constexpr std::uint64_t begin = 1, end = 2, counter = 4;
}  // namespace event

enum Annotation : std::uint64_t {
  kSource = 1,
  kWrites,
  kWaited,
  kBytes,
  kDescriptors,
  kDescriptorBytes,
  kEngines
};
constexpr const char* kAnnotations[] = {"source",      "writes",           "waited for", "bytes",
                                        "descriptors", "descriptor bytes", "DMA engines"};

class Writer {
 public:
  explicit Writer(const Profile& profile) : p_(profile) {}

  std::string write() {
    names();
    for (std::int32_t core = 0; core < p_.cores; ++core) {
      const std::uint64_t process = next_uuid_++;
      ProtobufMessage descriptor, of_process;
      of_process.add(track::pid, static_cast<std::uint64_t>(core) + 1);
      of_process.add(track::process_name, fmt::format("{} core {}", p_.kernel, core));
      descriptor.add(track::uuid, process);
      descriptor.add(track::process, of_process);
      descriptor.add(track::child_ordering, track::explicit_order);
      track_packet(descriptor);
      rank_ = 0;
      engines(core, process);
      queues(core, process);
      critical_path(core, process);
      for (const Counter& counter : p_.counters)
        if (counter.core == core) values(counter, process);
    }
    return std::move(out_);
  }

 private:
  struct Slice {
    std::int64_t start, end;
    std::size_t index;
  };

  // Every name once, before all else.
  void names() {
    ProtobufMessage all;
    for (std::size_t i = 0; i < p_.operations.size(); ++i)
      name(all, interned::event_names, i + 1, p_.operations[i][0]);
    for (std::size_t i = 0; i < std::size(kAnnotations); ++i)
      name(all, interned::annotation_names, i + 1, kAnnotations[i]);
    ProtobufMessage packet;
    packet.add(packet::sequence_id, kSequence);
    packet.add(packet::interned, all);
    packet.add(packet::sequence_flags, std::uint64_t{1});
    append(packet);
  }
  static void name(ProtobufMessage& all, int field, std::size_t iid, std::string_view text) {
    ProtobufMessage name;
    name.add(interned::iid, iid);
    name.add(interned::name, text);
    all.add(field, name);
  }

  void engines(std::int32_t core, std::uint64_t process) {
    for (const Engine engine :
         {Engine::tensor, Engine::vector, Engine::scalar, Engine::gpsimd, Engine::sync}) {
      std::vector<Slice> slices;
      for (std::size_t i = from(core); i < from(core + 1); ++i)
        if (p_.events[i].engine == engine)
          slices.push_back({p_.events[i].start, p_.events[i].start + p_.events[i].busy, i});
      if (slices.empty()) continue;
      lanes(std::string(names_of(Engine{})[static_cast<std::size_t>(engine)]), process, slices,
            [&](std::size_t i, ProtobufMessage& event) { describe(i, event); });
    }
  }

  void queues(std::int32_t core, std::uint64_t process) {
    for (std::size_t queue = 0; queue < p_.queues.size(); ++queue) {
      std::vector<Slice> slices;
      for (std::size_t i = 0; i < p_.transfers.size(); ++i) {
        const ProfileTransfer& t = p_.transfers[i];
        const auto event = static_cast<std::size_t>(t.event);
        if (static_cast<std::size_t>(t.queue) == queue && event >= from(core) && event < from(core + 1))
          slices.push_back({t.start, t.start + t.length, i});
      }
      if (slices.empty()) continue;
      lanes("DMA " + p_.queues[queue], process, slices, [&](std::size_t i, ProtobufMessage& event) {
        const ProfileTransfer& t = p_.transfers[i];
        const ProfileEvent& trigger = p_.events[static_cast<std::size_t>(t.event)];
        event.add(event::name_iid, static_cast<std::uint64_t>(trigger.operation) + 1);
        annotate(event, kSource, p_.sources[static_cast<std::size_t>(trigger.source)]);
        annotate(event, kBytes, static_cast<std::uint64_t>(t.bytes));
        annotate(event, kDescriptors, static_cast<std::uint64_t>(t.descriptors));
        annotate(event, kDescriptorBytes, static_cast<std::uint64_t>(t.descriptor_bytes));
        annotate(event, kEngines, static_cast<std::uint64_t>(t.engines));
        event.add_fixed(event::flow_ids, i + 1);
      });
    }
  }

  void critical_path(std::int32_t core, std::uint64_t process) {
    std::vector<Slice> slices;
    for (const std::uint32_t i : p_.critical_events)
      if (i >= from(core) && i < from(core + 1))
        slices.push_back({p_.events[i].start, p_.events[i].start + p_.events[i].busy, i});
    if (slices.empty()) return;
    lanes("critical path", process, slices,
          [&](std::size_t i, ProtobufMessage& event) { describe(i, event, false); });
  }

  void values(const Counter& counter, std::uint64_t process) {
    ProtobufMessage of_counter;
    if (counter.unit == "B") {
      of_counter.add(track::unit, track::bytes);
    } else if (counter.unit == "count") {
      of_counter.add(track::unit, track::count);
    } else {
      of_counter.add(track::unit_name,
                     counter.unit == "1" ? std::string_view("share") : std::string_view(counter.unit));
    }
    const std::uint64_t uuid = new_track(counter.name, process, &of_counter);
    for (std::size_t i = 0; i < counter.time.size(); ++i) {
      ProtobufMessage event;
      event.add(event::type, event::counter);
      event.add(event::track_uuid, uuid);
      event.add_double(event::value, counter.value[i]);
      event_packet(counter.time[i], event);
    }
  }

  void describe(std::size_t i, ProtobufMessage& event, bool flow = true) {
    const ProfileEvent& e = p_.events[i];
    const auto& operation = p_.operations[static_cast<std::size_t>(e.operation)];
    event.add(event::name_iid, static_cast<std::uint64_t>(e.operation) + 1);
    annotate(event, kSource, p_.sources[static_cast<std::size_t>(e.source)]);
    annotate(event, kWrites, operation[1]);
    annotate(event, kWaited, names_of(Cause{})[static_cast<std::size_t>(e.cause)]);
    if (flow && e.transfer > 0) event.add_fixed(event::flow_ids, static_cast<std::uint64_t>(e.transfer));
  }

  // Slices on a track must nest: those that overlap go to lanes of their own.
  template <class Describe>
  void lanes(const std::string& name, std::uint64_t process, std::vector<Slice>& slices,
             const Describe& describe) {
    std::stable_sort(slices.begin(), slices.end(),
                     [](const Slice& a, const Slice& b) { return a.start < b.start; });
    std::vector<std::uint64_t> tracks;
    std::multimap<std::int64_t, std::size_t> ends;  // of lanes
    for (const Slice& slice : slices) {
      std::size_t lane = tracks.size();
      if (!ends.empty() && ends.begin()->first <= slice.start) {
        lane = ends.begin()->second;
        ends.erase(ends.begin());
      } else {
        tracks.push_back(
            new_track(tracks.empty() ? name : fmt::format("{} {}", name, tracks.size() + 1), process));
      }
      ends.emplace(slice.end, lane);
      ProtobufMessage event;
      event.add(event::type, event::begin);
      event.add(event::track_uuid, tracks[lane]);
      describe(slice.index, event);
      event_packet(slice.start, event);
      ProtobufMessage end;
      end.add(event::type, event::end);
      end.add(event::track_uuid, tracks[lane]);
      event_packet(slice.end, end);
    }
  }

  std::uint64_t new_track(std::string_view name, std::uint64_t parent,
                          const ProtobufMessage* counter = nullptr) {
    const std::uint64_t uuid = next_uuid_++;
    ProtobufMessage descriptor;
    descriptor.add(track::uuid, uuid);
    descriptor.add(track::name, name);
    descriptor.add(track::parent, parent);
    if (counter) descriptor.add(track::counter, *counter);
    descriptor.add(track::rank, rank_++);
    track_packet(descriptor);
    return uuid;
  }

  static void annotate(ProtobufMessage& event, Annotation name, std::string_view text) {
    if (text.empty()) return;
    ProtobufMessage annotation;
    annotation.add(event::annotation_name_iid, name);
    annotation.add(event::string_value, text);
    event.add(event::annotations, annotation);
  }
  static void annotate(ProtobufMessage& event, Annotation name, std::uint64_t value) {
    ProtobufMessage annotation;
    annotation.add(event::annotation_name_iid, name);
    annotation.add(event::uint_value, value);
    event.add(event::annotations, annotation);
  }

  void track_packet(const ProtobufMessage& descriptor) {
    ProtobufMessage packet;
    packet.add(packet::sequence_id, kSequence);
    packet.add(packet::track, descriptor);
    append(packet);
  }
  void event_packet(std::int64_t time, const ProtobufMessage& event) {
    ProtobufMessage packet;
    packet.add(packet::timestamp, static_cast<std::uint64_t>(time));
    packet.add(packet::sequence_id, kSequence);
    packet.add(packet::event, event);
    packet.add(packet::sequence_flags, std::uint64_t{2});
    append(packet);
  }
  void append(const ProtobufMessage& packet) {
    ProtobufMessage entry;
    entry.add(trace::packet, packet);
    out_ += entry.bytes();
  }
  std::size_t from(std::int32_t core) const { return p_.core_from[static_cast<std::size_t>(core)]; }

  static constexpr std::uint64_t kSequence = 1;
  const Profile& p_;
  std::string out_;
  std::uint64_t next_uuid_ = 1, rank_ = 0;
};

}  // namespace

std::string to_perfetto(const Profile& profile) { return Writer(profile).write(); }

}  // namespace headway::chip

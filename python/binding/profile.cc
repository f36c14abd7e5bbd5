// How long what was recorded takes, and why.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "chip/perfetto.h"
#include "chip/profile.h"
#include "chip/profile_file.h"
#include "chip/timeline.h"
#include "chip/timing.h"
#include "chip/trust.h"
#include "objects.h"
#include "show/profile_page.h"
#include "show/profile_text.h"

namespace headway::python {

void bind_profile(nb::module_& m) {
  using chip::Profile;
  nb::class_<Profile>(m, "Profile", "What a timeline says about a kernel.")
      .def_prop_ro("kernel", [](const Profile& p) { return p.kernel; })
      .def_prop_ro("chip", [](const Profile& p) { return p.chip; })
      .def_prop_ro("arguments", [](const Profile& p) { return p.arguments; })
      .def_prop_ro("figures", [](const Profile& p) { return p.figures.all(); })
      .def_prop_ro("low", [](const Profile& p) { return p.trust.low; })
      .def_prop_ro("high", [](const Profile& p) { return p.trust.high; })
      .def_prop_ro("bound", [](const Profile& p) { return p.bound.by; })
      .def_prop_ro("bound_share", [](const Profile& p) { return p.bound.share; })
      .def_prop_ro("bound_reason", [](const Profile& p) { return p.bound.reason; })
      .def("text", [](const Profile& p) { return show::profile_text(p); })
      .def("page", [](const Profile& p) { return show::profile_page(p); })
      .def("json", [](const Profile& p) { return to_json(p); })
      .def("summary_json", [](const Profile& p) { return summary_json(p); })
      .def("perfetto", [](const Profile& p) {
        const std::string bytes = to_perfetto(p);
        return nb::bytes(bytes.data(), bytes.size());
      });
  m.def(
      "profile",
      [](const std::vector<std::shared_ptr<Trace>>& traces, const std::vector<std::string>& arguments) {
        std::vector<const chip::Program*> programs;
        for (const auto& trace : traces) programs.push_back(&trace->recorder.program());
        const nb::gil_scoped_release release;
        const chip::Timing timing(*traces.at(0)->spec);
        return std::make_shared<Profile>(chip::profile(chip::time(programs, timing), timing, arguments));
      },
      nb::arg("traces"), nb::arg("arguments") = std::vector<std::string>{});
  m.def(
      "seconds",
      // Of the kernel, of the launch that comes to it, and the interval of the first.
      [](const std::vector<std::shared_ptr<Trace>>& traces) {
        std::vector<const chip::Program*> programs;
        for (const auto& trace : traces) programs.push_back(&trace->recorder.program());
        const nb::gil_scoped_release release;
        const chip::Timing timing(*traces.at(0)->spec);
        const chip::Timeline timeline = chip::time(programs, timing);
        return std::vector<double>{chip::seconds(timeline.total), chip::seconds(timeline.launch),
                                   chip::seconds(timeline.low), chip::seconds(timeline.high)};
      },
      nb::arg("traces"));
}

}  // namespace headway::python

"""The profile page in a real Chromium: profile_test.py PAGE HEADWAY [--keep FOLDER].

PAGE is web/dist/profile.html. Profiles are made up (synthetic_profile.py), so that every number on the page is known; one
page is of a kernel that HEADWAY timed.
"""

import json
import pathlib
import statistics
import subprocess
import sys

from browser import BrowserTest, main
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from synthetic_profile import TILE_EVENTS, page, profile

TEMPLATE = pathlib.Path(sys.argv[1]).read_text()
HEADWAY = sys.argv[2]
LARGE = 200_000 // TILE_EVENTS + 1


def times(data):
    """Start of each event in ns."""
    now, starts = 0, []
    for step in data["events"]["start"]:
        now += step
        starts.append(now)
    return starts


class ProfilePage(BrowserTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = profile(40)
        cls.fused = profile(40, kernel="attention_fused", slow=1.4)
        cls.large = profile(LARGE)
        cls.pages = {}
        for title, profiles in (("one", [cls.data]), ("pair", [cls.data, cls.fused]), ("large", [cls.large]),
                                ("cores", [profile(20, cores=2)]), ("bare", [profile(1, advice=False)])):
            cls.pages[title] = cls.place(title)
            cls.pages[title].write_text(page(TEMPLATE, *profiles))

    def open(self, title, **how):
        self.show(self.pages[title], ".timeline[data-to]", **how)

    def frame(self):
        """Waits until what was asked for is drawn."""
        self.browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")

    def view(self):
        self.frame()
        timeline = self.one(".timeline")
        return float(timeline.get_attribute("data-from")), float(timeline.get_attribute("data-to"))

    def point(self, time, track, lane=0.5):
        """Offsets, from the middle of the surface, of a moment on a track; the surface is scrolled into sight."""
        surface = self.one(".surface")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", surface)
        start, end = self.view()
        box = self.browser.execute_script("""
            const box = document.querySelector('.surface').getBoundingClientRect();
            const label = document.querySelector(`.track-label[data-track="${arguments[0]}"]`).getBoundingClientRect();
            return [box.width, box.height, label.top - box.top, label.height];""", track)
        width, height, top, thick = box
        return surface, round((time - start) / (end - start) * width - width / 2), round(top + lane * thick - height / 2)

    def hover(self, time, track, lane=0.5):
        surface, x, y = self.point(time, track, lane)
        ActionChains(self.browser).move_to_element_with_offset(surface, x, y).perform()
        self.frame()
        return self.one(".timeline .readout")

    def click(self, time, track, lane=0.5):
        surface, x, y = self.point(time, track, lane)
        ActionChains(self.browser).move_to_element_with_offset(surface, x, y).click().perform()
        self.frame()

    def press(self, *keys):
        self.one(".surface").send_keys(*keys)

    def wheel(self, time, track, notches, unit=120):
        surface, x, y = self.point(time, track)
        for _ in range(abs(notches)):
            ActionChains(self.browser).scroll_from_origin(ScrollOrigin.from_element(surface, x, y), 0,
                                                          unit if notches > 0 else -unit).perform()

    def event(self, operation, nth):
        """The nth event of an operation: (index, start, busy) in ns."""
        found = [e for e, o in enumerate(self.data["events"]["operation"]) if o == operation][nth]
        return found, times(self.data)[found], self.data["events"]["busy"][found]

    def ink(self, track):
        """Pixels of a track that are not paper: {"#rrggbb": count}."""
        self.frame()
        return self.browser.execute_script("""
            const canvas = document.querySelector('.tracks canvas');
            const label = document.querySelector(`.track-label[data-track="${arguments[0]}"]`);
            const top = label.offsetTop + 4;
            const {data} = canvas.getContext('2d').getImageData(0, top, canvas.width, label.offsetHeight - 8);
            const counts = {};
            for (let i = 0; i < data.length; i += 4) {
              if (data[i + 3] < 250) continue;
              const colour = '#' + [0, 1, 2].map(c => data[i + c].toString(16).padStart(2, '0')).join('');
              counts[colour] = (counts[colour] || 0) + 1;
            }
            return counts;""", track)

    def test_header(self):
        self.open("one")
        self.assertEqual(self.browser.title, "attention – Headway profile")
        total = self.data["figures"]["total_time"]
        self.assertEqual(self.one('[data-figure="total_time"].big').text, f"{total * 1e6:#.4g} µs")
        self.assertIn(f"{total * 0.94e6:#.4g} µs to {total * 1.07e6:#.4g} µs", self.one(".figure").text)
        for words in ("documented 31 %", "measured 42 %", "fitted 20 %", "assumed 7.0 %", "40 instructions have shapes"):
            self.assertIn(words, self.one(".figure").text)
        self.assertIn("q=bfloat16[512, 128]", self.one(".arguments").text)
        self.assertEqual([a.get_attribute("data-advice") for a in self.all(".advice")], ["exponentials", "small-descriptors"])
        self.no_sideways_scroll()
        self.screenshot("one-light")

    def test_hover_tells_the_instruction(self):
        self.open("one")
        index, start, busy = self.event(2, 20)
        tip = self.hover(start + busy / 2, "Scalar")
        self.assertTrue(tip.is_displayed())
        for words in ("activation", "probs[128, 512] <- exp(scores)", f"{start / 1e3:,.3f} µs", f"{busy} ns", "attention.cc:55",
                      "reads what was written by nc_matmul on Tensor, attention.cc:52"):
            self.assertIn(words, tip.text)
        # A transfer, with its trigger.
        transfers = self.data["transfers"]
        nth = 9
        start, length = sum(transfers["start"][:nth + 1]), transfers["length"][nth]
        queue = self.data["queues"][transfers["queue"][nth]]
        tip = self.hover(start + length / 2, queue, 0.25)
        for words in ("dma_copy", f"{transfers['descriptors'][nth]} of", "triggered by dma_copy", "on 16 DMA engines"):
            self.assertIn(words, tip.text)
        # A quantity.
        self.assertIn("of 26 MiB", self.hover(start, "SBUF").text)
        # Nothing ran before the first data came.
        self.assertFalse(self.hover(400, "Tensor").is_displayed())

    def test_what_is_drawn(self):
        self.open("one")
        # As much of a track is painted as its engine is busy.
        painted = self.ink("Vector")
        paper = painted.get("#ffffff", 0)
        share = self.data["figures"]["vector_engine_active_time_percent"]
        width = self.browser.execute_script("return document.querySelector('.tracks canvas').width")
        self.assertGreater(sum(painted.values()), 0.5 * share * width)
        self.assertLess(paper, 0.02 * sum(painted.values()))
        # One bar fills the screen when it is all there is to see.
        _, start, busy = self.event(2, 30)
        self.click(start + busy / 2, "Scalar")
        self.press("f")
        self.view()
        for _ in range(16):
            self.wheel(start + busy / 2, "Scalar", -1, 240)
        first, last = self.view()
        self.assertGreater(first, start)
        self.assertLess(last, start + busy)
        hues = self.ink("Scalar")
        self.assertGreater(max(hues.values()) / sum(hues.values()), 0.9)

    def test_pin_shows_the_cause(self):
        self.open("one")
        index, start, busy = self.event(2, 20)
        self.click(start + busy / 2, "Scalar")
        detail = self.one(".detail")
        self.assertIn("activation", detail.text)
        self.assertIn(f"instruction {index}", detail.text)
        cause = index - self.data["events"]["by"][index]
        link = detail.find_element(By.CSS_SELECTOR, ".link")
        self.assertEqual(link.text, "nc_matmul on Tensor, attention.cc:52")
        self.screenshot("one-pinned")
        link.click()
        self.assertIn(f"instruction {cause}", self.one(".detail").text)
        self.press("n")
        self.assertNotIn(f"instruction {cause}\n", self.one(".detail").text + "\n")
        self.press("p")
        self.assertIn(f"instruction {cause}", self.one(".detail").text)
        self.press(Keys.ENTER)
        before = cause - self.data["events"]["by"][cause]
        self.assertIn(f"instruction {before}", self.one(".detail").text)
        self.press(Keys.ESCAPE)
        self.assertEqual(self.all(".detail"), [])
        # Without a mouse: the first on screen.
        self.press("0", "n")
        self.assertIn("nc_matmul", self.one(".detail").text)

    def test_wheel_keeps_the_moment_under_the_mouse(self):
        self.open("one")
        total = self.view()[1]
        self.wheel(total * 0.25, "Tensor", -4)
        start, end = self.view()
        self.assertAlmostEqual((total * 0.25 - start) / (end - start), 0.25, delta=0.01)
        self.assertLess(end - start, 0.5 * total)
        self.wheel(total * 0.25, "Tensor", 12)
        self.assertEqual(self.view(), (0, total))

    def test_keys_and_drag(self):
        self.open("one")
        total = self.view()[1]
        self.press("w", "w", "+")
        start, end = self.view()
        self.assertAlmostEqual(end - start, total * 0.8 ** 3, delta=2)
        self.press("d")
        self.assertAlmostEqual(self.view()[0], start + 0.12 * (end - start), delta=2)
        self.press(Keys.ARROW_LEFT)
        self.assertAlmostEqual(self.view()[0], start, delta=2)
        surface, x, y = self.point((start + end) / 2, "Tensor")
        width = surface.size["width"]
        ActionChains(self.browser).move_to_element_with_offset(surface, x, y).click_and_hold() \
            .move_by_offset(-60, 0).move_by_offset(-40, 0).release().perform()
        self.assertAlmostEqual(self.view()[0], start + 100 / width * (end - start), delta=2 * total / width)
        self.press("0")
        self.assertEqual(self.view(), (0, total))
        self.press("a")
        self.assertEqual(self.view(), (0, total))

    def select(self, start, end):
        surface, x0, y = self.point(start, "Scalar")
        _, x1, _ = self.point(end, "Scalar")
        ActionChains(self.browser).move_to_element_with_offset(surface, x0, y).key_down(Keys.SHIFT).click_and_hold() \
            .move_by_offset((x1 - x0) // 2, 3).move_by_offset(x1 - x0 - (x1 - x0) // 2, 0).release().key_up(Keys.SHIFT).perform()
        self.frame()

    def test_selection_sums_up(self):
        self.open("one")
        total = self.view()[1]
        self.select(0.2 * total, 0.7 * total)
        text = self.one(".window").text
        whole = 1e9 * self.data["figures"]["total_time"]
        start, end = (float(part.replace(",", "")) * 1e3 for part in
                      self.one(".window .unit").text.replace(" µs", "").split(" to "))
        self.assertAlmostEqual(start, 0.2 * whole, delta=whole / 400)
        starts, events = times(self.data), self.data["events"]
        busy = sum(max(0, min(end, s + b) - max(start, s)) for s, b, e in zip(starts, events["busy"], events["engine"]) if e == 2)
        self.assertIn(f"{busy / 1e3:#.4g} µs", self.one('.window [data-track="Scalar"] .number').text)
        flops = sum(self.data["operations"][1][2] * max(0, min(end, s + b) - max(start, s)) / b
                    for s, b, o in zip(starts, events["busy"], events["operation"]) if o == 1)
        self.assertIn(f"MFU {100 * flops / (end - start) * 1e9 / 78.6e12:.0f} %", text)
        self.screenshot("one-selected")
        self.one('.window [aria-label="Close the selection"]').click()
        self.assertEqual(self.all(".window"), [])

    def test_advice_source_and_path_are_highlighted(self):
        self.open("one")
        marked = "#c2185b"
        self.assertEqual(self.ink("Tensor").get(marked, 0), 0)
        first = self.all(".advice")[0]
        first.click()
        self.assertEqual(first.get_attribute("aria-pressed"), "true")
        self.assertGreater(self.ink("Tensor").get(marked, 0), 500)
        self.assertEqual(self.ink("Vector").get(marked, 0), 0)
        self.assertIn("160 items", self.one(".emphasis").text)
        first.click()
        self.assertEqual(self.ink("Tensor").get(marked, 0), 0)
        # Advice that names its instructions: two, and their transfers.
        self.all(".advice")[1].click()
        self.assertIn("4 items", self.one(".emphasis").text)
        self.one(".toggle").click()
        self.assertGreater(self.ink("Scalar").get(marked, 0), 500)
        self.screenshot("one-path")
        next(b for b in self.all(".source-table th .link") if b.text == "attention.cc:64").click()
        self.assertIn("40 items", self.one(".emphasis").text)
        self.assertGreater(self.ink("Vector").get(marked, 0), 200)

    def test_search(self):
        self.open("one")
        box = self.one('input[type="search"]')
        box.send_keys("transpose tensor", Keys.ENTER)
        self.until(lambda: "1 of 40" in self.one(".emphasis").text)
        self.assertIn("nc_transpose", self.one(".detail").text)
        index, start, busy = self.event(4, 0)
        first, last = self.view()
        self.assertTrue(first <= start and start + busy <= last)
        box.send_keys(Keys.ENTER)
        self.until(lambda: "2 of 40" in self.one(".emphasis").text)
        box.clear()
        box.send_keys("no such thing")
        self.until(lambda: "nothing" in self.one(".emphasis").text)

    def test_tables(self):
        self.open("one")
        rows = {row.find_element(By.TAG_NAME, "th").text: [cell.text for cell in row.find_elements(By.TAG_NAME, "td")]
                for row in self.all(".source-table tbody tr")}
        busy = sum(b for b, o in zip(self.data["events"]["busy"], self.data["events"]["operation"]) if o == 2)
        self.assertEqual(rows["attention.cc:55"][2], f"{busy / 1e3:#.4g} µs")
        self.assertEqual(rows["attention.cc:55"][4:], ["80", "activation"])
        # The critical path, divided over lines, is the total.
        shares = [float(cells[1].replace(" %", "")) for cells in rows.values() if cells[1]]
        self.assertAlmostEqual(sum(shares), 100, delta=3)
        sort = next(b for b in self.all(".source-table thead button") if b.text == "count")
        sort.click()
        counts = [int(row.find_elements(By.TAG_NAME, "td")[4].text) for row in self.all(".source-table tbody tr")]
        self.assertEqual(counts, sorted(counts, reverse=True))
        figure = self.one('.figure-line[data-figure="mfu_estimated_percent"] dd').text
        self.assertEqual(figure, f"{100 * self.data['figures']['mfu_estimated_percent']:.1f} %")
        self.assertIn("31.6 % of what the roof allows", self.one(".roofline + p").text)

    def test_two_profiles(self):
        self.open("pair", dark=True)
        self.assertEqual([h.text for h in self.all(".track-label.heading")], ["A · attention", "B · attention_fused"])
        # One axis: the longer of the two.
        self.assertAlmostEqual(self.view()[1], 1e9 * self.fused["figures"]["total_time"], delta=1)
        rows = {row.find_element(By.TAG_NAME, "th").text: row.text for row in self.all(".pair .sortable tbody tr")}
        self.assertIn("+40 %", rows["activation, Scalar"])
        self.assertIn("total_time", rows)
        self.assertNotIn("hardware_flops", rows)
        self.assertEqual(len(self.all(".roofline .kernel")), 2)
        self.no_sideways_scroll()
        self.screenshot("pair-dark")

    def test_kernel_that_was_timed(self):
        out, saved = self.place("attention"), self.folder / "unfused.json"
        run = [HEADWAY, "kernel", "profile", "measured/attention_unfused"]
        subprocess.run([*run, "--save", saved], check=True, stdout=subprocess.DEVNULL)
        line = subprocess.run([HEADWAY, "kernel", "profile", "attention", "--json", "--html", out], check=True,
                              capture_output=True, text=True).stdout.splitlines()[-1]
        data = json.loads(line)
        self.show(out, ".timeline[data-to]")
        self.assertEqual(self.one('[data-figure="total_time"].big').text, f"{data['figures']['total_time'] * 1e6:#.4g} µs")
        self.assertEqual(len(self.all(".advice")), len(data["advice"]))
        self.assertEqual(len(self.all(".figure-line")), len(data["figures"]))
        self.assertGreaterEqual(len(self.all(".roofline .roof")), 3)
        labels = [label.get_attribute("data-track") for label in self.all(".track-label")]
        self.assertEqual(labels[:4], ["Tensor", "Vector", "Scalar", "GpSimd"])
        self.press("n")
        self.assertIn("attention.cc:", self.one(".detail").text)
        self.one(".toggle").click()
        self.assertGreater(self.ink("Tensor").get("#c2185b", 0), 20)
        self.screenshot("attention")
        both = self.place("attention-against")
        subprocess.run([HEADWAY, "kernel", "profile", "measured/attention_fused", "--against", saved, "--html", both],
                       check=True, stdout=subprocess.DEVNULL)
        self.show(both, ".timeline[data-to]")
        self.assertEqual(len(self.all(".track-label.heading")), 2)
        self.screenshot("attention-against")

    def test_two_cores(self):
        self.open("cores")
        self.assertEqual([h.text for h in self.all(".track-label.heading")], ["Core 0", "Core 1"])
        self.assertEqual(len(self.all('.track-label[data-track="Tensor"]')), 2)

    def test_little(self):
        self.open("bare")
        self.assertEqual(self.all(".advice"), [])
        self.assertIn("nc_matmul", self.hover(self.view()[1] * 0.6, "Tensor").text + self.one(".source-table").text)

    def test_narrow(self):
        for width in (800, 1280):
            self.open("one", width=width)
            self.no_sideways_scroll()
            self.open("pair", width=width)
            self.no_sideways_scroll()
            self.screenshot(f"pair-{width}")

    def test_no_data(self):
        empty = self.place("empty")
        empty.write_text(TEMPLATE)
        self.show(empty, ".failure")
        self.assertIn("holds no profile", self.one(".failure").text)
        newer = self.place("newer")
        newer.write_text(page(TEMPLATE, self.data | {"version": 2}))
        self.show(newer, ".failure")
        self.assertIn("headway-profile 2", self.one(".failure").text)
        self.browser.get_log("browser")  # the page says so there too

    def test_large(self):
        self.open("large")
        self.assertGreater(len(self.large["events"]["start"]), 200_000)
        load = self.browser.execute_script("""
            const [entry] = performance.getEntriesByType('navigation');
            return [entry.domInteractive, entry.domContentLoadedEventEnd, entry.loadEventEnd];""")
        # Zooms in by steps around a moment, pans, and zooms out again.
        frames = self.browser.execute_async_script("""
            const done = arguments[0];
            const surface = document.querySelector('.surface');
            const frames = [];
            document.querySelector('.timeline').addEventListener('frame', (event) => frames.push(event.detail));
            const box = surface.getBoundingClientRect();
            const key = (name) => surface.dispatchEvent(new KeyboardEvent('keydown', {key: name, bubbles: true}));
            const wheel = (deltaY) => surface.dispatchEvent(new WheelEvent('wheel',
                {deltaY, clientX: box.left + 0.37 * box.width, clientY: box.top + 20, bubbles: true, cancelable: true}));
            const steps = [...Array(36).fill(() => wheel(-120)), ...Array(12).fill(() => key('d')),
                           ...Array(36).fill(() => wheel(120))];
            const next = () => {
              const step = steps.shift();
              if (step === undefined) return done(frames);
              step();
              requestAnimationFrame(() => requestAnimationFrame(next));
            };
            next();""")
        spent = sorted(frame["milliseconds"] for frame in frames)
        print(f"\n{len(self.large['events']['start']):,} instructions, {len(frames)} frames: median "
              f"{statistics.median(spent):.1f} ms, 95 % {spent[int(0.95 * len(spent))]:.1f} ms, most {spent[-1]:.1f} ms, "
              f"at most {max(f['rectangles'] for f in frames):,} rectangles; interactive after {load[0]:.0f} ms, ready after {load[2]:.0f} ms")
        self.assertGreater(len(frames), 60)
        # Pixels bound what is drawn: a track's lane has one rectangle a pixel column at most, an area two.
        width = self.browser.execute_script("return document.querySelector('.tracks canvas').width")
        tracks = len(self.all(".track-label"))
        self.assertLess(max(f["rectangles"] for f in frames), 2 * width * (tracks + 4))
        self.assertEqual(self.view()[0], 0)
        # In the middle of it, the right instruction is under the mouse.
        starts = times(self.large)
        index = [e for e, o in enumerate(self.large["events"]["operation"]) if o == 2][LARGE]
        box = self.one('input[type="search"]')
        box.send_keys("activation")
        self.until(lambda: "30,770 items" in self.one(".emphasis").text)
        for _ in range(34):
            self.wheel(starts[index] + 100, "Scalar", -1, 240)
        tip = self.hover(starts[index] + 100, "Scalar")
        self.assertIn(f"{starts[index] / 1e3:,.3f} µs", tip.text)
        self.screenshot("large")


if __name__ == "__main__":
    main()

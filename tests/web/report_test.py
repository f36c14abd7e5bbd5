"""The report page in a real Chromium: report_test.py HEADWAY [--keep FOLDER].

Writes run folders, has HEADWAY make pages of them, and looks at the pages as a reader would. With --keep the pages and
screenshots of them stay in FOLDER.
"""

import base64
import json
import math
import os
import subprocess
import sys
import time

from browser import KEEP, BrowserTest, main
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

HEADWAY = sys.argv[1]
CORPUS = "9f2c41d07be85a13c66e0d94b1f7a2e8"
TOKENS_A_STEP = 2048


def loss_at(step, shift=0.0):
    """A plausible loss: a power law with a ripple that repeats exactly."""
    return 3.1 + shift + 6.0 * step ** -0.45 + 0.06 * math.sin(step * 12.9898) * math.sin(step * 4.1414)


def write_run(root, name, steps=600, shift=0.0, speed=9800.0, step_seconds=1.318, finished=True, void=None,
              rate=0.025, corpus=CORPUS, torn=False, charged=True):
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(
        f'[model]\nlayers = 12\nwidth = 512\nhead_size = 64\nactivation = "relu2"\n'
        f'[optimizer]\nname = "muon"\nmatrix_rate = {rate}\nembedding_rate = 0.3\nbetas = [0.9, 0.95]\n'
        f'[schedule]\nwarmup = 40\ncooldown_share = 0.4\n[budget]\nsteps = {steps}\n')
    (folder / "environment.json").write_text(json.dumps({
        "headway": "0.1", "processor": "AMD EPYC 9R14 <2 cores>", "threads": 2, "started": "2026-01-02T03:04:05Z",
        "parameters": 59613696, "price": {"step_seconds": step_seconds, "basis": "FLOPs at 40 % of the peak"}}))
    host = 0.0
    lines = []
    for step in range(1, steps + 1):
        pace = speed * (1 + 0.03 * math.sin(step * 7.7)) * (0.55 if step == 1 else 1)
        host += TOKENS_A_STEP / pace
        fraction = min(step / 40, 1) * min((steps - step + 1) / (0.4 * steps), 1)
        line = {"step": step, "tokens": step * TOKENS_A_STEP, "loss": loss_at(step, shift),
                "charged_seconds": max(0, step - 5) * step_seconds if charged else 0.0, "host_seconds": host,
                "step_seconds": TOKENS_A_STEP / pace, "tokens_per_second": pace, "mfu": 0.51 * pace / 9800, "epoch": 1,
                "lr": {"matrix": rate * fraction, "embedding": 0.3 * fraction}, "momentum": 0.85 + 0.1 * min(step / 300, 1)}
        if step % max(1, steps // 12) == 0:
            line["val_bpb"] = 0.27 * loss_at(step, shift) + 0.3
        lines.append(json.dumps(line))
    text = "\n".join(lines) + "\n"
    if torn:
        text += lines[-1][:40]
    (folder / "steps.jsonl").write_text(text)
    if not finished:
        return folder
    times = []
    for layer in range(12):
        times += [{"scope": f"h.{layer}.attn", "kernel": "linear", "seconds": 1.2, "flops": 9.1e10, "calls": steps},
                  {"scope": f"h.{layer}.attn", "kernel": "attention", "seconds": 0.9, "flops": 2.2e10, "calls": steps},
                  {"scope": f"h.{layer}.attn", "kernel": "rotary", "seconds": 0.12, "flops": 2e8, "calls": steps},
                  {"scope": f"h.{layer}.mlp", "kernel": "linear", "seconds": 2.6, "flops": 2.1e11, "calls": steps},
                  {"scope": f"h.{layer}.mlp", "kernel": "relu2", "seconds": 0.2, "flops": 3e8, "calls": steps},
                  {"scope": f"h.{layer}.norm", "kernel": "rms_norm", "seconds": 0.1, "flops": 2e8, "calls": steps}]
    times += [{"scope": "lm_head", "kernel": "linear", "seconds": 21.0, "flops": 1.9e12, "calls": steps},
              {"scope": "loss", "kernel": "softcap_cross_entropy", "seconds": 7.5, "flops": 3e10, "calls": steps},
              {"scope": "embed", "kernel": "embedding", "seconds": 0.9, "flops": 0, "calls": steps},
              {"scope": "optim", "kernel": "polar_express", "seconds": 14.0 * 9800 / speed, "flops": 8e11, "calls": steps},
              {"scope": "optim", "kernel": "adamw", "seconds": 3.0, "flops": 1e9, "calls": steps}]
    (folder / "result.json").write_text(json.dumps({
        "name": name, "val_bpb": 0.27 * loss_at(steps, shift) + 0.3, "corpus_hash": corpus, "steps": steps,
        "tokens": steps * TOKENS_A_STEP, "tokens_per_second": steps * TOKENS_A_STEP / host, "mfu": 0.508,
        "charged_seconds": (steps - 5) * step_seconds if charged else 0.0, "host_seconds": host, "parameters": 59613696,
        "flops_per_token": 3.58e8, "finished": True, "score_void_reason": void,
        "price": {"step_seconds": step_seconds, "basis": "FLOPs at 40 % of the peak"}, "times": times,
        "phases": [{"name": "train", "seconds": host * 0.93}, {"name": "evaluate", "seconds": host * 0.05},
                   {"name": "save", "seconds": 1.4}, {"name": "data", "seconds": 0.4}],
        "memory": {"planned_bytes": 1.9e9, "peak_bytes": 2.1e9}}))
    return folder


class Report(BrowserTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.runs = cls.folder / "runs"
        write_run(cls.runs, "baseline")
        write_run(cls.runs, "wide-mlp", steps=520, shift=-0.08, speed=8600.0, step_seconds=1.52, rate=0.03)
        cls.pages = {"two": cls.page("two", "baseline", "wide-mlp"), "one": cls.page("one", "baseline")}
        write_run(cls.runs, "killed", steps=150, finished=False, torn=True)
        write_run(cls.runs, "void", steps=90, void="trained on </script><b>validation</b> text", corpus="0" * 32)
        write_run(cls.runs, "long", steps=9000, charged=False)
        write_run(cls.runs, "unstepped", steps=0, finished=False)
        cls.pages["odd"] = cls.page("odd", "baseline", "killed", "void", "long", "unstepped")
        many = [f"trial-{r:02}-with-a-rather-long-name" for r in range(20)]
        for r, name in enumerate(many):
            write_run(cls.runs, name, steps=2000, shift=0.01 * r, step_seconds=0.9 + 0.001 * r, speed=9000 + 37 * r)
        cls.pages["many"] = cls.page("many", *many)

    @classmethod
    def page(cls, title, *runs):
        out = cls.place(title)
        subprocess.run([HEADWAY, "report", *runs, "--dir", cls.runs, "--out", out], check=True,
                       stdout=subprocess.DEVNULL)
        return out

    def open(self, title, width=1280, height=900, dark=False):
        self.show(self.pages[title], "#chart-loss canvas", width, height, dark)

    def painted(self, chart):
        """How many pixels of the plotting area have each run's colour: {"#rrggbb": count}."""
        # A chart is drawn in a microtask or frame after it was asked for.
        return self.browser.execute_async_script("""
            const done = arguments[1];
            requestAnimationFrame(() => requestAnimationFrame(() => {
              const canvas = document.querySelector(`#chart-${arguments[0]} canvas`);
              const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
              const counts = {};
              for (let i = 0; i < data.length; i += 4) {
                if (data[i + 3] < 250) continue;
                const colour = '#' + [0, 1, 2].map(c => data[i + c].toString(16).padStart(2, '0')).join('');
                counts[colour] = (counts[colour] || 0) + 1;
              }
              done(counts);
            }));""", chart)

    def press(self, group, value):
        self.one(f'[aria-label="{group}"] [data-value="{value}"]').click()

    def hover(self, chart, share):
        """Moves the mouse to that share of the chart's width and returns the readout's (place, {name: value})."""
        over = self.one(f"#chart-{chart} .u-over")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", over)
        size = over.size
        ActionChains(self.browser).move_to_element_with_offset(
            over, round(size["width"] * (share - 0.5)), 0).perform()
        readout = self.until(lambda: [r for r in self.all(f"#chart-{chart} .readout") if r.is_displayed()])[0]
        values = {row.find_element(By.CSS_SELECTOR, ".name").text: row.find_element(By.CSS_SELECTOR, ".value").text
                  for row in readout.find_elements(By.CSS_SELECTOR, "tr")}
        return readout.find_element(By.CSS_SELECTOR, ".at").text, values

    def smoothing(self, index):
        self.browser.execute_script("""
            const slider = document.querySelector('#smoothing');
            slider.value = arguments[0];
            slider.dispatchEvent(new Event('input'));""", index)

    def test_summary_values(self):
        self.open("two")
        self.assertEqual(self.browser.title, "baseline · wide-mlp – Headway")
        rows = self.all("#summary tbody tr")
        self.assertEqual([row.find_element(By.TAG_NAME, "th").text for row in rows], ["baseline", "wide-mlp"])
        figures = [{cell.get_attribute("data-figure"): cell.text for cell in row.find_elements(By.TAG_NAME, "td")}
                   for row in rows]
        self.assertEqual(figures[0]["val_bpb"], f"{0.27 * loss_at(600) + 0.3:.4f}")
        self.assertEqual(figures[0]["steps"], "600")
        self.assertEqual(figures[0]["tokens"], "1,228,800")
        self.assertEqual(figures[0]["mfu"], "50.8 %")
        self.assertEqual(figures[0]["charged_seconds"], "784")
        self.assertEqual(figures[0]["step_seconds"], "1.318 s")
        self.assertEqual(figures[0]["parameters"], "59,613,696")
        self.assertEqual(figures[0]["corpus_hash"], CORPUS[:8])
        self.assertAlmostEqual(int(figures[0]["tokens_per_second"].replace(",", "")), 9800, delta=100)
        # The lower val_bpb is marked: both runs finished on the same corpus.
        best = self.all("#summary .best")
        self.assertEqual([cell.text for cell in best], [figures[1]["val_bpb"]])
        self.assertEqual(self.all(".notes"), [])
        self.screenshot("two-light")

    def test_both_runs_are_drawn_in_their_colours(self):
        self.open("two")
        for chart in ("loss", "val_bpb", "rates", "throughput", "mfu"):
            painted = self.painted(chart)
            for colour in ("#0072b2", "#d55e00"):
                self.assertGreater(painted.get(colour, 0), 60, (chart, colour))

    def test_dark_theme(self):
        self.open("two", dark=True)
        painted = self.painted("loss")
        self.assertGreater(painted.get("#4ba6e0", 0), 60)
        self.assertEqual(self.browser.execute_script("return getComputedStyle(document.documentElement).backgroundColor"),
                         "rgb(17, 21, 28)")
        self.screenshot("two-dark")

    def test_theme_follows_the_system(self):
        self.open("two")
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark"}]})
        self.until(lambda: self.painted("loss").get("#4ba6e0", 0) > 60)

    def test_readout_shows_the_value(self):
        self.open("two")
        self.smoothing(0)
        self.press("x axis", "step")
        place, values = self.hover("loss", 0.5)
        step = int(place.replace("step ", "").replace(",", ""))
        self.assertAlmostEqual(step, 300, delta=4)
        self.assertEqual(values, {"baseline": f"{loss_at(step):.4f}", "wide-mlp": f"{loss_at(step, -0.08):.4f}"})
        # Beyond the end of the shorter run only the longer one is read out.
        place, values = self.hover("loss", 0.97)
        self.assertEqual(list(values), ["baseline"])
        # Between evaluations the nearest one counts.
        place, values = self.hover("val_bpb", 0.5)
        self.assertEqual(values["baseline"], f"{0.27 * loss_at(300) + 0.3:.4f}")

    def test_smoothing(self):
        self.open("two")
        self.press("x axis", "step")
        self.smoothing(3)
        self.until(lambda: "mean of 20 steps" in self.one("#chart-loss h3").text)
        place, values = self.hover("loss", 0.5)
        step = int(place.replace("step ", ""))
        mean = sum(loss_at(s) for s in range(step - 19, step + 1)) / 20
        self.assertEqual(values["baseline"], f"{mean:.4f}")

    def test_x_axis(self):
        self.open("two")
        self.smoothing(0)
        for kind, said in (("tokens", "tokens"), ("charged_seconds", "charged"), ("host_seconds", "on the host")):
            self.press("x axis", kind)
            place, _ = self.hover("loss", 0.5)
            self.assertTrue(place.endswith(said), place)
        # At equal charged time the dearer run has done fewer steps: its loss is that of an earlier one.
        self.press("x axis", "charged_seconds")
        place, values = self.hover("loss", 0.5)
        expected = {f"{loss_at(step, -0.08):.4f}" for step in range(255, 275)}
        self.assertIn(values["wide-mlp"], expected)
        self.screenshot("two-charged")

    def test_log_scales(self):
        self.open("two")
        before = self.painted("loss")
        self.press("y scale", "log")
        self.press("x scale", "log")
        after = self.painted("loss")
        self.assertNotEqual(before, after)
        self.assertGreater(after.get("#0072b2", 0), 60)
        self.screenshot("two-log")

    def test_zoom_by_drag_is_shared_and_undone(self):
        self.open("two")
        self.smoothing(0)
        self.press("x axis", "step")
        over = self.one("#chart-loss .u-over")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", over)
        width = over.size["width"]
        ActionChains(self.browser).move_to_element_with_offset(over, round(-0.25 * width), 0).click_and_hold() \
            .move_by_offset(round(0.25 * width), 5).move_by_offset(round(0.25 * width), 0).release().perform()
        reset = self.until(lambda: [b for b in self.all(".reset") if b.is_displayed()])[0]
        for chart in ("loss", "throughput"):
            place, _ = self.hover(chart, 0.02)
            self.assertAlmostEqual(int(place.replace("step ", "")), 156, delta=8)
        reset.click()
        place, _ = self.hover("throughput", 0.98)
        self.assertGreater(int(place.replace("step ", "")), 570)
        self.assertFalse(reset.is_displayed())

    def test_legend_hides_a_run(self):
        self.open("two")
        run = self.all(".legend .run")[0]
        run.click()
        self.assertEqual(run.get_attribute("aria-pressed"), "false")
        self.assertEqual(self.painted("loss").get("#0072b2", 0), 0)
        self.assertGreater(self.painted("loss").get("#d55e00", 0), 60)
        _, values = self.hover("loss", 0.5)
        self.assertEqual(list(values), ["wide-mlp"])
        run.click()
        self.assertGreater(self.painted("loss").get("#0072b2", 0), 60)

    def test_where_the_time_went(self):
        self.open("two")
        parts = [label.text for label in self.all("#time-parts .bar-label")]
        self.assertEqual(parts[:3], ["MLP", "attention", "output head"])
        kernels = self.one("#time-kernels .bar-group")
        self.assertEqual(kernels.find_element(By.CSS_SELECTOR, ".bar-label").text, "linear")
        # 12 layers of 1.2 + 2.6 s and the head's 21 s.
        self.assertEqual([value.text for value in kernels.find_elements(By.CSS_SELECTOR, ".bar-value")],
                         ["1 min 07 s", "1 min 07 s"])
        self.assertEqual(self.all("#time-phases .bar-label")[0].text, "train")

    def test_recipe_differences(self):
        self.open("two")
        rows = self.all("#recipes > .card tbody tr")
        self.assertEqual([[cell.text for cell in row.find_elements(By.CSS_SELECTOR, "th, td")] for row in rows],
                         [["budget.steps", "600", "520"], ["optimizer.matrix_rate", "0.025", "0.03"]])

    def test_learning_rate_of_a_group(self):
        self.open("two")
        self.press("x axis", "step")
        place, values = self.hover("rates", 0.25)
        self.assertEqual(values["baseline"], "0.3")
        self.one("#rate-of").find_element(By.CSS_SELECTOR, '[value="matrix"]').click()
        place, values = self.hover("rates", 0.25)
        self.assertEqual(values["baseline"], "0.025")

    def test_one_run(self):
        self.open("one")
        self.assertEqual(self.one("h1").text, "baseline")
        self.assertGreater(self.painted("loss").get("#0072b2", 0), 60)
        self.assertEqual(self.all("#summary .best"), [])
        self.screenshot("one-light")

    def test_phone(self):
        for title in ("two", "one", "odd", "many"):
            self.open(title, width=390, height=844)
            self.no_sideways_scroll()
            self.screenshot(f"{title}-phone")
        self.open("two", width=320, height=640, dark=True)
        self.no_sideways_scroll()
        self.screenshot("two-phone-dark")

    def test_window_that_changes_its_size(self):
        self.open("two")
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": 700, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        self.until(lambda: self.one("#chart-loss canvas").size["width"] < 690)
        self.no_sideways_scroll()

    def test_odd_runs(self):
        self.open("odd")
        notes = self.one(".notes").text
        self.assertIn("killed is unfinished: figures up to step 150; val_bpb is that of step 144", notes)
        self.assertIn("killed was interrupted while it wrote: 1 torn line left out", notes)
        self.assertIn("void is void, its val_bpb doesn't count: trained on </script><b>validation</b> text", notes)
        self.assertIn("unstepped is unfinished", notes)
        # A price is known from the start.
        self.assertEqual(self.all('#summary [data-figure="step_seconds"]')[1].text, "1.318 s")
        self.assertIn("can't be compared", notes)
        self.assertEqual(self.all("#summary .best"), [])  # nothing to rank: different corpora
        self.assertIn("AMD EPYC 9R14 <2 cores>", self.one("#environments").get_attribute("textContent"))
        # 9,000 steps are thinned, and smoothing still gives the mean of what was there.
        self.smoothing(6)
        self.press("x axis", "step")
        for name in ("baseline", "killed", "void", "unstepped"):
            next(run for run in self.all(".legend .run") if run.text == name).click()
        place, values = self.hover("loss", 0.9)
        step = int(place.replace("step ", "").replace(",", ""))
        mean = sum(loss_at(s) for s in range(step - 99, step + 1)) / 100
        self.assertAlmostEqual(float(values["long"]), mean, delta=0.003)
        self.screenshot("odd-light")

    def test_twenty_runs_stay_usable(self):
        self.assertLess(os.path.getsize(self.pages["many"]), 8_000_000)
        start = time.time()
        self.open("many")
        self.painted("mfu")
        self.assertLess(time.time() - start, 10)
        start = time.time()
        self.press("x axis", "charged_seconds")
        self.painted("mfu")
        self.assertLess(time.time() - start, 5)
        _, values = self.hover("loss", 0.5)
        self.assertEqual(len(values), 12)
        self.assertIn("8 more", self.one("#chart-loss .readout .more").text)
        self.no_sideways_scroll()
        self.screenshot("many-light")

    def test_print(self):
        self.open("two", dark=True)
        pdf = self.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
        data = base64.b64decode(pdf["data"])
        self.assertTrue(data.startswith(b"%PDF"))
        if KEEP:
            (KEEP / "two.pdf").write_bytes(data)
        # Afterwards the page is as it was.
        self.assertGreater(self.painted("loss").get("#4ba6e0", 0), 60)


if __name__ == "__main__":
    main()

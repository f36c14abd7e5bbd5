"""Pages in a real Chromium, for tests: the driver, skipping where something is missing, and what all such tests do.

A test is run as TEST.py ... [--keep FOLDER]; with --keep the pages and screenshots of them stay in FOLDER.
"""

import base64
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
except ImportError:
    print("SKIPPED: Selenium for Python is not installed (python3-selenium)")
    sys.exit(77)

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
if not CHROMIUM or not DRIVER:
    print("SKIPPED: Chromium or its driver is not installed (chromium, chromium-driver)")
    sys.exit(77)

KEEP = pathlib.Path(sys.argv[sys.argv.index("--keep") + 1]) if "--keep" in sys.argv else None


class BrowserTest(unittest.TestCase):
    """`folder` is there for what a class writes; `browser` is started once a class."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="headway-page-"))
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
                         "disable-background-networking", "disable-component-update", "disable-sync",
                         "force-device-scale-factor=1", f"user-data-dir={cls.folder / 'profile'}"):
            options.add_argument("--" + argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(service=Service(DRIVER), options=options)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def tearDown(self):
        # The only thing Chromium may complain about is a test's own reading of pixels.
        errors = [entry for entry in self.browser.get_log("browser")
                  if entry["level"] in ("SEVERE", "WARNING") and "willReadFrequently" not in entry["message"]]
        self.assertEqual(errors, [])

    @classmethod
    def place(cls, title):
        """Where a page with that title goes."""
        out = (KEEP or cls.folder) / f"{title}.html"
        out.parent.mkdir(parents=True, exist_ok=True)
        return out

    def show(self, page, ready, width=1280, height=900, dark=False):
        """Opens a page and waits for what the selector `ready` finds."""
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.browser.get(page.resolve().as_uri())
        self.until(lambda: self.browser.find_elements(By.CSS_SELECTOR, ready))

    def until(self, condition):
        for _ in range(100):
            result = condition()
            if result:
                return result
            time.sleep(0.05)
        self.fail("timed out")

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def no_sideways_scroll(self):
        self.assertLessEqual(self.browser.execute_script("return document.documentElement.scrollWidth"),
                             self.browser.execute_script("return document.documentElement.clientWidth"))

    def screenshot(self, name):
        if not KEEP:
            return
        height = self.browser.execute_script("return document.documentElement.scrollHeight")
        image = self.browser.execute_cdp_cmd("Page.captureScreenshot", {
            "captureBeyondViewport": True, "format": "png",
            "clip": {"x": 0, "y": 0, "scale": 1, "height": min(height, 6000),
                     "width": self.browser.execute_script("return document.documentElement.clientWidth")}})
        (KEEP / f"{name}.png").write_bytes(base64.b64decode(image["data"]))


def main():
    unittest.main(argv=[sys.argv[0]], verbosity=2)

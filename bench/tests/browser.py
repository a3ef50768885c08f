#!/usr/bin/env python3
"""browser.py PAGE [SHOTS]: opens a page of `nbbs report` in headless Chromium, wide and narrow, light and dark, and
checks that its charts are drawn. Prints what is wrong, and ends with 1 if anything is. Screenshots go into the folder
SHOTS."""

import base64
import json
import sys
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

VIEWS = [(1280, 900, "light"), (1280, 900, "dark"), (360, 740, "light"), (360, 740, "dark")]

# The contents of the page in the browser. A chart is drawn if some of its pixels are neither transparent nor grey;
# grid, axes and lines that are not chosen are one or the other.
LOOK = """
const charts = JSON.parse(document.getElementById("charts").textContent);
const coloured = (canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) {
    const [red, green, blue, alpha] = data.subarray(i, i + 4);
    if (alpha > 128 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) count += 1;
  }
  return count;
};
const figures = [...document.querySelectorAll("figure.chart")];
const light = (colour) => colour.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part) / 765, 0);
const style = getComputedStyle(document.body);
return {
  expected: charts.sections.reduce((sum, one) => sum + one.tabs[0].charts.length, 0) + (charts.fragmentation ? 1 : 0),
  tabs: charts.sections.reduce((sum, one) => sum + (one.tabs.length > 1 ? one.tabs.length : 0), 0),
  buttons: document.querySelectorAll(".tabs button").length,
  figures: figures.map((figure) => ({
    title: figure.closest("article, section").id + ": " + figure.querySelector("figcaption").textContent,
    coloured: [...figure.querySelectorAll("canvas")].reduce((sum, canvas) => sum + coloured(canvas), 0),
    right: figure.getBoundingClientRect().right,
  })),
  images: [...document.images].map((image) => image.complete && image.naturalWidth > 0),
  scroll: document.documentElement.scrollWidth,
  paper: light(style.backgroundColor),
  ink: light(style.color),
};
"""

# Presses the last button of the first workload that has buttons. Returns what is pressed, and how the sentence changed.
PRESS = """
const bar = [...document.querySelectorAll(".tabs")].find((bar) => bar.children.length > 1);
if (!bar) return null;
const verdict = () => bar.parentElement.querySelector(".verdict").textContent;
const before = verdict();
bar.lastElementChild.click();
return { before, after: verdict(), pressed: bar.lastElementChild.getAttribute("aria-pressed") };
"""

# Removes all colours, or restores them.
CHOOSE = """
document.querySelectorAll("#picker input").forEach((box) => { box.checked = arguments[0]; });
document.getElementById("picker").dispatchEvent(new Event("change"));
"""


def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


def show(driver, page, width, height, scheme):
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    driver.get(page.resolve().as_uri())


def faults_of_view(driver, width, scheme):
    seen = driver.execute_script(LOOK)
    figures = seen["figures"]
    if not figures or len(figures) != seen["expected"]:
        yield f"{len(figures)} charts, not {seen['expected']}"
    for figure in figures:
        if figure["coloured"] < 40:
            yield f"nothing is drawn in {figure['title']!r}: {figure['coloured']} coloured pixels"
        if figure["right"] > width:
            yield f"{figure['title']!r} ends at {figure['right']} of {width} pixels"
    if seen["buttons"] != seen["tabs"]:
        yield f"{seen['buttons']} buttons, not {seen['tabs']}"
    if not all(seen["images"]):
        yield f"{seen['images'].count(False)} images are not shown"
    if seen["scroll"] > width:
        yield f"the page is {seen['scroll']} pixels wide, not {width}"
    dark = seen["paper"] < seen["ink"]
    if dark != (scheme == "dark") or abs(seen["paper"] - seen["ink"]) < 0.6:
        yield f"paper {seen['paper']:.2f} and ink {seen['ink']:.2f} do not make it {scheme}"


def faults_of_use(driver):
    pressed = driver.execute_script(PRESS)
    if pressed and (pressed["pressed"] != "true" or pressed["before"] == pressed["after"]):
        yield f"a button does nothing: {pressed}"
    driver.execute_script(CHOOSE, False)
    left = sum(figure["coloured"] for figure in driver.execute_script(LOOK)["figures"])
    if left > 0:
        yield f"{left} coloured pixels of lines that are not chosen"
    driver.execute_script(CHOOSE, True)


def faults_of_logs(driver):
    for line in driver.get_log("browser"):
        yield f"console: {line['message']}"
    for line in driver.get_log("performance"):
        message = json.loads(line["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            address = message["params"]["request"]["url"]
            if not address.startswith(("file:", "data:")):
                yield f"a request to {address}"


def faults(page, shots):
    driver = browser()
    try:
        for width, height, scheme in VIEWS:
            show(driver, page, width, height, scheme)
            for fault in faults_of_view(driver, width, scheme):
                yield f"{width} pixels, {scheme}: {fault}"
            if shots:
                picture = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
                (shots / f"{width}-{scheme}.png").write_bytes(base64.b64decode(picture["data"]))
        yield from faults_of_use(driver)
        yield from faults_of_logs(driver)
    finally:
        driver.quit()


def main():
    page = Path(sys.argv[1])
    shots = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    found = list(faults(page, shots))
    for fault in found:
        print(fault)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

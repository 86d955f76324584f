#!/usr/bin/env python3
"""Opens a broker's page in Chromium without a window.

  dashboard.py ADDRESS svg [PLACE]       prints the page at #/PLACE as SVG: its text and its own drawings, in both themes, without a script
  dashboard.py ADDRESS png DIRECTORY [PLACE]...   pictures of these places, or of each, at 1280 and 360 pixels, in both themes, to look at

ADDRESS is the admin listener's, like 127.0.0.1:7421. If visitors must authenticate, set SLUICE_USER and SLUICE_PASSWORD_FILE.
"""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from html.parser import HTMLParser
from xml.sax.saxutils import escape, quoteattr

WIDTH, HEIGHT = 1280, 800


class Browser:
    """Chromium, controlled through its remote protocol: JSON messages, each followed by a zero byte."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="sluice-browser-")
        reads, self.output = os.pipe()
        self.input, writes = os.pipe()

        def prepare():
            for descriptor, number in ((reads, 3), (writes, 4)):
                os.dup2(descriptor, number)
                os.set_inheritable(number, True)

        program = shutil.which("chromium") or shutil.which("google-chrome") or sys.exit("dashboard: there is no Chromium")
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "about:blank"],
            close_fds=False, preexec_fn=prepare, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(reads)
        os.close(writes)
        self.number, self.session, self.rest = 0, None, b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        if os.environ.get("SLUICE_USER"):
            with open(os.environ["SLUICE_PASSWORD_FILE"]) as file:
                pair = f"{os.environ['SLUICE_USER']}:{file.readline().rstrip()}"
            self.call("Network.enable")
            self.call("Network.setExtraHTTPHeaders", headers={"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()})

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                self.rest += os.read(self.input, 1 << 20)
            answer, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(answer)
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"dashboard: {method}: {answer['error']}")
                return answer["result"]

    def evaluate(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def show(self, width, height, dark):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address, place):
        self.call("Page.navigate", url=f"http://{address}/#/{place}")
        for _ in range(100):
            time.sleep(0.1)
            if self.evaluate("document.getElementById('state')?.dataset.state === 'live'"):
                break
        else:
            sys.exit("dashboard: the page doesn't come to life")
        # Rates are known from the third sample on.
        time.sleep(4)

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


class Markup(HTMLParser):
    """HTML as XML."""

    EMPTY = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
    # Names of SVG elements and attributes that HTML's parser has converted to lower case.
    NAMES = {"viewbox": "viewBox", "preserveaspectratio": "preserveAspectRatio"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.text = []
        self.skipped = 0

    def handle_starttag(self, tag, attributes):
        if tag in ("script", "noscript", "dialog"):
            self.skipped += 1
        if self.skipped:
            return
        # Elements can't be pressed in a picture, so they get no place in the keyboard order.
        kept = [(self.NAMES.get(name, name), value or "") for name, value in attributes if name not in ("tabindex", "href")]
        space = ' xmlns="http://www.w3.org/2000/svg"' if tag == "svg" else ""
        self.text.append(f"<{tag}{space}{''.join(f' {name}={quoteattr(value)}' for name, value in kept)}{'/' if tag in self.EMPTY else ''}>")

    def handle_endtag(self, tag):
        if tag in ("script", "noscript", "dialog"):
            self.skipped -= 1
        elif not self.skipped and tag not in self.EMPTY:
            self.text.append(f"</{tag}>")

    def handle_data(self, data):
        if not self.skipped:
            self.text.append(escape(data))


def picture(browser, address, place):
    browser.show(WIDTH, HEIGHT, False)
    browser.open(address, place)
    style = browser.evaluate("document.querySelector('style').textContent")
    # Removes the parts that the page hides.
    body = browser.evaluate(
        "(() => { document.querySelectorAll('.skip, .hidden, footer, [hidden]').forEach((each) => each.remove());"
        "document.querySelectorAll('[data-view]').forEach((each) => { if (getComputedStyle(each).display === 'none') each.remove(); });"
        "return document.body.innerHTML; })()")
    height = min(HEIGHT, int(browser.evaluate("document.body.scrollHeight")))
    markup = Markup()
    markup.feed(body)
    style = style.replace("html {", ".page {").replace("body {", ".page {")
    style = "\n".join(line for line in style.split("\n") if "body:not(" not in line and "body[data-view" not in line)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">')
    print(f"<style>{escape(style)}</style>")
    print(f'<foreignObject width="{WIDTH}" height="{height}">')
    print(f'<div xmlns="http://www.w3.org/1999/xhtml" class="page" style="min-height: {height}px">{"".join(markup.text)}</div>')
    print("</foreignObject></svg>")


def pictures(browser, address, directory, places):
    os.makedirs(directory, exist_ok=True)
    if not places:
        topic = browser_topic(browser, address)
        places = ["", "topics", f"topics/{topic}", f"topics/{topic}/records", "consumers", "connections", "storage", "cluster"]
    for place in places:
        browser.show(1280, 900, False)
        browser.open(address, place)
        if place.endswith("/records"):
            browser.evaluate("document.querySelectorAll('#records-list details')[1]?.setAttribute('open', '')")
        for width in (1280, 360):
            for dark in (False, True):
                browser.show(width, 900, dark)
                # The next frame has the new layout.
                time.sleep(0.5)
                browser.show(width, min(3000, int(browser.evaluate("document.documentElement.scrollHeight"))), dark)
                data = browser.call("Page.captureScreenshot", format="png")["data"]
                over = int(browser.evaluate("document.documentElement.scrollWidth")) - width
                if over > 0:
                    print(f"dashboard: #/{place} is {over} pixels wider than {width}", file=sys.stderr)
                name = f"{place.replace('/', '-') or 'overview'}-{width}-{'dark' if dark else 'light'}.png"
                with open(os.path.join(directory, name), "wb") as file:
                    file.write(base64.b64decode(data))


def browser_topic(browser, address):
    """The topic with the most subscribers."""
    browser.show(1280, 900, False)
    browser.open(address, "")
    return browser.evaluate("document.querySelector('tr.topic button')?.textContent") or ""


address, form = sys.argv[1:3]
browser = Browser()
try:
    if form == "svg":
        picture(browser, address, sys.argv[3] if len(sys.argv) > 3 else "")
    else:
        pictures(browser, address, sys.argv[3], sys.argv[4:])
finally:
    browser.close()

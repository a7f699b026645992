"""The site in Debian's Chromium, from file://: sorting, filters, trials, search, phones, accessibility, no requests."""

import shutil
import subprocess
from pathlib import Path

import pytest
import simulate
from playwright.sync_api import sync_playwright
from test_site import EVIL, fill
from test_trajectory import bash, step, story

from results.site.build import Options, build_site

pytestmark = pytest.mark.slow
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
PATIENCE_MS = 300_000
"""A machine may be busy."""
AXE = "axe-core@4.14.1"
TASK = "0-xray_report_correction--case-00"
PAGES = ["index.html", f"tasks/{TASK}.html", f"trial.html?task={TASK}&trial=3"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    root = tmp_path_factory.mktemp("site")
    run = simulate.simulate(root / "run", durable=False)
    told = story()
    told["steps"].append(
        step(9, bash(EVIL), message=EVIL, reasoning_content=EVIL, results=[EVIL, "deep in a haystack: needle"])
    )
    for trial in run.plan.trials[:9]:
        fill(run, trial, told, EVIL.replace("\0", "").encode(), details={"cluster": "GOLD-7"}, log=EVIL.encode())
    return build_site([run], root / "site", Options(with_published=True)).parent


@pytest.fixture(scope="module")
def browser():
    assert CHROMIUM, "no Chromium found; on Debian: apt-get install chromium"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS, timeout=PATIENCE_MS)
        yield started
        started.close()


def new_context(browser, **options):
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    return context


@pytest.fixture
def page(browser, site):
    """A page that fails the test on any console message, script error, dialog or request beyond the site."""
    context = new_context(browser, viewport={"width": 1300, "height": 900})
    opened = context.new_page()
    wrong = []
    opened.on("console", lambda message: wrong.append(f"console: {message.text}"))
    opened.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    opened.on("dialog", lambda dialog: (wrong.append("dialog"), dialog.dismiss()))
    allowed = (site.as_uri(), "data:")
    opened.on("request", lambda request: request.url.startswith(allowed) or wrong.append(f"request: {request.url}"))
    yield opened
    context.close()
    assert wrong == []


def visible_rows(page, table):
    return page.locator(f"{table} tbody tr:visible").all_inner_texts()


def test_sorting(page, site):
    page.goto(f"{site.as_uri()}/index.html")
    header = page.locator("#b0-table thead th", has_text="success").first
    button = header.get_by_role("button")
    column = page.locator("#b0-table thead th").all_inner_texts().index(header.inner_text())

    def values():
        cells = page.locator(f"#b0-table tbody tr:visible td:nth-child({column + 1})").all_inner_texts()
        return [float(text.removesuffix(" %")) for text in cells]

    button.click()
    assert header.get_attribute("aria-sort") == "ascending" and values() == sorted(values())
    button.press("Enter")
    assert header.get_attribute("aria-sort") == "descending" and values() == sorted(values(), reverse=True)


def test_filters(page, site):
    page.goto(f"{site.as_uri()}/index.html")
    assert len(visible_rows(page, "#b0-table")) == 3
    page.locator("select[name=category]").select_option("ct_abnormality")
    assert all("ct_abnormality" in row for row in visible_rows(page, "#b0-table"))
    page.locator("form[data-filters=b0-table] input").fill("CODEX")
    assert len(visible_rows(page, "#b0-table")) == 1
    assert page.locator("form[data-filters=b0-table] output").inner_text() == "1 of 24 rows"


def test_heat_map_changes_its_value(page, site):
    page.goto(f"{site.as_uri()}/index.html")
    assert page.locator("#b0-heat-success_rate").is_visible()
    page.get_by_role("button", name="USD per trial").first.click()
    assert page.locator("#b0-heat-cost_usd").is_visible() and not page.locator("#b0-heat-success_rate").is_visible()


def test_from_the_front_page_to_a_trial_and_back(page, site):
    page.goto(f"{site.as_uri()}/index.html")
    page.get_by_role("link", name="xray_report_correction/case-00").click()
    page.get_by_role("link", name="codex@gpt-5.4@high i0 t1").click()
    page.wait_for_selector(".step")
    assert (
        page.get_by_role("heading", level=1).inner_text() == "xray_report_correction/case-00/i0/codex@gpt-5.4@high/t1"
    )
    assert "GOLD-7" not in page.content()
    page.get_by_role("link", name="xray_report_correction/case-00").click()
    assert page.url.endswith(f"tasks/{TASK}.html")


def test_searching_a_trajectory(page, site):
    page.goto(f"{site.as_uri()}/{PAGES[2]}")
    page.wait_for_selector(".step")
    assert page.locator(".step:visible").count() == 9
    page.get_by_label("Search the steps").fill("NEEDLE")
    assert page.locator(".step:visible").count() == 1
    page.get_by_label("Search the steps").fill("")
    page.get_by_label("Class").select_option("verify")
    assert page.locator(".step:visible").count() == 2, "the second says nothing more: it follows the step before"
    page.get_by_role("button", name="Next failing step").click()
    assert page.evaluate("document.activeElement.id") == "step-5"


def test_hostile_text_is_shown_as_text(page, site):
    page.goto(f"{site.as_uri()}/{PAGES[2]}")
    page.wait_for_selector(".step")
    assert "<script>alert(1)</script>" in page.locator("#submission pre").first.inner_text()
    assert page.locator("main img[src=x]").count() == 0


def test_gold_is_a_table_when_asked_for(browser, tmp_path):
    run = simulate.simulate(tmp_path / "run", durable=False)
    rows = [{"label": f"<b>{n}</b>", "hit": n > 1, "why": None, "x": [1, 2]} for n in range(600)]
    fill(run, run.plan.trials[0], details={"labels": rows, "counts": {"a": 1}, "missed": ["q"], "n": 3})
    site = build_site([run], tmp_path / "site", Options(with_gold=True)).parent
    context = new_context(browser)
    page = context.new_page()
    page.goto(f"{site.as_uri()}/{PAGES[2]}")
    page.wait_for_selector("#verdict summary")
    assert page.locator("#verdict summary").all_inner_texts() == [
        "gold: labels",
        "gold: counts",
        "gold: missed",
        "gold: n",
    ]
    page.locator("#verdict summary").first.click()
    assert page.locator("#verdict tbody").first.locator("tr").count() == 500
    assert page.locator("#verdict td").first.inner_text() == "<b>0</b>"
    context.close()


def test_a_wrong_address_says_so(page, site):
    page.goto(f"{site.as_uri()}/trial.html?task=../../etc&trial=1")
    page.wait_for_function("document.getElementById('state').textContent.length > 0")
    assert "no trial is named" in page.locator("#state").inner_text()


@pytest.mark.parametrize("address", PAGES)
def test_phone_width(browser, site, address):
    context = new_context(browser, viewport={"width": 360, "height": 780}, is_mobile=True)
    page = context.new_page()
    page.goto(f"{site.as_uri()}/{address}")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()


def test_everything_by_keyboard(page, site):
    page.goto(f"{site.as_uri()}/index.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    if not shutil.which("npm"):
        pytest.skip("npm is needed to fetch axe-core")
    folder = tmp_path_factory.mktemp("axe")
    for _ in range(3):  # a registry may be busy
        done = subprocess.run(["npm", "pack", "--silent", AXE], cwd=folder, check=False, capture_output=True, text=True)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    archive = next(folder.glob("*.tgz"))
    subprocess.run(["tar", "xzf", archive.name, "package/axe.min.js"], cwd=folder, check=True)
    return folder / "package" / "axe.min.js"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", PAGES)
def test_accessible(browser, site, axe, address, scheme):
    context = new_context(browser, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(f"{site.as_uri()}/{address}")
    page.wait_for_load_state("networkidle")
    page.evaluate("document.querySelectorAll('details').forEach((box) => { box.open = true; })")
    page.add_script_tag(path=str(axe))
    violations = page.evaluate(
        "axe.run().then(found => found.violations.map(v => [v.id, v.nodes[0].html, v.nodes[0].failureSummary]))"
    )
    assert violations == []
    context.close()


def test_screenshots_can_be_kept(browser, site, request, tmp_path):
    """Writes what docs/screenshots shows; look at them after a change."""
    folder = Path(request.config.getoption("--basetemp") or tmp_path) / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    for name, address, width, scheme in (
        ("leaderboard", PAGES[0], 1300, "light"), ("task", PAGES[1], 1100, "dark"),
        ("trial", PAGES[2], 1100, "light"), ("phone", PAGES[0], 390, "dark"),
    ):  # fmt: skip
        context = new_context(browser, viewport={"width": width, "height": 950}, color_scheme=scheme)
        page = context.new_page()
        page.goto(f"{site.as_uri()}/{address}")
        page.wait_for_load_state("networkidle")
        page.screenshot(path=str(folder / f"{name}.png"))
        context.close()
    assert all(path.stat().st_size > 10_000 for path in folder.iterdir())

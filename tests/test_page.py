"""The page for people, in a real browser, on a real service that real OTLP was sent to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

import page_stories as stories
from conftest import ROOT
from page_service import Served, Watched, chromium, serving, watched

PAGE = ROOT / "collector" / "spanreel_collector" / "api" / "page"
SMALL = 60
TOKEN = "the-token-of-the-page's-tests"


def test_the_page_makes_no_markup_out_of_text_and_names_no_other_host() -> None:
    files = sorted(PAGE.iterdir())
    for file in files:
        text = file.read_text(encoding="utf-8")
        sinks = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment"
        assert re.search(sinks, text) is None, file.name
        assert re.search(r"https?://(?!www\.w3\.org/2000/svg)", text) is None, file.name
        assert re.search(r"\sstyle=|\son\w+=", text) is None or file.suffix == ".js", file.name
    assert {file.suffix for file in files} == {".html", ".css", ".js", ".svg"}


# -- what all others look at -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with an ordinary conversation, a hostile one and sixty short ones."""
    with serving(tmp_path_factory.mktemp("page")) as service:
        service.send(stories.trip(), stories.hostile(), *(stories.small(number) for number in range(SMALL)))
        service.wait(lambda found: len(found) == SMALL + 2)
        yield service


@pytest.fixture
def window(browser: Browser, served: Served) -> Iterator[Watched]:
    with watched(browser, served) as opened:
        yield opened


def identity(served: Served, key: str) -> str:
    """The id of the session with this conversation id or trace."""
    return str(
        next(one["id"] for one in served.read("sessions", limit="500")["sessions"] if one["key"].startswith(key))
    )


def rows(page: Page) -> Locator:
    return page.locator("table.sessions tbody tr")


def chosen(page: Page) -> Locator:
    return page.locator(".fall-row.chosen .text")


def copied_on(page: Page) -> Any:
    """The text that the page says it has copied."""
    expect(page.locator(".notice")).to_have_text("Copied")
    return page.evaluate("navigator.clipboard.readText()")


# -- the list --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_list_is_searched_and_filtered_and_the_address_says_how(window: Watched, served: Served) -> None:
    page = window.open()
    expect(rows(page)).to_have_count(50)
    page.get_by_label("Agent", exact=True).select_option("care")
    page.get_by_label("Status", exact=True).select_option("error")
    expect(rows(page).first).to_contain_text("failed")
    expect(page).to_have_url(re.compile(r"agent=care.*status=error"))
    wanted = served.read("sessions", agent="care", status="error")["sessions"]
    expect(rows(page)).to_have_count(len(wanted))
    page.reload()
    expect(rows(page)).to_have_count(len(wanted))
    expect(page.get_by_label("Agent", exact=True)).to_have_value("care")
    page.get_by_role("link", name="Clear filters").click()
    expect(rows(page)).to_have_count(50)
    page.go_back()
    expect(rows(page)).to_have_count(len(wanted))
    page.go_forward()
    page.keyboard.press("/")
    page.keyboard.type("lisbon")
    expect(rows(page)).to_have_count(1)
    expect(page).to_have_url(re.compile("text=lisbon"))
    expect(page.get_by_role("searchbox", name="Search sessions")).to_be_focused()
    page.keyboard.type(" nowhere")
    expect(page.locator(".foot")).to_contain_text("No session fits")
    page.keyboard.press("Escape")
    page.get_by_label("Agent", exact=True).focus()
    page.go_back()
    expect(page.get_by_role("searchbox", name="Search sessions")).to_have_value("")
    page.go_forward()
    expect(page.get_by_role("searchbox", name="Search sessions")).to_have_value("lisbon nowhere")


@pytest.mark.slow
def test_words_that_are_still_typed_do_not_lead_back_to_the_list(window: Watched) -> None:
    page = window.open()
    expect(rows(page)).to_have_count(50)
    page.keyboard.press("/")
    page.keyboard.type("order")
    page.keyboard.press("ArrowDown")
    expect(page.locator("a.words").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("tree")).to_be_visible()
    page.wait_for_timeout(600)
    expect(page).to_have_url(re.compile("session="))


@pytest.mark.slow
def test_the_files_of_the_page_are_asked_for_again_and_what_is_read_is_not_kept(served: Served) -> None:
    page = httpx.get(f"{served.url}/main.js")
    assert page.headers["cache-control"] == "no-cache"
    assert page.headers["etag"]
    assert httpx.get(f"{served.url}/api/v1/sessions").headers["cache-control"] == "no-store"


@pytest.mark.slow
def test_every_filter_of_the_page_is_one_that_the_service_knows(window: Watched) -> None:
    page = window.open("?version=2&model=gpt-5&origin=recorded&eligible=true&user=user-0&within=own&order=tokens")
    expect(page.locator(".foot")).to_contain_text("shown")
    page.get_by_label("User", exact=True).fill("user-3")
    page.get_by_label("User", exact=True).press("Enter")
    expect(page).to_have_url(re.compile("user=user-3"))
    page.get_by_label("From", exact=True).fill("2026-11-18T00:00")
    page.get_by_label("From", exact=True).press("Enter")
    expect(page).to_have_url(re.compile("since=2026-11-1"))
    page.get_by_label("Started", exact=True).select_option("1h")
    expect(page.locator(".foot")).to_contain_text("No session fits")
    window.open("?tool=book_flight&tag=beta")
    expect(rows(page)).to_have_count(1)
    assert page.locator(".bad").count() == 0


@pytest.mark.slow
def test_more_pages_come_when_asked_for_and_the_list_says_how_many_are_shown(window: Watched) -> None:
    page = window.open()
    expect(page.locator(".foot")).to_contain_text("50 sessions shown, there are more")
    page.get_by_role("button", name="More", exact=True).click()
    expect(rows(page)).to_have_count(SMALL + 2)
    expect(page.locator(".foot")).to_contain_text(f"{SMALL + 2} sessions shown, that is all")
    words = page.locator("a.words").all_inner_texts()
    assert len(set(words)) == len(words)


# -- one session -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_session_is_a_conversation_beside_a_waterfall_and_what_is_chosen_in_one_is_chosen_in_both(
    window: Watched,
) -> None:
    page = window.open("?text=lisbon")
    page.get_by_role("link", name="Plan two days").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Plan two days in Lisbon")
    tree = page.get_by_role("tree")
    assert tree.get_by_role("treeitem").count() == 23
    expect(tree.get_by_role("treeitem", name="researcher").last).to_have_attribute("aria-level", "4")
    tree.get_by_role("treeitem", name="web_search").click()
    expect(page.locator(".block.chosen .name")).to_have_text("web_search")
    expect(page.get_by_role("region", name="Details")).to_contain_text("The result: redacted")
    page.locator(".block.model .pick").last.click()
    expect(chosen(page)).to_have_text("gpt-5-mini")
    expect(page).to_have_url(re.compile("at="))
    address = page.url
    page.reload()
    expect(chosen(page)).to_have_text("gpt-5-mini")
    assert page.url == address
    talk = page.get_by_role("region", name="Conversation")
    expect(talk.get_by_text("You plan trips.")).to_be_visible()
    expect(talk.get_by_text("And the way back?")).to_have_count(1)
    # Markdown is said as it is.
    expect(talk.get_by_text("**Booked:** TP 571")).to_have_count(1)


@pytest.mark.slow
def test_a_tool_call_shows_arguments_error_and_what_a_replay_would_do(window: Watched, served: Served) -> None:
    page = window.open(f"?session={identity(served, 'trip')}")
    page.get_by_role("treeitem", name="book_flight, failed").click()
    detail = page.get_by_role("region", name="Details")
    expect(detail).to_contain_text("timeout \u00b7 httpx.ReadTimeout: the booking service did not answer")
    expect(detail).to_contain_text("In a replay: will be answered from the recording")
    # Eighteen digits, each as it was.
    expect(detail).to_contain_text("4711000000000000123")
    detail.get_by_role("button", name="Show the raw span").click()
    expect(detail.get_by_label("raw span")).to_contain_text("execute_tool")
    detail.get_by_role("button", name="model call gpt-5-mini").click()
    expect(detail.get_by_role("heading", level=2)).to_have_text("gpt-5-mini")
    expect(detail).to_contain_text("of these from cache768")
    detail.get_by_text("All that this request held").click()
    expect(detail.locator(".message")).to_have_count(5)


@pytest.mark.slow
def test_what_did_not_end_is_said_where_it_is(window: Watched, served: Served) -> None:
    page = window.open(f"?session={identity(served, 'trip')}")
    run = page.get_by_role("treeitem", name="planner, unfinished")
    expect(run).to_contain_text("no end")
    run.click()
    expect(page.get_by_role("region", name="Details")).to_contain_text("No end was recorded")


@pytest.mark.slow
def test_what_stands_in_the_way_of_a_replay_is_told_with_remedies_and_leads_to_the_place(
    window: Watched, served: Served
) -> None:
    session = identity(served, "trip")
    reasons = served.read(f"sessions/{session}")["replay"]["reasons"]
    page = window.open(f"?session={session}")
    page.get_by_text(f"{len(reasons)} things in the way").click()
    expect(page.locator(".reasons li")).to_have_count(len(reasons))
    expect(page.locator(".reasons")).to_contain_text(reasons[0]["remedy"])
    page.locator(".reasons a").last.click()
    expect(page.locator(".block.chosen")).to_have_count(1)
    page.get_by_role("button", name="Copy the command").first.click()
    assert copied_on(
        page
    ) == f"spanreel replay '{served.url}/api/v1/sessions/{session}#0' -- python your_agent.py".replace("'", "")


@pytest.mark.slow
def test_a_session_is_found_in_folded_and_zoomed(window: Watched, served: Served) -> None:
    page = window.open(f"?session={identity(served, 'trip')}")
    page.get_by_role("treeitem").first.wait_for()
    page.keyboard.press("/")
    page.keyboard.type("book_flight")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.locator(".finder")).to_contain_text("2 of 4")
    expect(chosen(page)).to_have_text("book_flight")
    page.keyboard.press("Escape")
    width = "document.querySelector('.fall-row.chosen .extent').getBoundingClientRect().width"
    before = page.evaluate(width)
    page.keyboard.press("z")
    assert page.evaluate(width) > 3 * before > 0
    page.keyboard.press("z")
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    expect(page.locator(".fall-count")).to_contain_text("of 23 rows")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".fall-count")).to_contain_text("23 rows")


@pytest.mark.slow
def test_a_session_is_exported_as_the_service_gives_it(window: Watched, served: Served, tmp_path: Path) -> None:
    session = identity(served, "trip")
    page = window.open(f"?session={session}")
    page.get_by_text("Actions", exact=True).click()
    for label, check in (("session", "spanreel.session/1"), ("Kitaru JSONL", "{"), ("raw spans", "resourceSpans")):
        with page.expect_download() as found:
            page.get_by_role("button", name=f"Export {label}", exact=True).click()
        found.value.save_as(tmp_path / label)
        assert check in (tmp_path / label).read_text()


# -- replays ---------------------------------------------------------------------------------------------------------


def report(session: dict[str, Any]) -> dict[str, Any]:
    """What a replay of the trip reports whose second model call was asked something else."""
    counts = {"recorded": 7, "matched": 1, "missed": 1, "unused": 0, "not_reached": 5, "covered": 0}
    tokens = {"input_tokens": 412, "output_tokens": 58}
    first = {
        "subject": "model call",
        "path": "root",
        "name": "gpt-5-mini",
        "number": 2,
        "reason": "diverged",
        "nearest": "model call 2 of root",
        "pointer": "/messages/0/parts/0/content",
        "recorded": "You plan trips. Book only what is in budget.",
        "live": f"You plan trips. Book nothing {stories.SCRIPT}.",
        "text": "model call 2 of root diverged",
    }
    run = session["runs"][0]
    outcome = {"path": run["path"], "id": run["id"], "agent": "planner", "outcome": "stopped", "difference": None}
    return {
        "schema": "spanreel.replay/1",
        "session": session["id"],
        "revision": session["revision"],
        "run": None,
        "verdict": "FAIL",
        "exit_code": 1,
        "reasons": ["model call 2 of root diverged"],
        "first_divergence": first,
        "misses": 1,
        "model_calls": counts,
        "tool_calls": counts,
        "unused": ["tool call 3 of root ('book_flight')"],
        "runs": [outcome],
        "tokens": {"recorded": tokens, "served": tokens, "live": {"input_tokens": 0, "output_tokens": 0}},
        "live_tools": [],
        "changed": [],
        "notes": [],
    }


@pytest.mark.slow
def test_a_replay_is_shown_beside_its_baseline_word_by_word(window: Watched, served: Served) -> None:
    session = identity(served, "trip")
    document = report(served.read(f"sessions/{session}"))
    httpx.post(f"{served.url}/api/v1/sessions/{session}/reports", json=document).raise_for_status()
    page = window.open(f"?session={session}")
    page.get_by_role("link", name="Replays 1").click()
    found = page.get_by_role("region", name="The replay\u2019s report")
    expect(found.get_by_role("heading", level=2)).to_contain_text("FAIL")
    expect(found.locator("del")).to_have_text(["only what is in budget"])
    expect(found.locator("ins")).to_have_text([f"nothing {stories.SCRIPT}"])
    expect(found).to_contain_text("stopped before its end")
    found.get_by_role("link", name="tool call 3 of root").click()
    expect(chosen(page)).to_have_text("book_flight")
    page.go_back()
    found.get_by_role("link", name="open the recorded call").click()
    expect(chosen(page)).to_have_text("gpt-5-mini")
    expect(page.locator(".fall-row.chosen")).to_have_attribute("id", re.compile("row-1[0-9]"))


@pytest.mark.slow
def test_two_sessions_are_compared(window: Watched, served: Served) -> None:
    one, other = (identity(served, f"{0xB0000000 + number:032x}") for number in (1, 7))
    page = window.open(f"?session={one}&view=compare")
    offered = page.locator(".candidates li")
    expect(offered.first).to_contain_text("Where is order")
    assert "Where is order 1?" not in offered.locator(".words").all_text_contents()
    offered.locator(".words").first.click()
    expect(page.get_by_role("heading", name="Step by step")).to_be_visible()
    page.go_back()
    page.get_by_label("Compare with the session").fill(other)
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".difference del").first).to_have_text("1")
    expect(page.locator(".difference ins").first).to_have_text("7")
    expect(page.locator(".step.differs")).to_have_count(2)
    page.get_by_label("Compare with the session").fill("s-nowhere")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("There is no such session")).to_be_visible()
    window.faults[:] = [fault for fault in window.faults if "404" not in fault]  # the browser tells of it by itself


# -- what happens meanwhile ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_click_is_not_lost_when_the_waterfall_is_drawn_again_under_it(window: Watched, served: Served) -> None:
    page = window.open(f"?session={identity(served, 'trip')}")
    page.get_by_role("treeitem", name="web_search").hover()
    page.mouse.down()
    page.set_viewport_size({"width": 1280, "height": 780})
    drawn_again(page)
    page.mouse.up()
    expect(chosen(page)).to_have_text("web_search")
    expect(page.get_by_role("region", name="Details")).to_contain_text("The result: redacted")


@pytest.mark.slow
def test_a_click_is_not_lost_when_something_new_comes_under_it(browser: Browser, tmp_path: Path) -> None:
    early, later, last = stories.trip_in_parts(9, 12)
    with serving(tmp_path) as service, watched(browser, service) as window:
        service.send(early)
        service.wait(lambda found: len(found) == 1)
        page = window.open()
        expect(page.locator(".live")).to_have_text("live")
        page.locator("a.words").hover()
        page.mouse.down()
        with page.expect_response(re.compile(r"/summary$")):
            service.send(later)
        drawn_again(page)
        page.mouse.up()
        expect(page.get_by_role("tree")).to_be_visible()
        page.get_by_role("treeitem", name="search_flights").first.hover()
        page.mouse.down()
        with page.expect_response(re.compile(r"/revisions$")):
            service.send(last)
        drawn_again(page)
        page.mouse.up()
        expect(page.get_by_role("region", name="Details")).to_contain_text("search_flights")
        expect(page.locator(".notice")).to_contain_text("Revision 3 has come")
        expect(chosen(page)).to_have_text("search_flights")


@pytest.mark.slow
def test_what_is_opened_in_the_details_stays_open_when_the_forecast_comes(window: Watched, served: Served) -> None:
    page = window.page
    held = held_back(page, "**/forecast")
    window.open(f"?session={identity(served, 'trip')}")
    page.get_by_role("treeitem", name="book_flight, failed").click()
    detail = page.get_by_role("region", name="Details")
    detail.get_by_role("button", name="Show the raw span").click()
    expect(detail.get_by_label("raw span")).to_contain_text("execute_tool")
    held[0].continue_()
    expect(detail).to_contain_text("In a replay: will be answered from the recording")
    expect(detail.get_by_label("raw span")).to_contain_text("execute_tool")


def held_back(page: Page, url: str) -> list[Route]:
    """The requests of this URL, which wait until they are let go on."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(url, hold)
    return held


def drawn_again(page: Page) -> None:
    """Whatever the page was about to draw by itself is drawn."""
    page.evaluate("new Promise((go) => requestAnimationFrame(() => setTimeout(go, 300)))")


@pytest.mark.slow
def test_what_is_typed_into_a_filter_stays_when_the_other_filters_come(window: Watched) -> None:
    page = window.page
    held = held_back(page, "**/api/v1/facets")
    with page.expect_request("**/api/v1/facets"):
        window.open()
    expect(page.locator(".foot")).to_contain_text("shown")
    user = page.get_by_label("User", exact=True)
    user.fill("user-3")
    with page.expect_response("**/api/v1/facets"):
        held[0].continue_()
    drawn_again(page)
    user.press("Enter")
    expect(page).to_have_url(re.compile("user=user-3"))
    expect(user).to_have_value("user-3")
    expect(page.get_by_label("Agent", exact=True)).to_be_visible()


@pytest.mark.slow
def test_new_sessions_and_new_revisions_come_by_themselves(browser: Browser, tmp_path: Path) -> None:
    early, late = stories.trip_in_parts(9)
    with serving(tmp_path) as service, watched(browser, service) as window:
        page = window.open()
        expect(page.locator(".live")).to_have_text("live")
        expect(page.locator(".foot")).to_contain_text("No session yet")
        page.get_by_role("button", name="Copy the command").click()
        assert copied_on(page) == f"OTEL_EXPORTER_OTLP_ENDPOINT={service.url} spanreel run -- python your_agent.py"
        service.send(early)
        expect(rows(page)).to_have_count(1)
        page.locator("a.words").click()
        page.get_by_role("treeitem", name="search_flights").first.click()
        service.send(late)
        expect(page.locator(".notice")).to_contain_text("Revision 2 has come")
        expect(page.locator(".fall-count")).to_contain_text("23 rows")
        expect(chosen(page)).to_have_text("search_flights")
        page.get_by_label("Revision", exact=True).select_option("1")
        expect(page).to_have_url(re.compile("revision=1"))
        expect(page.locator(".fall-count")).not_to_contain_text("23 rows")


@pytest.mark.slow
def test_a_session_is_erased_after_a_question(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path) as service, watched(browser, service) as window:
        service.send(stories.small(1), stories.small(2))
        service.wait(lambda found: len(found) == 2)
        page = window.open(f"?session={identity(service, f'{0xB0000001:032x}')}")
        page.get_by_text("Actions", exact=True).click()
        page.get_by_role("button", name="Erase this session").click()
        page.get_by_role("button", name="Keep it").click()
        assert len(service.read("sessions")["sessions"]) == 2
        page.get_by_role("button", name="Erase this session").click()
        page.get_by_role("dialog").get_by_role("button", name="Erase", exact=True).click()
        expect(rows(page)).to_have_count(1)
        assert len(service.read("sessions")["sessions"]) == 1


@pytest.mark.slow
def test_all_who_asked_in_a_session_are_told_and_found(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path) as service, watched(browser, service) as window:
        service.send(*(stories.shared(number) for number in range(1, 6)), stories.small(1))
        service.wait(lambda found: {one["key"]: one["runs"] for one in found}.get("shared") == 5)
        page = window.open()
        expect(rows(page).first).to_contain_text("person-1")
        expect(rows(page).first).to_contain_text("4 more users")
        rows(page).first.get_by_role("link").first.click()
        facts = page.locator(".facts")
        expect(facts).to_contain_text("Usersperson-1, person-2, person-3 and 2 more")
        page.locator(".fall-row", has_text="care").nth(3).click()
        expect(page.locator(".detail")).to_contain_text("Asked byperson-4")
        facts.get_by_role("link", name="person-3").click()
        expect(page).to_have_url(re.compile("user=person-3"))
        expect(rows(page)).to_have_count(1)
        page.get_by_label("User", exact=True).fill("person-5")
        page.get_by_label("User", exact=True).press("Enter")
        expect(rows(page)).to_have_count(1)


@pytest.mark.slow
def test_what_a_token_may_not_do_is_not_offered(browser: Browser, tmp_path: Path) -> None:
    reads = {"SPANREEL_READ_TOKEN": "a-token-that-reads-and-no-more"}
    with serving(tmp_path, TOKEN, reads) as service, watched(browser, service) as window:
        service.send(stories.small(1))
        service.wait(lambda found: len(found) == 1)
        page = window.open(f"?session={service.read('sessions')['sessions'][0]['id']}")
        for token, offered in ((reads["SPANREEL_READ_TOKEN"], 0), (TOKEN, 1)):
            page.get_by_role("dialog").get_by_label("A token").fill(token)
            page.keyboard.press("Enter")
            page.get_by_text("Actions", exact=True).click()
            expect(page.get_by_role("button", name="Export raw spans")).to_be_visible()
            expect(page.get_by_role("button", name="Erase this session")).to_have_count(offered)
            page.evaluate("sessionStorage.clear()")
            page.reload()
        window.faults.clear()  # that it was refused, the browser tells by itself


@pytest.mark.slow
def test_a_token_is_asked_for_once_and_stays_in_its_tab(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path, TOKEN) as service, watched(browser, service) as window:
        service.send(stories.small(1))
        service.wait(lambda found: len(found) == 1)
        page = window.open()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("A token").fill("not-the-token-of-anybody")
        page.keyboard.press("Enter")
        expect(dialog).to_contain_text("was not accepted")
        dialog.get_by_label("A token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(rows(page)).to_have_count(1)
        expect(page.locator(".live")).to_have_text("live")
        assert TOKEN not in page.url + json.dumps(page.evaluate("({...localStorage})")) + page.content()
        page.reload()
        expect(rows(page)).to_have_count(1)
        assert all("401" in fault for fault in window.faults)
        window.faults.clear()  # that it was refused, the browser tells by itself


# -- the keyboard, and who cannot see it -----------------------------------------------------------------------------


@pytest.mark.slow
def test_everything_is_reached_by_the_keyboard(window: Watched) -> None:
    page = window.open("?text=lisbon")
    expect(rows(page)).to_have_count(1)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tree")).to_be_visible()
    for _ in range(3):
        page.keyboard.press("j")
    expect(chosen(page)).to_have_text("gpt-5-mini")
    page.keyboard.press("ArrowDown")
    expect(chosen(page)).to_have_text("search_flights")
    page.keyboard.press("k")
    expect(chosen(page)).to_have_text("gpt-5-mini")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Details")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="Details")).to_be_hidden()
    page.keyboard.press("r")
    expect(page).to_have_url(re.compile("view=replays"))
    page.keyboard.press("Escape")
    expect(page.get_by_role("tree")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile(r"\?text=lisbon$"))


CONTRAST = """
() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const colour = rgb(getComputedStyle(node).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility({ visibilityProperty: true })) continue;
    if (node.closest("option, noscript")) continue;
    const [a, b] = [light(rgb(getComputedStyle(node).color)), light(ground(node))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${node.className || node.tagName}: ${walker.currentNode.data}`);
  }
  return found;
}
"""
NAMELESS = """
() => [...document.querySelectorAll("a[href], button, input, select, summary, [role=tree], [role=treeitem]")]
  .filter((one) => one.checkVisibility())
  .filter((one) => !(one.ariaLabel || one.innerText?.trim() || one.labels?.length || one.title))
  .map((one) => one.outerHTML)
"""

FOCUSED = """
() => {
  const focused = document.activeElement;
  return [focused.id || focused.name || focused.className, getComputedStyle(focused).outlineStyle !== "none"];
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_text_has_contrast_controls_have_names_and_nothing_is_wider_than_the_window(
    browser: Browser, served: Served, colours: str, width: int
) -> None:
    session = identity(served, "trip")
    queries = (
        "",
        f"?session={session}&at=/runs/0/turns/1/tool_calls/0",
        f"?session={session}&view=compare&with={session}",
    )
    options: dict[str, Any] = {"color_scheme": colours, "reduced_motion": "reduce"}
    with watched(browser, served, width, **options) as window:
        for query in queries:
            page = window.open(query)
            page.locator("table.sessions a, .block, .step").first.wait_for()
            assert page.evaluate(CONTRAST) == []
            assert page.evaluate(NAMELESS) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("h1").count() == 1


@pytest.mark.slow
def test_the_colours_are_switched_and_remembered(browser: Browser, served: Served) -> None:
    with watched(browser, served, color_scheme="light") as window:
        page = window.open()
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.get_by_role("button", name="Colours").click()
        assert page.evaluate(ground) == light
        page.get_by_role("button", name="Colours: light").click()
        dark = page.evaluate(ground)
        assert dark != light
        page.reload()
        page.get_by_role("button", name="Colours: dark").wait_for()
        assert page.evaluate(ground) == dark


@pytest.mark.slow
def test_tab_goes_through_the_page_from_the_top_and_shows_where_it_is(window: Watched) -> None:
    page = window.open("?text=lisbon")
    expect(rows(page)).to_have_count(1)
    expect(page.get_by_label("Agent", exact=True)).to_be_visible()
    seen = []
    for _ in range(17):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED))
        # What a row's link has is drawn around the whole row.
        assert seen[-1][1] or seen[-1][0] == "words", seen
    names = [name for name, _ in seen]
    order = [names.index(name) for name in ("skip", "brand", "theme", "search", "order", "agent", "words")]
    assert order == sorted(order)


# -- size, and harm --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_five_thousand_spans_are_walked_through_with_few_of_them_drawn(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path) as service, watched(browser, service) as window:
        service.send(stories.large())
        service.wait(lambda found: bool(found) and found[0]["model_calls"] == 2500)
        session = identity(service, stories.LARGE)
        page = window.open(f"?session={session}&at=/runs/0/turns/2400/tool_calls/0")
        expect(page.locator(".fall-count")).to_contain_text("7,501 rows")
        expect(page.locator(".block.chosen")).to_be_in_viewport()
        expect(page.locator(".block.chosen")).to_contain_text('{"ticket": 2400}')
        assert page.locator(".fall-row").count() < 200
        assert page.locator(".block").count() < 1000
        for _ in range(30):
            page.keyboard.press("j")
        expect(page.locator(".block.chosen")).to_be_in_viewport()
        expect(page.locator(".fall-row.chosen")).to_be_in_viewport()
        page.locator(".talk").evaluate("talk => talk.scrollTo(0, 0)")
        expect(page.get_by_text("Go through the whole backlog.").last).to_be_visible()
        page.keyboard.press("/")
        page.keyboard.type('"ticket": 77,')
        page.keyboard.press("Enter")
        expect(page.locator(".finder")).to_contain_text("1 of 1")
        expect(page.locator(".block.chosen")).to_contain_text('{"ticket": 77}')


@pytest.mark.slow
def test_hostile_content_stays_text_wherever_it_stands(window: Watched, served: Served) -> None:
    session = identity(served, "conversation/")
    page = window.open()
    expect(rows(page).first).to_contain_text(stories.SCRIPT)
    page.get_by_label("Tag", exact=True).select_option(stories.SCRIPT)
    expect(rows(page)).to_have_count(1)
    page.get_by_label("User", exact=True).fill(f"user{stories.IMAGE}")
    page.get_by_label("User", exact=True).press("Enter")
    expect(rows(page)).to_have_count(1)
    page.locator("a.words").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"name {stories.SCRIPT}")
    for item in range(page.get_by_role("treeitem").count()):
        page.get_by_role("treeitem").nth(item).click()
        while page.locator("details:not([open]) > summary:visible").count():
            page.locator("details:not([open]) > summary:visible").first.click()
        raw = page.get_by_role("button", name="Show the raw span")
        if raw.count():
            raw.click()
            page.get_by_label("raw span").wait_for()
    expect(page.get_by_role("region", name="Details")).to_contain_text(f"message{stories.IMAGE}")
    page.get_by_role("treeitem").nth(3).click()
    expect(page.get_by_label("Arguments").locator(".key")).to_contain_text([stories.SCRIPT, "__proto__"])
    window.open(f"?session={session}&view=compare&with={session}")
    expect(page.locator(".step")).not_to_have_count(0)
    for query in (f"?session={stories.SCRIPT}", f"?session=../../healthz&at={stories.SCRIPT}", "?session=a%2F..%2Fb"):
        window.open(query)
        expect(page.get_by_text("There is no such session")).to_be_visible()
    for query in (f"?text={stories.SCRIPT}&agent={stories.IMAGE}", "?__proto__=x&constructor=y&tag=__proto__"):
        window.open(query)
        expect(page.locator(".foot")).to_contain_text("session")
    assert page.evaluate(
        "[window.harmed, ({}).polluted, document.querySelectorAll('img:not(.brand img), iframe').length]"
    ) == [None, None, 0]
    window.faults[:] = [fault for fault in window.faults if "404" not in fault]  # the browser tells of it by itself

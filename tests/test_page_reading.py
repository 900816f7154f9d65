"""What the page says at first sight: why a session failed, how it is replayed, what is on paper; in any writing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import page_stories as stories
from otlp_lines import GENAI, agent, chat, request, said
from page_service import Served, Watched, chromium, serving, watched


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("page")) as service:
        service.send(stories.declined(), stories.hebrew(), stories.trip(), stories.small(1))
        service.wait(lambda found: len(found) == 4)
        yield service


@pytest.fixture
def window(browser: Browser, served: Served) -> Iterator[Watched]:
    with watched(browser, served) as opened:
        yield opened


def identity(served: Served, key: str) -> str:
    """The id of the session with this conversation id or trace."""
    return str(next(one["id"] for one in served.read("sessions")["sessions"] if one["key"].startswith(key)))


@pytest.mark.slow
def test_the_list_says_why_a_session_failed(window: Watched, served: Served) -> None:
    page = window.open()
    failed = page.locator("table.sessions tbody tr").filter(has_text="failed")
    expect(failed).to_have_count(1)
    expect(failed.locator(".why")).to_have_text("tool: shop.PaymentError: card declined")
    expect(page.locator(".why")).to_have_count(1)


@pytest.mark.slow
def test_why_a_session_failed_stands_at_its_head_and_leads_to_the_call_that_did(
    window: Watched, served: Served
) -> None:
    page = window.open(f"?session={identity(served, stories.DECLINED)}")
    told = page.get_by_role("group", name="What went wrong")
    expect(told).to_contain_text("care failed: tool · shop.PaymentError · card declined")
    expect(told).to_contain_text("1 call failed on the way, the first at find_order.")
    told.get_by_role("link", name="at refund").click()
    expect(page.locator(".fall-row.chosen .text")).to_have_text("refund")
    told.get_by_role("link", name="find_order").click()
    expect(page.locator(".fall-row.chosen .text")).to_have_text("find_order")


@pytest.mark.slow
def test_what_went_well_says_nothing_of_it_and_what_did_not_end_says_where(window: Watched, served: Served) -> None:
    page = window.open(f"?session={identity(served, f'{0xB0000001:032x}')}")
    expect(page.get_by_role("treeitem").first).to_be_visible()
    expect(page.get_by_role("group", name="What went wrong")).to_have_count(0)
    page = window.open(f"?session={identity(served, 'trip')}")
    told = page.get_by_role("group", name="What went wrong")
    expect(told).to_contain_text("planner unfinished: No end was recorded")
    expect(told).to_contain_text("1 call failed on the way, the first at book_flight.")
    # The second run began an hour after the first, and of its end nothing is known.
    expect(page.locator(".head .facts")).to_contain_text("> 1 h")


@pytest.mark.slow
def test_the_command_of_a_replay_is_the_one_that_was_recorded(window: Watched, served: Served) -> None:
    session = identity(served, stories.DECLINED)
    address = f"{served.url}/api/v1/sessions/{session}#0"
    page = window.open(f"?session={session}")
    page.locator(".eligibility summary").click()
    command = page.locator(".eligibility .command code")
    expect(command).to_have_text(f"spanreel replay {address} -- python care.py --order '17 b'")
    page = window.open(f"?session={session}&view=replays")
    command = page.locator(".empty .command code")
    expect(command).to_have_text(f"spanreel replay {address} --post-report -- python care.py --order '17 b'")


@pytest.mark.slow
def test_no_trace_has_a_command_copied_that_is_not_the_persons_own_program(browser: Browser, tmp_path: Path) -> None:
    foreign = (
        ("rm", "-rf", "/"),
        ("python", "-c", "import os"),
        ("python", "-m", "pip", "install", "evil"),
        ("python; rm -rf /", "care.py"),
        ("python", "-xcare.py"),
    )
    with serving(tmp_path) as service, watched(browser, service) as window:
        service.send(*(stories.declined(argv, f"{0xFA00 + number:032x}") for number, argv in enumerate(foreign)))
        for session in service.wait(lambda found: len(found) == len(foreign)):
            page = window.open(f"?session={session['id']}")
            page.locator(".eligibility summary").click()
            expect(page.locator(".eligibility .command code")).to_contain_text("-- python your_agent.py")


@pytest.mark.slow
def test_a_session_is_compared_with_the_address_of_another(window: Watched, served: Served) -> None:
    other = identity(served, stories.HEBREW)
    for address in (f"{served.url}/?session={other}&at=/runs/0", f"{served.url}/api/v1/sessions/{other}"):
        page = window.open(f"?session={identity(served, stories.DECLINED)}&view=compare")
        page.get_by_label("Compare with the session").fill(address)
        page.get_by_role("button", name="Compare").click()
        expect(page.get_by_role("heading", name="Step by step")).to_be_visible()


@pytest.mark.slow
def test_json_keeps_its_order_whatever_is_written_in_it_and_microseconds_are_some(
    window: Watched, served: Served
) -> None:
    page = window.open(f"?session={identity(served, stories.HEBREW)}")
    line = page.locator(".block.tool .value .peek").first
    expect(line).to_have_text('{"מספר": 17, "order": "A"}')
    # Where the brace stands that opens it, the key, the number behind it and the last brace, in pixels.
    places = """(line) => [..."{מ7}"].map((sign) => {
        for (const walk = document.createTreeWalker(line, NodeFilter.SHOW_TEXT); walk.nextNode();) {
            const at = walk.currentNode.data.indexOf(sign);
            if (at < 0) continue;
            const range = document.createRange();
            range.setStart(walk.currentNode, at);
            range.setEnd(walk.currentNode, at + 1);
            return range.getBoundingClientRect().left;
        }
    })"""
    found = line.evaluate(places)
    assert found == sorted(found)
    expect(page.locator(".block.tool .fact").first).to_have_text("2 µs")
    expect(page.locator(".block.model .message").first).to_contain_text('asks for another {"order": 3}')


@pytest.mark.slow
def test_on_paper_is_the_whole_conversation_in_the_light_and_nothing_to_be_pressed(
    browser: Browser, tmp_path: Path
) -> None:
    with serving(tmp_path) as service, watched(browser, service, color_scheme="dark") as window:
        service.send(stories.large(400))
        (session,) = service.wait(lambda found: len(found) == 1)
        page = window.open(f"?session={session['id']}")
        page.get_by_role("treeitem").first.wait_for()
        assert page.locator(".block").count() < 400
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator(".block.tool:visible").count() == 400
        assert page.evaluate("document.documentElement.scrollHeight") > 20_000
        assert page.locator("button:visible, .side:visible").count() == page.locator(".block button:visible").count()
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert min(map(int, ground.removeprefix("rgb(").removesuffix(")").split(","))) > 200


@pytest.mark.slow
def test_nothing_is_wider_than_the_narrowest_window(browser: Browser, served: Served) -> None:
    # 320 pixels: a window of 1280 at four times the size (WCAG 1.4.10).
    session = identity(served, stories.DECLINED)
    with watched(browser, served, 320) as window:
        for query in (
            "",
            f"?session={session}",
            f"?session={session}&view=replays",
            f"?session={session}&view=compare",
        ):
            page = window.open(query)
            page.locator("table.sessions a, .session .head").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= 320, query


@pytest.mark.slow
def test_the_view_that_is_shown_is_told_to_screen_readers(window: Watched, served: Served) -> None:
    page = window.open(f"?session={identity(served, 'trip')}&view=replays")
    expect(page.locator(".views a[aria-current=page]")).to_have_text("Replays")
    page.get_by_role("link", name="Conversation", exact=True).click()
    expect(page.locator(".views a[aria-current=page]")).to_have_text("Conversation")


@pytest.mark.slow
def test_evaluations_stand_at_what_they_judge_and_those_of_the_session_at_its_head(
    browser: Browser, tmp_path: Path
) -> None:
    also = {
        "evaluations.0.evaluation.name": "politeness",
        "evaluations.0.evaluation.score": 0.5,
        "evaluations.0.evaluation.explanation": "<b>no</b> please",
        "evaluations.0.evaluation.annotator_kind": "HUMAN",
        "session.evaluations.0.evaluation.name": "happy user",
        "session.evaluations.0.evaluation.label": "yes",
    }
    spans = (agent(1, "clerk", seconds=9), chat(2, [said("user", "Hi")], said("assistant", "Ho"), 1, also=also))
    with serving(tmp_path) as service, watched(browser, service) as window:
        service.send(request(*spans, scope=GENAI))
        service.wait(lambda found: len(found) == 1)
        page = window.open(f"?session={service.read('sessions')['sessions'][0]['id']}")
        expect(page.locator(".head")).to_contain_text("happy user yes")
        page.get_by_role("treeitem").filter(has_text="gpt-5").first.click()
        expect(page.get_by_text("politeness", exact=True)).to_be_visible()
        expect(page.get_by_text("by HUMAN")).to_be_visible()
        expect(page.get_by_text("<b>no</b> please", exact=True)).to_be_visible()

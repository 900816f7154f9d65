"""What the page's tests show: conversations as export requests, an ordinary one, and one that is hostile throughout."""

from __future__ import annotations

import itertools
from typing import Any

from otlp_lines import Span, asks, called, ours, request, said, span_id, told
from spanreel import conventions as names
from spanreel.model import Agent, Answer, Error, ErrorCategory, Fidelity, Operation, Request, Status, ToolKind, Usage
from spanreel.records import ModelRecord, RunRecord, ToolRecord

TRIP = "f1" * 16
RETURN = "f2" * 16
HOSTILE = "e0" * 16
LARGE = "1a" * 16

TOOLS = (
    {
        "type": "function",
        "name": "search_flights",
        "description": "Flights on a day.",
        "parameters": {"type": "object"},
    },
    {
        "type": "function",
        "name": "book_flight",
        "description": "Book it. This really happens.",
        "parameters": {"type": "object"},
    },
)


def trip() -> dict[str, Any]:
    """A planner: two tools at once, a sub-agent, a booking that fails and is tried again; the user comes back later."""
    about = {
        names.CONVERSATION_ID: "trip-to-lisbon",
        names.USER_ID: "user-4711",
        names.SESSION_TAGS: ["beta", "team:travel"],
    }
    question = said("user", "Plan two days in Lisbon in May, under 600 euros, and book the flight.")
    rules = {"type": "text", "content": "You plan trips. Ask the researcher for sights. Book only what is in budget."}
    flights = called("search_flights", {"to": "LIS", "day": "2027-05-04", "most": 250}, "call_flights")
    sights = called("researcher", {"question": "Two days in Lisbon: what is worth it?"}, "call_sights")
    book = called("book_flight", {"flight": "TP 571", "price": 189.4, "traveller": 4711000000000000123}, "call_book")
    again = called("book_flight", {"flight": "TP 571", "price": 189.4, "traveller": 4711000000000000123}, "call_again")
    found = [
        {"flight": "TP 571", "departs": "2027-05-04T09:10", "price": 189.4, "seats": 4},
        {"flight": "LH 1166", "departs": "2027-05-04T12:55", "price": 241.0, "seats": 9},
    ]
    first = [question]
    second = [*first, asks(flights, sights), told("call_flights", found), told("call_sights", "Alfama, Belém, a tram.")]
    third = [*second, asks(book), told("call_book", "the booking service did not answer in 10 s")]
    fourth = [*third, asks(again), told("call_again", {"booking": "Q7XK2M", "paid": 189.4})]
    final = said(
        "assistant", "**Booked:** TP 571 on 4 May, 189.40 euros (Q7XK2M).\n\nDay 1: Alfama and the tram. Day 2: Belém."
    )
    spans = [
        ours(
            1,
            RunRecord(span_id(1), "root", Agent("planner", version="2.3"), (question,), (final,), result="booked"),
            trace=TRIP,
            start=0,
            seconds=13.4,
            also=about,
        ),
        _model(2, 1, first, asks(flights, sights), 0, 0.1, 1.7, Usage(412, 58, 256), instructions=(rules,)),
        _tool(
            3,
            1,
            ToolRecord(
                "search_flights", {"to": "LIS", "day": "2027-05-04", "most": 250}, found, "call_flights", position=0
            ),
            0,
            1.9,
            0.8,
        ),
        _tool(
            4,
            1,
            ToolRecord(
                "researcher",
                {"question": "Two days in Lisbon: what is worth it?"},
                "Alfama, Belém, a tram.",
                "call_sights",
                ToolKind.AGENT,
                position=1,
            ),
            0,
            1.9,
            3.6,
        ),
        ours(
            5,
            RunRecord(
                span_id(5),
                "root/researcher#0",
                Agent("researcher"),
                (said("user", "Two days in Lisbon: what is worth it?"),),
                (said("assistant", "Alfama, Belém, a tram."),),
                result="Alfama, Belém, a tram.",
            ),
            4,
            trace=TRIP,
            start=2.0,
            seconds=3.4,
        ),
        _model(
            6,
            5,
            [said("user", "Two days in Lisbon: what is worth it?")],
            asks(called("web_search", {"query": "Lisbon sights"}, "call_web")),
            0,
            2.1,
            0.9,
            Usage(96, 21),
        ),
        _tool(
            7,
            5,
            ToolRecord(
                "web_search",
                {"query": "Lisbon sights"},
                None,
                "call_web",
                position=0,
                fidelity={"result": Fidelity.REDACTED},
            ),
            0,
            3.1,
            1.1,
        ),
        _model(
            8,
            5,
            [
                said("user", "Two days in Lisbon: what is worth it?"),
                asks(called("web_search", {"query": "Lisbon sights"}, "call_web")),
                told("call_web", "[redacted]"),
            ],
            said("assistant", "Alfama, Belém, a tram."),
            1,
            4.3,
            1.0,
            Usage(310, 64),
        ),
        _model(9, 1, second, asks(book), 1, 5.6, 1.2, Usage(1034, 40, 768)),
        _tool(
            10,
            1,
            ToolRecord(
                "book_flight",
                {"flight": "TP 571", "price": 189.4, "traveller": 4711000000000000123},
                None,
                "call_book",
                side_effect=True,
                position=0,
                status=Status.ERROR,
                error=Error(ErrorCategory.TIMEOUT, "httpx.ReadTimeout", "the booking service did not answer in 10 s"),
            ),
            1,
            6.9,
            2.0,
        ),
        _model(11, 1, third, asks(again), 2, 9.0, 0.9, Usage(1101, 39, 1024)),
        _tool(
            12,
            1,
            ToolRecord(
                "book_flight",
                {"flight": "TP 571", "price": 189.4, "traveller": 4711000000000000123},
                {"booking": "Q7XK2M", "paid": 189.4},
                "call_again",
                side_effect=True,
                position=0,
            ),
            2,
            10.0,
            1.1,
        ),
        _model(13, 1, fourth, final, 3, 11.3, 2.0, Usage(1190, 96, 1024, reasoning_tokens=32)),
        *_comes_back(about),
    ]
    return request(*spans, service="travel")


def trip_in_parts(*places: int) -> list[dict[str, Any]]:
    """The same, cut between its spans before these places."""
    parts = []
    for begin, end in itertools.pairwise((0, *places, None)):
        part = trip()
        scope = part["resourceSpans"][0]["scopeSpans"][0]
        scope["spans"] = scope["spans"][begin:end]
        parts.append(part)
    return parts


def _comes_back(about: dict[str, Any]) -> list[Span]:
    """An hour later; the process ended while a tool ran, so that of the run only its start was told."""
    question = said("user", "And the way back?")
    back = called("search_flights", {"from": "LIS", "day": "2027-05-06"}, "call_back")
    record = RunRecord(span_id(30), "root", Agent("planner", version="2.3"), (question,), started_only=True)
    return [
        ours(20, record, 30, trace=RETURN, start=3600, seconds=0, also=about),
        _model(31, 30, [question], asks(back), 0, 3600.2, 1.4, Usage(1310, 31, 1024), trace=RETURN),
    ]


def _model(
    number: int,
    run: int,
    messages: list[dict[str, Any]],
    answer: dict[str, Any],
    turn: int,
    start: float,
    seconds: float,
    usage: Usage,
    *,
    instructions: tuple[dict[str, Any], ...] = (),
    trace: str = TRIP,
    **rest: Any,
) -> Span:
    record = ModelRecord(
        Request(Operation.CHAT, "gpt-5-mini", tuple(messages), instructions, TOOLS, {"temperature": 0.2}),
        Answer(f"resp_{number}", "gpt-5-mini-2027-01-12", (answer,), usage),
        provider="openai",
        protocol="openai_chat",
        run_id=span_id(run),
        turn_index=turn,
        **rest,
    )
    return ours(number, record, run, trace=trace, start=start, seconds=seconds)


def _tool(
    number: int, run: int, record: ToolRecord, turn: int, start: float, seconds: float, trace: str = TRIP
) -> Span:
    also = {names.RUN_ID: span_id(run), names.TURN_INDEX: turn}
    return ours(number, record, run, trace=trace, start=start, seconds=seconds, also=also)


def small(number: int) -> dict[str, Any]:
    """One of many short ones: a question, an answer; every fifth failed."""
    trace = f"{0xB0000000 + number:032x}"
    question, answer = said("user", f"Where is order {number}?"), said("assistant", f"Order {number} is on its way.")
    failed = Error(ErrorCategory.MODEL, "openai.RateLimitError", "slow down") if number % 5 == 0 else None
    status = Status.ERROR if failed else Status.OK
    agent = Agent("care" if number % 2 else "sales", version=str(1 + number % 3))
    run = RunRecord(span_id(1), "root", agent, (question,), () if failed else (answer,), status=status, error=failed)
    model = ModelRecord(
        Request(Operation.CHAT, "gpt-5" if number % 3 else "claude-sonnet-4-5", (question,)),
        None if failed else Answer("resp", "gpt-5", (answer,), Usage(100 + number, number)),
        provider="openai",
        protocol="openai_chat",
        run_id=span_id(1),
        turn_index=0,
        error=failed,
        status=status,
    )
    return request(
        ours(1, run, trace=trace, start=60.0 * number, seconds=1.0, also={names.USER_ID: f"user-{number % 4}"}),
        ours(2, model, 1, trace=trace, start=60.0 * number + 0.1, seconds=0.8),
    )


def shared(number: int) -> dict[str, Any]:
    """What one of several people says in a conversation that they share."""
    question = said("user", f"Person {number} asks.")
    run = RunRecord(span_id(1), "root", Agent("care"), (question,), (said("assistant", "Yes."),))
    also = {names.USER_ID: f"person-{number}", names.CONVERSATION_ID: "shared"}
    return request(ours(1, run, trace=f"{0xC0000000 + number:032x}", start=60.0 * number, seconds=1.0, also=also))


def large(turns: int = 2500) -> dict[str, Any]:
    """One run of so many turns, each a model call and a tool call."""
    question = said("user", "Go through the whole backlog.")
    spans = [
        ours(1, RunRecord(span_id(1), "root", Agent("triage"), (question,)), trace=LARGE, start=0, seconds=turns * 2.0)
    ]
    for turn in range(turns):
        ask = called("lookup", {"ticket": turn}, f"call_{turn}")
        spans += [
            _model(10 + 2 * turn, 1, [question], asks(ask), turn, turn * 2.0, 1.2, Usage(900, 30), trace=LARGE),
            _tool(
                11 + 2 * turn,
                1,
                ToolRecord("lookup", {"ticket": turn}, {"ticket": turn, "state": "open"}, f"call_{turn}", position=0),
                turn,
                turn * 2.0 + 1.3,
                0.5,
                LARGE,
            ),
        ]
    return request(*spans)


SCRIPT = "<script>window.harmed=1</script>"
IMAGE = '<img src="http://evil.example/x.png" onerror="window.harmed=1">'
MARKDOWN = (
    "![x](http://evil.example/pixel.png) [click](javascript:window.harmed=1) <iframe src=//evil.example></iframe>"
)
BREAKOUT = '"><svg onload=window.harmed=1> \u202egnp.exe\u202c </title></textarea>' + SCRIPT


def hostile() -> dict[str, Any]:
    """Markup and scripts wherever a trace can hold text: names, keys, values, ids, tags, addresses, errors, types."""
    keys = {
        SCRIPT: IMAGE,
        "__proto__": {"polluted": SCRIPT},
        "constructor": {"prototype": {"polluted": 1}},
        IMAGE: [BREAKOUT, "javascript:window.harmed=1"],
        "toString": SCRIPT,
    }
    ask = called(f"tool{SCRIPT}", keys, f"id{IMAGE}")
    question = {
        "role": "user",
        "parts": [
            {"type": "text", "content": f"{SCRIPT}{MARKDOWN}"},
            {"type": "uri", "uri": "http://evil.example/photo.png", "modality": "image", "mime_type": SCRIPT},
            {
                "type": "blob",
                "content": "PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+",
                "modality": "image",
                "mime_type": "image/svg+xml",
            },
            {"type": f"own{SCRIPT}", "__proto__": {"polluted": 1}, SCRIPT: SCRIPT},
        ],
    }
    final = said("assistant", f"{BREAKOUT}\n\n{MARKDOWN}")
    about = {
        names.CONVERSATION_ID: f"conversation/../{BREAKOUT}?#%00&x=y",
        names.USER_ID: f"user{IMAGE}",
        names.SESSION_TAGS: [SCRIPT, f'" autofocus onfocus=window.harmed=1 {IMAGE}', "__proto__"],
        names.SESSION_NAME: f"name {SCRIPT}",
    }
    failure = Error(ErrorCategory.TOOL, f"Type{SCRIPT}", f"message{IMAGE}")
    run = RunRecord(
        span_id(1),
        f"root{IMAGE}",
        Agent(f"agent{SCRIPT}", IMAGE, SCRIPT),
        (question,),
        (final,),
        keys,
        (SCRIPT,),
        result=keys,
    )
    model = ModelRecord(
        Request(
            Operation.CHAT,
            f"model{SCRIPT}",
            (question,),
            ({"type": "text", "content": MARKDOWN},),
            ({"type": "function", "name": SCRIPT, "description": IMAGE, "parameters": keys},),
            keys,
            provider_fields=keys,
        ),
        Answer(f"resp{IMAGE}", IMAGE, (asks(ask), final), Usage(1, 1), provider_fields=keys),
        provider=SCRIPT,
        protocol=IMAGE,
        run_id=span_id(1),
        turn_index=0,
    )
    tool = ToolRecord(f"tool{SCRIPT}", keys, keys, f"id{IMAGE}", position=0, target=SCRIPT)
    failed = ToolRecord(BREAKOUT, MARKDOWN, None, SCRIPT, position=1, status=Status.ERROR, error=failure)
    return request(
        ours(
            1, run, trace=HOSTILE, start=100_000, seconds=3, also={**about, SCRIPT: SCRIPT, "__proto__.polluted": "x"}
        ),
        ours(2, model, 1, trace=HOSTILE, start=100_000.1, seconds=1),
        _tool(3, 1, tool, 0, 100_001.2, 0.5, HOSTILE),
        _tool(4, 1, failed, 0, 100_001.8, 0.5, HOSTILE),
        service=SCRIPT,
    )


# -- what is hard to read --------------------------------------------------------------------------------------------

DECLINED = "fa" * 16
HEBREW = "a7" * 16


def declined(argv: tuple[str, ...] = ("python", "care.py", "--order", "17 b"), trace: str = DECLINED) -> dict[str, Any]:
    """A refund that fails, and the run with it, as it says; a lookup before it failed too, and was got over."""
    question = said("user", "Refund order 17.")
    error = Error(ErrorCategory.TOOL, "shop.PaymentError", "card declined")
    missing = Error(ErrorCategory.TIMEOUT, "TimeoutError", "the shop did not answer")
    run = RunRecord(span_id(1), "root", Agent("care"), (question,), status=Status.ERROR, error=error, argv=argv)
    find = ToolRecord("find_order", {"order": 17}, None, "c1", position=0, status=Status.ERROR, error=missing)
    refund = ToolRecord("refund", {"order": 17}, None, "c2", position=0, status=Status.ERROR, error=error)
    asked = asks(called("find_order", {"order": 17}, "c1"))
    then = asks(called("refund", {"order": 17}, "c2"))
    return request(
        ours(1, run, trace=trace, start=0, seconds=3),
        _model(2, 1, [question], asked, 0, 0.1, 0.2, Usage(3, 4), trace=trace),
        _tool(3, 1, find, 0, 0.4, 0.5, trace),
        _model(4, 1, [question, asked, told("c1", "timeout")], then, 1, 1.0, 0.2, Usage(3, 4), trace=trace),
        _tool(5, 1, refund, 1, 1.4, 1.5, trace),
    )


def hebrew() -> dict[str, Any]:
    """Words from right to left, in keys too; a tool that takes microseconds; a history that asks for more."""
    question, answer = said("user", "מה מצב הזמנה 17?"), said("assistant", "ההזמנה בדרך.")
    find = ToolRecord("find", {"מספר": 17, "order": "A"}, "בדרך", "c", position=0)
    earlier = asks(called("another", {"order": 3}, "older"))
    return request(
        ours(1, RunRecord(span_id(1), "root", Agent("סוכן"), (question,), (answer,)), trace=HEBREW, start=0, seconds=2),
        _model(2, 1, [question], asks(called("find", {"מספר": 17}, "c")), 0, 0.1, 0.2, Usage(3, 4), trace=HEBREW),
        _tool(3, 1, find, 0, 0.4, 0.000002, HEBREW),
        _model(4, 1, [question, earlier, told("c", "בדרך")], answer, 1, 1.0, 0.2, Usage(3, 4), trace=HEBREW),
    )

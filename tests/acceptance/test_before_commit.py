"""Every bad hour that shows before the first word: the caller gets the next provider's answer."""

import pytest
from tests.acceptance.street import voice, well

from outlast.sim.answers import read_text
from outlast.sim.calamities import CALAMITIES, Harm
from outlast.sim.sockets import closed_port

pytestmark = pytest.mark.slow

PROMPT = [{"role": "user", "content": "hi"}]
NO_ONE_LISTENS = "closed_port"
STREAMED = [NO_ONE_LISTENS, *(n for n, c in CALAMITIES.items() if c.stream is Harm.BEFORE)]
WHOLE = [NO_ONE_LISTENS, *(n for n, c in CALAMITIES.items() if c.whole is Harm.BEFORE)]
CASES = [(name, True) for name in STREAMED] + [(name, False) for name in WHOLE]


def place(name, *, stream):
    return f"{name}-{'streamed' if stream else 'whole'}"


@pytest.fixture(scope="module")
def gateway(street):
    """One pool for every case, so that no case finds another one's breaker or rest."""
    pools = {}
    with closed_port() as port:
        for name, stream in CASES:
            case = place(name, stream=stream)
            if name == NO_ONE_LISTENS:
                street.closed(f"bad-{case}", port)
            else:
                street.open(f"bad-{case}", CALAMITIES[name].behaviour(voice(f"bad-{case}")))
            street.open(f"good-{case}", well(f"good-{case}"))
            pools[case] = [f"bad-{case}", f"good-{case}"]
        yield street.gateway(pools)


@pytest.mark.parametrize(("name", "stream"), CASES, ids=[place(n, stream=s) for n, s in CASES])
def test_a_bad_hour_before_the_first_word_is_one_clean_answer(street, gateway, name, stream):
    case = place(name, stream=stream)
    raw = gateway.client.chat.completions.with_raw_response.create(
        model=case, messages=PROMPT, stream=stream
    )
    if stream:
        chunks = list(raw.parse())
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
        assert len({c.id for c in chunks}) == 1
    else:
        text = raw.parse().choices[0].message.content
    who = read_text(text)
    assert who is not None, text
    assert (who.provider, who.call) == (f"good-{case}", 0)
    assert raw.headers["x-outlast-failovers"] == "1"
    assert raw.headers["x-outlast-attempts"] == "2"
    assert raw.headers["x-outlast-provider"] == f"good-{case}"
    assert street.at[f"good-{case}"].calls == 1
    if name != NO_ONE_LISTENS:
        assert street.at[f"bad-{case}"].calls == 1


def test_the_catalogue_holds_the_known_bad_hours():
    known = {
        "header_hang",
        "reset_before_head",
        "status_500",
        "status_529",
        "status_429_retry_after",
        "status_429_bare",
        "status_401",
        "status_404",
        "ok_with_error_body",
        "ok_with_html",
        "empty_stream",
        "only_done",
        "error_as_first_event",
        "death_after_role",
    }
    assert known <= set(STREAMED)
    assert known <= set(WHOLE)

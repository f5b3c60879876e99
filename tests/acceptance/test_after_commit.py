"""A stream that breaks after its first words: the SDK raises, and the provider answers for it."""

import openai
import pytest
from tests.acceptance.process import eventually
from tests.acceptance.street import voice, well

from outlast.sim.answers import read_text
from outlast.sim.calamities import CALAMITIES, Harm

pytestmark = pytest.mark.slow

PROMPT = [{"role": "user", "content": "hi"}]
BROKEN = [name for name, c in CALAMITIES.items() if c.stream is Harm.AFTER]
TRIPS_AT = 3


@pytest.fixture(scope="module")
def gateway(street):
    pools = {}
    for name in BROKEN:
        for role in ("once", "always"):
            pool = f"{role}-{name}"
            street.open(f"bad-{pool}", CALAMITIES[name].behaviour(voice(f"bad-{pool}")))
            street.open(f"good-{pool}", well(f"good-{pool}"))
            pools[pool] = [f"bad-{pool}", f"good-{pool}"]
    breaker = {"consecutive_failures": TRIPS_AT, "open_duration": "30s", "max_open_duration": "30s"}
    return street.gateway(pools, circuit_breaker=breaker)


def read_until_it_breaks(gateway, pool):
    """The text that came before the SDK raised; who sent it."""
    raw = gateway.client.chat.completions.with_raw_response.create(
        model=pool, messages=PROMPT, stream=True
    )
    chunks = []
    with pytest.raises(openai.APIError) as caught:
        chunks.extend(raw.parse())
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    return text, raw.headers["x-outlast-provider"], caught.value


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_stream_raises_in_the_sdk_and_is_counted_once(street, gateway, name):
    pool = f"once-{name}"
    text, who, error = read_until_it_breaks(gateway, pool)
    assert text.startswith(f"[bad-{pool}#0]")
    assert read_text(text) is None
    assert who == f"bad-{pool}"
    assert error.body["metadata"]["gateway_code"] == "stream_broken"
    eventually(lambda: gateway.health(f"bad-{pool}")["inflight"] == 0)
    row = gateway.health(f"bad-{pool}")
    assert (row["window_failures"], row["window_successes"]) == (1, 0)
    assert row["consecutive_failures"] == 1
    assert row["state"] == "closed"
    assert street.at[f"bad-{pool}"].calls == 1
    assert street.at[f"good-{pool}"].calls == 0


@pytest.mark.parametrize("name", BROKEN)
def test_a_provider_that_always_dies_midway_opens_its_breaker(street, gateway, name):
    pool = f"always-{name}"
    for number in range(TRIPS_AT):
        assert gateway.health(f"bad-{pool}")["consecutive_failures"] == number
        _, who, _ = read_until_it_breaks(gateway, pool)
        assert who == f"bad-{pool}"
    assert gateway.health(f"bad-{pool}")["state"] == "open"
    answer = gateway.client.chat.completions.create(model=pool, messages=PROMPT)
    who = read_text(answer.choices[0].message.content)
    assert who is not None
    assert who.provider == f"good-{pool}"
    assert street.at[f"bad-{pool}"].calls == TRIPS_AT

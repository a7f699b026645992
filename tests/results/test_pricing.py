"""Prices: the stated example to its digits, the installed table, the user's file, and models nobody prices."""

from datetime import UTC, datetime
from decimal import Decimal

import genai_prices
import pytest
from genai_prices.types import Usage as TheirUsage

from results.pricing import Cost, PriceBook, PriceFileError, Rates, read_price_file
from results.records import Usage

DAY = datetime(2026, 7, 1, tzinfo=UTC)
EXAMPLE = Usage(
    model="made-up", requests=10, input_tokens=20_000, cache_read_tokens=1_500_000, cache_write_tokens=120_000,
    output_tokens=30_000, reasoning_tokens=10_000,
)  # fmt: skip


def test_the_stated_example():
    rates = Rates(input=4, cache_read=0.4, cache_write=5, output=20)
    book = PriceBook(own={"made-up": rates})
    cost = book.cost([EXAMPLE], DAY)
    assert cost == Cost(pytest.approx(1.88), pytest.approx(7.16))
    dropped = EXAMPLE.model_copy(update={"cache_read_tokens": 0, "cache_write_tokens": 0})
    assert book.cost([dropped], DAY).usd == pytest.approx(0.68)


@pytest.mark.parametrize(
    ("model", "provider"),
    [("gpt-5.4", "openai"), ("claude-opus-4-5", "anthropic"), ("claude-sonnet-4-6", ""), ("gemini-2.5-pro", "google")],
)
@pytest.mark.parametrize("prompt", [50_000, 400_000])
def test_agrees_with_the_table_for_one_request(model, provider, prompt):
    usage = Usage(
        model=model, provider=provider, requests=1, input_tokens=prompt // 5, cache_read_tokens=prompt - prompt // 5,
        output_tokens=2000,
    )  # fmt: skip
    theirs = genai_prices.calc_price(
        TheirUsage(input_tokens=prompt, cache_read_tokens=usage.cache_read_tokens, output_tokens=2000),
        model, provider_id=provider or None, genai_request_timestamp=DAY,
    )  # fmt: skip
    assert PriceBook().cost([usage], DAY).usd == pytest.approx(float(theirs.total_price))
    assert theirs.total_price > Decimal(0)


def test_the_price_step_is_that_of_the_mean_prompt():
    one = Usage(model="gpt-5.4", provider="openai", requests=1, input_tokens=1_000_000)
    many = one.model_copy(update={"requests": 100})
    book = PriceBook()
    assert book.cost([one], DAY).usd == pytest.approx(2 * book.cost([many], DAY).usd)


def test_unknown_models_have_no_cost_and_are_named():
    book = PriceBook()
    known = EXAMPLE.model_copy(update={"model": "gpt-5.4"})
    assert book.cost([known, EXAMPLE], DAY) == Cost(None, None)
    assert book.unknown == {"made-up"}
    assert book.cost([], DAY) == Cost(0.0, 0.0)


def test_a_wrong_provider_falls_back_to_the_model_name():
    routed = EXAMPLE.model_copy(update={"model": "claude-opus-4-5", "provider": "no-such-house"})
    direct = routed.model_copy(update={"provider": "anthropic"})
    assert PriceBook().cost([routed], DAY) == PriceBook().cost([direct], DAY)


def test_own_prices_come_first_and_say_so(tmp_path):
    file = tmp_path / "prices.toml"
    file.write_text('["gpt-5.4"]\ninput = 1\noutput = 2\n')
    book = read_price_file(file)
    usage = Usage(model="gpt-5.4", input_tokens=1_000_000, cache_read_tokens=1_000_000, output_tokens=1_000_000)
    assert book.cost([usage], DAY) == Cost(4.0, 4.0)
    assert book.source.startswith("own price file (sha256 ") and "genai-prices" in book.source
    assert "own" not in PriceBook().source


@pytest.mark.parametrize(
    "text", ["[x]\ninput = -1\noutput = 2", "[x]\ninput = 1", "[x", "[x]\ninput=1\noutput=1\ntax=2"]
)
def test_a_wrong_price_file_is_refused(tmp_path, text):
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(PriceFileError, match=r"prices\.toml"):
        read_price_file(file)

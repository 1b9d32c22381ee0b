"""What a call costs, from its usage and prices that are data."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal


@dataclass(frozen=True)
class Prices:
    """Prices for a million tokens, in a currency of the user's choice.

    A millionth of the currency for a token is the same number.

    Attributes:
        cached: of input that the provider had in its cache; None where it costs what other input does.
    """

    input: Decimal
    output: Decimal
    cached: Decimal | None = None


@dataclass(frozen=True)
class Usage:
    """Tokens of a call, as its provider counts them; None where it doesn't say.

    Attributes:
        input: all of it, what was cached among it.
    """

    input: int | None = None
    output: int | None = None
    cached: int = 0


def cost_micros(usage: Usage, prices: Prices | None) -> int | None:
    """Millionths of the currency, rounded up; None where a price or a count is missing."""
    if prices is None or usage.input is None or usage.output is None:
        return None
    cached = min(usage.cached, usage.input)
    price_cached = prices.input if prices.cached is None else prices.cached
    exact = prices.input * (usage.input - cached) + price_cached * cached + prices.output * usage.output
    return int(exact.to_integral_value(ROUND_CEILING))

"""Time as people write it. Pure: "now" and the zone are passed in."""

from ricordo.text.dates.expiry import parse_expiry, stated_expiry
from ricordo.text.dates.vocabulary import mentions_time
from ricordo.text.dates.when import Interval, Times, find_interval, format_times, parse_instant

__all__ = [
    "Interval",
    "Times",
    "find_interval",
    "format_times",
    "mentions_time",
    "parse_expiry",
    "parse_instant",
    "stated_expiry",
]

"""How the door is doing, in the text form Prometheus reads. Routes are those of the catalog, so labels stay few."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict

_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Figures:
    """Counts of one server since its start."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(_BOUNDS_S) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def note(self, route: str, status: int, seconds: float) -> None:
        """One request has been answered."""
        self._requests[route, status] += 1
        self._buckets[route][bisect_left(_BOUNDS_S, seconds)] += 1
        self._seconds[route] += seconds

    def text(self) -> str:
        """All of it."""
        lines = [
            "# HELP ricordo_requests_total Requests answered.",
            "# TYPE ricordo_requests_total counter",
            *(
                f'ricordo_requests_total{{route="{route}",status="{status}"}} {count}'
                for (route, status), count in sorted(self._requests.items())
            ),
            "# HELP ricordo_requests_in_flight Requests being answered.",
            "# TYPE ricordo_requests_in_flight gauge",
            f"ricordo_requests_in_flight {self.in_flight}",
            "# HELP ricordo_request_seconds Time to answer, in seconds.",
            "# TYPE ricordo_request_seconds histogram",
            *(line for route in sorted(self._buckets) for line in self._histogram(route)),
        ]
        return "\n".join(lines) + "\n"

    def _histogram(self, route: str) -> list[str]:
        lines, total = [], 0
        for bound, count in zip((*map(str, _BOUNDS_S), "+Inf"), self._buckets[route], strict=True):
            total += count
            lines.append(f'ricordo_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}')
        lines.append(f'ricordo_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
        lines.append(f'ricordo_request_seconds_count{{route="{route}"}} {total}')
        return lines

"""What the server says of itself: metrics, and lines of a log. Nothing of what was asked."""

import logging
from collections import Counter
from dataclasses import dataclass, field

LOG = logging.getLogger("discreet.serve")

# Seconds within which a request was answered.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass
class Counted:
    """Requests since the server started. One event loop counts.

    Attributes:
        requests: by route and status.
        answers: by route.
        seconds: by route, all together.
        within: requests by route and bucket.
    """

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    within: Counter[tuple[str, float]] = field(default_factory=Counter)

    def add(self, route: str, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            route: with {name} in place of a name: there are few of them, whatever is asked.
            status: of the response.
            seconds: that it took.
        """
        self.requests[route, status] += 1
        self.seconds[route] = self.seconds.get(route, 0.0) + seconds
        for each in _BUCKETS:
            if seconds <= each:
                self.within[route, each] += 1

    def prometheus(self, *, releases: int, problems: int) -> str:
        """Return all of it in the text format of Prometheus.

        Args:
            releases: that are served.
            problems: files that are not what answers.
        """
        lines = [
            *_titled("discreet_releases", "gauge", "Releases that answer."),
            f"discreet_releases {releases}",
            *_titled("discreet_file_problems", "gauge", "Files that are gone or damaged."),
            f"discreet_file_problems {problems}",
            *_titled("discreet_requests_total", "counter", "Requests by route and status."),
            *[
                f'discreet_requests_total{{route="{route}",status="{status}"}} {count}'
                for (route, status), count in sorted(self.requests.items())
            ],
            *_titled("discreet_answers_total", "counter", "Questions that were answered."),
            *[
                f'discreet_answers_total{{route="{route}"}} {count}'
                for route, count in sorted(self.answers.items())
            ],
            *_titled("discreet_request_seconds", "histogram", "Seconds that requests took."),
        ]
        for route, seconds in sorted(self.seconds.items()):
            count = sum(each for (one, _), each in self.requests.items() if one == route)
            lines += [
                f'discreet_request_seconds_bucket{{route="{route}",le="{each:g}"}} '
                f"{self.within[route, each]}"
                for each in _BUCKETS
            ]
            lines += [
                f'discreet_request_seconds_bucket{{route="{route}",le="+Inf"}} {count}',
                f'discreet_request_seconds_sum{{route="{route}"}} {seconds:.6f}',
                f'discreet_request_seconds_count{{route="{route}"}} {count}',
            ]
        return "\n".join(lines) + "\n"


def _titled(name: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]

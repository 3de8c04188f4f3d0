"""The experiments that the paper does not have, as one page with pictures.

Run: python benchmarks/paper.py [--out docs] [--quick]

The same as `discreet paper report`. `--quick` is a smaller run, for tests.
"""

import argparse
import pathlib

from discreet.bench import paper_report


def main() -> None:
    """Run all experiments and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs"))
    parser.add_argument("--quick", action="store_true", help="fewer builds and rows")
    arguments = parser.parse_args()
    print(paper_report.write(arguments.out, quick=arguments.quick, done=print))


if __name__ == "__main__":
    main()

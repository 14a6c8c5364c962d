"""List the networks that can embed pictures: source, size, license, accuracy.

Accuracy is in percent with its 95 % interval, 10 classes, `bd-cspn-plus`; docs/networks.md has
the details. Speed is measured here and now with --measure.
"""

import argparse
from typing import Any

from protorect.cli.arguments import add_device
from protorect.embedding.networks import MORE, Network, measured, networks, pictures_per_second
from protorect.embedding.sources import DEFAULT_SOURCE, load_embedder
from protorect.embedding.sources.embedder import described
from protorect.errors import unknown_name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("name", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--measure", action="store_true", help="measure pictures/s here")
    add_device(parser)


def run(options: argparse.Namespace) -> None:
    """Print one paragraph per network, and how to get more."""
    known, results = networks(), measured()
    for name in options.name:
        if name not in known and not options.measure:
            raise unknown_name("network", name, known)
    for name in options.name or known:
        lines = _lines(known[name], results) if name in known else [name]
        if options.measure:
            embedder = load_embedder(name, precision=options.precision, device=options.device)
            speed = f"{pictures_per_second(embedder):.0f} pictures/s"
            lines.append(f"  here        {speed}, {described(embedder)}")
        print("\n".join(lines), end="\n\n", flush=True)
    print(MORE)


def _lines(network: Network, results: dict[str, Any]) -> list[str]:
    default = " (default)" if network.name == DEFAULT_SOURCE else ""
    lines = [
        f"{network.name}{default}",
        f"  what        {network.summary}",
        f"  from        {network.source}",
        f"  size        {network.megabytes:.1f} MB",
        f"  license     {network.license}",
        f"  terms       {network.terms}",
    ]
    for title, accuracies in results["networks"].get(network.name, {}).items():
        shown = ", ".join(
            f"{one['accuracy']:.1f} ± {one['ci95']:.1f} with {shot} example{'s' * (shot != '1')}"
            for shot, one in accuracies.items()
        )
        lines.append(f"  {title:10}  {shown}")
    return lines

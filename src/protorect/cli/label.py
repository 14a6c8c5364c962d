"""Label pictures on a page in the browser, where every label relabels the rest.

PICTURES is a folder (with all below it), a pattern in quotes, a text file with one picture per
line, or several pictures. They are only read. PROJECT is a folder that keeps your labels; every
label is on disk before the page confirms it. To go on later, give PROJECT alone, or a folder that
`protorect sort` made.

The page is served to this machine only. The printed address has a token, without which nothing can
be read or changed; with another --host, everybody who can reach this machine and knows the address
can label and see the pictures, and the connection is not encrypted.
"""

import argparse
import ipaddress
import sys
from contextlib import suppress
from pathlib import Path

from protorect.app.server import Address, listening, serve
from protorect.cli.arguments import add_device
from protorect.cli.browser import open_page
from protorect.cli.progress import progress_bar
from protorect.errors import OptionError
from protorect.labeling.examples import find_examples
from protorect.labeling.session import LabelingSession


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("pictures", metavar="PICTURES", nargs="+", help="pictures, or a project to go on with")
    add("--examples", action="append", metavar="EXAMPLES", help="labeled pictures; repeatable")
    add("--nested", action="store_true", help="EXAMPLES/cat/any/1.jpg is an example of cat, too")
    add("--out", type=Path, metavar="PROJECT", help="the folder that keeps your labels")
    add("--network", metavar="NAME", help="as of `protorect sort`")
    add("--method", metavar="NAME", help="the method (bd-cspn-plus)")
    add("--host", default="127.0.0.1", help="the address to listen on (%(default)s)")
    add("--port", type=int, default=0, help="the port; 0 for a free one (%(default)s)")
    add("--token", default="", help="the token of the address (a new random one)")
    add("--no-browser", action="store_true", help="open no browser")
    add("--no-cache", dest="cache", action="store_false", help="cache no features")
    add_device(parser)


def run(options: argparse.Namespace) -> None:
    """Open or make the project, serve it until Ctrl-C, and print the address when it is ready."""
    _check_host(options.host)
    address = Address(options.host, options.port, options.token)
    # The port comes first: where it cannot be had, no project is made.
    with listening(address) as listener, _session(options) as session:
        for notice in session.notices:
            print(notice, file=sys.stderr)

        def ready(address: str) -> None:
            print(address, flush=True)
            if not options.no_browser:
                open_page(address)

        # Ctrl-C is how a person ends it.
        with progress_bar("reading pictures") as progress, suppress(KeyboardInterrupt):
            session.subscribe(
                lambda event: (
                    progress(event.data["done"], event.data["total"])
                    if event.kind == "progress" and event.data
                    else None
                )
            )
            serve(session, address, listener, ready)


def _session(options: argparse.Namespace) -> LabelingSession:
    """The session of a new project, or of the one that is given instead of pictures."""
    names = ("method", "cache", "precision", "device")
    choices = {"source": options.network, **{name: getattr(options, name) for name in names}}
    given = {name: value for name, value in choices.items() if value is not None}
    examples = None
    if options.examples:
        examples = find_examples(options.examples, least=1, nested=options.nested)
    if options.out is None:
        if len(options.pictures) > 1:
            raise OptionError("--out is missing; give the folder that is to keep your labels.")
        return LabelingSession.open(options.pictures[0], examples=examples, **given)
    return LabelingSession.open(options.out, options.pictures, examples, **given)


def _check_host(host: str) -> None:
    """Say what it means to listen on another address than the loopback."""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        print(
            f"listening on {host}: whoever can reach this machine and knows the address can see "
            "the pictures and change labels; the connection is not encrypted.",
            file=sys.stderr,
        )

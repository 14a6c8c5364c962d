import socket

import pytest

from protorect.app.server import Address, listening
from protorect.errors import OptionError


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_answers_are_sent_at_once(host):
    """asyncio switches the delay of small packets off only where the socket names TCP."""
    try:
        listener = listening(Address(host))
    except OptionError as error:  # a machine without IPv6
        if host == "127.0.0.1":
            raise
        pytest.skip(str(error))
    with listener:
        assert listener.proto == socket.IPPROTO_TCP

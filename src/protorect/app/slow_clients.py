"""Clients that connect and send nothing, or a byte now and then: they are not waited for."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS_FOR_A_REQUEST = 20.0  # until its headers, and then its body, are complete


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose first request does not arrive in time.

    Later requests are bounded by uvicorn, which closes a connection that is idle after an answer.
    """

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        self._patience = loop.call_later(SECONDS_FOR_A_REQUEST, self._lose_patience)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop to wait."""
        self._patience.cancel()
        super().connection_lost(exc)

    def _lose_patience(self) -> None:
        asked = self.cycle is not None
        if not asked or (self.cycle.more_body and not self.cycle.response_started):
            self.transport.close()

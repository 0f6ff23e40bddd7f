"""Binding to a port of this machine, or one sentence about why that cannot be done."""

import socket
from typing import Literal

from wordwing.errors import WordwingError


def bind_socket(host: str, port: int, protocol: Literal["UDP", "TCP"], option: str) -> socket.socket:
    """A socket that never blocks, bound to a port of this machine; 0 takes a free one.

    Args:
        host: The address to listen on.
        port: The port.
        protocol: Of the socket.
        option: By which the user chooses another port, if this one cannot be used.
    """
    made = None
    try:
        wanted = socket.SOCK_DGRAM if protocol == "UDP" else socket.SOCK_STREAM
        family, kind, number, _name, address = socket.getaddrinfo(host, port, type=wanted)[0]
        made = socket.socket(family, kind, number)
        if protocol == "TCP":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.setblocking(False)
    except socket.gaierror:
        raise WordwingError(f'--host is "{host}", which is no address of this machine') from None
    except OSError as error:
        if made is not None:
            made.close()
        why = (error.strerror or "unknown").lower()
        sentence = f"{protocol} port {port} of {host} cannot be used ({why}); choose another {option}"
        raise WordwingError(sentence) from None
    return made

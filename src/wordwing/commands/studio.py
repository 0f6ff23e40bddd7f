"""`wordwing studio`: type and watch it fly, in a browser."""

from pathlib import Path

from wordwing.commands.common import address, check_packages, check_port
from wordwing.errors import WordwingError
from wordwing.web.sockets import bind_socket


def studio(
    host: str = "127.0.0.1",
    port: int = 8080,
    policies: tuple[str, ...] = ("pvn2-sureal", "pvn2-bc", "pvn-bc"),
    keep: Path | None = None,
    days: float = 30.0,
    names: tuple[str, ...] = (),
) -> None:
    """Open the studio: a page on which anyone types a sentence and watches the drone think and fly.

    It flies the simulator and the lab, never a real drone. On this machine it needs no password; when it is bound to
    an address that others can reach, or has other --names, only those who have the printed link, which holds a token,
    get in.

    Args:
        host: Which address to listen on; 0.0.0.0 is every address of this machine.
        port: Which port.
        policies: Who can fly: names or folders of learned policies, with names for the page as NAME=FOLDER.
        keep: Folder for episodes that visitors ask to keep; by default wordwing/studio in the user's data folder.
        days: After how many days kept episodes are deleted.
        names: Other names by which browsers may reach it, such as that of a reverse proxy: studio.example.org
    """
    check_port(port)
    if not 0 < days <= 3650:
        raise WordwingError(f"--days is {days}; it must be more than 0 and at most 3650")
    check_packages("the studio", "studio")
    bind_socket(host, port, "TCP", "--port").close()
    from wordwing.studio.episodes import data_folder
    from wordwing.studio.resources import load_policies
    from wordwing.studio.server import StudioConfig, make_server

    settings = StudioConfig(load_policies(policies), keep or data_folder(), host, port, names=names, days=days)
    server = make_server(settings)
    print(f"the studio is open at {address(host, port, settings.token)}", "close it with Ctrl+C", sep="\n", flush=True)
    server.run()

"""A fake SITL: a process that speaks MAVLink as ArduPilot's does, on its TCP port.

Usage: python fake_sitl.py ARGUMENTS OF ARDUCOPTER. It writes its arguments and its process ids into a file,
is armed when a file called `arm` appears, and has a child that must end with it.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time

from pymavlink.dialects.v20 import ardupilotmega as mavlink

instance = int(sys.argv[sys.argv.index("--instance") + 1])
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it does not want to end
child = subprocess.Popen(["sleep", "1000"])
with open("told.json", "w") as told:
    json.dump({"arguments": sys.argv[1:], "pids": [os.getpid(), child.pid]}, told)

door = socket.create_server(("127.0.0.1", 5760 + 10 * instance))
link, _address = door.accept()
link.setblocking(False)
packer, reader = mavlink.MAVLink(None, 1, 1), mavlink.MAVLink(None)
reader.robust_parsing = True


def send(message: mavlink.MAVLink_message) -> None:
    link.send(message.pack(packer))
    packer.seq = (packer.seq + 1) % 256


asked: dict[int, float] = {}
for number in range(10**6):
    armed = 128 if os.path.exists("arm") else 0
    send(mavlink.MAVLink_heartbeat_message(2, 3, 1 | armed, 4 if armed else 0, 3, 3))
    try:
        for message in reader.parse_buffer(link.recv(65536)) or []:
            if message.get_type() == "COMMAND_LONG" and message.command == 511:
                asked[int(message.param1)] = message.param2
    except BlockingIOError:
        pass
    if 108 in asked:  # it has been asked for SIM_STATE: a drone that looks east and moves north at 1 m/s
        north = number if armed else 0
        lat, lon = 525_000_000 + north, 134_000_000
        q = 0.7071067811865476
        zeros = [0.0] * 11
        state = (q, 0.0, 0.0, q, *zeros, 40.1, 0.0, 0.0, 1.1 * bool(armed), 0.0, 0.0)
        send(mavlink.MAVLink_sim_state_message(*state, lat_int=lat, lon_int=lon))
    time.sleep(0.01)

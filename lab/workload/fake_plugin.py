#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays the plugin's side of the lab's shared file, for test.sh.

fake_plugin.py SYSFS MHZ [--dead] [--stall]: makes SYSFS/bus/pci/devices/0000:00:04.0 and then
drives model_cycles at MHZ, echoing state into applied, until SIGTERM.  --dead never
answers a state; --stall lets the clock stand.  Offsets are those of homenode_lab.h, which
also gives the layout's version.
"""

import mmap
import os
import re
import struct
import sys
import time

STATE, APPLIED, CYCLES = 512, 1024, 1032
HEADER = os.path.join(os.path.dirname(__file__), "../include/homenode_lab.h")


def defined(name: str) -> int:
    """The number that the header defines name as."""
    with open(HEADER, encoding="utf-8") as f:
        value = re.search(rf"^#define {name}\s+(0x[0-9a-f]+|\d+)", f.read(), re.M)
    if value is None:
        raise SystemExit(f"fake_plugin: {HEADER} does not define {name} as a number")
    return int(value[1], 0)


def main() -> None:
    sysfs, mhz = sys.argv[1], int(sys.argv[2])
    device = os.path.join(sysfs, "bus/pci/devices/0000:00:04.0")
    os.makedirs(device)
    for name, text in (("vendor", "0x1af4\n"), ("device", "0x1110\n")):
        with open(os.path.join(device, name), "w", encoding="ascii") as f:
            f.write(text)
    path = os.path.join(device, "resource2")
    with open(path + ".new", "wb+") as f:
        f.truncate(1 << 20)
        m = mmap.mmap(f.fileno(), 1 << 20)
    magic, version = defined("HOMENODE_LAB_MAGIC"), defined("HOMENODE_LAB_VERSION")
    for offset, value in zip(range(0, 64, 8), (magic, version, 2, 2, 1, mhz, 4, 512 << 10)):
        struct.pack_into("<Q", m, offset, value)
    struct.pack_into("<Q", m, 4096 + 8 * 2, 1000)  # vcpu 0: user loads
    struct.pack_into("<Q", m, 4096 + 8 * 34, 24)  # vcpu 0: kernel loads
    os.rename(path + ".new", path)
    begin = time.monotonic_ns()
    while True:
        cycles = 1 if "--stall" in sys.argv else (time.monotonic_ns() - begin) * mhz // 1000 + 1
        struct.pack_into("<Q", m, CYCLES, cycles)
        if "--dead" not in sys.argv:
            state = struct.unpack_from("<Q", m, STATE)[0]
            struct.pack_into("<Q", m, APPLIED, state)
        time.sleep(0.001)


main()

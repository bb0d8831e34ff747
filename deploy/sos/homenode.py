# SPDX-License-Identifier: Apache-2.0
#
# A plugin of sos (https://github.com/sosreport/sos) that collects what a bug report on
# homenode needs. Put it beside sos's own plugins, then 'sos report -o homenode':
#
#   install -m 0644 homenode.py "$(python3 -c 'import sos.report.plugins as p; print(p.__path__[0])')/"

from sos.report.plugins import IndependentPlugin, Plugin


class Homenode(Plugin, IndependentPlugin):
    """homenode's agent: configuration, status, decisions, and the machine as it sees it.

    The paths of cgroups and the names of processes are in it. No command changes anything.
    """

    short_desc = "NUMA placement agent"
    plugin_name = "homenode"
    profiles = ("system", "performance", "hardware")
    packages = ("homenode",)
    services = ("homenode",)
    files = ("/usr/bin/homenode",)

    def setup(self):
        self.add_copy_spec([
            "/etc/homenode",
            "/run/homenode/status.json",
            "/var/log/homenode/decisions.jsonl",
        ])
        self.add_cmd_output([
            "homenode --version",
            "homenode status -o json",
            "homenode topo -o json",
            "homenode stat -o json",
            "homenode events -o json",
            "homenode doctor -o json",
            "homenode restore --dry-run -o json",
        ])
        self.add_journal(units="homenode")

# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces of the test's own, joined by a veth pair: hosts A and B of a little lab."""
import os
import subprocess

from harness import need_root, wait_for

ADDR = {"a": "192.0.2.1", "b": "192.0.2.2"}
ADDR6 = {"a": "fd91::1", "b": "fd91::2"}


def sh(*argv):
    done = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, argv))}: {done.stdout}"
    return done.stdout


class Lab:
    """with Lab() as lab: lab.netns["a"] and ["b"] are files of namespaces, their ends veth0."""

    def __init__(self, mtu=4200, hosts="ab"):
        need_root()
        self.mtu = mtu
        self.name = {h: f"uroce-e2e-{os.getpid()}-{h}" for h in hosts}
        self.netns = {h: f"/run/netns/{n}" for h, n in self.name.items()}

    def ip(self, host, *argv):
        sh("ip", "-n", self.name[host], *argv)

    def __enter__(self):
        try:
            for name in self.name.values():
                sh("ip", "netns", "add", name)
                sh("ip", "-n", name, "link", "set", "lo", "up")
            if len(self.name) == 2:
                self._join()
        except BaseException:
            self.__exit__()
            raise
        return self

    def rejoin(self):
        """The interfaces are removed, and others of their names made."""
        self.ip("a", "link", "del", "veth0")
        self._join()

    def _join(self):
        sh("ip", "link", "add", "veth0", "netns", self.name["a"], "type", "veth", "peer", "name",
           "veth0", "netns", self.name["b"])
        for h in "ab":
            self.ip(h, "link", "set", "veth0", "mtu", self.mtu)
            self.ip(h, "addr", "add", f"{ADDR[h]}/24", "dev", "veth0")
            self.ip(h, "addr", "add", f"{ADDR6[h]}/64", "dev", "veth0", "nodad")
            # Without it the link-local address stays tentative, and unusable, for a second or two.
            sh("nsenter", f"--net={self.netns[h]}", "sh", "-c",
               "echo 0 >/proc/sys/net/ipv6/conf/veth0/accept_dad")
        for h in "ab":
            self.ip(h, "link", "set", "veth0", "up")
        for h in "ab":
            wait_for(f"{h} has a link-local address", lambda h=h: self._has_link_local(h))

    def _has_link_local(self, host):
        shown = sh("ip", "-n", self.name[host], "-6", "addr", "show", "dev", "veth0", "scope",
                   "link")
        return "fe80" in shown and "tentative" not in shown

    def __exit__(self, *_):
        for name in self.name.values():
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""meson install, into a directory of its own: everything lies where Debian expects it and works."""
import glob
import os
import shutil
import subprocess
import tempfile

from harness import BUILD, Program, case, run_cases

LIB = "usr/lib/x86_64-linux-gnu"


class Installed:
    def __enter__(self):
        self.top = tempfile.mkdtemp(prefix="uroce-e2e-")
        self.root = os.path.join(self.top, "root")
        done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir",
                               self.root], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        assert done.returncode == 0, done.stdout
        self.env = {"UROCE_RUN_DIR": os.path.join(self.top, "run")}
        return self

    def __exit__(self, *_):
        self.uroce("stop")
        shutil.rmtree(self.top, ignore_errors=True)

    def files(self):
        return {os.path.relpath(os.path.join(where, name), self.root)
                for where, _, names in os.walk(self.root) for name in names}

    def uroce(self, *argv):
        p = Program([os.path.join(self.root, "usr/bin/uroce"), *argv], env=self.env)
        code = p.wait(60)
        return code, p.output()


@case("command, daemon, provider, driver file and manual pages are where Debian expects them")
def _():
    with Installed() as i:
        files = i.files()
        for path in ("usr/bin/uroce", "usr/sbin/uroced", "etc/libibverbs.d/uroce.driver",
                     f"{LIB}/libibverbs/liburoce-rdmav34.so", "usr/share/man/man1/uroce.1",
                     "usr/share/man/man8/uroced.8"):
            assert path in files or path + ".gz" in files, f"{path} is missing: {sorted(files)}"


@case("the driver file has the one line that libibverbs reads")
def _():
    with Installed() as i:
        with open(os.path.join(i.root, "etc/libibverbs.d/uroce.driver"), encoding="utf-8") as f:
            lines = [line.strip() for line in f if line.strip() and not line.startswith("#")]
        assert len(lines) == 1 and lines[0].split()[0] == "driver", lines
        name = lines[0].split()[1]
        assert name in ("uroce", f"/{LIB}/libibverbs/liburoce"), lines


@case("the provider links against libc and libibverbs only")
def _():
    with Installed() as i:
        for so in glob.glob(f"{i.root}/{LIB}/libibverbs/liburoce-rdmav*.so"):
            out = subprocess.run(["objdump", "-p", so], stdout=subprocess.PIPE, text=True,
                                 check=True).stdout
            needed = [line.split()[1] for line in out.splitlines() if "NEEDED" in line]
            assert set(needed) <= {"libc.so.6", "libibverbs.so.1", "ld-linux-x86-64.so.2"}, needed


@case("nothing of the build directory's path is left in the installed files")
def _():
    with Installed() as i:
        for path in (p for p in i.files() if "/man/" not in p):
            out = subprocess.run(["readelf", "-d", os.path.join(i.root, path)],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                 check=False).stdout
            assert "RPATH" not in out and "RUNPATH" not in out, f"{path}: {out}"


@case("the installed command starts the installed daemon and shows its devices")
def _():
    with Installed() as i:
        code, text = i.uroce("run", "--", "ibv_devices")
        assert code == 0 and "uroce0" in text and "uroce1" in text, text
        code, text = i.uroce("run", "--", "sh", "-c", "echo $RDMAV_DRIVERS")
        assert text.strip() == f"{i.root}/{LIB}/libibverbs/liburoce", text
        code, text = i.uroce("doctor")
        assert code == 0, text


run_cases()

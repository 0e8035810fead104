#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the guest that plays the peer: Debian's stock kernel with Soft-RoCE, and an initramfs of
Debian packages. Nothing of it is installed on this host; the result is kept in a cache.

usage: build_guest.py     prints the directory with vmlinux and initramfs.cpio
"""
import glob
import hashlib
import lzma
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "uroce")

PACKAGES = ["busybox-static", "iproute2", "ibverbs-utils", "ibverbs-providers", "perftest"]
# Modules in the order of their use; what they depend on is found out.
MODULES = ["virtio_pci", "virtio_net", "virtio_rng", "9pnet_virtio", "9p", "overlay", "ib_uverbs",
           "crc32_generic", "rdma_rxe"]
PROGRAMS = ["ip", "tc", "rdma", "ibv_devices", "ibv_devinfo", "ibv_rc_pingpong", "ibv_uc_pingpong",
            "ibv_ud_pingpong", "ibv_srq_pingpong", "ib_send_bw", "ib_send_lat", "ib_write_bw",
            "ib_write_lat", "ib_read_bw", "ib_read_lat", "ib_atomic_bw", "ib_atomic_lat"]


class CannotBuild(Exception):
    """The packages cannot be had here; says why."""


def sh(*argv, cwd=None):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cwd,
                          text=True, check=False)
    if done.returncode:
        raise CannotBuild(f"{' '.join(argv)}: {done.stdout.strip()[-500:]}")
    return done.stdout


def find_kernel():
    done = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    return re.search(r"Depends: (linux-image-[0-9]\S*)", done.stdout)


def kernel_package():
    """Its name. A fresh machine has no lists of packages yet."""
    found = find_kernel()
    if not found and os.geteuid() == 0:
        sh("apt-get", "-q", "update")
        found = find_kernel()
    if not found:
        raise CannotBuild("apt knows no linux-image-amd64; `apt-get update` may help")
    return found.group(1)


def key(kernel):
    """What the result depends on: another kernel or another recipe is another guest."""
    h = hashlib.sha256(sh("apt-cache", "policy", kernel, *PACKAGES).encode())
    for name in (__file__, os.path.join(HERE, "guest-init")):
        with open(name, "rb") as f:
            h.update(f.read())
    return h.hexdigest()[:16]


def fetch(kernel, work):
    """All packages with all they depend on, as if nothing were installed; the kernel alone."""
    debs = os.path.join(work, "debs")
    os.makedirs(os.path.join(debs, "partial"))
    sh("apt-get", "-q", "-y", "--no-install-recommends", "--download-only",
       "-o", "Dir::State::status=/dev/null", "-o", f"Dir::Cache::archives={debs}",
       "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1", "install", *PACKAGES)
    sh("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", kernel, cwd=work)
    return glob.glob(os.path.join(debs, "*.deb")), glob.glob(os.path.join(work, "*.deb"))[0]


def unpack(debs, root):
    """Into a tree where /bin, /lib... are links into /usr, as in Debian."""
    for name in ("bin", "sbin", "lib", "lib64"):
        os.makedirs(os.path.join(root, "usr", name))
        os.symlink("usr/" + name, os.path.join(root, name))
    for deb in debs:
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as tar:
            done = subprocess.run(
                ["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", root,
                 "--exclude=./usr/share", "--exclude=./var", "--exclude=./dev"],
                stdin=tar.stdout, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise CannotBuild(f"{deb}: {done.stderr.decode()}")


def extract_vmlinux(image, out):
    """The ELF kernel out of its bzImage: QEMU boots it by PVH and saves the decompression."""
    with open(image, "rb") as f:
        data = f.read()
    at = data.find(b"\xfd7zXZ\0")
    while at >= 0:
        try:
            kernel = lzma.LZMADecompressor().decompress(data[at:])
            if kernel[:4] == b"\x7fELF":
                with open(out, "wb") as f:
                    f.write(kernel)
                return
        except lzma.LZMAError:
            pass
        at = data.find(b"\xfd7zXZ\0", at + 1)
    raise CannotBuild(f"{image}: no xz-compressed kernel inside")


def module_order(tree):
    """The files of MODULES and of what they need, in an order in which they can be inserted."""
    files = {os.path.basename(f)[:-3].replace("-", "_"): f
             for f in glob.glob(os.path.join(tree, "**", "*.ko"), recursive=True)}
    order = []

    def add(name):
        with open(files[name], "rb") as f:
            needs = re.search(rb"\0depends=([^\0]*)\0", f.read())
        for n in needs.group(1).decode().split(",") if needs else []:
            if n and n.replace("-", "_") not in order:
                add(n.replace("-", "_"))
        if name not in order:
            order.append(name)

    for m in MODULES:
        add(m)
    return [files[n] for n in order]


class Tree:
    """The initramfs in the making: files of root with the shared libraries they need."""

    def __init__(self, root, out):
        self.root, self.out = root, out
        for d in ("usr/bin", "usr/lib", "usr/lib64", "proc", "sys", "dev", "tmp", "host",
                  "etc/libibverbs.d", "modules"):
            os.makedirs(os.path.join(out, d))
        for name in ("bin", "lib", "lib64"):
            os.symlink("usr/" + name, os.path.join(out, name))

    def find(self, name):
        for d in ("usr/bin", "usr/sbin", "usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib",
                  "usr/lib/x86_64-linux-gnu/libibverbs"):
            path = os.path.join(self.root, d, name)
            if os.path.exists(path):
                return path
        raise CannotBuild(f"{name} is in none of the packages")

    def add(self, path, to):
        to = os.path.join(self.out, to)
        if os.path.exists(to):
            return
        os.makedirs(os.path.dirname(to), exist_ok=True)
        # A library's own name tells its release, and is looked at.
        real = os.path.basename(os.path.realpath(path))
        shutil.copy(os.path.realpath(path), os.path.join(os.path.dirname(to), real))
        if real != os.path.basename(to):
            os.symlink(real, to)
        told = sh("readelf", "-d", "-l", path)
        for lib in re.findall(r"\(NEEDED\).*\[(.*)\]", told):
            self.add(self.find(lib), "usr/lib/x86_64-linux-gnu/" + lib)
        loader = re.search(r"interpreter: /(?:lib64|lib)/([^]]*)\]", told)
        if loader:
            self.add(self.find(loader.group(1)), "usr/lib64/" + loader.group(1))


def cpio(top, out):
    """The tree as a newc archive, which is what the kernel unpacks."""
    def entry(f, number, name, mode, content):
        head = [number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        f.write(b"070701" + b"".join(b"%08x" % n for n in head) + name.encode() + b"\0")
        f.write(b"\0" * (-(110 + len(name) + 1) % 4) + content + b"\0" * (-len(content) % 4))

    names = sorted(os.path.relpath(os.path.join(d, n), top)
                   for d, dirs, files in os.walk(top) for n in dirs + files)
    with open(out, "wb") as f:
        for number, name in enumerate(names, 1):
            path = os.path.join(top, name)
            mode = os.lstat(path).st_mode
            content = b""
            if stat.S_ISLNK(mode):
                content = os.readlink(path).encode()
            elif stat.S_ISREG(mode):
                with open(path, "rb") as g:
                    content = g.read()
            entry(f, number, name, mode, content)
        entry(f, 0, "TRAILER!!!", 0, b"")


def make_initramfs(root, modules, out):
    tree = Tree(root, out + ".tree")
    tree.add(tree.find("busybox"), "usr/bin/busybox")
    os.symlink("busybox", os.path.join(tree.out, "usr/bin/sh"))
    for name in PROGRAMS:
        tree.add(tree.find(name), "usr/bin/" + name)
    rxe = glob.glob(os.path.join(root, "usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav*.so"))[0]
    tree.add(rxe, "usr/lib/x86_64-linux-gnu/libibverbs/" + os.path.basename(rxe))
    with open(os.path.join(tree.out, "etc/libibverbs.d/rxe.driver"), "w", encoding="ascii") as f:
        f.write("driver rxe\n")
    with open(os.path.join(tree.out, "etc/hosts"), "w", encoding="ascii") as f:
        f.write("127.0.0.1 localhost\n")
    for i, path in enumerate(modules):
        shutil.copy(path, os.path.join(tree.out, "modules", f"{i:03}-{os.path.basename(path)}"))
    shutil.copy(os.path.join(HERE, "guest-init"), os.path.join(tree.out, "init"))
    os.chmod(os.path.join(tree.out, "init"), 0o755)
    cpio(tree.out, out)


def build():
    """The directory of a guest that is ready to boot; CannotBuild says why there is none."""
    for tool in ("apt-get", "dpkg-deb", "readelf"):
        if not shutil.which(tool):
            raise CannotBuild(f"this system has no {tool}")
    kernel = kernel_package()
    out = os.path.join(CACHE, f"rxe-guest-{key(kernel)}")
    if os.path.isdir(out):
        return out
    os.makedirs(CACHE, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="building-") as work:
        debs, kernel_deb = fetch(kernel, work)
        root, image, ready = (os.path.join(work, n) for n in ("root", "kernel", "ready"))
        os.makedirs(root)
        os.makedirs(ready)
        unpack(debs, root)
        sh("dpkg-deb", "-x", kernel_deb, image)
        extract_vmlinux(glob.glob(os.path.join(image, "boot/vmlinuz-*"))[0],
                        os.path.join(ready, "vmlinux"))
        initramfs = os.path.join(work, "initramfs.cpio")
        make_initramfs(root, module_order(os.path.join(image, "lib/modules")), initramfs)
        shutil.move(initramfs, ready)
        try:
            os.rename(ready, out)
        except OSError:  # another build was faster
            if not os.path.isdir(out):
                raise
    return out


if __name__ == "__main__":
    try:
        print(build())
    except CannotBuild as why:
        sys.exit(f"build_guest: {why}")

"""The .debs and the image: what is in them, that Debian's own judge finds nothing, and that they
work in a Debian that has nothing else.

The root file system is the image's own, made by deploy/image/rootfs.sh. It needs root and the
mirror of this machine's apt.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import stat
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
BUILD = pathlib.Path(os.environ.get("HOPWISE_BUILD", ROOT / "build" / "release"))
NAMES = ("hopwise-cli", "hopwise-controller", "hopwise-scheduler")
DAEMONS = ("controller", "scheduler")
# An image that has grown beyond this carries something that it should not.
MOST_IMAGE_BYTES = 200 << 20
# Of systemd-analyze, in tenths; 10.0 is an open house.
MOST_EXPOSURE = 15

CHROOT, MOUNT = 18, 21  # CAP_SYS_CHROOT, CAP_SYS_ADMIN: linux/capability.h


def may(*capabilities: int) -> bool:
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    effective = int(status.partition("CapEff:")[2].split()[0], 16)
    return all(effective >> number & 1 for number in capabilities)


needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not may(CHROOT, MOUNT),
    reason="files of other owners, chroot and mounts: run as root with those rights")


def run(*command: object, check: bool = True, **more) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=300, check=False,
        **more,
    )  # fmt: skip
    if check:
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done


@pytest.fixture(scope="session")
def packages(tmp_path_factory) -> dict[str, pathlib.Path]:
    """The packages by name, made of the build as ./dev package does."""
    folder = tmp_path_factory.mktemp("packages")
    # The repository may lie anywhere; a package's files do not remember where.
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", folder,
        cwd=folder, env=os.environ | {"SOURCE_DATE_EPOCH": "1767225600"})  # fmt: skip
    return {path.name.partition("_")[0]: path for path in sorted(folder.glob("*.deb"))}


def field(package: pathlib.Path, name: str) -> str:
    return run("dpkg-deb", "--field", package, name).stdout.strip()


def files_of(package: pathlib.Path) -> set[str]:
    lines = run("dpkg-deb", "--contents", package).stdout.splitlines()
    return {re.split(r"\s+", line, maxsplit=5)[5].removeprefix(".") for line in lines}


# --- the packages ---------------------------------------------------------------------------------


def test_there_are_three_of_one_version(packages):
    assert tuple(packages) == NAMES
    version = field(packages["hopwise-cli"], "Version")
    for component in DAEMONS:
        package = packages[f"hopwise-{component}"]
        assert field(package, "Version") == version
        assert field(package, "Architecture") == "all"
        assert field(package, "Depends") == f"hopwise-cli (= {version})"
    assert "libcurl4" in field(packages["hopwise-cli"], "Depends")


def test_the_program_is_in_one_of_them(packages):
    having = [name for name in NAMES if "/usr/bin/hopwise" in files_of(packages[name])]
    assert having == ["hopwise-cli"]
    inside = files_of(packages["hopwise-cli"])
    assert "/usr/share/man/man1/hopwise.1.gz" in inside
    for place in ("bash-completion/completions/hopwise", "zsh/vendor-completions/_hopwise",
                  "fish/vendor_completions.d/hopwise.fish"):  # fmt: skip
        assert f"/usr/share/{place}" in inside
    assert "/usr/share/doc/hopwise-cli/docs/reference/scheduler.md" in inside


@pytest.mark.parametrize("component", DAEMONS)
def test_a_daemon_brings_its_unit_and_its_configuration(packages, component):
    package = packages[f"hopwise-{component}"]
    kept = {f"/etc/default/hopwise-{component}", f"/etc/hopwise/volcano-{component}.conf"}
    assert kept | {f"/lib/systemd/system/hopwise-{component}.service"} <= files_of(package)
    assert set(run("dpkg-deb", "--info", package, "conffiles").stdout.split()) == kept


def test_lintian_finds_nothing(packages):
    done = run("lintian", "--allow-root", "--fail-on", "error,warning", *packages.values(),
               check=False)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("component", DAEMONS)
def test_a_unit_is_sound_and_shut(component, tmp_path):
    unit = tmp_path / f"hopwise-{component}.service"
    text = (DEPLOY / "deb" / unit.name).read_text()
    assert "=/usr/bin/hopwise " in text
    # The program is not installed here, and verify would miss it.
    unit.write_text(text.replace("/usr/bin/hopwise", str(BUILD / "bin" / "hopwise")))
    assert run("systemd-analyze", "verify", "--man=no", unit).stderr == ""
    done = run("systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSURE}",
               "--no-pager", unit, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout.splitlines()[-1]


# --- the image ------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def image(packages, tmp_path_factory) -> pathlib.Path:
    """rootfs.tar as the Containerfile takes it."""
    path = tmp_path_factory.mktemp("image") / "rootfs.tar"
    run(DEPLOY / "image" / "rootfs.sh", path, packages["hopwise-cli"])
    return path


@pytest.fixture(scope="session")
def root(image, tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    run("tar", "--extract", "--file", image, "--directory", folder)
    # What every container gets from its runtime.
    os.mknod(folder / "dev" / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def inside(root: pathlib.Path, *command: object, user: str = "65532:65532", check: bool = True,
           **more):  # fmt: skip
    return run("chroot", f"--userspec={user}", "--groups=", root, *command, check=check,
               env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, **more)  # fmt: skip


def recipe() -> dict[str, str]:
    """The instructions of the Containerfile that stand there once."""
    text = (DEPLOY / "image" / "Containerfile").read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split(" ", 1) for line in lines)


@needs_root
def test_the_image_is_small_and_has_no_setuid_programs(image, root):
    assert image.stat().st_size < MOST_IMAGE_BYTES
    assert run("find", root, "-xdev", "-type", "f", "-perm", "/6000").stdout == ""
    assert not (root / "usr/bin/apt-get").exists()


@needs_root
def test_the_recipe_takes_that_file_and_is_not_root(image, root):
    steps = recipe()
    assert steps["ADD"] == f"{image.name} /"
    user = steps["USER"]
    assert f":x:{user}:" in (root / "etc/passwd").read_text()
    assert steps["ENTRYPOINT"] == '["/usr/bin/hopwise"]'
    assert inside(root, "/usr/bin/hopwise", "--help", user=user).stdout.startswith("Topology-aware")


@needs_root
def test_the_program_runs_in_the_image_as_nobody_in_particular(root):
    project = (ROOT / "CMakeLists.txt").read_text().partition("project(")[2]
    version = re.search(r"VERSION ([0-9.]+)", project).group(1)
    assert inside(root, "/usr/bin/hopwise", "version").stdout == f"hopwise {version}\n"
    cluster = (ROOT / "examples" / "eight-nodes" / "cluster.yaml").read_text()
    done = inside(root, "/usr/bin/hopwise", "topology", "check", "-", input=cluster)
    assert done.stdout == "no faults in 7 HyperNodes\n"


@needs_root
def test_the_image_knows_the_authorities_of_the_web(root):
    """UFM is asked over https."""
    assert (root / "etc/ssl/certs/ca-certificates.crt").stat().st_size > 100_000


# --- installation ---------------------------------------------------------------------------------


@needs_root
def test_the_daemons_are_installed_enabled_removed_and_purged(packages, root):
    """In a Debian of the essential packages, the program and what it needs."""
    for component in DAEMONS:
        shutil.copy(packages[f"hopwise-{component}"], root / "tmp" / f"{component}.deb")
    inside(root, "dpkg", "--install", "/tmp/scheduler.deb", "/tmp/controller.deb", user="0:0")
    for component in DAEMONS:
        conf = f"etc/hopwise/volcano-{component}.conf"
        enabled = root / f"etc/systemd/system/multi-user.target.wants/hopwise-{component}.service"
        assert (root / conf).is_file()
        assert enabled.is_symlink()
        # 1: there are warnings; 2: it cannot be used.
        checked = inside(root, "/usr/bin/hopwise", "config", "check", f"/{conf}", check=False)
        assert checked.returncode in (0, 1), checked.stderr
        lost = inside(root, "dpkg", "--verify", f"hopwise-{component}", user="0:0").stdout
        # The image leaves out documents.
        assert [line for line in lost.splitlines() if "/usr/share/doc/" not in line] == []
        inside(root, "dpkg", "--remove", f"hopwise-{component}", user="0:0")
        assert (root / conf).is_file()
        inside(root, "dpkg", "--purge", f"hopwise-{component}", user="0:0")
        assert not (root / conf).exists()
        assert not enabled.is_symlink()

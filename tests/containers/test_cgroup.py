"""What the kernel counts, read from copies of its two layouts."""

from containers.cgroup import MemoryUse, memory_use


def lay(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {"proc": root / "proc", "cgroups": root / "cg"}


def test_version_one(tmp_path):
    places = lay(
        tmp_path,
        {
            "proc/7/cgroup": "5:cpuacct,cpu:/docker/abc\n4:memory:/docker/abc\n0::/docker/abc\n",
            "cg/memory/docker/abc/memory.max_usage_in_bytes": "250000000\n",
            "cg/memory/docker/abc/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        },
    )
    assert memory_use(7, **places) == MemoryUse(250.0, 2)


def test_version_two_and_a_kernel_without_peak(tmp_path):
    files = {
        "proc/7/cgroup": "0::/system.slice/docker-abc.scope\n",
        "cg/system.slice/docker-abc.scope/memory.events": "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n",
    }
    assert memory_use(7, **lay(tmp_path, files)) == MemoryUse(None, 1)
    files["cg/system.slice/docker-abc.scope/memory.peak"] = "1000000\n"
    assert memory_use(7, **lay(tmp_path, files)) == MemoryUse(1.0, 1)


def test_unreadable(tmp_path):
    assert memory_use(7, proc=tmp_path, cgroups=tmp_path) == MemoryUse()

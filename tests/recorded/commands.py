"""The commands whose outputs are recorded, in an order in which each finds its files."""

from __future__ import annotations

EXAMPLE = "congested.json"

JOB = """{"id": "late", "arrival": 3, "epochs": 4, "chunks": 7, "minibatches": 3,
 "minibatch_time": 0.05, "gradient_mb": 102.0,
 "worker": {"gpu": 1, "cpu": 2, "memory_gb": 4, "bandwidth_gbps": 1.0},
 "ps": {"cpu": 2, "memory_gb": 4, "bandwidth_gbps": 3.0},
 "utility": {"kind": "sigmoid", "priority": 60.0, "decay": 0.8, "target": 4.0}}
"""

TRACE = "id,submitted,duration,gpus\n" + "".join(
    f"job{k},{180 * k},{900 + 7200 * (k % 4 == 0)},{2 ** (k % 4)}\n" for k in range(60)
)

GRID = """seeds = {first = 0, count = 2}
task = {name = "lateness"}

[[instances]]
preset = "testbed"
jobs = [4, 8]

[[policies]]
name = "oasis"
scale = [0.5, 1.0]

[[policies]]
name = ["fifo", "drf", "rrh"]
"""

RATIOS = """seeds = [3]
task = {name = "ratio", time_limit = inf}

[[instances]]
preset = "testbed"
jobs = 4

[[policies]]
name = "oasis"
"""

FILES = {
    "late.json": JOB,
    "jobs.csv": TRACE,
    "grid.toml": GRID,
    "ratios.toml": RATIOS,
    "bad.json": '{"format": "oasis-instance", "version": 1, "horizon": -1}',
    "bad.csv": "id,submitted,duration,gpus\na,0,ten,1\n",
    "bad.toml": '[[instances]]\npreset = "nowhere"\n',
}

POLICIES = ("oasis", "fifo", "drf", "rrh", "dorm", "srtf", "las")
METHODS = ("auto", "milp", "benders")  # that prove the optimum of these instances in time

COMMANDS: tuple[str, ...] = (
    "oasis --help",
    "oasis generate --preset testbed --seed 7 -o testbed.json",
    "oasis generate --preset calibrated --jobs 12 --worker-servers 4 --ps-servers 4 --horizon 12"
    " --seed 5 --arrivals poisson -o calibrated.json",
    "oasis generate --preset paper --jobs 5 --worker-servers 3 --ps-servers 3 --machines as_printed"
    " --seed 2 -o paper.json",
    *(f"oasis run {EXAMPLE} --policy {name} --json" for name in POLICIES),
    f"oasis run {EXAMPLE} --all-decisions",
    f"oasis run {EXAMPLE} --scale 0.5 --min-utility-fraction 0.3 --raw-units --json",
    f"oasis run {EXAMPLE} --granularity chunk --json",
    f"oasis compare {EXAMPLE} --json",
    "oasis compare testbed.json --policies oasis,fifo,srtf --policy-seed 3",
    *(
        f"oasis solve {EXAMPLE} --method {name} --work-limit 2 --solver-seed 1 --json"
        for name in METHODS
    ),
    *(f"oasis ratio calibrated.json --method {name} --work-limit 2 --json" for name in METHODS),
    "oasis generate --preset testbed --jobs 2 --worker-servers 1 --ps-servers 1 --horizon 3"
    " --seed 3 -o tiny.json",
    "oasis solve tiny.json --method bruteforce --json",
    "oasis ratio tiny.json --method bruteforce",
    f"oasis ratio {EXAMPLE} --per-job --work-limit 3",
    f"oasis quote {EXAMPLE} late.json",
    f"oasis quote {EXAMPLE} late.json --json",
    "oasis replay jobs.csv --servers 2 --policies fifo,srtf,las,drf --json",
    "oasis replay jobs.csv --servers 2 --placement whole --policies fifo,srtf,las --json",
    "oasis sweep grid.toml -o grid.parquet --json",
    "oasis sweep ratios.toml -o ratios.parquet --json",
    "oasis figure fig3 --size 0.04 --seeds 2 -o fig3 --json",
    "oasis figure fig5 --seeds 1 --time-limit inf -o fig5 --json --preset calibrated",
    "oasis figure fig8 --size 0.5 --seeds 2 -o fig8 --json",
    "oasis figure --list",
    "oasis run bad.json",
    "oasis run nowhere.json",
    f"oasis run {EXAMPLE} --policy best",
    f"oasis solve {EXAMPLE} --method best",
    f"oasis solve {EXAMPLE} --time-limit nan",
    "oasis replay bad.csv",
    "oasis sweep bad.toml",
    "oasis figure fig7",
)

"""A pass of linear machines over many workers: on paper, simulated, and with a real scheduler.

    python -m benchmarks.cluster                       # a formula and a simulation, side by side
    python -m benchmarks.cluster --emulate 4 16 64     # Dask's own scheduler, partitions that sleep

The formula adds up what a pass reads, computes and moves. The simulation plays it through, task by
task: one scheduler that hands tasks out one after the other, links that carry one sum at a time,
partitions that take unequally long, a worker that is slower than the others or dies on the way. The
emulation runs the graph of a pass on a cluster of threads, whose partitions sleep for as long as a
core would read and compute: what a scheduler takes for its tasks is measured, and needs no hundred
machines. Rates are fields of :class:`Cluster`.
"""

from __future__ import annotations

import argparse
import heapq
import math
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

#: rows and features of the tables, and numbers of workers
SIZES = ((1e7, 50), (1e8, 50), (1e9, 50), (1e9, 1000))
WORKERS = (1, 4, 16, 100)


@dataclass(frozen=True)
class Cluster:
    """Rates of one worker core and of the network."""

    #: bytes of rows that a core reads from Parquet in a second: assumed. Three passes over 400 MB
    #: took 3.3 s of processor time, sums and the client's solve included
    read: float = 4e8
    #: operations a second of XᵀDX and of products with X: assumed
    flops: float = 4e9
    #: bytes a second between two machines: 10 Gbit/s, assumed
    network: float = 1.25e9
    #: bytes a second of sums that are added up
    memory: float = 5e9
    #: seconds of the scheduler for a task: assumed; ``--emulate`` measures it
    task: float = 5e-4
    #: partial sums that one task adds up, as in Plan.branch
    branch: int = 8
    #: bytes of a partition
    partition: float = 1e8


@dataclass(frozen=True)
class Work:
    """What a pass with the matrix XᵀDX of every level consists of.

    Attributes
    ----------
    partitions : int
        P = 8nd / bytes of a partition.
    flops : float
        levels·n·(4d + d²), of all partitions.
    one_sum : float
        levels·8(d² + 4d) bytes.
    leaf : float
        Seconds of a core for a partition.
    """

    partitions: int
    flops: float
    one_sum: float
    leaf: float

    @classmethod
    def of(cls, rows: float, features: int, levels: int, cluster: Cluster) -> Work:
        data = 8.0 * rows * features
        partitions = max(1, math.ceil(data / cluster.partition))
        flops = levels * rows * (4.0 * features + features**2)
        one_sum = levels * 8.0 * (features**2 + 4.0 * features)
        leaf = (data / cluster.read + flops / cluster.flops) / partitions
        return cls(partitions, flops, one_sum, leaf)

    def layers(self, branch: int) -> list[int]:
        """Tasks of the partitions, of the sums over them, and so on to the last one."""
        widths = [self.partitions]
        while widths[-1] > 1:
            widths.append(math.ceil(widths[-1] / branch))
        return widths


# ---- on paper ----


@dataclass(frozen=True)
class Pass:
    """What one pass costs.

    Attributes
    ----------
    tasks : int
        One a partition, and the tree of sums.
    moved : float
        Bytes between machines.
    flops : float
        Of all workers.
    seconds : float
    efficiency : float
        Seconds of one worker, over workers times seconds.
    """

    tasks: int
    moved: float
    flops: float
    seconds: float
    efficiency: float


def one_pass(
    rows: float, features: int, levels: int, workers: int, cluster: Cluster | None = None
) -> Pass:
    """A pass by the formula.

    ::

        tasks       P·(1 + 1/8 + 1/64 + …)
        moved       one sum for every task whose result goes to another machine
        seconds     (read + flops)/workers + moved/(workers·network) + tasks·(a task's seconds)
                    + (the depth of the tree)·(one sum over the network)
    """
    c = cluster or Cluster()
    work = Work.of(rows, features, levels, c)
    layers = work.layers(c.branch)
    tasks, depth = sum(layers), len(layers) - 1
    moved = (tasks - 1) * work.one_sum * (1.0 - 1.0 / workers)
    busy = min(workers, work.partitions)
    whole = work.leaf * work.partitions
    overhead = tasks * c.task + depth * work.one_sum / c.network * (workers > 1)
    seconds = whole / busy + moved / (busy * c.network) + overhead
    return Pass(tasks, moved, work.flops, seconds, (whole + tasks * c.task) / (workers * seconds))


def gathered(rows: float, features: int, sample: float) -> float:
    """Bytes of rows near the corners after a solve of a sample: 8d·n·share.

    A sample of m rows leaves predictions of the median off by about 1.25·√(d/m) standard deviations
    of normal residuals; a band of three times that on both sides holds a share of 0.4·6·1.25·√(d/m)
    of them.
    """
    share = min(1.0, 0.4 * 6.0 * 1.25 * math.sqrt(features / sample))
    return 8.0 * features * rows * share


# ---- simulated ----


@dataclass(frozen=True)
class Trouble:
    """What a formula leaves out.

    Attributes
    ----------
    spread : float
        The standard deviation of the logarithm of a partition's seconds.
    slow : float
        How many times as long the first worker takes as the others.
    lost_at : float or None
        When the last worker dies, as a share of the seconds of the pass without that.
    seed : int
    """

    spread: float = 0.2
    slow: float = 1.0
    lost_at: float | None = None
    seed: int = 0


@dataclass
class Outcome:
    """A pass as it went.

    Attributes
    ----------
    seconds, moved : float
    computed : int
        Partitions computed, those that a lost worker had again.
    idle : float
        The share of all workers' time in which they waited.
    """

    seconds: float = 0.0
    moved: float = 0.0
    computed: int = 0
    idle: float = 0.0


@dataclass
class _Worker:
    free: bool = True
    alive: bool = True
    link_until: float = 0.0
    #: sums that were given to it
    waiting: deque[tuple[int, int]] = field(default_factory=deque)
    busy: float = 0.0


class Simulation:
    """One pass, event by event.

    A task is (layer, place): layer 0 has the partitions, the last layer one sum. A free worker is
    given the sums that it holds most of first, then the next partition.
    """

    def __init__(self, work: Work, workers: int, cluster: Cluster, trouble: Trouble) -> None:
        self.work, self.cluster, self.trouble = work, cluster, trouble
        self.layers = work.layers(cluster.branch)
        rng = np.random.default_rng(trouble.seed)
        noise = np.exp(trouble.spread * rng.standard_normal(work.partitions))
        self.leaf_seconds = work.leaf * noise / noise.mean()
        self.workers = [_Worker() for _ in range(workers)]
        self.partitions = deque((0, k) for k in range(work.partitions))
        #: where a result that is still needed lies, and what is under way
        self.at: dict[tuple[int, int], int] = {}
        self.running: dict[int, tuple[int, int]] = {}
        self.events: list[tuple[float, int, str, int, tuple[int, int]]] = []
        self.count = 0
        self.scheduler_until = 0.0
        self.outcome = Outcome()

    def run(self, lost_at: float = math.inf) -> Outcome:
        """To the end; the last worker dies at ``lost_at``."""
        if lost_at < math.inf:
            self._at(lost_at, "lost", len(self.workers) - 1, (0, 0))
        for k in range(len(self.workers)):
            self._give(k, 0.0)
        last = (len(self.layers) - 1, 0)
        while last not in self.at:
            now, _, kind, worker, task = heapq.heappop(self.events)
            if kind == "lost":
                self._lose(worker, now)
            elif self.workers[worker].alive:
                self._done(worker, task, now)
        whole = now * len(self.workers)
        self.outcome.seconds = now
        self.outcome.idle = 1.0 - sum(worker.busy for worker in self.workers) / whole
        return self.outcome

    def _at(self, when: float, kind: str, worker: int, task: tuple[int, int]) -> None:
        self.count += 1
        heapq.heappush(self.events, (when, self.count, kind, worker, task))

    def _turn(self, now: float) -> float:
        """When the scheduler, which does one thing at a time, is through with a task."""
        self.scheduler_until = max(self.scheduler_until, now) + self.cluster.task
        return self.scheduler_until

    def _children(self, task: tuple[int, int]) -> list[tuple[int, int]]:
        layer, place = task
        first, branch = place * self.cluster.branch, self.cluster.branch
        return [(layer - 1, k) for k in range(first, min(first + branch, self.layers[layer - 1]))]

    def _done(self, k: int, task: tuple[int, int], now: float) -> None:
        """A worker has told the scheduler of a result."""
        worker = self.workers[k]
        worker.free = True
        self.running.pop(k, None)
        self.at[task] = k
        layer, place = task
        if layer > 0:
            for child in self._children(task):
                self.at.pop(child, None)
        told = self._turn(now)
        parent = (layer + 1, place // self.cluster.branch)
        if layer + 1 < len(self.layers):
            inputs = [self.at.get(child) for child in self._children(parent)]
            if None not in inputs:
                holds = Counter(inputs)
                best = max(holds, key=lambda w: (holds[w], self.workers[w].free, -w))
                self.workers[best].waiting.append(parent)
                if best != k:
                    self._give(best, told)
        self._give(k, told)

    def _give(self, k: int, now: float) -> None:
        """Something to do for a worker that is free."""
        worker = self.workers[k]
        if not (worker.free and worker.alive):
            return
        if worker.waiting:
            task = worker.waiting.popleft()
            ready = now
            for child in self._children(task):
                if self.at[child] != k:
                    ready = max(ready, self._moved(self.at[child], k, now))
            size = len(self._children(task)) * self.work.one_sum
            end, seconds = ready + size / self.cluster.memory, size / self.cluster.memory
        elif self.partitions:
            task = self.partitions.popleft()
            seconds = self.leaf_seconds[task[1]] * (self.trouble.slow if k == 0 else 1.0)
            end = now + seconds
            self.outcome.computed += 1
        else:
            return
        worker.free = False
        worker.busy += seconds
        self.running[k] = task
        self._at(end, "done", k, task)

    def _moved(self, source: int, target: int, now: float) -> float:
        """When a sum has gone over both machines' links."""
        one, other = self.workers[source], self.workers[target]
        end = max(now, one.link_until, other.link_until) + self.work.one_sum / self.cluster.network
        one.link_until = other.link_until = end
        self.outcome.moved += self.work.one_sum
        return end

    def _lose(self, k: int, now: float) -> None:
        """A worker dies: what it held and did is computed again by others, from the files."""
        gone = self.workers[k]
        gone.alive, gone.free = False, False
        waiting = [*gone.waiting, *([self.running.pop(k)] if k in self.running else [])]
        lost = [task for task, holder in self.at.items() if holder == k]
        for task in lost:
            del self.at[task]
        # inputs of sums that were its to do, and are held elsewhere, stay where they are
        self._again([task for task in [*waiting, *lost] if task[0] == 0])
        for task in [*waiting, *lost]:
            if task[0] > 0:
                self._revive(task)
        for other in range(len(self.workers)):
            # a sum that was given to somebody else may have lost an input
            mine = self.workers[other].waiting
            kept = [t for t in mine if all(child in self.at for child in self._children(t))]
            self.workers[other].waiting = deque(kept)
            self._give(other, self._turn(now))

    def _revive(self, task: tuple[int, int]) -> None:
        """Make sure that a sum comes about again: its inputs were let go of once it was done."""
        missing = [child for child in self._children(task) if child not in self.at]
        under_way = set(self.running.values()) | set(self.partitions)
        missing = [child for child in missing if child not in under_way]
        if not missing and all(child in self.at for child in self._children(task)):
            holds = Counter(self.at[child] for child in self._children(task))
            self.workers[max(holds, key=lambda w: holds[w])].waiting.append(task)
            return
        self._again([child for child in missing if child[0] == 0])
        for child in missing:
            if child[0] > 0:
                self._revive(child)

    def _again(self, tasks: Sequence[tuple[int, int]]) -> None:
        self.partitions.extendleft(reversed(tasks))


def simulated(
    rows: float,
    features: int,
    levels: int,
    workers: int,
    cluster: Cluster | None = None,
    trouble: Trouble | None = None,
) -> Outcome:
    """A pass, played through."""
    c, t = cluster or Cluster(), trouble or Trouble()
    work = Work.of(rows, features, levels, c)
    usual = Simulation(work, workers, c, replace(t, lost_at=None)).run()
    if t.lost_at is None:
        return usual
    return Simulation(work, workers, c, t).run(t.lost_at * usual.seconds)


# ---- with a real scheduler ----


@dataclass(frozen=True)
class Emulation:
    """Seconds of a pass by Dask's scheduler, and of the scheduler for a task: beyond what the
    partitions slept."""

    seconds: float
    a_task: float


def emulate(work: Work, workers: int, branch: int = 8, repeats: int = 2) -> Emulation:
    """The graph of a pass on threads of this process, whose partitions sleep; the best run."""
    from dask import delayed
    from distributed import Client, LocalCluster

    length = max(1, int(work.one_sum / 8))

    def leaf(k: int) -> np.ndarray:
        time.sleep(work.leaf)
        return np.full(length, float(k))

    def add(parts: list[np.ndarray]) -> np.ndarray:
        return np.sum(parts, axis=0)

    layers = work.layers(branch)
    best = math.inf
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        for _ in range(repeats):
            nodes = [delayed(leaf, pure=False)(k) for k in range(work.partitions)]
            for width in layers[1:]:
                nodes = [
                    delayed(add, pure=False)(nodes[k * branch : (k + 1) * branch])
                    for k in range(width)
                ]
            started = time.perf_counter()
            total = client.compute(nodes[0]).result()
            best = min(best, time.perf_counter() - started)
            assert total[0] == work.partitions * (work.partitions - 1) / 2
    slept = work.leaf * math.ceil(work.partitions / workers)
    return Emulation(best, (best - slept) / sum(layers))


# ---- tables ----


def paper(sizes: Sequence[tuple[float, int]] = SIZES) -> str:
    """Seconds a pass and what they are worth, by rows and workers: on paper, and simulated with
    partitions that differ, a worker of half the speed, and one that dies halfway."""
    lines = [
        "rows     features  workers  tasks   moved       flops     s/pass   efficiency"
        "   simulated   one slow   one lost"
    ]
    for rows, features in sizes:
        for workers in WORKERS:
            p = one_pass(rows, features, 1, workers)
            played = [simulated(rows, features, 1, workers)]
            if workers > 1:
                troubles = Trouble(slow=2.0), Trouble(lost_at=0.5)
                played += [
                    simulated(rows, features, 1, workers, trouble=trouble) for trouble in troubles
                ]
            lines.append(
                f"{rows:<8.0e} {features:<9d} {workers:<8d} {p.tasks:<7d} {p.moved / 1e6:>8.1f} MB "
                f"{p.flops:>9.1e} {p.seconds:>9.1f}  {p.efficiency:>8.0%}"
                + "".join(f"{outcome.seconds:>11.1f}" for outcome in played)
            )
    return "\n".join(lines)


def emulated(workers: Sequence[int], leaf: float = 0.25, each: int = 20) -> str:
    """The emulation beside the simulation of the same graph with the scheduler's measured seconds:
    so many partitions a worker, 50 features."""
    lines = ["workers  partitions  tasks  emulated s  scheduler ms/task  simulated s"]
    for count in workers:
        work = Work(count * each, 0.0, 8.0 * (50**2 + 200), leaf)
        found = emulate(work, count)
        cluster = Cluster(task=max(found.a_task, 0.0))
        played = Simulation(work, count, cluster, Trouble(spread=0.0)).run()
        lines.append(
            f"{count:<8d} {work.partitions:<11d} {sum(work.layers(8)):<6d} {found.seconds:>10.2f} "
            f"{1e3 * found.a_task:>18.2f} {played.seconds:>12.2f}"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--emulate", nargs="+", type=int, metavar="WORKERS", help="with Dask's own scheduler"
    )
    options = parser.parse_args(arguments)
    print(emulated(options.emulate) if options.emulate else paper())


if __name__ == "__main__":
    main()

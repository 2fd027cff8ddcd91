"""Who reduces the traces: this machine, Dask, Ray, or Slurm by submitit. Each yields results as they come, in any order, and one for each task:
a worker that dies is not the end, its tasks are tried again, and what ends workers again and again is a result that failed."""
import concurrent.futures
import importlib.util
import os
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from . import work
from .errors import USAGE, FleetError, need
from .work import Result, Task

RETRIES = 3
CHUNK = 32  # traces of one job of Slurm's at the least


class Options(NamedTuple):
    workers: int  # 0: as many as there are cores, or as the cluster has
    scheduler: Optional[str]
    folder: str  # for logs
    slurm: Dict[str, str]


def failed(task: Task, error: str) -> Result:
    return {"trace": task["trace"], "state": "failed", "reduction": None, "bytes": None, "newest_ns": work.newest_ns(str(task["trace"])), "seconds": None,
            "error": error}


def cores() -> int:
    return len(os.sched_getaffinity(0))


def local(tasks: List[Task], options: Options) -> Iterator[Result]:
    """Threads, since each waits for a process. A process that is killed is started again by reduce_one()."""
    with concurrent.futures.ThreadPoolExecutor(options.workers or cores()) as pool:
        futures = {pool.submit(work.reduce_one, task): task for task in tasks}
        try:
            for future in concurrent.futures.as_completed(futures):
                yield future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def by_value(cloudpickle: Any) -> None:
    """Workers need no package of ours."""
    if hasattr(cloudpickle, "register_pickle_by_value"):
        cloudpickle.register_pickle_by_value(work)


def dask(tasks: List[Task], options: Options) -> Iterator[Result]:
    distributed = need("distributed", "dask[distributed]", "--engine dask")
    by_value(need("cloudpickle", "cloudpickle", "--engine dask"))
    cluster = None
    if options.scheduler:
        client = distributed.Client(options.scheduler, timeout=30)
    else:
        cluster = distributed.LocalCluster(n_workers=options.workers or cores(), threads_per_worker=1, processes=True, dashboard_address=None,
                                           silence_logs=50, local_directory=os.path.join(options.folder, "dask"))
        client = distributed.Client(cluster)
    try:
        futures = {f.key: (f, t) for f, t in zip(client.map(work.reduce_one, tasks, pure=False, retries=RETRIES), tasks)}
        for future in distributed.as_completed([f for f, _ in futures.values()]):
            task = futures.pop(future.key)[1]
            error = future.exception() if future.status != "finished" else None
            yield future.result() if future.status == "finished" else failed(task, "its worker died: %s" % str(error).splitlines()[0][:300])
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def ray(tasks: List[Task], options: Options) -> Iterator[Result]:
    ray_ = need("ray", "ray", "--engine ray")
    by_value(ray_.cloudpickle)
    more: Dict[str, Any] = {"address": options.scheduler} if options.scheduler else {"num_cpus": options.workers or cores(), "include_dashboard": False}
    ray_.init(log_to_driver=False, logging_level=40, **more)
    try:
        remote = ray_.remote(max_retries=RETRIES, num_cpus=1)(work.reduce_one)
        waiting = {remote.remote(task): task for task in tasks}
        while waiting:
            for ref in ray_.wait(list(waiting), num_returns=1, timeout=None)[0]:
                task = waiting.pop(ref)
                try:
                    yield ray_.get(ref)
                except Exception as e:  # pylint: disable=broad-except
                    yield failed(task, "its worker died: %s" % str(e).splitlines()[0][:300])
    finally:
        ray_.shutdown()


def slurm(tasks: List[Task], options: Options) -> Iterator[Result]:
    submitit = need("submitit", "submitit", "--engine slurm")
    by_value(need("cloudpickle", "cloudpickle", "--engine slurm"))
    executor = submitit.AutoExecutor(folder=os.path.join(options.folder, "slurm"), cluster="slurm")
    settings: Dict[str, Any] = {"timeout_min": 60, "cpus_per_task": 1, "slurm_array_parallelism": options.workers or 256}
    settings.update({"slurm_" + k if not k.startswith("slurm_") else k: v for k, v in options.slurm.items()})
    executor.update_parameters(**settings)
    size = max(CHUNK, len(tasks) // 1000 + 1)
    chunks = [tasks[i:i + size] for i in range(0, len(tasks), size)]
    waiting = dict(zip(executor.map_array(work.reduce_many, chunks), chunks))
    while waiting:
        for job in [j for j in waiting if j.done()]:
            chunk = waiting.pop(job)
            try:
                yield from job.result()
            except Exception as e:  # pylint: disable=broad-except
                yield from (failed(task, "its job ended: %s" % str(e).strip().splitlines()[-1][:300]) for task in chunk)
        time.sleep(0.5)


ENGINES: Dict[str, Callable[[List[Task], Options], Iterator[Result]]] = {"dask": dask, "ray": ray, "local": local, "slurm": slurm}


def choose(name: Optional[str], scheduler: Optional[str]) -> str:
    """Dask where it is installed: it is the default."""
    if name is not None and name not in ENGINES:
        raise FleetError("--engine: unknown value '%s'; there are %s" % (name, ", ".join(ENGINES)), USAGE)
    if name is None:
        name = "dask" if scheduler or importlib.util.find_spec("distributed") else "local"
    if scheduler and name not in ("dask", "ray"):
        raise FleetError("--scheduler is for --engine dask and ray, not %s" % name, USAGE)
    return name

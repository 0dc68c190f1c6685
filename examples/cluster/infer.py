# SPDX-License-Identifier: Apache-2.0
"""Batch inference with Ray Data: one result file for each input, on one machine or on a cluster.

    python infer.py MODEL INPUTS RESULTS [--workers N] [--cpus F] [--batch N]

INPUTS is a folder of pictures, or of Parquet files with the columns `id` and `data`. Input x has the result RESULTS/x.npy."""
import argparse
import pathlib
import uuid

import kiln_nn
import numpy as np
import ray


class Worker:
    """An actor: one process with one session, which it keeps from batch to batch."""

    def __init__(self, model, results):
        self.session = kiln_nn.load(model).compile(threads=1).session()
        self.input = self.session.program.inputs[0]
        self.results = pathlib.Path(results)

    def __call__(self, batch):
        names = batch["id"] if "id" in batch else [pathlib.Path(path).stem for path in batch["path"]]
        for name, row in zip(names, batch["data"] if "data" in batch else map(picture, batch["image"])):
            result = self.results / f"{name}.npy"
            if not result.exists():                     # no earlier run wrote it, nor a worker that was killed
                fixed = all(isinstance(dim, int) for dim in self.input.shape)
                row = row.reshape(self.input.shape if fixed else (1, *row.shape))   # no copy
                write(result, next(iter(self.session.run({self.input.name: row}).values())))
        return {"done": np.array([len(names)])}


def picture(pixels):
    """Bytes of rows, columns and channels become floats of channels, rows and columns."""
    return np.ascontiguousarray(np.atleast_3d(pixels).transpose(2, 0, 1), np.float32) / 255


def write(path, array):
    """The file is whole from the moment that it has its name."""
    whole = path.with_name(f".{uuid.uuid4().hex}.npy")
    np.save(whole, array)
    whole.replace(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs=3, metavar="PATH", help="MODEL, INPUTS and RESULTS")
    for name, kind, value in (("workers", int, 4), ("cpus", float, 1), ("batch", int, 256)):
        parser.add_argument(f"--{name}", type=kind, default=value)
    options = parser.parse_args()
    model, inputs, results = options.paths
    pathlib.Path(results).mkdir(parents=True, exist_ok=True)
    ray.data.DataContext.get_current().use_datasource_v2 = False    # its listing would wait for a processor of the workers
    tables = any(pathlib.Path(inputs).glob("*.parquet"))
    # A few processes read, not one for each file. Blocks are few, too: each costs a worker some milliseconds.
    reading = {"num_cpus": 0, "concurrency": options.workers, "override_num_blocks": 4 * options.workers}
    data = ray.data.read_parquet(inputs, **reading) if tables else ray.data.read_images(inputs, include_paths=True, **reading)
    done = data.map_batches(Worker, fn_constructor_args=(model, results), batch_size=options.batch, batch_format="numpy",
                            zero_copy_batch=True, compute=ray.data.ActorPoolStrategy(size=options.workers), num_cpus=options.cpus)
    print(f"{sum(row['done'] for row in done.iter_rows())} inputs are done")

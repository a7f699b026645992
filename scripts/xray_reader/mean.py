"""Take the mean of fitted weights, array by array: ``python scripts/xray_reader/mean.py A.npz B.npz --out MEAN.npz``.

Weights of neighbouring stretches of one fit lie close together, and their mean reads better than either.
"""

import argparse
from pathlib import Path

import numpy as np


def main() -> None:
    """Write the mean as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    told = parser.parse_args()
    fits = [dict(np.load(path)) for path in told.weights]
    if len({tuple(sorted((name, array.shape) for name, array in fit.items())) for fit in fits}) > 1:
        parser.error("the files hold other arrays; give weights that one network was fitted to")
    means = {name: np.mean([fit[name] for fit in fits], axis=0, dtype=np.float64) for name in fits[0]}
    np.savez_compressed(told.out, **{name: mean.astype(fits[0][name].dtype) for name, mean in means.items()})


if __name__ == "__main__":
    main()

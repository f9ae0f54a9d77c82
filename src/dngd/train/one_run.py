"""One run of a comparison, in a process of its own: `python -m dngd.train.one_run DIRECTORY SETTINGS`."""

import json
import sys

from dngd.config import Config
from dngd.train.directory import RunDirectory
from dngd.train.launch import SAVED
from dngd.train.locate import find_problem
from dngd.train.memory import keep_freed_memory
from dngd.train.signals import end_with_parent
from dngd.train.trainer import train


def main() -> int:
    end_with_parent()
    keep_freed_memory()
    path, settings = sys.argv[1], json.loads(sys.argv[2])
    name = settings.pop("problem")
    problem = find_problem(name)
    config = Config.from_dict(settings).resolved(problem)
    with RunDirectory.create(path, {"problem": name, **config.as_dict()}) as directory:
        summary = train(problem, config, directory).summary
    return 0 if summary["status"] == "finished" else SAVED


if __name__ == "__main__":
    sys.exit(main())

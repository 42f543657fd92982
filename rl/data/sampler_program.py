"""Says which rows come next, by a user's sampler class. Follows python_prelude.py.

The rows come first, one a line, then requests, each with one answer.
"""

import importlib.util
import itertools
import json
import sys
import types


class AbstractSampler:
    def __init__(self, data_source, data_config):
        pass


class AbstractCurriculumSampler(AbstractSampler):
    def update(self, batch):
        pass


class DataProto:
    """A step's samples, as far as they are known here."""

    def __init__(self, scores, rows, lengths):
        try:
            import torch

            column = torch.tensor(scores, dtype=torch.float32).unsqueeze(1)
        except ImportError:
            column = [[score] for score in scores]
        try:
            import numpy

            array = numpy.array
        except ImportError:
            array = list
        self.batch = {"token_level_scores": column, "token_level_rewards": column}
        self.non_tensor_batch = {
            "index": array(rows),
            "score": array(scores),
            "response_length": array(lengths),
        }
        self.meta_info = {}

    def __len__(self):
        return len(self.non_tensor_batch["index"])


def stand_in_for_verl():
    if importlib.util.find_spec("verl") is not None:
        return
    samplers = {
        "AbstractSampler": AbstractSampler,
        "AbstractCurriculumSampler": AbstractCurriculumSampler,
    }
    for name, contents in {
        "verl": {"DataProto": DataProto},
        "verl.protocol": {"DataProto": DataProto},
        "verl.experimental": {},
        "verl.experimental.dataset": {},
        "verl.experimental.dataset.sampler": samplers,
    }.items():
        module = types.ModuleType(name)
        # A package, so that what is not here is a ModuleNotFoundError by its name.
        module.__path__ = []
        vars(module).update(contents)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


class Order:
    def __init__(self, sampler, rows):
        self.sampler, self.rows = sampler, rows
        self.numbers, self.epoch, self.offset = None, -1, 0

    def take(self, count):
        if self.numbers is None:
            self.numbers, self.epoch, self.offset = iter(self.sampler), self.epoch + 1, 0
        taken = [int(number) for number in itertools.islice(self.numbers, count)]
        for number in taken:
            if not 0 <= number < self.rows:
                raise LookupError(f"the sampler gave row {number}, and there are {self.rows}")
        self.offset += len(taken)
        return taken

    def next(self, count):
        fresh = self.numbers is None
        taken = self.take(count)
        if len(taken) < count and not fresh:  # what is left over fills no batch
            self.numbers = None
            taken = self.take(count)
        if len(taken) < count:
            raise LookupError(
                f"an epoch of the sampler has {len(taken)} rows, which is no batch of {count}"
            )
        return {"rows": taken, "epoch": self.epoch, "offset": self.offset, "state": self.state()}

    def state(self):
        if not hasattr(self.sampler, "state_dict") or not hasattr(self.sampler, "load_state_dict"):
            return None
        return plain(self.sampler.state_dict())

    def update(self, outcomes):
        if hasattr(self.sampler, "update"):
            rows, scores, lengths = zip(*outcomes) if outcomes else ((), (), ())
            self.sampler.update(DataProto(list(scores), list(rows), list(lengths)))
        return {"state": self.state()}

    def resume(self, epoch, offset, state):
        for _ in range(epoch):
            for _ in iter(self.sampler):
                pass
        self.epoch, self.numbers = epoch - 1, None
        if epoch >= 0:
            self.take(offset)
        if state is not None and hasattr(self.sampler, "load_state_dict"):
            self.sampler.load_state_dict(state)
        return {"replays_updates": not hasattr(self.sampler, "update") or state is not None}

    def answer(self, request):
        if "next" in request:
            return self.next(*request["next"])
        if "update" in request:
            return self.update(*request["update"])
        return self.resume(*request["resume"])


def main():
    setup = json.loads(sys.argv[1])
    requests = open(0, encoding="utf-8", newline="\n", closefd=False)
    rows = [json.loads(requests.readline()) for _ in range(setup["rows"])]
    stand_in_for_verl()
    sampler = load_class(setup["path"], setup["name"])(
        data_source=rows, data_config=config_of(setup["config"])
    )
    order = Order(sampler, len(rows))
    told.write('{"ready": true}\n')
    told.flush()
    for line in requests:
        request = json.loads(line)
        told.write(json.dumps(order.answer(request)) + "\n")
        told.flush()


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:
        told.write(json.dumps({"error": reasons(error)}) + "\n")
    told.flush()

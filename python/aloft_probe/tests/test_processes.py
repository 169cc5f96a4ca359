"""The collector where several processes train together."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PACKAGE))
try:
    import torch
except ImportError:
    torch = None

PROGRAM = """
import json, sys
rank, folder = int(sys.argv[1]), sys.argv[2]
import torch
import torch.distributed as dist
from aloft_probe import Probe
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)), gradient_as_bucket_view=VIEWS)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
probe = Probe(model, folder + "/probed", optimizer=optimizer)
torch.manual_seed(5 + rank)
seen = []
for step in range(2):
    with probe.step():
        with model.no_sync():
            probe.loss(model(torch.randn(5, 8)).square().mean()).backward()
        probe.loss(model(torch.randn(5, 8)).square().mean()).backward()
        seen.append({name: p.grad.double().norm().item() for name, p in model.named_parameters()})
        optimizer.step()
    optimizer.zero_grad()
probe.remove()
with open(f"{folder}/seen{rank}.json", "w") as file:
    json.dump(seen, file)
dist.destroy_process_group()
"""


@unittest.skipUnless(torch and torch.distributed.is_available() and torch.distributed.is_gloo_available(),
                     "torch with gloo is not installed")
class Processes(unittest.TestCase):
    def test_gradients_are_those_that_the_optimizer_takes(self):
        for views in (False, True):
            with self.subTest(views=views), tempfile.TemporaryDirectory() as folder:
                self.train(folder, PROGRAM.replace("VIEWS", str(views)))

    def train(self, folder, program):
        program = f"import sys\nsys.path.insert(0, {str(PACKAGE)!r})\n" + program
        both = [subprocess.Popen([sys.executable, "-c", program, str(rank), folder], stderr=subprocess.PIPE, text=True)
                for rank in range(2)]
        for one in both:
            _, said = one.communicate()
            self.assertEqual(one.returncode, 0, said)
        for rank in range(2):
            seen = json.loads(Path(folder, f"seen{rank}.json").read_text())
            for step, norms in enumerate(seen):
                dump = json.loads(Path(folder, f"probed/step{step}/rank{rank}/dump.json").read_text())
                for name, norm in norms.items():
                    owner, _, own = name.rpartition(".")
                    record = dump["data"][f"Module.{owner}.Linear.parameters_grad.0"][own][0]
                    self.assertAlmostEqual(record["Norm"], norm, delta=1e-9)
                self.assertAlmostEqual(dump["training"]["gradient_norm"], sum(n ** 2 for n in norms.values()) ** 0.5,
                                       delta=1e-6)


if __name__ == "__main__":
    unittest.main()

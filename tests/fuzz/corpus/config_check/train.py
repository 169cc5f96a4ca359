# a program's settings
import time
learning_rate = 6e-4; decay_lr = True
gradient_accumulation_steps = 5 * 8
name = 'run-' + str(time.time())
betas = (0.9,
         0.95)
opt: dict = {"lr": -1e-3, "names": ["a", 'b']}
"""text
of lines"""
seed += 1

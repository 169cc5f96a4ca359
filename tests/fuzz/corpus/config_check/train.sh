#!/bin/bash
export OMP_NUM_THREADS=4 CUDA_VISIBLE_DEVICES="0,1"  # two
LR=${LR:-1e-4}
MODEL_ARGS="
  --num-layers 12 \
  --lr $LR
"
MORE=(--seed 7 --name 'a b')
NCCL_ALGO=Ring torchrun --nproc_per_node 8 train.py $MODEL_ARGS \
    --fp16 --clip-grad=1.0 "${MORE[@]}" trainer.steps=5 2> log.txt | tee out

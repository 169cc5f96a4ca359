export A=1 B
A=2; B=3
ARGS=(--lr 1)
ARGS+=(--wd 0x10)
M+=" --beta 0.9,0.95"
if X=1 env -u Y Z=[1,2] python t.py "${ARGS[@]}" $M >log 2>&1 --fp16 yes < in &> out; then
  export A=4
fi

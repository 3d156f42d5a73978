#!/bin/sh
# three tasks
submit a.rad; sleep 73
submit "b.rad"
sleep 4.5s
submit dir/a.rad
%%
# a task
conda activate env
python train.py --epochs 20 --lr 0.1
summary
cifar
batch size: 128
exclusive
1
measured: 4500
5000
-
6100

%%
# a task
conda activate env
python train.py --epochs 20 --lr 0.1
summary
cifar
batch size: 8
exclusive
1
measured: 4500
5000
-
6100

%%
# a task
conda activate env
python train.py --epochs 20 --lr 0.1
summary
cifar
batch size: 32
exclusive
1
measured: 4500
5000
-
6100

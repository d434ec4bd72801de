#!/bin/bash
# up.sh SET TIME FS OPTIONS: three slow disks of SET, mounted at SET/1 2 3
set -e
S=$PWD/$1; mkdir -p $S/m $S/1 $S/2 $S/3
nice -n -10 foxy disk serve $S/m --time $2 --disks 3 --size 59MB --json $S/disk.jsonl > $S/disk.out 2>&1 &
echo $! > $S/pid
for i in $(seq 50); do [ -e $S/m/disk3 ] && break; sleep 0.1; done
: > $S/loops
for d in 1 2 3; do
  l=$(losetup --find --show --direct-io=on $S/m/disk$d); echo $l >> $S/loops
  case $3 in ext2|ext3) mkfs.$3 -q -F -b 4096 -g 1024 -i 8192 -m 0 $l;; *) mkfs.$3 -q $l;; esac
  mount -t $3 -o $4 $l $S/$d
  bdi=/sys/class/bdi/$(lsblk -ndo MAJ:MIN $l | tr -d ' ')
  echo 1 > $bdi/strict_limit; echo 2097152 > $bdi/max_bytes   # a small machine has little memory for writes
done

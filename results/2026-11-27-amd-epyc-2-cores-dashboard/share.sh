#!/bin/bash
# Prints the share of the CPU time of a busy foxy that an open dashboard uses: the samples of its
# traffic, and the thread of the admin server. The samples of perf tell the shares.
#
# usage: share.sh FOXY LOAD [OPTIONS OF FOXY]     (LOAD is a foxy with the lab)
set -e
FOXY=$1 LOAD=$2; shift 2
STORE=$(mktemp -d); trap 'kill $P $POLL 2>/dev/null; rm -rf $STORE' EXIT
$FOXY serve --listen 127.0.0.1:33128 --admin 127.0.0.1:33129 --store $STORE --size 1G --memory 64M \
  --allow-destination 127.0.0.0/8 "$@" > /dev/null 2>&1 & P=$!
sleep 2
python3 - << 'X' & POLL=$!
import time, urllib.request
for second in range(15):
    paths = ["/data/live"]
    if second % 2 == 0:
        paths += ["/data/map?store=0", "/data/map-history?store=0"]
    for path in paths:
        asked = urllib.request.Request("http://127.0.0.1:33129" + path, headers={"Foxy-Dashboard": "1"})
        urllib.request.urlopen(asked).read()
    time.sleep(1)
X
$LOAD load --proxy 127.0.0.1:33128 --pid $P --workload memory-hit --clients 32 --seconds 13 \
  > $STORE/load.txt & L=$!
sleep 3
perf record -F 997 -e cpu-clock --call-graph dwarf,4096 -p $P -o $STORE/perf.data -- sleep 9 \
  > /dev/null 2>&1
wait $L
grep -E "requests_per_second|cpu_us_per_request" $STORE/load.txt
perf report -i $STORE/perf.data --stdio --no-children -g none --sort comm 2> /dev/null \
  | grep -v "^#" | grep -E "%"
perf report -i $STORE/perf.data --stdio --children -g none --percent-limit 0.01 --no-inline \
  2> /dev/null | grep -E "Traffic as|AllSinks as|RequestLog::log"

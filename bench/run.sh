#!/usr/bin/env bash
# The same memory hits, disk hits and fills through foxy, Squid and nginx on this machine, in turn: CPU, rate, what stays.
# Usage: bench/run.sh [--quick]     What may be set, and how to read what comes out: bench/README.md
set -euo pipefail
cd "$(dirname "$0")/.."

quick=
case "${1:-}" in
    '') ;;
    --quick) quick=1 ;;
    *) echo "bench/run.sh: $1 is not known; there is --quick" >&2; exit 2 ;;
esac
# given NAME FULL QUICK: sets the variable NAME unless the environment has it.
given() { [ -n "${!1:-}" ] || printf -v "$1" %s "$([ -n "$quick" ] && echo "$3" || echo "$2")"; }
given REPEATS 3 1
given SECONDS_EACH 10 3
given DISK_HIT_OBJECTS 100000 10000
given FILL_OBJECTS 131072 16384
given FILL_MEGABYTES 512 64
given LIMIT_MEGABYTES 256 256
given MEMORY_MEGABYTES 32 16
given SYSTEM_CALL_REQUESTS 50000 20000
given PROXIES "foxy squid nginx" "foxy squid nginx"
given WORKLOADS "memory-hit disk-hit fill" "memory-hit disk-hit fill"
clients=64
newest=$((FILL_OBJECTS / 10))

PATH=$PATH:/usr/sbin:/sbin
for tool in curl jq; do
    command -v $tool >/dev/null || { echo "$tool is not installed: apt-get install $tool" >&2; exit 2; }
done
built_here=
if [ -z "${FOXY:-}" ]; then
    cargo build --release --quiet --bin foxy
    FOXY=${CARGO_TARGET_DIR:-target}/release/foxy
    built_here=1
fi
proxies=
for proxy in $PROXIES; do
    case $proxy in
        foxy) ;;
        squid | nginx)
            if ! command -v $proxy >/dev/null; then
                echo "$proxy is not installed (apt-get install $proxy): going on without it" >&2
                continue
            fi ;;
        *) echo "PROXIES: $proxy is not known; there are foxy, squid and nginx" >&2; exit 2 ;;
    esac
    proxies="$proxies $proxy"
done
user=$(id -un)
[ "$user" != root ] || user=nobody
user_group=$(id -gn "$user")
mkdir -p "${SCRATCH:-target/bench}"
scratch=$(mktemp -d "$(realpath "${SCRATCH:-target/bench}")/run.XXXXXX")
chmod 755 "$scratch"
case $(stat -f -c %T "$scratch") in tmpfs | ramfs) echo "note: the scratch folder is in memory; set SCRATCH" >&2 ;; esac

origin_process='' proxy_process='' group='' group_why='' drop_why='' calls_why=''
make_group() {
    local parent=/sys/fs/cgroup/memory
    if ! [ -w "$parent/memory.limit_in_bytes" ] || ! mkdir "$parent/foxy-bench-$$" 2>/dev/null; then
        group_why='not limited: that takes root and a memory control group of version 1'
        return
    fi
    group=$parent/foxy-bench-$$
    echo $((LIMIT_MEGABYTES << 20)) >"$group/memory.limit_in_bytes"
}
end_process() {
    local process=$1
    kill "$process" 2>/dev/null || true
    for _ in $(seq 300); do kill -0 "$process" 2>/dev/null || break; sleep 0.05; done
    kill -9 "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
}
stop_proxy() {
    [ -z "$proxy_process" ] || end_process "$proxy_process"
    proxy_process=
    rm -rf "$scratch/proxy"
}
clean_up() {
    trap - EXIT
    trap '' INT TERM HUP
    stop_proxy
    [ -z "$origin_process" ] || end_process "$origin_process"
    rm -rf "$scratch"
    [ -z "$group" ] || for _ in $(seq 40); do ! rmdir "$group" 2>/dev/null || break; sleep 0.05; done
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)); (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo "$port"
}
# wait_for PROCESS PORT: until the port gives an object.
wait_for() {
    for _ in $(seq 400); do
        ! curl -fso /dev/null --max-time 2 "http://127.0.0.1:$2/o/999999999/1/1" || return 0
        kill -0 "$1" 2>/dev/null || break
        sleep 0.05
    done
    return 1
}
fill_in() {
    sed -e "s|@PORT@|$port|g; s|@ORIGIN_PORT@|$origin_port|g; s|@FOLDER@|$scratch/proxy|g; s|@USER@|$user|g; s|@GROUP@|$user_group|g" \
        -e "s|@STORE@|${squid_store:-}|g; s|@DISK_MEGABYTES@|$1|g; s|@MEMORY_MEGABYTES@|$MEMORY_MEGABYTES|g" "bench/$2"
}
# start_proxy NAME DISK_MEGABYTES GROUP: in a folder of its own; GROUP may be empty.
start_proxy() {
    local name=$1 disk=$2 group=$3 command
    mkdir -p "$scratch/proxy/cache"
    port=$(free_port)
    case $name in
        foxy) command=("$FOXY" serve --listen "127.0.0.1:$port" --admin off --origin "http://127.0.0.1:$origin_port"
            --store "$scratch/proxy/cache" --size "${disk}M" --memory "${MEMORY_MEGABYTES}M" --access-log off) ;;
        squid)
            fill_in "$disk" squid.conf >"$scratch/proxy/conf"
            chown -R "$user" "$scratch/proxy"
            squid -N -z -f "$scratch/proxy/conf" >"$scratch/proxy/out" 2>&1
            command=(squid -N -f "$scratch/proxy/conf") ;;
        nginx)
            fill_in "$disk" nginx.conf >"$scratch/proxy/conf"
            chown -R "$user" "$scratch/proxy"
            command=(nginx -c "$scratch/proxy/conf" -e "$scratch/proxy/messages" -p "$scratch/proxy") ;;
    esac
    (
        [ -z "$group" ] || echo "$BASHPID" >"$group/cgroup.procs"
        exec "${command[@]}"
    ) >"$scratch/proxy/out" 2>&1 &
    proxy_process=$!
    wait_for "$proxy_process" "$port" || {
        echo "$name did not come up:" >&2
        cat "$scratch/proxy/out" "$scratch/proxy/messages" >&2 || true
        exit 3
    }
}

: >"$scratch/runs"
# load RECORDS ARGUMENTS…: one run against the proxy that runs. Its own records are kept when RECORDS is a file.
load() {
    local records=$1
    shift
    "$FOXY" load --proxy "127.0.0.1:$port" --origin "127.0.0.1:$origin_port" --reverse --clients $clients \
        --subject "$proxy" --pid "$proxy_process" --json "$records" "$@" >"$scratch/table" || {
        cat "$scratch/table" "$scratch/proxy/out" >&2
        exit 3
    }
}
# keep RECORDS: adds a run's records to all, with the workload and the repeat in each.
keep() {
    jq -c --arg workload "$workload" --argjson repeat "$repeat" \
        'select(.kind == "measure" or .kind == "histogram") | . + {$workload, $repeat}' "$1" >>"$scratch/runs"
    jq -r --arg workload "$workload" --argjson repeat "$repeat" -s '
        map(select(.kind == "measure")) | (map({(.name): .value}) | add) as $run
        | "\($workload) \($repeat) \(.[0].subject): \($run.cpu_us_per_request // 0 | round) us/request, "
          + "\($run.requests_per_second | round)/s, hits \($run.hit_ratio), wrong bytes \($run.wrong_bytes), "
          + "errors \($run.errors)"' "$1"
}
keep_measure() {
    jq -nc --arg name "$1" --arg subject "$proxy" --argjson value "$2" --arg unit "$3" --arg workload "$workload" \
        --argjson repeat "$repeat" \
        '{kind: "measure", $name, $subject, $value, $unit, low: $value, high: $value, repeats: 1, $workload, $repeat}' \
        >>"$scratch/runs"
}
family() {
    local child
    echo "$1"
    for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do family "$child"; done
}
# Counted by perf, which does not slow the proxy as strace does.
count_system_calls() {
    local calls
    [ -z "$calls_why" ] || return 0
    if ! perf stat -x, -e raw_syscalls:sys_enter -o "$scratch/calls" -p "$(family "$proxy_process" | paste -sd,)" -- \
        "$FOXY" load --proxy "127.0.0.1:$port" --origin "127.0.0.1:$origin_port" --reverse --clients $clients \
        --workload memory-hit --no-warm-up --requests "$SYSTEM_CALL_REQUESTS" >"$scratch/table" 2>&1; then
        calls_why='not counted: that takes perf and the right to trace system calls'
        return 0
    fi
    calls=$(awk -F, '$3 ~ /sys_enter/ && $1 ~ /^[0-9]+$/ { print $1 }' "$scratch/calls")
    [ -z "$calls" ] || keep_measure system_calls_per_request \
        "$(jq -n "$calls / $SYSTEM_CALL_REQUESTS")" calls
}
drop_page_cache() {
    sync
    (echo 1 >/proc/sys/vm/drop_caches) 2>/dev/null || drop_why='not dropped: that takes root'
}

run_memory-hit() {
    start_proxy "$proxy" 512 ''
    load "$scratch/run" --workload memory-hit --seconds "$SECONDS_EACH"
    keep "$scratch/run"
    count_system_calls
}
run_disk-hit() {
    start_proxy "$proxy" $((DISK_HIT_OBJECTS * 8 / 1024 * 3)) "$group"
    load "$scratch/unmeasured" --workload disk-hit --objects "$DISK_HIT_OBJECTS" --requests 1
    sleep 2
    drop_page_cache
    load "$scratch/run" --workload disk-hit --objects "$DISK_HIT_OBJECTS" --seconds "$SECONDS_EACH" --no-warm-up
    keep "$scratch/run"
}
run_fill() {
    start_proxy "$proxy" "$FILL_MEGABYTES" ''
    load "$scratch/run" --workload fill --objects "$FILL_OBJECTS" --newest "$newest"
    keep "$scratch/run"
    sync
    keep_measure size_on_disk_bytes "$(du -s --block-size=1 "$scratch/proxy/cache" | cut -f1)" B
}

"$FOXY" origin --listen 127.0.0.1:0 >"$scratch/origin" 2>&1 &
origin_process=$!
for _ in $(seq 100); do [ ! -s "$scratch/origin" ] || break; sleep 0.05; done
origin_port=$(sed -n 's|.*serving at http://127.0.0.1:\([0-9]*\)/.*|\1|p' "$scratch/origin")
[ -n "$origin_port" ] || { echo "the origin did not come up:" >&2; cat "$scratch/origin" >&2; exit 3; }
squid_store=$(squid -v 2>/dev/null | grep -q 'enable-storeio=[^ ]*aufs' && echo aufs || echo ufs)
make_group
started=$(date +%s)
for workload in $WORKLOADS; do
    for repeat in $(seq "$REPEATS"); do
        for proxy in $proxies; do
            "run_$workload"
            stop_proxy
        done
    done
done
[ -z "$proxies" ] || [ -s "$scratch/runs" ] || { echo "nothing was measured" >&2; exit 3; }

# The records: the setup, all runs, and what they come to.
machine=$(jq -c 'select(.kind == "setup") | .machine' "$scratch/run")
folder=${RESULTS:-results}/$(date -u +%F)-$(jq -rn --argjson machine "$machine" '
    "\($machine.cpu) \($machine.cores) cores" | ascii_downcase | gsub("[^a-z0-9]+"; "-")')-proxies
mkdir -p "$folder"
{
    jq -c --argjson started "$started" --arg command "bench/run.sh${quick:+ --quick}" \
        'select(.kind == "setup") | .program = "bench/run.sh" | .command = $command | .started = $started' "$scratch/run"
    cat "$scratch/runs"
    jq -cs -f bench/ratios.jq "$scratch/runs"
} >"$scratch/records"
held=$(jq -s 'map(select(.subject == "foxy" and (.name == "wrong_bytes" or .name == "errors"))) | all(.value == 0)' \
    "$scratch/records")
echo "{\"kind\":\"end\",\"held\":$held}" >>"$scratch/records"
mv "$scratch/records" "$folder/records.jsonl"
jq -rs -f bench/summary.jq "$folder/records.jsonl" >"$folder/summary.md"

version() {
    case $1 in
        foxy) "$FOXY" --version | cut -d' ' -f2; [ -z "$built_here" ] || git rev-parse --short HEAD 2>/dev/null || true ;;
        squid) squid -v | sed -n 's/.*Version //p' ;;
        nginx) nginx -v 2>&1 | sed 's/.*nginx\///' ;;
    esac | paste -sd' '
}
{
    echo "# Setup"
    echo
    echo "Made by \`bench/run.sh${quick:+ --quick}\`; bench/README.md says what the workloads are and how to read the rest."
    echo
    jq -rn --argjson machine "$machine" '"- Machine: \($machine.cpu), \($machine.cores) cores, " +
        "\($machine.memory / 1073741824 | floor) GiB of memory, \($machine.kernel); file system '"$(stat -f -c %T "$scratch")"'"'
    for proxy in $proxies; do echo "- $proxy $(version "$proxy")"; done
    echo "- Squid's store: $squid_store; one process. nginx: a worker for each core. foxy: a thread for each core."
    echo "- Repeats: $REPEATS, proxies in turn; $clients connections; $SECONDS_EACH s a run of hits"
    echo "- Memory for responses: $MEMORY_MEGABYTES MB each for foxy and Squid; nginx has the page cache"
    echo "- disk-hit: $DISK_HIT_OBJECTS objects of 8 KB. Memory with page cache: ${group_why:-at most $LIMIT_MEGABYTES MiB}." \
        "Page cache: ${drop_why:-dropped before measuring}."
    echo "- fill: $FILL_OBJECTS objects of 8 KB through $FILL_MEGABYTES MB; then the newest $newest once more"
    echo "- System calls: ${calls_why:-counted over $SYSTEM_CALL_REQUESTS requests}"
} >"$folder/setup.md"
cat "$folder/summary.md"
echo "written to $folder"
[ "$held" = true ] || { echo "foxy gave wrong bytes or errors" >&2; exit 1; }

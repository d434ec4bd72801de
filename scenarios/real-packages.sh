#!/usr/bin/env bash
# Real input: a package manager downloads real packages through foxy over plain HTTP, three times: cold, again with its
# own cache cleared, and once more after `kill -9` and a restart. apt checks every checksum; foxy's log says what was a
# hit. Needs Debian or a child of it, its archive over http://, curl and jq.
# Usage: scenarios/real-packages.sh [RECORDS.jsonl]      FOXY=path/to/foxy PACKAGES="…" PORT=N ALLOW=CIDR may be set
set -euo pipefail
cd "$(dirname "$0")/.."
foxy=${FOXY:-target/release/foxy}
port=${PORT:-23128}
packages=${PACKAGES:-gcc-12 g++-12 cpp-12 perl-base perl-modules-5.36 python3.11-minimal libpython3.11-stdlib git git-man
    vim-runtime vim binutils-x86-64-linux-gnu libc6-dev linux-libc-dev emacs-common openssl coreutils dpkg bash cmake-data}
records=$(realpath "${1:-/dev/stdout}")
[ -x "$foxy" ] || { echo "$foxy is not there: run 'cargo build --release' first" >&2; exit 2; }
for tool in apt-get curl jq; do command -v $tool >/dev/null || { echo "$tool is not installed" >&2; exit 2; }; done

scratch=$(mktemp -d)
server=
stop() {
    if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi
    rm -rf "$scratch"
}
trap stop EXIT

serve() {
    "$foxy" serve --listen "127.0.0.1:$port" --admin "127.0.0.1:$((port + 1))" --store "$scratch/store" --size 2G \
        --memory 64M ${ALLOW:+--allow-destination $ALLOW} --access-log "$scratch/access.log" --access-log-format json >"$scratch/out" 2>&1 &
    server=$!
    for _ in $(seq 200); do
        curl -fs "http://127.0.0.1:$((port + 1))/healthz" >/dev/null 2>&1 && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    echo "foxy did not come up:" >&2; cat "$scratch/out" >&2; exit 3
}

# download NAME: clears apt's own copies, downloads, and records how much came from where.
download() {
    rm -rf "$scratch/packages"; mkdir "$scratch/packages"; chmod 777 "$scratch/packages"; : >"$scratch/access.log"
    kill -HUP "$server"
    local start=$EPOCHREALTIME
    (cd "$scratch/packages" && apt-get -q=2 -o Acquire::http::Proxy="http://127.0.0.1:$port" \
        -o APT::Sandbox::User=root download $packages >"$scratch/apt" 2>&1) || { cat "$scratch/apt" >&2; exit 3; }
    local seconds; seconds=$(echo "$EPOCHREALTIME $start" | awk '{print $1 - $2}')
    sleep 0.5
    sha256sum "$scratch"/packages/*.deb | sed "s#$scratch/##" >"$scratch/$1.sums"
    local bytes files hits
    bytes=$(du -cb "$scratch"/packages/*.deb | tail -1 | cut -f1)
    files=$(ls "$scratch"/packages | wc -l)
    hits=$(jq -s '[.[] | select(.cache_status | test("; *hit"))] | length' "$scratch/access.log")
    jq -cn --arg name "$1" --argjson files "$files" --argjson bytes "$bytes" --argjson hits "$hits" \
        --argjson seconds "$seconds" '{kind:"measure", name:"package_download", subject:$name, value:$hits, unit:"hits",
        files:$files, bytes:$bytes, seconds:$seconds}' >>"$records"
    [ "$1" = cold ] || [ "$hits" -eq "$files" ] ||
        { echo "$1: $hits hits for $files files" >&2; cat "$scratch/access.log" >&2; exit 1; }
}

jq -cn --arg version "$("$foxy" --version | cut -d' ' -f2)" --argjson started "$(date +%s)" \
    --arg cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" --argjson cores "$(nproc)" \
    --arg kernel "$(uname -sr)" '{kind:"setup", program:"scenarios/real-packages.sh", version:$version,
    command:"scenarios/real-packages.sh", machine:{cpu:$cpu, cores:$cores, kernel:$kernel}, seed:0, scale:1,
    started:$started}' >"$records"
serve
download cold
download warm
kill -9 "$server"; wait "$server" 2>/dev/null || true
serve
download after-kill
cmp "$scratch/cold.sums" "$scratch/warm.sums" && cmp "$scratch/cold.sums" "$scratch/after-kill.sums"
echo '{"kind":"end","held":true}' >>"$records"
echo "all three downloads are the same, and the last two came from foxy" >&2

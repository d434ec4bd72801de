#!/usr/bin/env bash
# Exports traces and log records to a real OpenTelemetry Collector, which prints all that it receives. Builds the
# collector from its Go modules on the first run, which takes some minutes, and keeps it in target/tools.
# Needs Go and curl.
# Usage: scenarios/collector.sh       FOXY=path/to/foxy  OTELCOL=path/to/otelcol
set -euo pipefail
cd "$(dirname "$0")/.."
foxy=$(realpath "${FOXY:-target/release/foxy}")
[ -x "$foxy" ] || { echo "$foxy is not there: run 'cargo build --release' first" >&2; exit 2; }
version=v0.165.0 provider=v1.71.0
otelcol=${OTELCOL:-$PWD/target/tools/otelcol}
scratch=$(mktemp -d)
processes=()
stop() { [ $# = 0 ] || { kill "$@" 2>/dev/null && wait "$@" || true; }; }
trap 'stop "${processes[@]}"; rm -rf "$scratch"' EXIT

if [ ! -x "$otelcol" ]; then
    cat >"$scratch/builder.yaml" <<EOF
dist: { name: otelcol, module: foxy.test/otelcol, output_path: $scratch/build }
receivers: [ { gomod: go.opentelemetry.io/collector/receiver/otlpreceiver $version } ]
exporters: [ { gomod: go.opentelemetry.io/collector/exporter/debugexporter $version } ]
providers: [ { gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider $provider } ]
conf_resolver: { default_uri_scheme: file }
EOF
    GOBIN=$scratch go install "go.opentelemetry.io/collector/cmd/builder@$version"
    "$scratch/builder" --config "$scratch/builder.yaml"
    mkdir -p "$(dirname "$otelcol")"
    cp "$scratch/build/otelcol" "$otelcol"
fi

# A free port: nothing listens on it.
free_port() {
    local port
    while port=$((20000 + RANDOM % 30000)); (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo "$port"
}
# until_true TEXT COMMAND…: waits up to 30 seconds.
until_true() {
    local text=$1
    shift
    for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
    echo "FAILED: $text" >&2
    tail -n 60 "$scratch"/*.log >&2
    exit 1
}
otlp=$(free_port) proxy=$(free_port) admin=$(free_port)
cat >"$scratch/collector.yaml" <<EOF
receivers: { otlp: { protocols: { http: { endpoint: "127.0.0.1:$otlp" } } } }
exporters: { debug: { verbosity: detailed } }
service:
  telemetry: { metrics: { level: none } }
  pipelines:
    traces: { receivers: [otlp], exporters: [debug] }
    logs: { receivers: [otlp], exporters: [debug] }
EOF
received=$scratch/collector.log
start_collector() {
    "$otelcol" --config "$scratch/collector.yaml" >>"$received" 2>&1 &
    collector=$!
    processes+=("$collector")
    until_true "the collector starts" curl -s -o /dev/null "http://127.0.0.1:$otlp/"
}
start_collector
"$foxy" serve --listen "127.0.0.1:$proxy" --admin "127.0.0.1:$admin" --memory 16M --access-log off \
    --allow-destination 127.0.0.0/8 --otlp "http://127.0.0.1:$otlp" >"$scratch/foxy.log" 2>&1 &
processes+=("$!")
through_foxy() { curl -s -o /dev/null -x "http://127.0.0.1:$proxy" "$@"; }
until_true "foxy starts" curl -s -o /dev/null "http://127.0.0.1:$admin/healthz"

# A miss in a trace of the client. The collector also serves as the origin, which answers 404.
trace=4bf92f3577b34da6a3ce929d0e0e4736
through_foxy -H "traceparent: 00-$trace-00f067aa0ba902b7-01" "http://127.0.0.1:$otlp/page"
until_true "a server span in the client's trace" grep -q "Trace ID *: $trace" "$received"
for line in "Parent ID *: 00f067aa0ba902b7" "Kind *: Server" "Kind *: Client" "service.name: Str(foxy)" \
    "http.request.method: Str(GET)" "url.full: Str(http://127.0.0.1:$otlp/page)" "http.response.status_code: Int(404)" \
    "client.address: Str(127.0.0.1)" "foxy.outcome: Str(miss)" "Name *: connected"; do
    until_true "$line" grep -q "$line" "$received"
done

# While the collector is away, requests go on. Afterwards the spans of its absence arrive.
stop "$collector"
through_foxy "http://127.0.0.1:$otlp/absent" || true
until_true "foxy tells of the collector's absence" grep -q "(otlp): .*Connection refused" "$scratch/foxy.log"
start_collector
until_true "a span from the absence" grep -q "url.full: Str(http://127.0.0.1:$otlp/absent)" "$received"
until_true "a span of a failed fetch" grep -q "Status code *: Error" "$received"
until_true "foxy tells that the collector works again" grep -q "over: the collector .* takes .* again" "$scratch/foxy.log"
until_true "foxy's messages as log records" grep -q "Body: Str(foxy: over: the collector" "$received"
curl -s "http://127.0.0.1:$admin/metrics" | grep '^foxy_otlp_'
kill "${processes[1]}" && wait "${processes[1]}" || true
until_true "the last message of a stop" grep -q "Body: Str(foxy: stopping after the requests" "$received"
echo "all arrived at the collector"

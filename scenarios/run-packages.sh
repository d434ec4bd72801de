#!/usr/bin/env bash
# Real input over HTTPS: pip, npm and cargo each install a real package twice through `foxy run`, their own caches empty
# both times. Whatever registry each tool is set up for is asked; nothing is named here. The second time every package
# file must come from foxy, and be the same. openssl, if there, also judges the certificate authority that `foxy ca init`
# makes; Java, if there, the trust store that `foxy run` makes.
# Needs the tools (one that is missing is left out and named) and jq.
# Usage: scenarios/run-packages.sh [RECORDS.jsonl]       FOXY=path/to/foxy  PIP_PACKAGES=… NPM_PACKAGES=… CARGO_PACKAGES=…
set -euo pipefail
cd "$(dirname "$0")/.."
foxy=$(realpath "${FOXY:-target/release/foxy}")
records=$(realpath "${1:-/dev/stdout}")
[ -x "$foxy" ] || { echo "$foxy is not there: run 'cargo build --release' first" >&2; exit 2; }
command -v jq >/dev/null || { echo "jq is not installed" >&2; exit 2; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The hosts the tools are set up for, if they are not the usual ones: from their own configuration, at run time.
host_of() { sed -nE 's#^(sparse\+)?https://([^/:]+).*#\2#p' | sort -u; }
configured() {
    local cargo_home=${CARGO_HOME:-$HOME/.cargo}
    { pip config get global.index-url; npm config get registry
      cat "$cargo_home/config.toml" "$cargo_home/config"; } 2>/dev/null | tr "\"'= " '\n\n\n\n' | host_of
}
intercept=()
for host in $(configured); do intercept+=(--intercept "$host"); done

# Each installs into $1 with a cache of its own in there, and leaves the sums of what it downloaded or unpacked.
install_pip() {
    PIP_FIND_LINKS='' pip install --quiet --no-deps --no-cache-dir --no-compile --root-user-action ignore --target "$1" \
        ${PIP_PACKAGES:-requests urllib3 idna certifi numpy}
    (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum)
}
install_npm() {
    mkdir "$1/project"; echo '{"name":"scenario","version":"1.0.0"}' >"$1/project/package.json"
    (cd "$1/project" && npm install --silent --no-audit --no-fund --cache "$1/cache" ${NPM_PACKAGES:-express typescript} >/dev/null)
    jq -r '.packages[] | select(.integrity) | .integrity' "$1/project/package-lock.json" | sort
}
install_cargo() {
    mkdir -p "$1/project/src"; : >"$1/project/src/lib.rs"
    { printf '[package]\nname = "scenario"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n'
      for name in ${CARGO_PACKAGES:-serde tokio regex}; do echo "$name = \"*\""; done; } >"$1/project/Cargo.toml"
    (cd "$1/project" && CARGO_HOME="$1/home" cargo fetch --quiet)
    (cd "$1"/home/registry/cache/* && sha256sum -- *.crate | sort)
}
# What of a tool's requests is a file of a package, by its path.
files_of() {
    case $1 in
    pip) echo '\.(whl|tar\.gz|zip)$' ;;
    npm) echo '\.tgz$' ;;
    cargo) echo '(\.crate|/crates/[^/]+/[0-9][^/]*/download)$' ;;
    esac
}
export -f install_pip install_npm install_cargo
export PIP_PACKAGES=${PIP_PACKAGES:-} NPM_PACKAGES=${NPM_PACKAGES:-} CARGO_PACKAGES=${CARGO_PACKAGES:-}

# once TOOL ROUND: one installation through foxy, and a record of how much of it came from where.
once() {
    local log="$scratch/$1-$2.log" place="$scratch/$1-$2" start=$EPOCHREALTIME seconds
    mkdir "$place"
    "$foxy" run --store "$scratch/store" --size 1G --access-log "$log" --access-log-format json "${intercept[@]}" \
        -- bash -euc "install_$1 \"\$0\"" "$place" >"$scratch/$1-$2.sums" 2>"$scratch/$1-$2.errors" ||
        { echo "$1, $2:" >&2; cat "$scratch/$1-$2.errors" >&2; exit 3; }
    seconds=$(echo "$EPOCHREALTIME $start" | awk '{print $1 - $2}')
    jq -cs --arg tool "$1" --arg round "$2" --arg files "$(files_of "$1")" --argjson seconds "$seconds" '
        map(select(.method == "GET" and .status == 200)) as $all | ($all | map(select(.url | test($files)))) as $files |
        ($files | map(select(.cache_status | test("; *hit")))) as $hits |
        {kind: "measure", name: "packages_over_https", subject: ($tool + ", " + $round), value: ($hits | length), unit: "hits",
         files: ($files | length), requests: ($all | length), bytes: ($files | map(.body_bytes // .bytes) | add // 0),
         seconds: $seconds}' "$log" >"$scratch/record"
    cat "$scratch/record" >>"$records"
    [ -s "$scratch/$1-$2.sums" ] || { echo "$1, $2: nothing was installed" >&2; exit 3; }
    [ "$2" = cold ] || jq -e '.files > 0 and .value == .files' "$scratch/record" >/dev/null ||
        { echo "$1, $2: not every package came from foxy" >&2; cat "$scratch/record" >&2; exit 1; }
}

# judged NAME: whether openssl takes a certificate for that name, signed with a constrained authority's own key.
judged() {
    (cd "$scratch" && printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\n' "$1" >extensions &&
        openssl x509 -req -in request -CA ca/ca.pem -CAkey ca/ca.key -days 5 -extfile extensions -out leaf 2>/dev/null &&
        openssl verify -purpose sslserver -CAfile ca/ca.pem leaf >/dev/null 2>&1)
}

jq -cn --arg version "$("$foxy" --version | cut -d' ' -f2)" --argjson started "$(date +%s)" \
    --arg cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" --argjson cores "$(nproc)" \
    --arg kernel "$(uname -sr)" '{kind:"setup", program:"scenarios/run-packages.sh", version:$version,
    command:"scenarios/run-packages.sh", machine:{cpu:$cpu, cores:$cores, kernel:$kernel}, seed:0, scale:1,
    started:$started}' >"$records"
done=0
for tool in pip npm cargo; do
    command -v "$tool" >/dev/null || { echo "$tool is not installed and is left out" >&2; continue; }
    once "$tool" cold
    once "$tool" warm
    cmp "$scratch/$tool-cold.sums" "$scratch/$tool-warm.sums"
    done=$((done + 1))
done
[ "$done" -gt 0 ] || { echo "none of pip, npm and cargo is installed" >&2; exit 2; }

if command -v openssl >/dev/null; then
    "$foxy" ca init --dir "$scratch/ca" --allow example.org >/dev/null
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$scratch/key" -subj /CN=x \
        -out "$scratch/request" 2>/dev/null
    for name in DNS:example.org DNS:a.example.org; do
        judged "$name" || { echo "openssl refuses $name, which is permitted" >&2; exit 1; }
    done
    for name in DNS:example.com DNS:notexample.org IP:192.0.2.1; do
        ! judged "$name" || { echo "openssl takes $name, which is not permitted" >&2; exit 1; }
    done
    jq -cn '{kind:"measure", name:"names_judged_by_openssl", subject:"foxy ca init", value:5, unit:"names"}' >>"$records"
fi
if command -v keytool >/dev/null; then
    listed=$("$foxy" run --store "$scratch/store" -- sh -c \
        'keytool -list -storetype JKS -keystore "$(dirname "$SSL_CERT_FILE")/trust.jks" </dev/null 2>/dev/null; true' 2>/dev/null |
        grep -c trustedCertEntry || true)
    [ "$listed" -gt 0 ] || { echo "keytool reads no certificate in the trust store" >&2; exit 1; }
    jq -cn --argjson listed "$listed" '{kind:"measure", name:"certificates_java_reads", subject:"foxy run", value:$listed,
        unit:"certificates"}' >>"$records"
fi
echo '{"kind":"end","held":true}' >>"$records"
echo "$done tools installed the same packages twice over HTTPS, the second time from foxy" >&2

# foxy: `make run` starts the proxy, `make test` proves it. Everything else is `cargo xtask`.
.PHONY: run test bench

# The first build is the proxy alone. Once `cargo build --release` has added the lab, it stays.
run:
	cargo run --release --bin foxy $(shell target/release/foxy load --help >/dev/null 2>&1 || echo --no-default-features) -- serve

test:
	cargo xtask ci

bench:
	cargo run --release --bin foxy -- compare foxy squid nginx varnish trafficserver apache2 --out target/comparison

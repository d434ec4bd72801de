# foxy: `make run` starts the proxy, `make test` proves it. Everything else is `cargo xtask`.
.PHONY: run test bench

run:
	cargo run --release --bin foxy -- serve

test:
	cargo xtask ci

bench:
	cargo run --release --bin foxy -- compare foxy squid nginx varnish trafficserver apache2 --out target/comparison

# foxy: `make run` starts the proxy, `make test` proves it. Everything else is `cargo xtask`.
.PHONY: run test bench

run:
	cargo run --release --bin foxy -- serve

test:
	cargo xtask ci

bench:
	bench/run.sh

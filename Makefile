# foxy: `make run` starts the proxy, `make test` proves it. Everything else is `cargo xtask`.
.PHONY: run test bench

# The first start needs little compilation: the proxy alone, in the profile `quick`.
run:
	cargo run --profile quick --bin foxy --no-default-features -- serve

test:
	cargo xtask ci

bench:
	cargo run --release --bin foxy -- compare foxy squid nginx varnish trafficserver apache2 --out target/comparison

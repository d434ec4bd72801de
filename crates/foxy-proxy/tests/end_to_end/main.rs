//! Tests the whole proxy on loopback, with origins that follow a script and clients that read to
//! the last byte.

mod balanced;
mod bench;
mod broken_fetches;
mod caching;
mod clauses;
mod compressing;
mod explaining;
mod forwarding;
mod intercept_bench;
mod intercepting;
mod large_bodies;
mod operators;
mod origin_tls;
mod origins {
    pub mod bench;
    mod judging;
    mod naming;
    mod repeating;
    mod routing;
    mod tls;
}
mod overlapping;
mod parents {
    mod bench;
    mod choice;
    mod requests;
    mod tls;
    mod tunnels;
}
mod purging;
mod ranges {
    mod multipart;
    mod partial;
    mod slice_lies;
    mod slices;
    pub mod sparse;
}
mod renewals;
mod reverse;
mod stale;
mod tls {
    mod certificates;
    pub mod clients;
}
mod unkept;

//! Tests every storage scheme on a simulated disk that fails, fills up, and loses, misplaces or
//! corrupts data. Clients must still receive every byte correctly, if necessary from the origin.

use crate::support::proxy::Proxy;
use crate::support::wire::RawClient;
use crate::support::{ScriptedOrigin, Step, local, send};
use foxy_base::{Random, clock};
use foxy_device::{FaultPlan, Faulty, Memory};
use foxy_http::Method;
use foxy_schemes::{SCHEMES, SchemeName, SchemeSettings};
use foxy_store::{Observer, Shard, ShardSettings, StoreSettings};
use std::sync::Arc;

/// A disk on which most kinds of faults happen from time to time. Each number is the probability of
/// a fault.
const BAD: FaultPlan = FaultPlan {
    errors: 0.02,
    no_space: 0.02,
    short_reads: 0.05,
    short_writes: 0.05,
    flips_written: 0.05,
    flips_read: 0.05,
    lost_writes: 0.05,
    misdirected_writes: 0.05,
    ..FaultPlan::NONE
};

/// A disk that has no space left.
const FULL: FaultPlan = FaultPlan { no_space: 1.0, ..FaultPlan::NONE };

/// A disk that fails every request.
const GONE: FaultPlan = FaultPlan { errors: 1.0, ..FaultPlan::NONE };

/// Returns the body of each path. The bodies have between one byte and two and a half million
/// bytes.
fn bodies() -> Vec<Vec<u8>> {
    let mut random = Random::new(7);
    let lengths = (0..20).map(|path| if path % 10 == 9 { 2_500_000 } else { 1 + path * 1777 });
    lengths
        .map(|length| {
            let mut body = vec![0; length];
            random.fill(&mut body);
            body
        })
        .collect()
}

/// Returns the script of an origin that serves the body of one path.
fn script(path: usize, body: &[u8]) -> Vec<Step> {
    let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nETag: \"{path}\"\r\n");
    let head = format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    vec![Step::Head, send(&head), Step::Send(body.to_vec())]
}

/// Requests random paths many times, and checks each answer. Returns the number of cache hits.
async fn check(scheme: SchemeName, plan: FaultPlan, seed: u64, bodies: &[Vec<u8>]) -> usize {
    local(async move {
        let settings =
            SchemeSettings::from(StoreSettings { seed, ..StoreSettings::with_size(16 << 20) });
        let observer = Observer::default();
        let made = scheme.make(&settings, observer.clone());
        let device = Faulty::new(Memory::default(), plan, seed);
        let shard = Shard::start(made, device, observer, ShardSettings::new(clock::monotonic))
            .expect("a thread");
        let proxy = Proxy::start_on(Some(Arc::new(shard.handle())), |settings| settings.memory = 0);
        let mut origins = Vec::new();
        for (path, body) in bodies.iter().enumerate() {
            origins.push(ScriptedOrigin::with(script(path, body)).await);
        }
        let mut random = Random::new(seed);
        let mut hits = 0;
        for _ in 0..60 {
            let path = usize::try_from(random.below(bodies.len() as u64)).expect("small");
            let authority = format!("127.0.0.1:{}", origins[path].port);
            let mut client = RawClient::connect(proxy.port).await;
            client
                .send(format!(
                    "GET http://{authority}/{path} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
                ))
                .await;
            let answer = client.response(&Method::Get).await;
            let name = format!("{scheme} {plan:?} seed {seed} path {path}");
            assert_eq!((answer.head.status, answer.end), (200, Ok(())), "{name}");
            assert!(answer.body == bodies[path], "{name}: wrong bytes");
            hits += usize::from(answer.header("cache-status").contains("hit"));
        }
        drop(proxy);
        hits
    })
    .await
}

#[tokio::test]
async fn a_disk_on_which_most_things_go_wrong() {
    let bodies = bodies();
    for row in SCHEMES {
        let mut hits = 0;
        for seed in 1..=3 {
            hits += check(row.name, BAD, seed, &bodies).await;
        }
        assert_eq!(hits > 0, !row.stores_nothing(), "{}: {hits} hits", row.text);
    }
}

#[tokio::test]
async fn a_full_disk_and_one_that_is_gone() {
    let bodies = bodies();
    for row in SCHEMES {
        for plan in [FULL, GONE] {
            assert_eq!(check(row.name, plan, 1, &bodies).await, 0, "{}", row.text);
        }
    }
}

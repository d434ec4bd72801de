//! Tests that an origin continues to work although its servers die, become slow, or fail requests
//! although they answer probes.

use super::bench::{UNAVAILABLE, dead, group, serving, status};
use crate::bench::TestProxy;
use foxy_proxy::upstream::{GroupSettings, Probe};
use foxy_testkit::changing_server::{Behaviour, ChangingServer, PROBE};
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait::until;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const CLIENTS: usize = 8;
/// Number of requests of a test. Every tenth request is a POST.
const REQUESTS: usize = 4000;

fn probe() -> Option<Probe> {
    Some(Probe { path: PROBE.into(), interval: Duration::from_millis(200) })
}

/// Sends requests from several clients. Returns the number of answers other than 200.
fn load(proxy: &TestProxy, first: usize, count: usize) -> usize {
    let (next, errors) = (AtomicUsize::new(first), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = proxy.connect();
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= first + count {
                        return;
                    }
                    let request = if number % 10 == 0 {
                        format!(
                            "POST /{number} HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi"
                        )
                    } else {
                        format!("GET /{number} HTTP/1.1\r\nHost: a.test\r\n\r\n")
                    };
                    let answer = client.ask(&request);
                    errors.fetch_add(usize::from(answer.status != 200), Ordering::SeqCst);
                }
            });
        }
    });
    errors.into_inner()
}

#[test]
fn an_origin_goes_on_while_servers_die_turn_slow_and_lie() {
    let servers = [(); 4].map(|()| ChangingServer::start());
    let [_good, dies, turns_slow, lies] = &servers;
    let addresses: Vec<_> = servers.iter().map(|server| server.address).collect();
    let proxy = serving(vec![GroupSettings { probe: probe(), ..group("shop", &addresses) }]);
    assert_eq!(load(&proxy, 0, 400), 0);
    assert!(servers.iter().all(|server| server.requests().len() > 20), "each gets a share");
    let slow_before = turns_slow.requests().len();
    let mut errors = 0;
    std::thread::scope(|scope| {
        let running = scope.spawn(|| load(&proxy, 400, REQUESTS));
        turns_slow.becomes(Behaviour::Slow(Duration::from_millis(300)));
        lies.becomes(Behaviour::Lies);
        dies.dies();
        errors = running.join().expect("no panic");
    });
    let (all, slow) = (REQUESTS, turns_slow.requests().len() - slow_before);
    assert!(errors * 1000 <= all, "{errors} errors in {all} requests");
    assert!(slow * 100 <= all, "the slow server got {slow} of {all} requests");
    let mut posts: HashMap<String, usize> = HashMap::new();
    for request in servers.iter().flat_map(ChangingServer::requests) {
        if request.starts_with("POST") {
            *posts.entry(request).or_default() += 1;
        }
    }
    assert!(posts.len() > REQUESTS / 11);
    assert!(posts.values().all(|count| *count == 1), "a POST was sent twice");
    assert!(status(&proxy, dies.address).rests);
}

#[test]
fn a_server_whose_probes_fail_gets_no_requests_until_they_succeed() {
    let healthy = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let answers = std::sync::Arc::clone(&healthy);
    let sick = TestOrigin::start(move |head, _| match head.starts_with("GET /health ") {
        true if !answers.load(Ordering::SeqCst) => super::bench::UNAVAILABLE.into(),
        _ => foxy_testkit::http::ok("Cache-Control: no-store\r\n", b"good"),
    });
    let good = ChangingServer::start();
    let servers = [sick.address, good.address];
    let proxy = serving(vec![GroupSettings { probe: probe(), ..group("shop", &servers) }]);
    let rests = || status(&proxy, sick.address).rests;
    until("two failed probes", || rests().then_some(()));
    assert_eq!(load(&proxy, 0, 40), 0);
    assert_eq!(good.requests().len(), 40);
    healthy.store(true, Ordering::SeqCst);
    until("a good probe", || (!rests()).then_some(()));
}

#[test]
fn an_origin_whose_servers_all_rest_still_gets_requests() {
    let server = ChangingServer::start();
    let probe = Some(Probe { path: "/".into(), interval: Duration::from_millis(200) });
    server.becomes(Behaviour::Lies);
    let proxy = serving(vec![GroupSettings { probe, ..group("shop", &[server.address, dead()]) }]);
    until("failed probes", || {
        proxy.proxy.gauges().servers().iter().all(|server| server.rests).then_some(())
    });
    server.becomes(Behaviour::Good);
    assert_eq!(load(&proxy, 1, 1), 0, "a wrong probe must not stop the origin");
}

#[test]
fn while_all_servers_rest_a_stale_response_answers_at_once_if_errors_permit_it() {
    let origin = TestOrigin::start(|head, _| match head.split(' ').nth(1) {
        Some("/probe") => UNAVAILABLE.into(),
        Some("/x") => ok("Cache-Control: max-age=0, stale-if-error=600\r\nETag: \"a\"\r\n", b"x"),
        _ => ok("Cache-Control: max-age=0\r\nETag: \"a\"\r\n", b"y"),
    });
    let probe = Some(Probe { path: "/probe".into(), interval: Duration::from_millis(20) });
    let proxy = serving(vec![GroupSettings { probe, ..group("shop", &[origin.address]) }]);
    let get =
        |path: &str| proxy.connect().ask(&format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
    for path in ["/x", "/y"] {
        assert_eq!(get(path).status, 200, "{path}");
    }
    until("the rest", || status(&proxy, origin.address).rests.then_some(()));
    let hit = get("/x");
    let has_permit = hit.cache_status().ends_with("; detail=stale-if-error");
    assert!(has_permit && hit.cache_status().starts_with("foxy; hit"), "{}", hit.head);
    let asked = get("/y");
    assert!(asked.cache_status().starts_with("foxy; fwd=stale"), "{}", asked.head);
    let heads = origin.heads.lock().expect("not poisoned");
    assert_eq!(heads.iter().filter(|head| head.starts_with("GET /x ")).count(), 1);
}

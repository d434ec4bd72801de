//! Tests a proxy with more client connections than it permits. The tests check which connections
//! close and which are refused. One client must not be able to take all places for connections.

use crate::support::proxy::Proxy;
use crate::support::wire::RawClient;
use crate::support::{ScriptedOrigin, Step, local, send};
use foxy_http::Method;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::server::MakeResolver;
use foxy_proxy::upstream::{Addresses, Resolve};
use futures_util::future::{FutureExt, LocalBoxFuture};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A request that the proxy answers itself. The connection stays open afterwards.
const LOCAL: &str = "OPTIONS http://a.test/ HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: 0\r\n\r\n";
/// Address of a client that opens too many connections.
const FLOOD: &str = "127.0.0.1";
/// Address of a client that behaves well.
const HONEST: &str = "127.0.0.2";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

fn proxy(places: usize, share: usize) -> Proxy {
    Proxy::start_with(|settings| {
        (settings.connections, settings.connections_per_client) = (places, share);
        // With several workers, a new connection at one worker may close an idle connection of
        // another worker.
        settings.workers = 3;
    })
}

async fn answered(client: &mut RawClient) -> u16 {
    client.send(LOCAL).await;
    client.response(&Method::Options).await.head.status
}

/// Opens `count` connections from the address [`FLOOD`], one after the other. Each connection sends
/// `beginning` at once.
async fn flood(proxy: &Proxy, count: usize, beginning: &str) -> Vec<RawClient> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let mut client = RawClient::connect_from(FLOOD, proxy.port).await;
        client.send(beginning).await;
        clients.push(client);
        while proxy.count(Counter::Connections) < clients.len() as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    clients
}

/// Fills all places of a proxy with connections that send `beginning`. Checks that the proxy still
/// serves other clients. Returns all connections.
async fn others_are_served(beginning: &str) -> Vec<RawClient> {
    let proxy = proxy(16, 12);
    let mut clients = flood(&proxy, 20, beginning).await;
    for _ in 0..8 {
        let mut honest = RawClient::connect_from(HONEST, proxy.port).await;
        assert_eq!(answered(&mut honest).await, 200, "{beginning:?}");
        clients.push(honest);
    }
    assert_eq!(proxy.count(Counter::ConnectionsRefused), 0, "{beginning:?}");
    clients
}

#[tokio::test]
async fn connections_that_bring_no_request_give_way_to_other_clients() {
    local(async {
        let trickled = "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX-Slow";
        for beginning in ["", "G", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", trickled] {
            others_are_served(beginning).await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_kept_connection_that_waits_longest_gives_way() {
    local(async {
        let proxy = proxy(4, 4);
        let mut clients = flood(&proxy, 4, "").await;
        for client in [2, 0, 3, 1] {
            assert_eq!(answered(&mut clients[client]).await, 200);
            // After this pause, the proxy can tell which connection has been idle longest.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let mut honest = RawClient::connect_from(HONEST, proxy.port).await;
        assert_eq!(answered(&mut honest).await, 200);
        assert!(clients[2].rest().await.is_empty(), "the third waited longest");
        for client in [0, 3, 1] {
            assert_eq!(answered(&mut clients[client]).await, 200, "{client} has kept its place");
        }
        assert_eq!(proxy.count(Counter::ConnectionsYielded), 1);
    })
    .await;
}

#[tokio::test]
async fn a_client_with_its_share_of_requests_is_refused_and_others_are_not() {
    local(async {
        let origin = ScriptedOrigin::with(vec![Step::Head, Step::Hang]).await;
        let proxy = proxy(16, 12);
        let host = format!("127.0.0.1:{}", origin.port);
        let mut clients = Vec::new();
        for number in 0..12 {
            let mut client = RawClient::connect_from(FLOOD, proxy.port).await;
            client
                .send(format!("GET http://{host}/{number} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
                .await;
            while origin.heard().len() <= number {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            clients.push(client);
        }
        let refused = RawClient::connect_from(FLOOD, proxy.port).await.response(&Method::Get).await;
        assert_eq!(refused.head.status, 503, "{}", refused.text());
        assert!(refused.text().contains("too-many-connections-of-client"), "{}", refused.text());
        assert_eq!(refused.header("proxy-status"), "foxy; error=proxy_internal_response");
        for _ in 0..4 {
            let mut honest = RawClient::connect_from(HONEST, proxy.port).await;
            assert_eq!(answered(&mut honest).await, 200);
        }
    })
    .await;
}

/// A resolver of host names that never answers for names that begin with `dead`. Every other name
/// has a loopback address.
struct HalfDead;

impl Resolve for HalfDead {
    fn resolve(&self, name: &str) -> LocalBoxFuture<'static, Addresses> {
        if name.starts_with("dead") {
            return std::future::pending().boxed_local();
        }
        std::future::ready(Ok(Rc::from([IpAddr::from([127, 0, 0, 1])]))).boxed_local()
    }
}

/// Connects from the address `from`, and sends a GET for a page of `host`.
async fn asking(from: &str, proxy: &Proxy, host: &str) -> RawClient {
    let mut client = RawClient::connect_from(from, proxy.port).await;
    client.send(format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
    client
}

#[tokio::test]
async fn names_that_never_resolve_keep_no_other_client_from_its_names() {
    local(async {
        let origin = ScriptedOrigin::with(vec![Step::Head, send(OK)]).await;
        let resolver: MakeResolver = Arc::new(|| Ok(Rc::new(HalfDead) as Rc<dyn Resolve>));
        let proxy = Proxy::start_resolving(resolver, |settings| {
            (settings.upstream.lookups, settings.upstream.lookups_per_client) = (8, 6);
        });
        let mut flood = Vec::new();
        for number in 0..12 {
            flood.push(asking(FLOOD, &proxy, &format!("dead{number}.test")).await);
            while proxy.count(Counter::Requests) < flood.len() as u64 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        for host in ["one", "two"] {
            let host = format!("{host}.test:{}", origin.port);
            let answer = asking(HONEST, &proxy, &host).await.response(&Method::Get).await;
            assert_eq!(answer.head.status, 200, "{}", answer.text());
        }
        let refused = flood[11].response(&Method::Get).await;
        assert_eq!(refused.head.status, 503);
        assert!(refused.text().contains("dns-client-busy"), "{}", refused.text());
        assert_eq!(refused.header("proxy-status"), "foxy; error=dns_error");
        let mut others = Vec::new();
        for number in 3..9 {
            others.push(
                asking(&format!("127.0.0.{number}"), &proxy, &format!("dead-{number}.test")).await,
            );
        }
        let first = flood[0].response(&Method::Get).await;
        assert!(first.text().contains("dns-busy"), "the first gives way: {}", first.text());
    })
    .await;
}

#[tokio::test]
async fn the_share_is_of_the_client_that_a_balancer_names() {
    local(async {
        let proxy = Proxy::start_with(|settings| {
            (settings.connections, settings.connections_per_client) = (16, 2);
            settings.proxy_protocol_from = vec!["127.0.0.0/8".parse().expect("a block")];
        });
        let named = |client: &str| format!("PROXY TCP4 {client} 127.0.0.1 5000 80\r\n");
        let origin =
            ScriptedOrigin::with(vec![Step::Head, send("HTTP/1.1 200 OK\r\n"), Step::Hang]).await;
        let host = format!("127.0.0.1:{}", origin.port);
        let mut clients = Vec::new();
        for number in 0..2 {
            let mut client = RawClient::connect(proxy.port).await;
            let request = format!("GET http://{host}/{number} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            client.send(named("192.0.2.1") + &request).await;
            while origin.heard().len() <= number {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            clients.push(client);
        }
        for (client, status) in [("192.0.2.1", 503), ("192.0.2.2", 200), ("192.0.2.3", 200)] {
            let mut one = RawClient::connect(proxy.port).await;
            one.send(named(client) + LOCAL).await;
            assert_eq!(one.response(&Method::Options).await.head.status, status, "{client}");
            clients.push(one);
        }
    })
    .await;
}

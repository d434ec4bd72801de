//! Tests that the proxy uses the client address that a load balancer sends in a PROXY protocol
//! header.

use crate::bench::{TestProxy, proxy_with};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::settings::ProxySettings;
use foxy_testkit::client::Client;

const PURGE: &str = "PURGE http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n";

fn proxy(balancers: &str) -> TestProxy {
    proxy_with(|settings: &mut ProxySettings| {
        settings.proxy_protocol_from = vec![balancers.parse().expect("a block")];
        settings.purge_from = vec!["192.0.2.0/24".parse().expect("a block")].into();
    })
}

fn status(client: &mut Client, header: &str) -> u16 {
    client.send(header.as_bytes());
    client.ask(PURGE).status
}

#[test]
fn the_client_a_balancer_names_is_the_one_that_is_judged() {
    let proxy = proxy("127.0.0.0/8");
    let header = |source: &str| format!("PROXY TCP4 {source} 127.0.0.1 5000 80\r\n");
    assert_eq!(status(&mut proxy.connect(), &header("192.0.2.7")), 200);
    assert_eq!(status(&mut proxy.connect(), &header("198.51.100.7")), 403);
}

#[test]
fn nobody_else_may_name_a_client_and_a_balancer_must() {
    let others = proxy("10.0.0.0/8");
    assert_eq!(status(&mut others.connect(), "PROXY TCP4 192.0.2.7 127.0.0.1 5000 80\r\n"), 400);
    let balanced = proxy("127.0.0.0/8");
    let mut client = balanced.connect();
    client.send(PURGE.as_bytes());
    assert_eq!(client.read(), 0, "closed without an answer");
    assert_eq!(balanced.count(Counter::BadProxyHeaders), 1);
}

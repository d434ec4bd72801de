//! Starts reverse proxies for origins with several servers.

use crate::bench::{TestProxy, proxy_with};
use foxy_base::clock;
use foxy_proxy::core::rules::RulesInForce;
use foxy_proxy::request::mode::Mode;
use foxy_proxy::upstream::{GroupSettings, OriginServer, Origins, Scheme, ServerStatus};
use foxy_rules::operator::OperatorRules;
use foxy_testkit::ports::free_address;
use std::net::SocketAddr;
use std::time::Duration;

pub fn server(address: SocketAddr) -> OriginServer {
    let (host, port) = (address.ip().to_string(), address.port());
    OriginServer { scheme: Scheme::Http, host, port }
}

/// Returns an address on which nothing listens.
pub fn dead() -> SocketAddr {
    free_address()
}

pub fn group(name: &str, servers: &[SocketAddr]) -> GroupSettings {
    let servers: Vec<_> = servers.iter().map(|address| server(*address)).collect();
    GroupSettings { name: name.into(), servers, ..GroupSettings::of_one(server(dead())) }
}

pub fn serving(all: Vec<GroupSettings>) -> TestProxy {
    serving_by(all, OperatorRules::default())
}

pub fn serving_by(all: Vec<GroupSettings>, rules: OperatorRules) -> TestProxy {
    let origins = Origins::new(all, &Origins::default(), clock::monotonic(), 7);
    proxy_with(|settings| {
        settings.mode = Mode::Reverse { origins: origins.into() };
        settings.upstream.head_timeout = Duration::from_secs(2);
        settings.rules = RulesInForce::new(rules);
    })
}

pub fn status(proxy: &TestProxy, address: SocketAddr) -> ServerStatus {
    let url = format!("http://{address}");
    let mut all = proxy.proxy.gauges().servers().into_iter();
    all.find(|status| status.server == url).expect("the server")
}

pub const UNAVAILABLE: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

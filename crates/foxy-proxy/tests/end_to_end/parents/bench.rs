//! Starts proxies that reach origins through parent proxies, and defines answers with which a
//! parent refuses.

use crate::bench::{TestProxy, proxy_with};
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::{ParentSettings, Parents};
use foxy_testkit::client::Answered;
use std::sync::Arc;
use std::time::Duration;

pub const REFUSES_CREDENTIALS: &str = "HTTP/1.1 407 Proxy Authentication Required\r\n\
     Proxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n";
pub const UNAVAILABLE: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
pub const FORBIDDEN: &str = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
pub const GATEWAY_TIMEOUT: &str = "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n";

pub fn use_parents(settings: &mut ProxySettings, urls: &[String], change: fn(&mut ParentSettings)) {
    let parents = urls.iter().map(|url| url.parse().expect("a parent")).collect();
    let mut chosen = ParentSettings { parents, ..ParentSettings::default() };
    change(&mut chosen);
    settings.upstream.parents = Parents::new(chosen, &settings.via_name, 7).map(Arc::new);
}

pub fn behind_with(urls: &[String], change: fn(&mut ParentSettings)) -> TestProxy {
    proxy_with(|settings| {
        use_parents(settings, urls, change);
        settings.destinations.connect_ports = (1..=u16::MAX).collect();
        settings.upstream.connect_timeout = Duration::from_millis(500);
    })
}

pub fn behind(urls: &[String]) -> TestProxy {
    behind_with(urls, |_| {})
}

pub fn connect(proxy: &TestProxy, authority: &str, lines: &str) -> Answered {
    let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{lines}\r\n");
    let mut client = proxy.connect();
    client.send(request.as_bytes());
    client.answer(true)
}

pub fn detail(answer: &Answered) -> (u16, String) {
    (answer.status, answer.cache_status().to_owned())
}

pub fn refused(status: u16, reason: &str) -> (u16, String) {
    (status, format!("foxy; detail={reason}"))
}

//! Tests that a forward proxy serves its PAC file only where the operator wants it.

use crate::bench::{TestProxy, proxy_with};
use foxy_proxy::core::users::{UserBook, token_line};
use foxy_proxy::request::auto_config::AutoConfig;
use foxy_proxy::settings::ProxySettings;
use foxy_testkit::client::Answered;

fn proxy(change: impl FnOnce(&mut ProxySettings)) -> TestProxy {
    proxy_with(|settings| {
        settings.auto_config = Some(AutoConfig::new(&[]));
        change(settings);
    })
}

fn asked(proxy: &TestProxy, method: &str, path: &str) -> Answered {
    let host = proxy.address();
    proxy.connect().ask(&format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
}

#[test]
fn the_file_is_served_under_both_names_and_names_the_proxy() {
    let proxy = proxy(|_| {});
    for path in ["/proxy.pac", "/wpad.dat"] {
        let answer = asked(&proxy, "GET", path);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("content-type"), "application/x-ns-proxy-autoconfig");
        assert_eq!(answer.cache_status(), "foxy; detail=auto-config");
        let text = String::from_utf8(answer.body).expect("text");
        assert!(text.contains(&format!("\"PROXY {}\"", proxy.address())), "{text}");
        let head = asked(&proxy, "HEAD", path);
        assert_eq!(head.header("content-length"), text.len().to_string());
    }
    assert_eq!(asked(&proxy, "GET", "/other").status, 400);
    assert_eq!(asked(&proxy_with(|_| {}), "GET", "/proxy.pac").status, 400, "off by default");
}

#[test]
fn the_file_needs_an_allowed_client_but_no_credentials() {
    let users = UserBook::read(&token_line("ann").expect("a line").1).expect("sound");
    let with_users = proxy(|settings| settings.users = Some(users).into());
    assert_eq!(asked(&with_users, "GET", "/proxy.pac").status, 200);
    assert_eq!(asked(&with_users, "GET", "/other").status, 407);
    let others = vec!["127.0.0.2".parse().expect("a block")];
    let refusing = proxy(|settings| settings.allow_client = others.into());
    assert_eq!(asked(&refusing, "GET", "/proxy.pac").status, 403);
}

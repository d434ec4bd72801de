//! Tests the PAC file as text. If Node.js is installed, also runs the file.

use super::*;
use bytes::BytesMut;
use foxy_http::{RequestDecoder, RequestEvent};
use std::process::Command;

fn head(text: &str) -> RequestHead {
    let mut buffer = BytesMut::from(text.replace('\n', "\r\n").as_bytes());
    match RequestDecoder::default().next(&mut buffer) {
        Ok(Some(RequestEvent::Head(head, _))) => head,
        other => panic!("not a request: {other:?}"),
    }
}

fn served(host: &str, over: Scheme) -> Option<String> {
    let no_proxy = ["corp.test", "198.51.100.0/24:8080", "2001:db8::/32"];
    let no_proxy = no_proxy.map(|text| text.parse().expect("a host"));
    let head = head(&format!("GET /proxy.pac HTTP/1.1\nHost: {host}\n\n"));
    AutoConfig::new(&no_proxy).file(&head, over)
}

#[test]
fn only_a_request_for_the_proxy_itself_asks_for_the_file() {
    let cases = [
        ("GET /proxy.pac HTTP/1.1\nHost: a\n\n", true),
        ("HEAD /wpad.dat HTTP/1.1\nHost: a\n\n", true),
        ("GET http://a/proxy.pac HTTP/1.1\nHost: a\n\n", false),
        ("POST /proxy.pac HTTP/1.1\nHost: a\nContent-Length: 0\n\n", false),
        ("GET /proxy.pac?x HTTP/1.1\nHost: a\n\n", false),
        ("GET / HTTP/1.1\nHost: a\n\n", false),
    ];
    for (text, expected) in cases {
        assert_eq!(is_asked(&head(text), Some("a"), || None), expected, "{text}");
    }
}

#[test]
fn the_file_names_the_proxy_as_the_browser_does() {
    let cases = [
        ("proxy.test:3128", Scheme::Http, "\"PROXY proxy.test:3128\""),
        ("wpad", Scheme::Http, "\"PROXY wpad:80\""),
        ("[::1]:3128", Scheme::Http, "\"PROXY [::1]:3128\""),
        ("proxy.test", Scheme::Https, "\"HTTPS proxy.test:443\""),
        ("TESTS:3128", Scheme::Http, "\"PROXY TESTS:3128\""),
    ];
    for (host, over, expected) in cases {
        let file = served(host, over).expect("a file");
        assert!(file.contains(expected), "{file}");
    }
}

/// Each URL with its host, and whether a browser reaches it directly.
const URLS: [(&str, &str, bool); 24] = [
    ("http://example.org/", "example.org", false),
    ("https://intranet/", "intranet", true),
    ("http://localhost:8080/", "localhost", true),
    ("http://a.localhost/", "a.localhost", true),
    ("http://127.0.0.2/", "127.0.0.2", true),
    ("http://10.255.255.255/", "10.255.255.255", true),
    ("http://11.0.0.0/", "11.0.0.0", false),
    ("http://172.15.255.255/", "172.15.255.255", false),
    ("http://172.31.0.1/", "172.31.0.1", true),
    ("http://172.32.0.0/", "172.32.0.0", false),
    ("http://192.168.0.1/", "192.168.0.1", true),
    ("http://169.254.169.254/", "169.254.169.254", true),
    ("https://corp.test/", "corp.test", true),
    ("https://A.Corp.Test./", "A.Corp.Test.", true),
    ("https://notcorp.test/", "notcorp.test", false),
    ("http://198.51.100.7:8080/x", "198.51.100.7", true),
    ("http://user@198.51.100.7:8080", "198.51.100.7", true),
    ("http://198.51.100.7/x:8080/", "198.51.100.7", false),
    ("https://198.51.100.7/", "198.51.100.7", false),
    ("http://[::1]:81/", "[::1]", true),
    ("http://[::1]/", "::1", true),
    ("http://[fd12:3456::1]/", "fd12:3456::1", true),
    ("http://[fe80::1]/", "fe80::1", true),
    ("http://[2606:4700::1]/", "2606:4700::1", false),
];

#[test]
fn a_browser_reaches_local_hosts_and_no_proxy_directly() {
    let file = served("proxy.test:3128", Scheme::Http).expect("a file");
    for test in ["within(\"corp.test\")", "between(3325256704, 3325256959) && port === 8080"] {
        assert!(file.contains(test), "{file}");
    }
    assert!(!file.contains("TESTS") && !file.contains("2001"), "{file}");
    let calls = URLS.map(|(url, host, _)| format!("FindProxyForURL({url:?}, {host:?})"));
    let script = format!("{file}\nconsole.log([{}].join('\\n'))", calls.join(", "));
    // Without Node.js, the test does not run the file.
    let Ok(output) = Command::new("node").args(["-e", &script]).output() else { return };
    let answers = String::from_utf8(output.stdout).expect("text");
    let expected = URLS.map(|(.., direct)| if direct { "DIRECT" } else { "PROXY proxy.test:3128" });
    for ((url, ..), (answer, expected)) in URLS.iter().zip(answers.lines().zip(expected)) {
        assert_eq!(answer, expected, "{url}");
    }
    assert_eq!(answers.lines().count(), URLS.len(), "{:?}", output.stderr);
}

//! Computes keys that tell the Collector (common parent proxy) which requests are equal. A key
//! covers the method, URL, body, cookies and other fields that change an answer. Module
//! `collector::table` compares the fields that `Vary` names.

use foxy_http::Scheme;
use foxy_http::{Authority, Headers, RequestHead, TargetForm};
use std::net::{IpAddr, SocketAddr};
use xxhash_rust::xxh3::Xxh3;

const IN_KEY: [&str; 5] = ["cookie", "authorization", "range", "if-range", "content-type"];
const CONDITIONS: [&str; 4] =
    ["if-none-match", "if-modified-since", "if-match", "if-unmodified-since"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub scheme: Scheme,
    pub host: String,
    pub port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestKey {
    /// The digest of method, URL, body and the fields that change an answer. It leaves out
    /// conditions such as `If-None-Match`.
    pub key: u128,
    /// Digest of the request with its conditions. `None` if the request has no condition.
    pub conditional: Option<u128>,
    /// Whether the request has `Cache-Control: no-cache` or `max-age=0`.
    pub reload: bool,
}

impl Destination {
    /// Returns the server for which a request is meant. `scheme` applies if the request target
    /// names no scheme; CONNECT always means `https`. Returns `None` if the request names no host,
    /// or a scheme other than `http` or `https`.
    pub fn of(head: &RequestHead, scheme: Scheme) -> Option<Self> {
        let scheme = match head.target.form() {
            TargetForm::Absolute { scheme, .. } => Scheme::named(scheme)?,
            TargetForm::Authority(_) => Scheme::Https,
            _ => scheme,
        };
        let authority = Authority::parse(head.authority()?)?;
        let port = authority.port.unwrap_or(scheme.default_port());
        Some(Self { scheme, host: authority.host.to_ascii_lowercase(), port })
    }

    pub fn at(scheme: Scheme, address: SocketAddr) -> Self {
        let host = match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        Self { scheme, host, port: address.port() }
    }

    /// Returns all destinations that name this address. A loopback address also has the name
    /// `localhost` (RFC 6761 §6.3).
    pub fn names_of(address: SocketAddr) -> impl Iterator<Item = Self> {
        let own = Self::at(Scheme::Http, address);
        let local =
            address.ip().is_loopback().then(|| Self { host: "localhost".into(), ..own.clone() });
        std::iter::once(own).chain(local)
    }

    pub fn is_at(&self, place: &Self) -> bool {
        (&self.host, self.port) == (&place.host, place.port)
    }

    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    pub fn url(&self, head: &RequestHead) -> String {
        let path = head.origin_form().unwrap_or_default();
        format!("{}://{}{}", self.scheme.as_str(), self.authority(), String::from_utf8_lossy(&path))
    }
}

impl RequestKey {
    pub fn new(head: &RequestHead, to: &Destination, body: u128) -> Self {
        let mut hash = Xxh3::new();
        let mut add = |part: &[u8]| {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        add(head.method.as_str().as_bytes());
        add(to.scheme.as_str().as_bytes());
        add(to.host.as_bytes());
        add(&to.port.to_le_bytes());
        add(&head.origin_form().unwrap_or_default());
        add(&body.to_le_bytes());
        for name in IN_KEY {
            head.headers.get_all(name).for_each(&mut add);
            add(name.as_bytes());
        }
        let key = hash.digest128();
        let mut conditional = None;
        for name in CONDITIONS {
            for value in head.headers.get_all(name) {
                hash.update(name.as_bytes());
                hash.update(&(value.len() as u64).to_le_bytes());
                hash.update(value);
                conditional = Some(hash.digest128());
            }
        }
        let control = |name: &str| head.headers.has_token("cache-control", name);
        let old = head.headers.get("cache-control").is_none()
            && head.headers.has_token("pragma", "no-cache");
        Self { key, conditional, reload: control("no-cache") || control("max-age=0") || old }
    }
}

pub fn make_unconditional(headers: &mut Headers) {
    headers.retain(|name, _| !CONDITIONS.iter().any(|other| other.eq_ignore_ascii_case(name)));
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bytes::BytesMut;
    use foxy_http::{RequestDecoder, RequestEvent};

    pub fn head(text: &str) -> RequestHead {
        let mut buffer =
            BytesMut::from(format!("{}\r\n\r\n", text.replace('\n', "\r\n")).as_bytes());
        match RequestDecoder::default().next(&mut buffer) {
            Ok(Some(RequestEvent::Head(head, _))) => head,
            other => panic!("no head in {text:?}: {other:?}"),
        }
    }

    fn asked(text: &str) -> RequestKey {
        let head = head(text);
        RequestKey::new(&head, &Destination::of(&head, Scheme::Http).expect("http"), 7)
    }

    const PLAIN: &str = "GET http://a.test/x HTTP/1.1\nHost: a.test";

    #[test]
    fn one_url_has_one_key_however_it_is_written_and_whoever_asks() {
        for same in [
            "GET http://A.test:80/x HTTP/1.1\nHost: a.test",
            "GET /x HTTP/1.1\nHost: A.TEST",
            "GET http://a.test/x HTTP/1.1\nHost: a.test\nVia: 1.1 squid\nAccept-Encoding: gzip\nX-Forwarded-For: 10.0.0.1",
            "GET http://a.test/x HTTP/1.0\nHost: a.test\nConnection: keep-alive\nCache-Control: max-age=60",
        ] {
            assert_eq!(asked(same), asked(PLAIN), "{same}");
        }
    }

    #[test]
    fn method_url_body_cookies_owner_and_range_are_in_the_key() {
        for other in [
            "HEAD http://a.test/x HTTP/1.1\nHost: a.test",
            "POST http://a.test/x HTTP/1.1\nHost: a.test",
            "GET http://a.test/X HTTP/1.1\nHost: a.test",
            "GET http://a.test:81/x HTTP/1.1\nHost: a.test",
            "GET https://a.test:80/x HTTP/1.1\nHost: a.test:80",
            "GET http://a.test/x HTTP/1.1\nHost: a.test\nCookie: s=1",
            "GET http://a.test/x HTTP/1.1\nHost: a.test\nAuthorization: Basic QTpC",
            "GET http://a.test/x HTTP/1.1\nHost: a.test\nRange: bytes=0-1",
        ] {
            assert_ne!(asked(other).key, asked(PLAIN).key, "{other}");
        }
        let plain = head(PLAIN);
        let to = Destination::of(&plain, Scheme::Http).expect("http");
        assert_ne!(RequestKey::new(&plain, &to, 8).key, asked(PLAIN).key);
    }

    #[test]
    fn conditions_and_reloads_are_known_and_leave_the_key_as_it_is() {
        let conditional = asked(&format!("{PLAIN}\nIf-None-Match: \"1\""));
        let other = asked(&format!("{PLAIN}\nIf-None-Match: \"2\""));
        assert_eq!((conditional.key, other.key), (asked(PLAIN).key, asked(PLAIN).key));
        assert!(conditional.conditional.is_some() && conditional.conditional != other.conditional);
        assert!(asked(PLAIN).conditional.is_none() && !asked(PLAIN).reload);
        assert!(asked(&format!("{PLAIN}\nCache-Control: no-cache")).reload);
        assert!(asked(&format!("{PLAIN}\nCache-Control: max-age=0")).reload);
        assert!(asked(&format!("{PLAIN}\nPragma: no-cache")).reload);
        assert!(!asked(&format!("{PLAIN}\nPragma: no-cache\nCache-Control: max-age=60")).reload);
    }

    #[test]
    fn an_address_is_a_destination() {
        let at = |text: &str| Destination::at(Scheme::Http, text.parse().expect("an address"));
        assert_eq!(
            (at("127.0.0.1:81").host.as_str(), at("[::1]:81").host.as_str()),
            ("127.0.0.1", "[::1]")
        );
    }

    #[test]
    fn http_and_https_have_a_destination_and_a_tunnel_is_for_https() {
        for (text, expected) in [
            (
                "GET http://a.test:81/x HTTP/1.1\nHost: a.test:81",
                Some(("a.test", 81, "http://a.test:81/x")),
            ),
            ("GET http://[::1]?y HTTP/1.1\nHost: [::1]", Some(("[::1]", 80, "http://[::1]/?y"))),
            (
                "GET https://a.test/x HTTP/1.1\nHost: a.test",
                Some(("a.test", 443, "https://a.test/x")),
            ),
            (
                "GET https://a.test:80/x HTTP/1.1\nHost: a.test",
                Some(("a.test", 80, "https://a.test:80/x")),
            ),
            (
                "CONNECT a.test:443 HTTP/1.1\nHost: a.test:443",
                Some(("a.test", 443, "https://a.test")),
            ),
            ("GET ftp://a.test/x HTTP/1.1\nHost: a.test", None),
            ("GET /x HTTP/1.0", None),
        ] {
            let head = head(text);
            let found = Destination::of(&head, Scheme::Http).map(|to| (to.url(&head), to));
            let found = found.as_ref().map(|(url, to)| (to.host.as_str(), to.port, url.as_str()));
            assert_eq!(found, expected, "{text}");
        }
    }
}

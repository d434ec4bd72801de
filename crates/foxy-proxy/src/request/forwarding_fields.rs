//! *Forwarding fields* describe the client to an origin, such as X-Forwarded-For or Forwarded (RFC
//! 7239). The origin's answer may depend on these fields, but cache keys do not contain them. So a
//! reverse proxy replaces the fields with its own. A forward proxy removes them from requests that
//! may be cached.

use crate::request::mode::Mode;
use crate::upstream::{Origins, Scheme};
use foxy_base::Cidr;
use foxy_http::{Authority, Headers, RequestHead};
use std::net::{IpAddr, SocketAddr};

/// Prefixes of the names of forwarding fields. Such a field tells the client, host, scheme, port,
/// path prefix or user of the request, or the target before a rewrite.
const FAMILIES: [&str; 3] = ["x-forwarded-", "x-original-", "x-rewrite-"];

/// Other names of forwarding fields: the standard field, fields for the host and the scheme, and
/// fields for the client's address.
const NAMES: [&str; 28] = [
    "forwarded",
    "forwarded-for",
    "x-forwarded",
    "x-forward-for",
    "x-forward-proto",
    "x-host",
    "x-scheme",
    "x-url-scheme",
    "front-end-https",
    "x-http-host-override",
    "client-ip",
    "proxy-client-ip",
    "wl-proxy-client-ip",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-proxyuser-ip",
    "x-remote-addr",
    "x-remote-ip",
    "x-originating-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-pseudo-ipv4",
    "fastly-client-ip",
    "fly-client-ip",
    "x-appengine-user-ip",
    "x-envoy-external-address",
];

/// Fields that replace the method of a request. They stay in requests that bypass the cache,
/// because a POST may need them.
const METHODS: [&str; 3] = ["x-http-method", "x-http-method-override", "x-method-override"];

/// The kind of information that a field contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tells {
    /// The field describes the client or the target of a request that another proxy forwarded.
    Client,
    Method,
}

impl Tells {
    /// Classifies a field name. Ignores case, and treats `_` like `-` as CGI does.
    fn of(name: &[u8]) -> Option<Self> {
        // This test of the first byte is fast, and rejects most fields.
        let first = name.first()?.to_ascii_lowercase();
        if !matches!(first, b'c' | b'f' | b'p' | b't' | b'w' | b'x') {
            return None;
        }
        let folded = |byte: &u8| if *byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
        let begins = |known: &str| {
            known.len() <= name.len()
                && known.bytes().zip(name).all(|(known, byte)| known == folded(byte))
        };
        let is = |known: &str| known.len() == name.len() && begins(known);
        if FAMILIES.iter().any(|family| begins(family)) || NAMES.iter().any(|known| is(known)) {
            return Some(Self::Client);
        }
        METHODS.iter().any(|known| is(known)).then_some(Self::Method)
    }
}

/// Returns true if a request has a field in which a proxy describes its client.
pub(crate) fn are_in(headers: &Headers) -> bool {
    headers.raw().any(|(name, _)| Tells::of(name) == Some(Tells::Client))
}

/// Returns true if a field of this name describes the client of a proxy.
pub(crate) fn is_named(name: &str) -> bool {
    Tells::of(name.as_bytes()) == Some(Tells::Client)
}

/// Removes fields that may change the answer but are not part of the cache key. The fields that a
/// reverse proxy sets itself stay.
pub(crate) fn take_off(headers: &mut Headers, mode: &Mode) {
    let goes = |name: &[u8]| match Tells::of(name) {
        Some(Tells::Client) => mode.is_forward(),
        Some(Tells::Method) => true,
        None => false,
    };
    if headers.raw().any(|(name, _)| goes(name)) {
        headers.retain(|name, _| !goes(name.as_bytes()));
    }
}

/// Replaces the forwarding fields of a request for the origins of a reverse proxy. Returns the
/// scheme that the client used. The scheme is `over`, unless a trusted balancer reports another
/// scheme.
///
/// A request without a Host field gets the host of the origin. Only HTTP/1.0 permits such a
/// request.
pub(crate) fn replace(
    head: &mut RequestHead,
    client: SocketAddr,
    over: Scheme,
    origins: &Origins,
    trusted: &[Cidr],
) -> Scheme {
    let client = client.ip().to_canonical();
    let is_trusted = trusted.iter().any(|block| block.contains(client));
    let before = if is_trusted { Before::of(&head.headers) } else { Before::default() };
    if are_in(&head.headers) {
        head.headers.retain(|name, _| !is_named(name));
    }
    if head.authority().is_none() {
        head.headers.append("Host", origins.usual_authority());
    }
    let scheme = before.scheme.unwrap_or(over);
    let host = String::from_utf8_lossy(head.authority().unwrap_or_default()).into_owned();
    add(&mut head.headers, &before, client, &host, scheme);
    scheme
}

/// The client and scheme that a trusted balancer reports, from its own forwarding fields.
#[derive(Default)]
struct Before {
    addresses: Option<String>,
    elements: Option<String>,
    scheme: Option<Scheme>,
}

impl Before {
    fn of(headers: &Headers) -> Self {
        let list = |name: &str| {
            let members: Vec<_> = headers.tokens(name).map(String::from_utf8_lossy).collect();
            (!members.is_empty()).then(|| members.join(", "))
        };
        let scheme = headers.tokens("x-forwarded-proto").last().and_then(Scheme::named);
        Self { addresses: list("x-forwarded-for"), elements: list("forwarded"), scheme }
    }
}

/// Each request of a reverse proxy runs this function. So it formats as little text as possible.
fn add(headers: &mut Headers, before: &Before, client: IpAddr, host: &str, scheme: Scheme) {
    let after = |before: &Option<String>, own: String| match before {
        Some(before) => format!("{before}, {own}"),
        None => own,
    };
    let address = client.to_string();
    let (open, close) = if client.is_ipv6() { ("\"[", "]\"") } else { ("", "") };
    // A host without port and brackets is a token, which needs no quotes (RFC 7239 §4). No host
    // contains a quote or a backslash, so no character needs an escape.
    let quote = if host.contains(':') { "\"" } else { "" };
    let proto = scheme.as_str();
    let parts = ["for=", open, &address, close, ";host=", quote, host, quote, ";proto=", proto];
    let element = parts.concat();
    let port = Authority::parse(host.as_bytes()).and_then(|authority| authority.port);
    headers.append("Forwarded", after(&before.elements, element));
    headers.append("X-Forwarded-For", after(&before.addresses, address));
    headers.append("X-Forwarded-Host", host);
    match (port, scheme) {
        (Some(port), _) => headers.append("X-Forwarded-Port", port.to_string()),
        (None, Scheme::Http) => headers.append("X-Forwarded-Port", "80"),
        (None, Scheme::Https) => headers.append("X-Forwarded-Port", "443"),
    }
    headers.append("X-Forwarded-Proto", proto);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::OriginServer;
    use bytes::BytesMut;
    use foxy_http::{RequestDecoder, RequestEvent};

    fn head(lines: &str) -> RequestHead {
        let mut text = BytesMut::from(lines.replace('\n', "\r\n").as_bytes());
        match RequestDecoder::default().next(&mut text) {
            Ok(Some(RequestEvent::Head(head, _))) => head,
            other => panic!("not a request: {other:?}"),
        }
    }

    fn lines(headers: &Headers) -> Vec<String> {
        headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value)))
            .collect()
    }

    fn mode() -> Mode {
        Mode::reverse(OriginServer { scheme: Scheme::Http, host: "::1".into(), port: 81 })
    }

    /// Returns the header lines that an origin receives, and the scheme that the client used.
    fn replaced(text: &str, client: &str, over: Scheme, trusted: &str) -> (Vec<String>, Scheme) {
        let (mut head, client) =
            (head(text), SocketAddr::new(client.parse().expect("an address"), 9));
        let trusted: Vec<Cidr> = trusted.parse().into_iter().collect();
        let mode = mode();
        let origins = mode.origins().expect("a reverse proxy").get();
        let scheme = replace(&mut head, client, over, &origins, &trusted);
        (lines(&head.headers), scheme)
    }

    #[test]
    fn what_a_client_claims_gives_way_to_what_the_proxy_knows() {
        let claims = "GET / HTTP/1.1\nHost: a.test:8080\nForwarded: host=evil\nX-Forwarded-Host: evil\n\
                      x_forwarded_prefix: /evil\nX-Original-URL: /evil\nX-Rewrite-Url: /evil\nX-Real-IP: 9.9.9.9\n\
                      CF-Connecting-IP: 9.9.9.9\nX-Forwarded-Proto: http\nX-Custom: kept\nFrom: kept\n\n";
        let expected = [
            "Host: a.test:8080",
            "X-Custom: kept",
            "From: kept",
            "Forwarded: for=\"[2001:db8::1]\";host=\"a.test:8080\";proto=https",
            "X-Forwarded-For: 2001:db8::1",
            "X-Forwarded-Host: a.test:8080",
            "X-Forwarded-Port: 8080",
            "X-Forwarded-Proto: https",
        ];
        let (seen, scheme) = replaced(claims, "2001:db8::1", Scheme::Https, "10.0.0.0/8");
        assert_eq!((seen, scheme), (expected.map(str::to_owned).to_vec(), Scheme::Https));
    }

    #[test]
    fn an_address_of_ipv4_that_came_over_ipv6_is_written_as_ipv4() {
        let (seen, _) =
            replaced("GET / HTTP/1.1\nHost: a.test\n\n", "::ffff:192.0.2.7", Scheme::Http, "");
        assert_eq!(
            seen[1..3],
            ["Forwarded: for=192.0.2.7;host=a.test;proto=http", "X-Forwarded-For: 192.0.2.7"]
        );
        assert_eq!(seen[4], "X-Forwarded-Port: 80");
    }

    #[test]
    fn no_client_forges_its_address_in_a_field_that_origins_trust() {
        let others = ["client_ip", "CF-Connecting-IP", "Proxy-Client-IP", "WL-Proxy-Client-IP"];
        for name in NAMES.into_iter().chain(others) {
            let text = format!("GET / HTTP/1.1\nHost: a.test\n{name}: 9.9.9.9\n\n");
            let (seen, _) = replaced(&text, "192.0.2.7", Scheme::Http, "");
            assert!(!seen.iter().any(|line| line.contains("9.9.9.9")), "{seen:?}");
        }
    }

    #[test]
    fn a_trusted_balancer_says_who_came_to_it_and_over_what() {
        let text = "GET / HTTP/1.1\nHost: a.test\nX-Forwarded-For: 192.0.2.7\nX-Forwarded-Proto: https\n\
                    Forwarded: for=192.0.2.7\nX-Forwarded-Host: evil\n\n";
        let (seen, scheme) = replaced(text, "10.0.0.1", Scheme::Http, "10.0.0.0/8");
        let expected = [
            "Host: a.test",
            "Forwarded: for=192.0.2.7, for=10.0.0.1;host=a.test;proto=https",
            "X-Forwarded-For: 192.0.2.7, 10.0.0.1",
            "X-Forwarded-Host: a.test",
            "X-Forwarded-Port: 443",
            "X-Forwarded-Proto: https",
        ];
        assert_eq!((seen, scheme), (expected.map(str::to_owned).to_vec(), Scheme::Https));
        let (seen, scheme) = replaced(text, "192.0.2.9", Scheme::Http, "10.0.0.0/8");
        assert_eq!((&seen[2][..], scheme), ("X-Forwarded-For: 192.0.2.9", Scheme::Http));
    }

    #[test]
    fn a_request_without_a_host_is_for_the_origin_itself() {
        let (seen, _) = replaced("GET / HTTP/1.0\n\n", "192.0.2.7", Scheme::Http, "");
        assert_eq!((&seen[0][..], &seen[3][..]), ("Host: [::1]:81", "X-Forwarded-Host: [::1]:81"));
        let (seen, _) = replaced("OPTIONS * HTTP/1.0\n\n", "192.0.2.7", Scheme::Http, "");
        assert_eq!(seen[0], "Host: [::1]:81");
        let (seen, _) = replaced("GET / HTTP/1.0\nHost: a.test\n\n", "192.0.2.7", Scheme::Http, "");
        assert_eq!(seen[0], "Host: a.test");
    }

    #[test]
    fn what_is_in_no_key_is_taken_off_requests_for_the_cache() {
        let text = "GET http://a.test/ HTTP/1.1\nHost: a.test\nX-Forwarded-For: 1\n\
                    X_HTTP_Method_Override: POST\nX-A: 1\n\n";
        let (mut forward, mut reverse) = (head(text).headers, head(text).headers);
        take_off(&mut forward, &Mode::Forward);
        take_off(&mut reverse, &mode());
        assert_eq!(lines(&forward), ["Host: a.test", "X-A: 1"]);
        assert_eq!(lines(&reverse), ["Host: a.test", "X-Forwarded-For: 1", "X-A: 1"]);
    }
}

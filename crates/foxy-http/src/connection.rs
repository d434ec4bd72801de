//! Header rules for a single connection (RFC 9110 §7.6.1, RFC 9112 §9). They decide whether the
//! connection stays open, which headers must not be forwarded, and about protocol upgrades.

use crate::headers::Headers;
use crate::message::{RequestHead, Version};

/// Whether the connection stays open after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// Another message may follow.
    KeepAlive,
    /// The connection closes after this message.
    Close(CloseReason),
}

/// The reason for closing the connection after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer sent `Connection: close`.
    Asked,
    /// The peer speaks HTTP/1.0 and sent no `Connection: keep-alive`.
    Http10,
    /// Only the end of the connection marks the end of the body.
    EndOfBody,
    /// The message had both Content-Length and Transfer-Encoding.
    AmbiguousLength,
    /// The head announced a body that its status forbids. The bytes of that body may still arrive.
    BodyNotAllowed,
    /// The connection became a tunnel.
    Tunnel,
}

impl Persistence {
    /// Returns whether the connection stays open after a message, from its version and its
    /// Connection header (RFC 9112 §9.3).
    pub fn of(version: Version, headers: &Headers) -> Self {
        let (mut close, mut keep_alive) = (false, false);
        for option in headers.tokens("connection") {
            close |= option.eq_ignore_ascii_case(b"close");
            keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
        match version {
            _ if close => Self::Close(CloseReason::Asked),
            Version::Http10 if !keep_alive => Self::Close(CloseReason::Http10),
            Version::Http10 | Version::Http11 | Version::Http2 => Self::KeepAlive,
        }
    }
}

/// Headers that concern one connection only. A sender that needs Upgrade or TE on the next
/// connection must add them again.
const HOP_BY_HOP: [&str; 11] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];

/// Headers that stay even if Connection names them (RFC 9110 §7.6.1). Without such a header, the
/// next hop would route, frame or cache the message wrongly, or the origin would mistake the client
/// for another.
const END_TO_END: [&str; 17] = [
    "age",
    "authorization",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "expires",
    "forwarded",
    "host",
    "set-cookie",
    "vary",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
];

/// Whether Connection names a header that is present and not hop-by-hop by definition. The removal
/// of such a header may change the meaning of the response, so the response must not be stored.
pub fn names_other_fields_away(headers: &Headers) -> bool {
    headers.tokens("connection").filter_map(|name| std::str::from_utf8(name).ok()).any(|name| {
        !name.eq_ignore_ascii_case("close")
            && !HOP_BY_HOP.iter().any(|other| other.eq_ignore_ascii_case(name))
            && headers.get(name).is_some()
    })
}

/// Removes Connection, the headers that it names (but none of `END_TO_END`), and the hop-by-hop
/// headers that senders forget to name. Call [`Persistence::of`], [`upgrade_protocol`] and
/// [`accepts_trailers`] before this function, because they read these headers. Afterwards call
/// [`crate::framing::set_body_length`] for the outgoing message.
pub fn strip_hop_by_hop(headers: &mut Headers) {
    let is_one_of =
        |names: &[&str], name: &str| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    let named: Vec<String> = headers
        .tokens("connection")
        .filter_map(|name| std::str::from_utf8(name).ok())
        .filter(|name| !is_one_of(&END_TO_END, name) && !is_one_of(&HOP_BY_HOP, name))
        .filter(|name| !name.eq_ignore_ascii_case("close"))
        .map(str::to_owned)
        .collect();
    headers.remove_all(HOP_BY_HOP);
    for name in named {
        headers.remove(&name);
    }
}

/// Returns the value of Upgrade if Connection names Upgrade and the version is HTTP/1.1 (RFC 9110
/// §7.8). Returns `None` if Upgrade names TLS or a version of HTTP.
pub fn upgrade_protocol(version: Version, headers: &Headers) -> Option<&[u8]> {
    let changes_http = |name: &[u8]| {
        [&b"h2c"[..], b"http/", b"tls/"].iter().any(|start| {
            name.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
        })
    };
    let named = version == Version::Http11
        && headers.has_token("connection", "upgrade")
        && !headers.tokens("upgrade").any(changes_http);
    headers.get("upgrade").filter(|value| named && !value.is_empty())
}

/// Whether the request's sender accepts trailers in the response: `TE: trailers` (RFC 9110
/// §10.1.4).
pub fn accepts_trailers(headers: &Headers) -> bool {
    headers.has_token("te", "trailers")
}

/// Whether the client waits for a 100 response before it sends the body (RFC 9110 §10.1.1).
/// HTTP/1.0 clients never wait for a 100 response.
pub fn expects_continue(head: &RequestHead) -> bool {
    head.version >= Version::Http11 && head.headers.has_token("expect", "100-continue")
}

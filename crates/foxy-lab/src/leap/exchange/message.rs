//! The parts of a request besides its URL. Also builds the HTTP/1 request text that a path (proxy
//! or origin) receives.

use super::kept::may_keep;
use super::requests::Asked;
use crate::leap::{LeapRun, Manner, Path};
use crate::wire::REQUEST_ID;
use bytes::{Bytes, BytesMut};
use foxy_http::Scheme;
use foxy_http::{Headers, Method, Version, encode};
use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::LazyLock;
use xxhash_rust::xxh3::xxh3_128;

/// The longest text of header fields, in bytes, that the key of a request contains. The key tells
/// requests apart. A digest replaces a longer text.
const SHOWN: usize = 200;

/// Request fields with secrets. Reports must not show their values.
const SECRET: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];
/// Hashes secret values with a random key. Different values give different hashes, and nobody can
/// guess a value from its hash.
static TOLD_APART: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The method, fields, body and client of a request. The default is a plain GET without a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Method of the request.
    pub method: Method,
    /// The client's HTTP version. A copy of the request uses this version too.
    pub version: Version,
    /// The end-to-end fields, without `Host` and the fields that frame the body.
    pub fields: Headers,
    /// The body, if any.
    pub body: Option<Bytes>,
    /// The address of the client that sent the request. `None` if the request comes from a workload
    /// or a trace.
    pub client: Option<IpAddr>,
}

impl Default for Message {
    fn default() -> Self {
        let (method, version) = (Method::Get, Version::Http11);
        Self { method, version, fields: Headers::new(), body: None, client: None }
    }
}

impl Message {
    /// Whether the request is conditional.
    pub fn is_conditional(&self) -> bool {
        ["if-none-match", "if-modified-since", "if-match", "if-unmodified-since"]
            .iter()
            .any(|name| self.fields.contains(name))
    }

    /// Returns the key of the request, made of URL, method, fields and body. LEAP compares answers
    /// to requests with equal keys. Secrets appear only as hashes, because reports show the key.
    pub(crate) fn key(&self, url: &str) -> String {
        let mut key = if self.method == Method::Get {
            url.to_owned()
        } else {
            format!("{} {url}", self.method)
        };
        let mut fields = BytesMut::new();
        for (name, value) in self.fields.iter() {
            if SECRET.contains(&name.to_ascii_lowercase().as_str()) {
                let hidden = format!("hidden-{:016x}", TOLD_APART.hash_one(value));
                encode::header_line(name, hidden.as_bytes(), &mut fields);
            } else {
                encode::header_line(name, value, &mut fields);
            }
        }
        let text = String::from_utf8_lossy(&fields);
        let text = text.trim_end().replace("\r\n", ", ");
        let _a_string_takes_all = match text.len() {
            0 => Ok(()),
            1..=SHOWN => write!(key, " {text}"),
            _ => write!(key, " {:032x}", xxh3_128(&fields)),
        };
        if let Some(body) = &self.body {
            let _a_string_takes_all = write!(key, " {:032x}", xxh3_128(body));
        }
        key
    }
}

pub fn text(run: &LeapRun, path: &Path, asked: &Asked, number: u64) -> BytesMut {
    let (authority, target, message) = (&asked.authority, &asked.path, &asked.message);
    let host = match path.manner {
        Manner::Forward if asked.scheme == Scheme::Http => format!("http://{authority}"),
        Manner::Forward | Manner::Reverse | Manner::Direct | Manner::Named => String::new(),
    };
    let first = format!("{} {host}{target} {}\r\n", message.method, message.version.as_str());
    let mut text = BytesMut::from(first.as_bytes());
    encode::header_line("Host", authority.as_bytes(), &mut text);
    if !may_keep(run, asked) {
        encode::header_line("Connection", b"close", &mut text);
    }
    if run.numbers.is_some() {
        encode::header_line(REQUEST_ID, number.to_string().as_bytes(), &mut text);
    }
    encode::header_lines(&message.fields, &mut text);
    if let Some(body) = &message.body {
        encode::header_line("Content-Length", body.len().to_string().as_bytes(), &mut text);
    }
    encode::end_of_head(&mut text);
    text.extend_from_slice(message.body.as_deref().unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_compared_with_those_to_the_same_method_url_fields_and_body() {
        let plain = Message::default();
        assert_eq!(plain.key("u"), "u");
        let fields = |value: &str| [("Accept", value.as_bytes())].into_iter().collect();
        let asked = Message { fields: fields("a"), ..plain.clone() };
        assert_eq!(asked.key("u"), "u Accept: a");
        let long = Message { fields: fields(&"a".repeat(500)), ..plain.clone() };
        assert_eq!(long.key("u").len(), "u ".len() + 32);
        let secret = |value: &[u8]| Message {
            fields: [("Cookie", value)].into_iter().collect(),
            ..plain.clone()
        };
        let (one, other) = (secret(b"sesame").key("u"), secret(b"open").key("u"));
        assert!(
            one.starts_with("u Cookie: hidden-") && !one.contains("sesame") && one != other,
            "{one}"
        );
        let post = |body| Message {
            method: Method::Post,
            body: Some(Bytes::from_static(body)),
            ..plain.clone()
        };
        assert!(post(b"1").key("u").starts_with("POST u "));
        assert_ne!(post(b"1").key("u"), post(b"2").key("u"));
    }
}

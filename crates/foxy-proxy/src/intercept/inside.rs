//! Handles requests inside an intercepted CONNECT. Their authority must be the authority of the
//! CONNECT. Each request gets the absolute form that a client sends to a proxy without CONNECT. So
//! later code treats requests inside and outside a CONNECT in the same way.

use crate::request::final_dots;
use crate::request::reason::ErrorReason;
use crate::upstream::{Origin, Scheme};
use bytes::Bytes;
use foxy_http::{Authority, RequestHead, Target, TargetForm};
use std::sync::Arc;

/// The target and the user of an intercepted CONNECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inside {
    /// The origin that the CONNECT names, with the scheme `https`.
    origin: Origin,
    /// The authority as URLs contain it: without the port if the port is 443.
    authority: String,
    /// The user who sent the CONNECT, if the proxy knows the user.
    pub(crate) user: Option<Arc<str>>,
}

impl Inside {
    pub(crate) fn new(origin: &Origin) -> Self {
        let origin = Origin { scheme: Scheme::Https, ..origin.clone() };
        let authority = if origin.port == Scheme::Https.default_port() {
            origin.host.to_string()
        } else {
            format!("{}:{}", origin.host, origin.port)
        };
        Self { origin, authority, user: None }
    }

    pub(crate) fn host(&self) -> &str {
        &self.origin.host
    }

    /// Changes a request to absolute form, without dots at the end of the host. If the request must
    /// be refused, returns the reason.
    pub(crate) fn judge(&self, mut head: RequestHead) -> (RequestHead, Option<ErrorReason>) {
        final_dots::remove(&mut head);
        match self.absolute(&head) {
            Ok(target) => (RequestHead { target, ..head }, None),
            Err(reason) => (head, Some(reason)),
        }
    }

    fn absolute(&self, head: &RequestHead) -> Result<Target, ErrorReason> {
        let scheme = self.origin.scheme.as_str();
        match head.target.form() {
            TargetForm::Authority(_) => return Err(ErrorReason::ConnectInside),
            TargetForm::Absolute { scheme: other, .. }
                if !other.eq_ignore_ascii_case(scheme.as_bytes()) =>
            {
                return Err(ErrorReason::Misdirected);
            }
            _ => {}
        }
        let named = head.authority().into_iter().chain(head.headers.get("host"));
        if !named.into_iter().all(|authority| self.is(authority)) {
            return Err(ErrorReason::Misdirected);
        }
        let path = match head.target.form() {
            TargetForm::Asterisk => Default::default(),
            _ => head.origin_form().unwrap_or_default(),
        };
        let url = [format!("{scheme}://{}", self.authority).as_bytes(), &path].concat();
        Target::parse(&head.method, Bytes::from(url)).map_err(ErrorReason::Malformed)
    }

    /// Returns true if `authority` is the authority of the CONNECT (RFC 9110 §4.2.3). Case does not
    /// matter, and the default port may be left out.
    fn is(&self, authority: &[u8]) -> bool {
        Authority::parse(authority).is_some_and(|authority| {
            authority.host.eq_ignore_ascii_case(&self.origin.host)
                && authority.port.unwrap_or(self.origin.scheme.default_port()) == self.origin.port
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::ChosenBy;
    use bytes::BytesMut;
    use foxy_http::{RequestDecoder, RequestEvent};

    fn judged(port: u16, text: &str) -> Result<String, &'static str> {
        let mut buffer = BytesMut::from(text.replace('\n', "\r\n").as_bytes());
        let head = match RequestDecoder::default().next(&mut buffer) {
            Ok(Some(RequestEvent::Head(head, _))) => head,
            other => panic!("not a request: {other:?}"),
        };
        let inside = Inside::new(&Origin::new(Scheme::Http, "A.test", port, ChosenBy::Client));
        match inside.judge(head) {
            (head, None) => Ok(String::from_utf8_lossy(head.target.raw()).into_owned()),
            (_, Some(reason)) => Err(reason.name()),
        }
    }

    #[test]
    fn a_request_for_the_authority_of_the_connect_gets_its_whole_url() {
        let cases = [
            (443, "GET /x?y HTTP/1.1\nHost: a.test\n\n", "https://a.test/x?y"),
            (443, "GET / HTTP/1.1\nHost: A.TEST:443\n\n", "https://a.test/"),
            (443, "GET https://a.test/x HTTP/1.1\nHost: a.test\n\n", "https://a.test/x"),
            (443, "GET /x HTTP/1.0\n\n", "https://a.test/x"),
            (443, "GET /x HTTP/1.1\nHost: a.test.\n\n", "https://a.test/x"),
            (443, "OPTIONS * HTTP/1.1\nHost: a.test\n\n", "https://a.test"),
            (8443, "GET /x HTTP/1.1\nHost: a.test:8443\n\n", "https://a.test:8443/x"),
        ];
        for (port, text, expected) in cases {
            assert_eq!(judged(port, text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_request_for_another_authority_is_misdirected() {
        let cases = [
            (443, "GET / HTTP/1.1\nHost: b.test\n\n"),
            (443, "GET / HTTP/1.1\nHost: a.test:8443\n\n"),
            (8443, "GET / HTTP/1.1\nHost: a.test\n\n"),
            (443, "GET https://b.test/ HTTP/1.1\nHost: a.test\n\n"),
            (443, "GET http://a.test/ HTTP/1.1\nHost: a.test\n\n"),
        ];
        for (port, text) in cases {
            assert_eq!(judged(port, text), Err("misdirected"), "{text}");
        }
        let connect = "CONNECT a.test:443 HTTP/1.1\nHost: a.test:443\n\n";
        assert_eq!(judged(443, connect), Err("connect-inside-tls"));
    }
}

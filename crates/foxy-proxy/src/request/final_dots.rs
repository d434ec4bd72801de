//! Removes dots at the end of a request's host. `a.test.` and `a.test` name the same host, so both
//! get the same origin, cache key and Host field.

use bytes::Bytes;
use foxy_http::{RequestHead, Target, TargetForm};

/// Removes the dots at the end of the host from the target and the Host field.
pub(crate) fn remove(head: &mut RequestHead) {
    let Some(authority) = head.authority().and_then(without_final_dots) else { return };
    let target = match head.target.form() {
        TargetForm::Absolute { scheme, path, .. } => [scheme, b"://", &authority, path].concat(),
        TargetForm::Authority(_) => authority.clone(),
        TargetForm::Origin(_) | TargetForm::Asterisk => head.target.raw().to_vec(),
    };
    if let Ok(target) = Target::parse(&head.method, Bytes::from(target)) {
        head.target = target;
        head.headers.set("Host", authority);
    }
}

/// Returns the authority without the dots at the end of its host. Returns `None` if the host has no
/// dots at its end, or consists of dots alone.
pub(crate) fn without_final_dots(authority: &[u8]) -> Option<Vec<u8>> {
    let colon = authority.iter().rposition(|byte| matches!(byte, b':' | b']'));
    let end = colon.filter(|&at| authority[at] == b':').unwrap_or(authority.len());
    let (host, port) = authority.split_at(end);
    let dots = host.iter().rev().take_while(|byte| **byte == b'.').count();
    (dots > 0 && dots < host.len()).then(|| [&host[..host.len() - dots], port].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use foxy_http::{RequestDecoder, RequestEvent};

    #[test]
    fn target_and_host_lose_the_dots() {
        let cases = [
            ("GET /x HTTP/1.1\r\nHost: a.test.\r\n\r\n", "/x", "a.test"),
            ("GET /x HTTP/1.1\r\nHost: a.test.:81\r\n\r\n", "/x", "a.test:81"),
            ("GET http://a.test./x? HTTP/1.1\r\nHost: b\r\n\r\n", "http://a.test/x?", "a.test"),
            ("CONNECT a.test..:443 HTTP/1.1\r\nHost: b\r\n\r\n", "a.test:443", "a.test:443"),
            ("GET /x HTTP/1.1\r\nHost: [::1]:81\r\n\r\n", "/x", "[::1]:81"),
            ("GET /x HTTP/1.1\r\nHost: ..\r\n\r\n", "/x", ".."),
        ];
        for (text, target, host) in cases {
            let event = RequestDecoder::default().next(&mut BytesMut::from(text.as_bytes()));
            let Ok(Some(RequestEvent::Head(mut head, _))) = event else { panic!("{event:?}") };
            remove(&mut head);
            let found = (&head.target.raw()[..], head.headers.get("host"));
            assert_eq!(found, (target.as_bytes(), Some(host.as_bytes())), "{text}");
        }
    }
}

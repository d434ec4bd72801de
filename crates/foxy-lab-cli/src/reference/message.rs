//! Reads requests and answers in HTTP for the reference proxies. These proxies accept GET requests
//! with absolute URLs. They use HTTP/1.0 with servers, so an answer ends when its connection
//! closes.

use bytes::BytesMut;
use foxy_http::{
    BodyLength, Method, RequestDecoder, RequestEvent, ResponseDecoder, ResponseEvent, encode,
    strip_hop_by_hop,
};

const BAD_REQUEST: &[u8] = b"HTTP/1.0 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
const NOT_IMPLEMENTED: &[u8] = b"HTTP/1.0 501 Not Implemented\r\nContent-Length: 0\r\n\r\n";
pub const BAD_GATEWAY: &[u8] = b"HTTP/1.0 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n";

#[derive(Clone, Debug)]
pub struct WantedUrl {
    pub url: String,
    pub authority: String,
    pub text: Vec<u8>,
    pub reload: bool,
}

#[derive(Debug, Default)]
pub struct Incoming {
    decoder: RequestDecoder,
    input: BytesMut,
}

impl Incoming {
    pub fn take(&mut self, bytes: &[u8]) -> Result<Option<WantedUrl>, &'static [u8]> {
        self.input.extend_from_slice(bytes);
        let event = self.decoder.next(&mut self.input).map_err(|_| BAD_REQUEST)?;
        let Some(RequestEvent::Head(mut head, _)) = event else { return Ok(None) };
        let text =
            |bytes: &[u8]| std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| BAD_REQUEST);
        let url = text(head.target.raw())?;
        if head.method != Method::Get || !url.starts_with("http://") {
            return Err(NOT_IMPLEMENTED);
        }
        let authority = text(head.authority().ok_or(BAD_REQUEST)?)?;
        let path = text(&head.origin_form().ok_or(BAD_REQUEST)?)?;
        let reload = head.headers.has_token("cache-control", "no-cache");
        strip_hop_by_hop(&mut head.headers);
        head.headers.remove("host");
        let mut text = format!("GET {path} HTTP/1.0\r\nHost: {authority}\r\n").into_bytes();
        encode::header_lines(&head.headers, &mut text);
        encode::end_of_head(&mut text);
        let authority = if authority.contains(':') { authority } else { format!("{authority}:80") };
        Ok(Some(WantedUrl { url, authority, text, reload }))
    }
}

#[derive(Debug)]
pub struct Answer {
    pub bytes: Vec<u8>,
    /// The time at which the answer becomes stale, in seconds since the Unix epoch. `None` if the
    /// answer must not be stored or states no lifetime.
    pub expires: Option<u64>,
}

impl Answer {
    pub fn of(bytes: Vec<u8>, now: u64) -> Self {
        let expires = lifetime(&bytes).map(|lifetime| now.saturating_add(lifetime));
        Self { bytes, expires }
    }
}

fn lifetime(answer: &[u8]) -> Option<u64> {
    let mut decoder = ResponseDecoder::default();
    decoder.expect(&Method::Get);
    let mut input = BytesMut::from(answer);
    let Ok(Some(ResponseEvent::Head(head, BodyLength::Length(length)))) = decoder.next(&mut input)
    else {
        return None;
    };
    let forbidden = ["no-store", "no-cache", "private"]
        .iter()
        .any(|token| head.headers.has_token("cache-control", token));
    if head.status != 200 || forbidden || input.len() as u64 != length {
        return None;
    }
    let age = head
        .headers
        .tokens("cache-control")
        .find_map(|token| std::str::from_utf8(token).ok()?.strip_prefix("max-age=")?.parse().ok());
    age.filter(|&age| age > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(text: &str) -> Result<Option<WantedUrl>, &'static [u8]> {
        Incoming::default().take(text.replace('\n', "\r\n").as_bytes())
    }

    #[test]
    fn a_request_goes_on_in_http_1_0_without_what_was_meant_for_the_proxy() {
        let text = "GET http://a:81/x?y HTTP/1.1\nHost: a:81\nConnection: keep-alive\nX-Foxy-Request: 7\n\n";
        let wanted = take(text).expect("readable").expect("complete");
        assert_eq!((wanted.url.as_str(), wanted.authority.as_str()), ("http://a:81/x?y", "a:81"));
        let sent = String::from_utf8(wanted.text).expect("text").to_ascii_lowercase();
        assert_eq!(sent, "get /x?y http/1.0\r\nhost: a:81\r\nx-foxy-request: 7\r\n\r\n");
        assert!(!wanted.reload);
        assert!(
            take("GET http://a/ HTTP/1.0\nCache-Control: no-cache\n\n")
                .expect("readable")
                .expect("all")
                .reload
        );
    }

    #[test]
    fn what_is_not_a_get_for_a_url_is_refused() {
        assert!(matches!(take("GET http://a/ HTTP/1.0\n"), Ok(None)));
        for (text, refusal) in [
            ("GET / HTTP/1.0\nHost: a\n\n", NOT_IMPLEMENTED),
            ("DELETE http://a/ HTTP/1.0\n\n", NOT_IMPLEMENTED),
            ("CONNECT a:443 HTTP/1.1\nHost: a:443\n\n", NOT_IMPLEMENTED),
            ("what\n\n", BAD_REQUEST),
        ] {
            assert_eq!(take(text).expect_err(text), refusal, "{text}");
        }
    }

    #[test]
    fn only_a_whole_answer_with_a_lifetime_is_stored() {
        let expires =
            |text: &str| Answer::of(text.replace('\n', "\r\n").into_bytes(), 1000).expires;
        assert_eq!(
            expires("HTTP/1.1 200 OK\nCache-Control: max-age=60\nContent-Length: 2\n\nab"),
            Some(1060)
        );
        for refused in [
            "HTTP/1.1 200 OK\nCache-Control: max-age=60\nContent-Length: 3\n\nab",
            "HTTP/1.1 200 OK\nCache-Control: no-store, max-age=60\nContent-Length: 2\n\nab",
            "HTTP/1.1 200 OK\nContent-Length: 2\n\nab",
            "HTTP/1.1 404 Not Found\nCache-Control: max-age=60\nContent-Length: 2\n\nab",
            "HTTP/1.1 200 OK\nCache-Control: max-age=60\n",
        ] {
            assert_eq!(expires(refused), None, "{refused}");
        }
    }
}

//! Computes the answers of foxy's own origin for documents of the PolyMix-4 workload. An answer
//! depends only on the document, the request and the time.

use crate::load::origin::answer::{BodyPart, Reply, http_date};
use crate::wire::{OBJECT_ID, REQUEST_ID};
use foxy_base::WallTime;
use foxy_http::{Method, RequestHead, ResponseHead};
use foxy_workload::polymix::content::Document;
use foxy_workload::polymix::{Side, breaks_off, think_time};
use std::time::UNIX_EPOCH;

pub fn answer(request: &RequestHead, document: Document, now: WallTime) -> Reply {
    let nature = document.nature();
    let version = nature.life.version(now.seconds());
    let changed = nature.life.changed(version);
    let since = request
        .headers
        .get_str("if-modified-since")
        .and_then(|date| httpdate::parse_http_date(date).ok());
    let since = since.and_then(|date| Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs()));
    let unchanged = request.method != Method::Post && since.is_some_and(|since| since >= changed);
    let number = request.headers.get_str(REQUEST_ID).and_then(|id| id.parse::<u64>().ok());
    let mut head = ResponseHead::new(if unchanged { 304 } else { 200 });
    let headers = &mut head.headers;
    headers.append("Date", http_date(now.seconds()));
    if let Some(number) = number {
        headers.append(REQUEST_ID, number.to_string());
    }
    headers.append(OBJECT_ID, format!("{}.{version}", document.key()));
    if nature.cachable && request.method != Method::Post {
        headers.append("Cache-Control", "public");
        headers.append("Expires", http_date(nature.life.changed(version + 1)));
    } else {
        headers.append("Cache-Control", "private, no-cache");
    }
    headers.append("Last-Modified", http_date(changed));
    if !unchanged {
        headers.append("Content-Type", nature.kind.media_type());
        headers.append("Content-Length", nature.size.to_string());
    }
    let has_body = !unchanged && request.method != Method::Head;
    let stream = document.body(version);
    let number = number.unwrap_or(0);
    Reply {
        head,
        body: has_body.then_some(BodyPart { stream, offset: 0, length: nature.size }),
        delay: think_time(number, document.world.delay_scale),
        chunked: false,
        breaks_off: breaks_off(Side::Server, number, nature.size).filter(|_| has_body),
        changes: None,
        short_lived: true,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::load::origin::answer::tests::{NOW, ask};
    use foxy_workload::polymix::content::{Kind, World};

    pub fn document(cachable: bool) -> Document {
        let world = World { number: 1, time_scale: 1, delay_scale: 1 };
        let other = |number| Document { world, container: Kind::Other, number, image: 0 };
        (0..)
            .map(other)
            .find(|document| document.nature().cachable == cachable)
            .expect("one of them")
    }

    fn request(method: &str, document: Document, fields: &str) -> Reply {
        ask(&format!("{method} {document} HTTP/1.1\nHost: a\nX-Foxy-Request: 5\n{fields}\n"))
    }

    #[test]
    fn the_life_cycle_decides_the_dates_and_what_is_unchanged() {
        let document = document(true);
        let life = document.nature().life;
        let changed = life.changed(life.version(NOW));
        let field = |reply: &Reply, name: &str| reply.head.headers.get_str(name).map(str::to_owned);
        let reply = request("GET", document, "");
        assert_eq!(field(&reply, "last-modified"), Some(http_date(changed)));
        assert_eq!(field(&reply, "expires"), Some(http_date(life.changed(life.version(NOW) + 1))));
        assert_eq!(field(&reply, "cache-control").as_deref(), Some("public"));
        assert_eq!(reply.body.map(|body| body.length), Some(document.nature().size));
        for (since, status) in [(changed - 1, 200), (changed, 304), (NOW, 304)] {
            let reply =
                request("GET", document, &format!("If-Modified-Since: {}\n", http_date(since)));
            assert_eq!(
                (reply.head.status, reply.body.is_some()),
                (status, status == 200),
                "since {since}"
            );
        }
    }

    #[test]
    fn uncachable_documents_say_so() {
        let control = |reply: Reply| reply.head.headers.get_str("cache-control").map(str::to_owned);
        let private = Some("private, no-cache".to_owned());
        assert_eq!(control(request("GET", document(false), "")), private);
        assert_eq!(control(request("POST", document(true), "Content-Length: 0\n")), private);
        assert!(request("HEAD", document(true), "").body.is_none());
    }
}

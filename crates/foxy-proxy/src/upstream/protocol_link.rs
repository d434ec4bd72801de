//! The connection or stream of one exchange, with either HTTP version.

use crate::upstream::error::UpstreamError;
use crate::upstream::fleet::FIELD;
use crate::upstream::http1::Http1Link;
use crate::upstream::http2::Http2Exchange;
use crate::upstream::sending::{OutgoingRequest, WaitEnd};
use crate::upstream::settings::UpstreamSettings;
use foxy_http::ResponseEvent;

pub(crate) enum Link {
    Http1(Box<Http1Link>),
    Http2(Box<Http2Exchange>),
}

impl Link {
    pub(crate) fn has_answered(&self) -> bool {
        match self {
            Self::Http1(link) => link.has_answered(),
            Self::Http2(stream) => stream.has_answered(),
        }
    }

    /// Sends more of the request, and waits for the next event of the response.
    pub(crate) async fn turn(
        &mut self,
        request: &mut OutgoingRequest,
        settings: &UpstreamSettings,
    ) -> Result<WaitEnd, UpstreamError> {
        match self {
            Self::Http1(link) => link.turn(request, settings).await,
            Self::Http2(stream) => stream.turn(request, settings).await,
        }
    }
}

/// Removes the field that only nodes of the fleet may send from an event of an origin or a parent
/// proxy.
pub(crate) fn remove_forged_field(end: &mut WaitEnd) {
    let WaitEnd::Event(event) = end else { return };
    let fields = match event {
        ResponseEvent::Interim(head) | ResponseEvent::Head(head, _) => &mut head.headers,
        ResponseEvent::Trailers(trailers) => trailers,
        ResponseEvent::Body(_) | ResponseEvent::End => return,
    };
    fields.remove(FIELD);
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_http::{BodyLength, Headers, ResponseHead};

    #[test]
    fn no_origin_sends_the_field_of_nodes() {
        let mut head = ResponseHead::new(304);
        head.headers.append("foxy-FLEET", "load=1, busy");
        head.headers.append("ETag", "\"1\"");
        head.headers.append(FIELD, "failed");
        let trailers: Headers = head.headers.clone();
        for event in [
            ResponseEvent::Interim(head.clone()),
            ResponseEvent::Head(head, BodyLength::None),
            ResponseEvent::Trailers(trailers),
        ] {
            let mut end = WaitEnd::Event(event);
            remove_forged_field(&mut end);
            let WaitEnd::Event(
                ResponseEvent::Interim(ResponseHead { headers, .. })
                | ResponseEvent::Head(ResponseHead { headers, .. }, _)
                | ResponseEvent::Trailers(headers),
            ) = end
            else {
                panic!("the kind of the event changed");
            };
            let names: Vec<_> = headers.iter().map(|(name, _)| name).collect();
            assert_eq!(names, ["ETag"]);
        }
    }
}

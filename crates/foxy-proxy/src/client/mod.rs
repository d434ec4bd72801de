//! A client's connection, whatever HTTP it speaks: where a request's body comes from, and the
//! sender that the answer goes to.

pub(crate) mod held_heads;
pub(crate) mod http1_sender;
pub(crate) mod http2;
pub(crate) mod io;
pub(crate) mod linger;
pub(crate) mod sender;
pub(crate) mod sides;

use crate::client::http2::body::Http2Body;
use crate::client::http2::stream::Http2Stream;
use crate::client::io::{ClientConnection, Http1Receiver, ReadEnd};
use crate::client::sender::Sender;
use crate::upstream::Scheme;
use foxy_http::RequestEvent;
use std::time::Duration;

/// A client for the time of one request.
pub(crate) enum Client<'a> {
    /// A whole connection, of which the next request comes after this one.
    Http1(&'a mut ClientConnection),
    /// One stream of many.
    Http2(Http2Stream<'a>),
}

/// Where a request's body comes from.
pub(crate) enum Receiver<'a> {
    Http1(Http1Receiver<'a>),
    Http2(&'a mut Http2Body),
}

impl Client<'_> {
    pub(crate) fn split(&mut self, write_limit: Duration) -> (Receiver<'_>, Sender<'_>) {
        match self {
            Self::Http1(connection) => {
                let (receiver, sender) = connection.split(write_limit);
                (Receiver::Http1(receiver), Sender::Http1(sender))
            }
            Self::Http2(stream) => {
                let (body, sender) = stream.split(write_limit);
                (Receiver::Http2(body), Sender::Http2(sender))
            }
        }
    }

    /// What the request came over.
    pub(crate) fn scheme(&self) -> Scheme {
        match self {
            Self::Http1(connection) => connection.stream.scheme(),
            Self::Http2(stream) => stream.scheme,
        }
    }
}

impl Receiver<'_> {
    /// The next part of a request; each read may take `limit`.
    pub(crate) async fn next(&mut self, limit: Duration) -> Result<RequestEvent, ReadEnd> {
        match self {
            Self::Http1(receiver) => receiver.next(limit).await,
            Self::Http2(body) => body.next(limit).await,
        }
    }
}

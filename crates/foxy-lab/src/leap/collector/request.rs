//! Reads the requests of a proxy and decides whether each request is allowed.

use super::LARGEST_REQUEST;
use super::reasons::Refusal;
use super::shared::Shared;
use crate::wire::http2::{self, NotWhole};
use crate::wire::key::{Destination, RequestKey};
use crate::wire::patience::RequestTimeout;
use crate::wire::tls::entrance::{self, Within};
use crate::wire::tls::inbound::Inbound;
use bytes::{Bytes, BytesMut};
use foxy_base::{Instant, clock};
use foxy_http::{BodyLength, Method, RequestDecoder, RequestEvent, RequestHead, expects_continue};
use h2::RecvStream;
use std::io;
use std::rc::Rc;
use tokio::io::AsyncWriteExt;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

const READ: usize = 16 << 10;

pub struct Request {
    pub head: RequestHead,
    pub body: Option<Bytes>,
    pub to: Destination,
    pub url: String,
    pub asked: RequestKey,
    /// The time at which the request was complete. The Collector (common parent proxy) counts the
    /// delays of this request from here.
    pub arrival: Instant,
}

pub struct Refused {
    pub reason: Refusal,
    pub method: Method,
    pub url: String,
}

impl Refused {
    fn unread(reason: Refusal) -> Self {
        Self { reason, method: Method::Get, url: String::new() }
    }

    fn of(head: &RequestHead, reason: Refusal) -> Self {
        let url = String::from_utf8_lossy(head.target.raw()).into_owned();
        Self { reason, method: head.method.clone(), url }
    }
}

pub enum Incoming {
    Request(Rc<Request>),
    Connect(Destination),
}

pub async fn read(
    shared: &Shared,
    client: &mut Inbound,
    decoder: &mut RequestDecoder,
    input: &mut BytesMut,
    within: &Within,
) -> io::Result<Option<Result<Incoming, Refused>>> {
    let (mut head, mut body, mut digest) = (None, BytesMut::new(), Xxh3::new());
    let limit = shared.options.time_limit;
    let mut patience = RequestTimeout::new(limit, limit);
    loop {
        match decoder.next(input) {
            Err(_) => return Ok(Some(Err(Refused::unread(Refusal::NotHttp)))),
            Ok(Some(RequestEvent::Head(found, length))) => {
                if expects_continue(&found) {
                    client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
                    client.flush().await?;
                }
                head = Some((found, length));
            }
            Ok(Some(RequestEvent::Body(data))) => {
                if body.len() + data.len() > LARGEST_REQUEST {
                    return Ok(Some(Err(Refused::unread(Refusal::BodyTooLarge))));
                }
                digest.update(&data);
                body.extend_from_slice(&data);
            }
            Ok(Some(RequestEvent::Trailers(_))) => {}
            Ok(Some(RequestEvent::End)) => {
                let Some((head, length)) = head.take() else { continue };
                if head.method == Method::Connect {
                    let to = entrance::tunnel(shared.options.certificates.as_ref(), &head, within);
                    let to = to.map_err(|reason| Refused::of(&head, reason.into()));
                    return Ok(Some(to.map(Incoming::Connect)));
                }
                let body = (length != BodyLength::None).then(|| body.freeze());
                let request = accept(shared, head, body, digest.digest128(), within);
                return Ok(Some(request.map(Rc::new).map(Incoming::Request)));
            }
            Ok(None) => {
                if !patience.read(client, input, head.is_some(), READ).await {
                    return Ok(None);
                }
            }
        }
    }
}

pub async fn of_stream(
    shared: &Shared,
    request: http::Request<RecvStream>,
    within: &Within,
) -> Result<Rc<Request>, Refused> {
    let (head, length) =
        http2::request_head(&request).map_err(|_| Refused::unread(Refusal::NotHttp))?;
    if head.method == Method::Connect {
        return Err(Refused::of(&head, Refusal::TunnelWithin));
    }
    let body = http2::whole(request.into_body(), LARGEST_REQUEST, shared.options.time_limit).await;
    let body = body.map_err(|reason| match reason {
        NotWhole::TooLarge => Refused::of(&head, Refusal::BodyTooLarge),
        NotWhole::Broken => Refused::of(&head, Refusal::NotHttp),
    })?;
    let digest = xxh3_128(&body);
    let body = (length != BodyLength::None).then_some(body);
    accept(shared, head, body, digest, within).map(Rc::new)
}

fn accept(
    shared: &Shared,
    head: RequestHead,
    body: Option<Bytes>,
    digest: u128,
    within: &Within,
) -> Result<Request, Refused> {
    let refused = |reason| Refused::of(&head, reason);
    match (head.hops_left(), &head.method) {
        (Some(0), Method::Trace) => return Err(refused(Refusal::TraceHere)),
        (Some(0), _) => return Err(refused(Refusal::OptionsHere)),
        _ => {}
    }
    let named =
        Destination::of(&head, within.scheme()).ok_or_else(|| refused(Refusal::OtherScheme))?;
    if !within.takes(&named) {
        return Err(refused(Refusal::Misdirected));
    }
    // A reverse proxy may put the Collector's own address into `Host`. Such a request goes to the
    // configured origin.
    let meant = shared.options.origin.filter(|_| shared.is_own(&named));
    let to = meant.map(|origin| Destination::at(named.scheme, origin)).unwrap_or(named);
    shared.options.reach.allows(&head.method).map_err(refused)?;
    if head.headers.tokens("via").any(|via| via.starts_with(shared.via.as_bytes()))
        || shared.is_own(&to)
    {
        return Err(refused(Refusal::Loop));
    }
    let (asked, url) = (RequestKey::new(&head, &to, digest), to.url(&head));
    Ok(Request { head, body, to, url, asked, arrival: clock::monotonic() })
}

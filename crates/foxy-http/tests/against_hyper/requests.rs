//! Compares foxy's `RequestDecoder` with a hyper server on an in-memory connection.

use crate::known::RequestKind;
use crate::{Verdict, dropped_from_trailers, generate, run};
use bytes::{Bytes, BytesMut};
use foxy_http::{
    CloseReason, DecodeError, Headers, Method, Persistence, RequestDecoder, RequestEvent,
    RequestHead, Version,
};
use http_body_util::{BodyExt, Empty};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, Uri, body::Incoming};
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use tokio::io::AsyncWriteExt;

/// A whole request as foxy or hyper read it.
#[derive(Debug, PartialEq)]
struct Seen {
    method: String,
    uri: Option<Uri>,
    version: hyper::Version,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    trailers: Vec<(String, Vec<u8>)>,
}

/// The reason why foxy stopped reading the bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// All bytes were read.
    Clean,
    /// The last request closes the connection or may switch to another protocol. foxy did not read
    /// the bytes after it.
    LastRequest,
    Refused(DecodeError),
}

#[test]
fn requests_are_read_as_hyper_reads_them_or_refused_for_a_known_reason() {
    run(10_000, &RequestKind::ALL, generate::requests, judge);
}

fn judge(runtime: &tokio::runtime::Runtime, input: &[u8]) -> Verdict<RequestKind> {
    let (ours, end) = our_reading(input);
    let theirs = runtime.block_on(hyper_reading(input));
    for (index, request) in ours.iter().enumerate() {
        let Some(other) = theirs.get(index) else {
            return if request.uri.is_none() {
                Ok(Some(RequestKind::RawTarget))
            } else {
                Err(format!("only we accept request {index}: {request:?}"))
            };
        };
        if request != other {
            return Err(format!(
                "request {index} is read in two ways\nours:  {request:?}\nhyper: {other:?}"
            ));
        }
    }
    match end {
        End::Refused(error) if theirs.len() > ours.len() => match RequestKind::stricter(error) {
            Some(kind) => Ok(Some(kind)),
            None => Err(format!(
                "only hyper accepts request {}: {error:?}, {:?}",
                ours.len(),
                theirs[ours.len()]
            )),
        },
        End::Clean if theirs.len() > ours.len() => {
            Err(format!("hyper sees more requests: {:?}", theirs[ours.len()]))
        }
        _ => Ok(None),
    }
}

fn our_reading(input: &[u8]) -> (Vec<Seen>, End) {
    let (mut decoder, mut buffer, mut seen) =
        (RequestDecoder::default(), BytesMut::from(input), Vec::new());
    let mut current = None;
    loop {
        match decoder.next(&mut buffer) {
            Ok(Some(RequestEvent::Head(head, _))) => {
                current = Some((head, Vec::new(), Headers::new()))
            }
            Ok(Some(RequestEvent::Body(bytes))) => parts(&mut current).1.extend_from_slice(&bytes),
            Ok(Some(RequestEvent::Trailers(trailers))) => parts(&mut current).2 = trailers,
            Ok(Some(RequestEvent::End)) => {
                let (head, body, trailers) = current.take().expect("a head comes before an end");
                let last = is_last(&head);
                seen.push(our_request(&head, body, &trailers));
                if last {
                    return (seen, End::LastRequest);
                }
            }
            Ok(None) => {
                return (seen, decoder.eof(&buffer).map_or_else(End::Refused, |()| End::Clean));
            }
            Err(error) => return (seen, End::Refused(error)),
        }
    }
}

fn parts<T>(current: &mut Option<T>) -> &mut T {
    current.as_mut().expect("a head comes before a body")
}

/// Whether hyper may stop reading after this request.
fn is_last(head: &RequestHead) -> bool {
    let persistence = Persistence::of(head.version, &head.headers);
    assert_ne!(
        persistence,
        Persistence::Close(CloseReason::Tunnel),
        "a request alone opens no tunnel"
    );
    persistence != Persistence::KeepAlive
        || head.method == Method::Connect
        || head.headers.contains("upgrade")
}

fn our_request(head: &RequestHead, body: Vec<u8>, trailers: &Headers) -> Seen {
    let headers = head.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host"));
    Seen {
        method: head.method.to_string(),
        uri: Uri::try_from(head.target.raw().as_ref()).ok(),
        version: match head.version {
            Version::Http10 => hyper::Version::HTTP_10,
            Version::Http11 => hyper::Version::HTTP_11,
            Version::Http2 => hyper::Version::HTTP_2,
        },
        headers: sorted(headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_vec()))),
        body,
        trailers: sorted(
            trailers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.to_vec())),
        ),
    }
}

/// Sorts the lines by name, because hyper groups lines by name. Lines of the same name keep their
/// order.
fn sorted(lines: impl Iterator<Item = (String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by(|one, two| one.0.cmp(&two.0));
    lines
}

fn from_map(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    sorted(headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())))
}

/// Returns the requests whose bodies hyper read to the end.
async fn hyper_reading(input: &[u8]) -> Vec<Seen> {
    let (mut client, server) = tokio::io::duplex(1 << 20);
    client.write_all(input).await.expect("the pipe holds a megabyte");
    client.shutdown().await.expect("the pipe is open");
    let seen = RefCell::new(Vec::new());
    let service = service_fn(|request: Request<Incoming>| {
        let seen = &seen;
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?;
            let trailers = body.trailers().map(from_map).unwrap_or_default();
            let mut headers = from_map(&head.headers);
            headers.retain(|(name, _)| name != "host");
            seen.borrow_mut().push(Seen {
                method: head.method.to_string(),
                uri: Some(head.uri),
                version: head.version,
                headers,
                body: body.to_bytes().to_vec(),
                trailers: trailers
                    .into_iter()
                    .filter(|(name, _)| !dropped_from_trailers(name))
                    .collect(),
            });
            Ok::<_, hyper::Error>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .half_close(true)
        .max_headers(256)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(server), service)
        .await;
    drop((served, client));
    seen.into_inner()
}

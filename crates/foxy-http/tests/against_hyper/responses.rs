//! Compares foxy's `ResponseDecoder` with a hyper client on an in-memory connection.

use crate::known::ResponseKind;
use crate::{Verdict, dropped_from_trailers, generate, run};
use bytes::{Bytes, BytesMut};
use foxy_http::{DecodeError, Method, ResponseDecoder, ResponseEvent, Version};
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A whole response as foxy or hyper read it. Framing headers are left out, because the body
/// already shows their effect.
#[derive(Debug, PartialEq)]
struct Seen {
    status: u16,
    version: hyper::Version,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    trailers: Vec<(String, Vec<u8>)>,
}

#[test]
fn responses_are_read_as_hyper_reads_them_or_refused_for_a_known_reason() {
    run(10_000, &ResponseKind::ALL, generate::response, judge);
}

fn judge(runtime: &tokio::runtime::Runtime, input: &[u8]) -> Verdict<ResponseKind> {
    for method in [Method::Get, Method::Head] {
        let ours = our_reading(&method, input);
        let theirs = runtime.block_on(hyper_reading(&method, input));
        match (ours, theirs) {
            (Ok(ours), Some(theirs)) if ours != theirs => {
                return Err(format!(
                    "read in two ways for {method}\nours:  {ours:?}\nhyper: {theirs:?}"
                ));
            }
            (Ok(ours), None) => return Err(format!("only we accept it for {method}: {ours:?}")),
            (Err(error), Some(theirs)) => match ResponseKind::stricter(error, &method) {
                Some(kind) => return Ok(Some(kind)),
                None => {
                    return Err(format!(
                        "only hyper accepts it for {method}: {error:?}, {theirs:?}"
                    ));
                }
            },
            (Ok(_), Some(_)) | (Err(_), None) => {}
        }
    }
    Ok(None)
}

fn our_reading(method: &Method, input: &[u8]) -> Result<Seen, DecodeError> {
    let (mut decoder, mut buffer, mut seen) =
        (ResponseDecoder::default(), BytesMut::from(input), None::<Seen>);
    decoder.expect(method);
    loop {
        let event = match decoder.next(&mut buffer)? {
            Some(event) => event,
            None => decoder.eof()?.expect("a response was under way"),
        };
        match event {
            ResponseEvent::Interim(_) => {}
            ResponseEvent::Trailers(trailers) => {
                seen.as_mut().expect("a head comes first").trailers =
                    without_framing(trailers.iter());
            }
            ResponseEvent::Head(head, _) => {
                let version = match head.version {
                    Version::Http10 => hyper::Version::HTTP_10,
                    Version::Http11 => hyper::Version::HTTP_11,
                    Version::Http2 => hyper::Version::HTTP_2,
                };
                let headers = without_framing(head.headers.iter());
                seen = Some(Seen {
                    status: head.status,
                    version,
                    headers,
                    body: Vec::new(),
                    trailers: Vec::new(),
                });
            }
            ResponseEvent::Body(bytes) => {
                seen.as_mut().expect("a head comes first").body.extend_from_slice(&bytes)
            }
            ResponseEvent::End => return Ok(seen.expect("a head comes first")),
        }
    }
}

/// Sorts the lines by name, with names in lower case. Replaces every run of blanks in a value by
/// one SP, because foxy and hyper may replace a fold (a continuation line) by different blanks.
fn without_framing<'a>(lines: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<(String, Vec<u8>)> {
    let mut lines: Vec<(String, Vec<u8>)> = lines
        .map(|(name, value)| {
            let words: Vec<&[u8]> = value
                .split(|byte| matches!(byte, b' ' | b'\t'))
                .filter(|word| !word.is_empty())
                .collect();
            (name.to_ascii_lowercase(), words.join(&b' '))
        })
        .filter(|(name, _)| name != "content-length" && name != "transfer-encoding")
        .collect();
    lines.sort_by(|one, two| one.0.cmp(&two.0));
    lines
}

/// Returns the response if hyper read it completely.
async fn hyper_reading(method: &Method, input: &[u8]) -> Option<Seen> {
    let (client, mut server) = tokio::io::duplex(1 << 20);
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_headers(256)
        .allow_obsolete_multiline_headers_in_responses(true)
        .handshake(TokioIo::new(client))
        .await
        .expect("a handshake sends nothing");
    let request = Request::builder()
        .method(method.as_str())
        .uri("/")
        .body(Empty::<Bytes>::new())
        .expect("valid");
    let exchange = async {
        let (head, body) = sender.send_request(request).await.ok()?.into_parts();
        let body = body.collect().await.ok()?;
        let trailers = body
            .trailers()
            .map(|map| map.iter().filter(|(name, _)| !dropped_from_trailers(name.as_str())));
        let trailers =
            trailers.into_iter().flatten().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let trailers = without_framing(trailers);
        let body = body.to_bytes().to_vec();
        let headers = without_framing(
            head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())),
        );
        drop(sender);
        Some(Seen { status: head.status.as_u16(), version: head.version, headers, body, trailers })
    };
    let answer = async {
        let mut request = [0; 1024];
        let length = server.read(&mut request).await.expect("a request comes");
        assert!(request[..length].ends_with(b"\r\n\r\n"), "the request comes whole");
        server.write_all(input).await.expect("the pipe holds a megabyte");
        server.shutdown().await.expect("the pipe is open");
    };
    let (seen, (), _ended) = tokio::join!(exchange, answer, connection);
    seen
}

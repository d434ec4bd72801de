//! Runs the decoders on whole inputs, and prints their events as text that tests can compare.

use bytes::BytesMut;
use foxy_http::{
    BodyLength, DecodeError, Headers, Method, RequestDecoder, RequestEvent, ResponseDecoder,
    ResponseEvent,
};
use std::fmt::Write;

/// Returns the header lines as text, one per line.
pub fn lines(headers: &Headers) -> String {
    headers.iter().fold(String::new(), |mut text, (name, value)| {
        writeln!(text, "{name}: {}", value.escape_ascii()).expect("writing to a string");
        text
    })
}

/// Decodes the request bytes of a connection in pieces of `step` bytes. Returns all events, with
/// adjacent body pieces joined, and the result at the end.
pub fn request_events(input: &[u8], step: usize) -> (Vec<RequestEvent>, Result<(), DecodeError>) {
    let (mut decoder, mut buffer, mut events) =
        (RequestDecoder::default(), BytesMut::new(), Vec::new());
    for piece in input.chunks(step.max(1)) {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.next(&mut buffer) {
                Ok(Some(event)) => push_request_event(&mut events, event),
                Ok(None) => break,
                Err(error) => return (events, Err(error)),
            }
        }
    }
    let end = decoder.eof(&buffer);
    (events, end)
}

fn push_request_event(events: &mut Vec<RequestEvent>, event: RequestEvent) {
    match (events.last_mut(), event) {
        (Some(RequestEvent::Body(before)), RequestEvent::Body(bytes)) => {
            *before = [before.as_ref(), &bytes].concat().into();
        }
        (_, event) => events.push(event),
    }
}

/// Decodes the response bytes to one request in pieces of `step` bytes. Returns all events, with
/// adjacent body pieces joined, and the result at the end.
pub fn response_events(
    method: &Method,
    input: &[u8],
    step: usize,
) -> (Vec<ResponseEvent>, Result<(), DecodeError>) {
    let (mut decoder, mut buffer, mut events) =
        (ResponseDecoder::default(), BytesMut::new(), Vec::new());
    decoder.expect(method);
    for piece in input.chunks(step.max(1)) {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.next(&mut buffer) {
                Ok(Some(event)) => push_response_event(&mut events, event),
                Ok(None) => break,
                Err(error) => return (events, Err(error)),
            }
        }
    }
    let end = decoder.eof().map(|event| events.extend(event));
    (events, end)
}

fn push_response_event(events: &mut Vec<ResponseEvent>, event: ResponseEvent) {
    match (events.last_mut(), event) {
        (Some(ResponseEvent::Body(before)), ResponseEvent::Body(bytes)) => {
            *before = [before.as_ref(), &bytes].concat().into();
        }
        (_, event) => events.push(event),
    }
}

/// Returns the events of `input` as short text, for example `head GET / None | body "abc" | end`.
/// An error is the last part.
pub fn show_request(input: &[u8]) -> String {
    let (events, end) = request_events(input, input.len());
    let mut parts: Vec<String> = events
        .iter()
        .map(|event| match event {
            RequestEvent::Head(head, length) => {
                format!(
                    "{} {} {}",
                    head.method,
                    head.target.raw().escape_ascii(),
                    show_length(*length)
                )
            }
            RequestEvent::Body(bytes) => format!("body {}", bytes.escape_ascii()),
            RequestEvent::Trailers(trailers) => format!("trailers {}", lines(trailers).trim_end()),
            RequestEvent::End => "end".to_owned(),
        })
        .collect();
    parts.extend(end.err().map(|error| format!("{} {error:?}", error.status())));
    parts.join(" | ")
}

/// Returns the events of a response as short text, in the form of [`show_request`].
pub fn show_response(method: &Method, input: &[u8]) -> String {
    let (events, end) = response_events(method, input, input.len());
    let mut parts: Vec<String> = events
        .iter()
        .map(|event| match event {
            ResponseEvent::Interim(head) => format!("interim {}", head.status),
            ResponseEvent::Head(head, length) => {
                format!("{} {}", head.status, show_length(*length))
            }
            ResponseEvent::Body(bytes) => format!("body {}", bytes.escape_ascii()),
            ResponseEvent::Trailers(trailers) => format!("trailers {}", lines(trailers).trim_end()),
            ResponseEvent::End => "end".to_owned(),
        })
        .collect();
    parts.extend(end.err().map(|error| format!("{error:?}")));
    parts.join(" | ")
}

fn show_length(length: BodyLength) -> String {
    match length {
        BodyLength::None => "none".to_owned(),
        BodyLength::Length(bytes) => format!("length={bytes}"),
        BodyLength::Chunked => "chunked".to_owned(),
        BodyLength::UntilClose => "until-close".to_owned(),
        BodyLength::Tunnel => "tunnel".to_owned(),
    }
}

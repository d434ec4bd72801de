//! Sends one answer to its client as it comes on its path, and what is said in place of one.

use super::{FrontRefusal, Hall, admission};
use crate::leap::PathFailure;
use crate::leap::exchange::relay::Piece;
use crate::wire::REQUEST_ID;
use crate::wire::out::{self, Out};
use bytes::{Bytes, BytesMut};
use foxy_http::{BodyLength, Headers, ResponseHead, Version, encode, framing, strip_hop_by_hop};
use std::io;
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::time::timeout;

/// Bytes that are sent at once.
const SENT: usize = 64 << 10;

/// How a client is answered.
#[derive(Debug)]
pub struct AnswerTarget {
    /// The version that it speaks.
    pub version: Version,
    /// Whether it keeps its connection.
    pub persistent: bool,
    /// The number that its own request carried.
    pub number: Option<Bytes>,
    /// The number that the copy carried whose answer it gets.
    pub asked_as: Option<u64>,
}

/// What comes after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAnswer {
    /// Another request.
    Request,
    /// The end of the connection.
    Close,
    /// Its reset: the answer broke off, and has no other end than the connection's.
    Reset,
}

/// Sends what comes, all of it, and says what comes after.
pub async fn answer(
    hall: &Hall,
    out: Out<'_>,
    client: &AnswerTarget,
    mut pieces: Receiver<Piece>,
) -> AfterAnswer {
    let mut out = SendingAnswer { out, hall };
    let (head, length) = match pieces.recv().await {
        Some(Piece::Head(head, length)) => (head, length),
        Some(Piece::Failed(failure)) => return fail(out, failure).await,
        Some(Piece::Body(_) | Piece::End) | None => return AfterAnswer::Close,
    };
    let (text, old) = (client.version != Version::Http2, client.version == Version::Http10);
    let unframed =
        text && (length == BodyLength::UntilClose || (length == BodyLength::Chunked && old));
    let chunked = text && length == BodyLength::Chunked && !old;
    let persistent =
        client.persistent && !unframed && length != BodyLength::Tunnel && !hall.over.get();
    let mut output = BytesMut::new();
    if out.head(&dressed(hall, client, head, (chunked, persistent)), &mut output).is_err() {
        return AfterAnswer::Close;
    }
    loop {
        let piece = match pieces.try_recv() {
            Ok(piece) => Some(piece),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                if out.send(&mut output).await.is_err() {
                    return AfterAnswer::Close;
                }
                pieces.recv().await
            }
        };
        match piece {
            Some(Piece::Body(data)) if chunked => encode::chunk(&data, &mut output),
            Some(Piece::Body(data)) => output.extend_from_slice(&data),
            Some(Piece::End) => break,
            Some(Piece::Head(..) | Piece::Failed(_)) | None => {
                hall.count(|counts| counts.broken += 1);
                // Bytes that cannot be sent any more are lost either way.
                let _ = out.send(&mut output).await;
                return if unframed { AfterAnswer::Reset } else { AfterAnswer::Close };
            }
        }
        if output.len() >= SENT && out.send(&mut output).await.is_err() {
            return AfterAnswer::Close;
        }
    }
    if chunked {
        encode::last_chunk(&Headers::new(), &mut output);
    }
    match out.finish(&mut output).await {
        Ok(()) if persistent => AfterAnswer::Request,
        _ => AfterAnswer::Close,
    }
}

struct SendingAnswer<'a> {
    out: Out<'a>,
    hall: &'a Hall,
}

impl SendingAnswer<'_> {
    fn head(&mut self, head: &ResponseHead, output: &mut BytesMut) -> io::Result<()> {
        let begun = self.out.head(head, output);
        begun.map(drop).inspect_err(|_| self.hall.count(|counts| counts.gone += 1))
    }

    /// Sends what there is, which is all.
    async fn finish(&mut self, output: &mut BytesMut) -> io::Result<()> {
        self.send(output).await?;
        self.out.end()
    }

    async fn whole(&mut self, head: &ResponseHead, text: &str) -> io::Result<()> {
        let mut output = BytesMut::new();
        self.head(head, &mut output)?;
        output.extend_from_slice(text.as_bytes());
        self.finish(&mut output).await
    }

    /// Sends what there is; a client that takes nothing for the time limit has gone.
    async fn send(&mut self, output: &mut BytesMut) -> io::Result<()> {
        while !output.is_empty() {
            if !matches!(
                timeout(self.hall.means.run.time_limit, self.out.send(output)).await,
                Ok(Ok(()))
            ) {
                self.hall.count(|counts| counts.gone += 1);
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        self.out.flush().await
    }
}

/// The head as this client gets it.
fn dressed(
    hall: &Hall,
    client: &AnswerTarget,
    mut head: ResponseHead,
    (chunked, persistent): (bool, bool),
) -> ResponseHead {
    strip_hop_by_hop(&mut head.headers);
    if chunked {
        framing::set_body_length(&mut head.headers, BodyLength::Chunked);
    }
    // An origin that repeats the number of the copy would have repeated that of the client's
    // request.
    let repeats =
        |asked_as: u64| head.headers.get(REQUEST_ID) == Some(asked_as.to_string().as_bytes());
    if client.asked_as.is_some_and(repeats) {
        match &client.number {
            Some(number) => head.headers.set(REQUEST_ID, number),
            None => _ = head.headers.remove(REQUEST_ID),
        }
    }
    head.headers.append("Via", admission::via(hall, head.version));
    match (persistent, client.version) {
        (false, _) => head.headers.append("Connection", "close"),
        (true, Version::Http10) => head.headers.append("Connection", "keep-alive"),
        (true, _) => {}
    }
    head
}

/// Says that the path has no answer.
async fn fail(mut sending: SendingAnswer<'_>, failure: PathFailure) -> AfterAnswer {
    let (status, known) = match failure {
        PathFailure::Timeout => (504, "http_response_timeout"),
        PathFailure::NoConnection | PathFailure::NoTunnel => (502, "connection_refused"),
        PathFailure::Certificate => (502, "tls_certificate_error"),
        PathFailure::Handshake => (502, "tls_protocol_error"),
        PathFailure::Unanswered => (502, "connection_terminated"),
        PathFailure::Closed | PathFailure::ConnectionReset | PathFailure::Reset => {
            (502, "http_response_incomplete")
        }
        PathFailure::NotHttp | PathFailure::Surplus | PathFailure::BodyToHead => {
            (502, "http_protocol_error")
        }
    };
    let name = &sending.hall.means.run.paths[sending.hall.path].name;
    let text = format!("foxy leap: no answer from {name}: {}\n", failure.name());
    let mut head = out::own(status, &text);
    head.headers.append("Proxy-Status", format!("foxy-leap; error={known}"));
    // A client that does not take even that is counted there.
    let _ = sending.whole(&head, &text).await;
    AfterAnswer::Close
}

/// Says on a stream why a request is refused.
pub async fn refuse(hall: &Hall, out: Out<'_>, reason: FrontRefusal) {
    let (head, text) = refused(reason);
    // A client that does not take even that is counted there.
    let _ = SendingAnswer { out, hall }.whole(&head, &text).await;
}

/// The text that says why a request is refused.
pub fn refusal(reason: FrontRefusal) -> BytesMut {
    out::as_text(&refused(reason))
}

fn refused(reason: FrontRefusal) -> (ResponseHead, String) {
    let text = format!("foxy leap: {}\n", reason.description());
    (out::own(reason.status(), &text), text)
}

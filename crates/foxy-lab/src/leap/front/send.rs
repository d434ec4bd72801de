//! Sends the answer of one path (the origin or a proxy) to the client as it arrives. If the path
//! fails first, sends an error.

use super::{FrontRefusal, FrontState, admission};
use crate::leap::PathFailure;
use crate::leap::exchange::relay::Piece;
use crate::wire::REQUEST_ID;
use crate::wire::out::{AnswerSink, OwnAnswer};
use bytes::{Bytes, BytesMut};
use foxy_http::{BodyLength, Headers, ResponseHead, Version, encode, framing, strip_hop_by_hop};
use std::io;
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::time::timeout;

const SENT: usize = 64 << 10;

#[derive(Debug)]
pub struct AnswerTarget {
    pub version: Version,
    pub persistent: bool,
    /// The request number that the client itself sent in a header field, if any.
    pub number: Option<Bytes>,
    /// The number that LEAP gave to the copy whose answer the client receives.
    pub asked_as: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAnswer {
    Request,
    Close,
    /// The answer was truncated, so reset the connection. After a normal close, an answer without a
    /// length would look complete.
    Reset,
}

pub async fn answer(
    state: &FrontState,
    out: AnswerSink<'_>,
    client: &AnswerTarget,
    mut pieces: Receiver<Piece>,
) -> AfterAnswer {
    let mut out = SendingAnswer { out, state };
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
        client.persistent && !unframed && length != BodyLength::Tunnel && !state.over.get();
    let mut output = BytesMut::new();
    if out.head(&dressed(state, client, head, chunked, persistent), &mut output).is_err() {
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
                state.count(|counts| counts.broken += 1);
                // The client's answer is already truncated, so a failed write does not matter.
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
    out: AnswerSink<'a>,
    state: &'a FrontState,
}

impl SendingAnswer<'_> {
    fn head(&mut self, head: &ResponseHead, output: &mut BytesMut) -> io::Result<()> {
        let begun = self.out.head(head, output);
        begun.map(drop).inspect_err(|_| self.state.count(|counts| counts.gone += 1))
    }

    async fn finish(&mut self, output: &mut BytesMut) -> io::Result<()> {
        self.send(output).await?;
        self.out.end()
    }

    async fn whole(&mut self, answer: &OwnAnswer) -> io::Result<()> {
        let mut output = BytesMut::new();
        self.head(&answer.head, &mut output)?;
        output.extend_from_slice(answer.text.as_bytes());
        self.finish(&mut output).await
    }

    /// Sends all bytes. If the client accepts no bytes within the time limit, the client counts as
    /// gone.
    async fn send(&mut self, output: &mut BytesMut) -> io::Result<()> {
        while !output.is_empty() {
            if !matches!(
                timeout(self.state.context.run.time_limit, self.out.send(output)).await,
                Ok(Ok(()))
            ) {
                self.state.count(|counts| counts.gone += 1);
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        self.out.flush().await
    }
}

fn dressed(
    state: &FrontState,
    client: &AnswerTarget,
    mut head: ResponseHead,
    chunked: bool,
    persistent: bool,
) -> ResponseHead {
    strip_hop_by_hop(&mut head.headers);
    if chunked {
        framing::set_body_length(&mut head.headers, BodyLength::Chunked);
    }
    // The answer may repeat the number of LEAP's copy. The client must see the number of its own
    // request instead.
    let repeats =
        |asked_as: u64| head.headers.get(REQUEST_ID) == Some(asked_as.to_string().as_bytes());
    if client.asked_as.is_some_and(repeats) {
        match &client.number {
            Some(number) => head.headers.set(REQUEST_ID, number),
            None => _ = head.headers.remove(REQUEST_ID),
        }
    }
    head.headers.append("Via", admission::via(state, head.version));
    match (persistent, client.version) {
        (false, _) => head.headers.append("Connection", "close"),
        (true, Version::Http10) => head.headers.append("Connection", "keep-alive"),
        (true, _) => {}
    }
    head
}

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
    let name = &sending.state.context.run.paths[sending.state.path].name;
    let text = format!("foxy leap: no answer from {name}: {}\n", failure.name());
    let mut answer = OwnAnswer::new(status, text);
    answer.head.headers.append("Proxy-Status", format!("foxy-leap; error={known}"));
    // If the client does not read this answer, `whole` counts the client as gone. So the result
    // does not matter here.
    let _ = sending.whole(&answer).await;
    AfterAnswer::Close
}

pub async fn refuse(state: &FrontState, out: AnswerSink<'_>, reason: FrontRefusal) {
    // If the client does not read this answer, `whole` counts the client as gone. So the result
    // does not matter here.
    let _ = SendingAnswer { out, state }.whole(&refusal(reason)).await;
}

pub fn refusal(reason: FrontRefusal) -> OwnAnswer {
    OwnAnswer::new(reason.status(), format!("foxy leap: {}\n", reason.description()))
}

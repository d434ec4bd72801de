//! Sends an answer of the Collector (common parent proxy) to one proxy. The initiator, whose
//! request started the fetch, receives bytes as they arrive. A follower (any later request for the
//! answer) receives each byte as late as if it had started the fetch. It never receives a byte
//! before the initiator.

use super::answer::{End, Initiator, Mark, SharedAnswer, Start};
use super::line::Source;
use super::request::Request;
use super::shared::Shared;
use super::table::condition;
use crate::wire::REQUEST_ID;
use crate::wire::out::AnswerSink;
use bytes::BytesMut;
use foxy_base::{Instant, clock};
use foxy_http::{BodyLength, Headers, Persistence, ResponseHead, Version, encode, framing};
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::timeout;

/// If the initiator (the request that started the fetch) reads nothing for this long, other
/// requests for the answer no longer wait for it.
const STALL: Duration = Duration::from_secs(1);
/// The Collector (common parent proxy) writes bytes together if they are due within this time of
/// each other.
const SOON: Duration = Duration::from_micros(250);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Initiator,
    Joined,
    Later,
}

#[derive(Debug)]
pub struct SentReply {
    pub start: Rc<Start>,
    pub source: Source,
    pub status: u16,
    pub bytes: u64,
    pub broken: bool,
    /// Whether to reset the connection instead of closing it. After a normal close, a truncated
    /// answer without a length would look complete.
    pub reset: bool,
    pub persistent: bool,
}

/// Sends the whole answer. `ready` is the time at which the proxy has finished its wait for the
/// name look-up.
pub async fn send(
    shared: &Shared,
    client: AnswerSink<'_>,
    request: &Request,
    answer: &Rc<SharedAnswer>,
    role: Role,
    ready: Instant,
) -> SentReply {
    let start = answer.until(|progress| progress.start.clone()).await;
    let unchanged = role != Role::Initiator
        && condition::is_unchanged(&request.head.method, &request.head.headers, &start.head);
    let base = match role {
        Role::Initiator => start.confirms.then_some(start.at),
        Role::Joined | Role::Later => Some(ready + start.first_byte),
    };
    let mut sending = Sending {
        shared,
        client,
        answer,
        role,
        base,
        output: BytesMut::new(),
        chunked: false,
        bytes: 0,
        stalled: false,
    };
    let in_memory = answer.see(|progress| progress.body.is_in_memory());
    let (head, persistent) = sending.head(request, &start, unchanged);
    let status = head.status;
    let sent = match sending.client.head(&head, &mut sending.output) {
        Ok(beside) => {
            sending.bytes = beside as u64;
            sending.all(unchanged).await
        }
        Err(gone) => Err(gone),
    };
    let sent = sent.and_then(|()| sending.client.end());
    let bytes = sending.bytes;
    if sent.is_ok() {
        sending.finished(&start, ready, unchanged);
    }
    let source = match role {
        Role::Initiator if start.failure.is_some() && start.origin.is_none() => Source::Failure,
        Role::Initiator if start.confirms => Source::Confirmed,
        Role::Initiator => Source::Origin,
        _ if unchanged => Source::Unchanged,
        Role::Joined => Source::Joined,
        Role::Later if start.failure.is_some() => Source::Failure,
        Role::Later if in_memory => Source::Memory,
        Role::Later => Source::File,
    };
    drop(sending);
    let reset = sent.is_err() && start.length == BodyLength::UntilClose;
    SentReply {
        start,
        source,
        status,
        bytes,
        broken: sent.is_err(),
        reset,
        persistent: persistent && sent.is_ok(),
    }
}

struct Sending<'a> {
    shared: &'a Shared,
    client: AnswerSink<'a>,
    answer: &'a SharedAnswer,
    role: Role,
    /// The time at which the first byte is due. With `None`, this request started the fetch, and
    /// the Collector (common parent proxy) sends bytes as they arrive.
    base: Option<Instant>,
    output: BytesMut,
    chunked: bool,
    bytes: u64,
    stalled: bool,
}

impl Sending<'_> {
    fn head(&mut self, request: &Request, start: &Start, unchanged: bool) -> (ResponseHead, bool) {
        let mut head =
            if unchanged { condition::not_modified(&start.head) } else { start.head.clone() };
        let length = if unchanged { BodyLength::None } else { start.length };
        let (text, old) =
            (request.head.version != Version::Http2, request.head.version == Version::Http10);
        self.chunked = text && length == BodyLength::Chunked && !old;
        let ends = matches!(length, BodyLength::UntilClose | BodyLength::Tunnel)
            || (length == BodyLength::Chunked && old);
        if self.chunked {
            framing::set_body_length(&mut head.headers, BodyLength::Chunked);
        }
        let waited = self.base.map_or(Duration::ZERO, |base| base.since(start.at));
        if self.role == Role::Later && waited >= Duration::from_secs(1) && start.failure.is_none() {
            let age: u64 =
                head.headers.get_str("age").and_then(|age| age.parse().ok()).unwrap_or(0);
            head.headers.set("Age", (age + waited.as_secs()).to_string());
        }
        // foxy's own origin repeats the number of a request in its answer. The shared answer has
        // the number of the initiator (the request that started the fetch). This proxy must see the
        // number of its own request.
        if let (true, Some(number)) =
            (head.headers.contains(REQUEST_ID), request.head.headers.get(REQUEST_ID))
        {
            head.headers.set(REQUEST_ID, number);
        }
        head.headers.append("Via", &self.shared.via);
        let kept =
            Persistence::of(request.head.version, &request.head.headers) == Persistence::KeepAlive;
        let persistent = kept && !ends;
        say_persistence(&mut head.headers, persistent, old);
        (head, persistent)
    }

    async fn all(&mut self, unchanged: bool) -> io::Result<()> {
        if self.role != Role::Initiator {
            self.answer.until(|progress| progress.initiator.has_begun().then_some(())).await;
        }
        self.wait(Duration::ZERO).await;
        let mut position = 0;
        if unchanged {
            return self.flush(position).await;
        }
        let first = self.answer.see(|progress| self.next(progress, 0));
        if !matches!(first, Some(Ok(mark)) if self.is_soon(mark.at)) {
            self.flush(position).await?;
        }
        loop {
            match self.answer.until(|progress| self.next(progress, position)).await {
                Ok(mark) => {
                    self.wait(mark.at).await;
                    self.body(&mut position, mark.end).await?;
                }
                Err(end) => return self.end(end, position).await,
            }
        }
    }

    fn next(
        &self,
        progress: &super::answer::AnswerProgress,
        position: u64,
    ) -> Option<Result<Mark, End>> {
        let next = progress.after(position)?;
        let may = self.role == Role::Initiator
            || match next {
                Ok(mark) => progress.initiator.has(mark.end),
                Err(_) => progress.initiator == Initiator::Left,
            };
        may.then_some(next)
    }

    fn is_soon(&self, at: Duration) -> bool {
        self.base.is_none_or(|base| (base + at).since(clock::monotonic()) <= SOON)
    }

    async fn wait(&self, at: Duration) {
        if let Some(base) = self.base {
            self.shared.alarm.until(base + at).await;
        }
    }

    async fn body(&mut self, position: &mut u64, end: u64) -> io::Result<()> {
        let body = self.answer.see(|progress| Rc::clone(&progress.body));
        while *position < end {
            let piece = body.read(*position, end).await;
            let piece = piece.map_err(|failure| {
                self.shared.fail(failure);
                io::Error::other(failure.description())
            })?;
            *position += piece.len() as u64;
            if self.chunked {
                encode::chunk(&piece, &mut self.output);
            } else {
                self.output.extend_from_slice(&piece);
            }
            self.flush(*position).await?;
        }
        Ok(())
    }

    async fn end(&mut self, end: End, position: u64) -> io::Result<()> {
        self.wait(end.at).await;
        if let Some(failure) = end.failure {
            return Err(io::Error::other(failure.description()));
        }
        if self.chunked {
            encode::last_chunk(&Headers::new(), &mut self.output);
        }
        self.flush(position).await
    }

    async fn flush(&mut self, position: u64) -> io::Result<()> {
        let mut output = self.output.split();
        self.bytes += output.len() as u64;
        {
            let write = async {
                while !output.is_empty() {
                    self.client.send(&mut output).await?;
                }
                self.client.flush().await
            };
            tokio::pin!(write);
            match timeout(STALL, &mut write).await {
                Ok(written) => written?,
                Err(_) => {
                    if self.role == Role::Initiator && !self.stalled {
                        self.stalled = true;
                        self.shared.count(|report| report.stalled += 1);
                        self.answer.change(|progress| progress.initiator = Initiator::Left);
                    }
                    let limit = self.shared.options.time_limit;
                    timeout(limit, write)
                        .await
                        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
                }
            }
        }
        if self.role == Role::Initiator && !self.stalled {
            self.answer.change(|progress| progress.initiator = Initiator::At(position));
        }
        Ok(())
    }

    fn finished(&self, start: &Start, ready: Instant, unchanged: bool) {
        let took = clock::monotonic().since(ready);
        match self.role {
            Role::Initiator if self.stalled => {}
            Role::Initiator => self.answer.change(|progress| progress.whole = Some(took)),
            Role::Joined | Role::Later => {
                let whole = self.answer.see(|progress| progress.whole);
                if let Some(first) = if unchanged { Some(start.first_byte) } else { whole } {
                    self.shared.count(|report| report.compare(took, first));
                }
            }
        }
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if self.role == Role::Initiator {
            self.answer.change(|progress| progress.initiator = Initiator::Left);
        }
    }
}

/// Adds a `Connection` field if the HTTP version alone does not tell the client whether the
/// connection persists. `old` means HTTP/1.0.
pub fn say_persistence(headers: &mut Headers, persistent: bool, old: bool) {
    match (persistent, old) {
        (false, _) => headers.append("Connection", "close"),
        (true, true) => headers.append("Connection", "keep-alive"),
        (true, false) => {}
    }
}

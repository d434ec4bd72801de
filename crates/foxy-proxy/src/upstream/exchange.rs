//! One request to an origin and its response, over a kept or a new connection. Sending and reading go on at the same
//! time, so an early answer is seen. It caches nothing, and never takes an incomplete response for a whole one.

use crate::upstream::body::{Outgoing, RequestBody};
use crate::upstream::client::{Shared, UpstreamRequest};
use crate::upstream::dial::Origin;
use crate::upstream::error::UpstreamError;
use crate::upstream::pool::Connection;
use crate::upstream::transport::Transport;
use bytes::{Bytes, BytesMut};
use foxy_http::{BodyLength, Headers, Method, ResponseEvent, ResponseHead, encode, framing};
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::Instant;

/// Bytes a read has room for.
const READ: usize = 32 << 10;

/// What comes before the body of a response.
#[derive(Debug)]
pub enum HeadEvent {
    /// The client, which sent `Expect: 100-continue`, is to be told to go on: the origin said so or took too long
    /// to. It comes at most once.
    Continue,
    /// Another 1xx, to be forwarded.
    Interim(ResponseHead),
    /// The final head, and how the body was delimited. With [`BodyLength::Tunnel`] go on with
    /// [`UpstreamExchange::into_tunnel`], else with [`UpstreamExchange::next`].
    Final(ResponseHead, BodyLength),
}

/// A part of a response body, in the order Data*, Trailers?, End.
#[derive(Debug)]
pub enum BodyEvent {
    /// Bytes of the body; never none.
    Data(Bytes),
    /// Trailers after a chunked body; never none.
    Trailers(Headers),
    /// The response is complete, exactly as the origin announced it.
    End,
}

/// An exchange with an origin. Dropping it closes the connection unless it came to its end.
pub struct UpstreamExchange {
    shared: Rc<Shared>,
    origin: Origin,
    method: Method,
    upgrade: bool,
    head: Bytes,
    body: RequestBody,
    waits_for_continue: bool,
    out: Outgoing,
    link: Option<Link>,
    stage: Stage,
}

/// A connection in use.
struct Link {
    connection: Connection,
    /// Whether it served another request before.
    kept: bool,
    /// Whether any byte of a response arrived.
    answered: bool,
    /// Whether writing failed: an answer may still be there to read.
    deaf: bool,
    /// Whether nothing that was written waits within TLS.
    flushed: bool,
    /// When the origin last took a byte, or last sent one in a body.
    active: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    Body,
    Done,
}

/// What a connection did.
enum Moved {
    /// It gave so many bytes.
    Read(io::Result<usize>),
    /// It took some of what is to be sent.
    Wrote(io::Result<()>),
}

/// What ended a wait for the origin.
enum Turn {
    Event(ResponseEvent),
    ContinueTimeout,
    /// A kept connection turned out dead before it gave any answer.
    Stale,
}

impl UpstreamExchange {
    pub(crate) fn new(shared: Rc<Shared>, request: UpstreamRequest) -> Self {
        let UpstreamRequest { origin, method, target, mut headers, body } = request;
        framing::set_body_length(&mut headers, body.length());
        let mut head = BytesMut::new();
        encode::request_head(&method, &target, &headers, &mut head);
        Self {
            upgrade: headers.contains("upgrade"),
            waits_for_continue: !body.is_complete() && headers.has_token("expect", "100-continue"),
            shared,
            origin,
            method,
            head: head.freeze(),
            body,
            out: Outgoing::default(),
            link: None,
            stage: Stage::Head,
        }
    }

    /// The next of the heads. To be called until it gives [`HeadEvent::Final`]. It may be dropped while it waits, and
    /// called again.
    ///
    /// # Errors
    /// Why there is no response; the exchange is over.
    pub async fn head(&mut self) -> Result<HeadEvent, UpstreamError> {
        assert!(self.stage == Stage::Head, "the final head was given already");
        loop {
            self.connect().await?;
            match self.turn().await? {
                Turn::Stale => {
                    self.link = None;
                    self.shared.count(|counts| counts.retried += 1);
                }
                Turn::ContinueTimeout => {
                    self.waits_for_continue = false;
                    return Ok(HeadEvent::Continue);
                }
                Turn::Event(ResponseEvent::Interim(head))
                    if head.status == 100 && self.waits_for_continue =>
                {
                    self.waits_for_continue = false;
                    return Ok(HeadEvent::Continue);
                }
                Turn::Event(ResponseEvent::Interim(head)) => return Ok(HeadEvent::Interim(head)),
                Turn::Event(ResponseEvent::Head(head, length)) => {
                    self.stage = Stage::Body;
                    return Ok(HeadEvent::Final(head, length));
                }
                Turn::Event(_) => unreachable!("the decoder gives heads first"),
            }
        }
    }

    /// The next part of the body; more of the request is sent meanwhile. It reads no faster than it is called. It may
    /// be dropped while it waits, and called again. After [`BodyEvent::End`] the connection is kept if it can be.
    ///
    /// # Errors
    /// Why the response is incomplete; the exchange is over, and what was received is not the whole response.
    pub async fn next(&mut self) -> Result<BodyEvent, UpstreamError> {
        assert!(self.stage != Stage::Head, "the final head comes first");
        if self.stage == Stage::Done {
            return Ok(BodyEvent::End);
        }
        if let Some(link) = &mut self.link {
            link.active = Instant::now();
        }
        match self.turn().await? {
            Turn::Event(ResponseEvent::Body(bytes)) => Ok(BodyEvent::Data(bytes)),
            Turn::Event(ResponseEvent::Trailers(trailers)) => Ok(BodyEvent::Trailers(trailers)),
            Turn::Event(ResponseEvent::End) => {
                self.finish();
                Ok(BodyEvent::End)
            }
            Turn::Event(ResponseEvent::Interim(_) | ResponseEvent::Head(..))
            | Turn::ContinueTimeout
            | Turn::Stale => unreachable!("the decoder gives heads first"),
        }
    }

    /// The connection after a head with [`BodyLength::Tunnel`], and the tunnel's bytes that came with that head.
    #[must_use]
    pub fn into_tunnel(mut self) -> Option<(Transport, Bytes)> {
        self.link.take().map(|link| (link.connection.stream, link.connection.buffer.freeze()))
    }

    /// Makes sure that there is a connection and that the request's head is on its way.
    ///
    /// Only a request that may be sent twice is given a kept connection: such a one can turn out dead, and a request
    /// that cannot be repeated would then be lost (RFC 9112 §9.3.1).
    async fn connect(&mut self) -> Result<(), UpstreamError> {
        if self.link.is_some() {
            return Ok(());
        }
        let repeatable = self.method.is_idempotent() && self.body.is_complete() && !self.upgrade;
        let kept = if repeatable { self.shared.take_idle(&self.origin) } else { None };
        let (mut connection, kept) = match kept {
            Some(connection) => (connection, true),
            None => {
                let stream = self.shared.dial(&self.origin).await?;
                (Connection::new(stream, self.shared.settings.limits), false)
            }
        };
        if self.upgrade {
            connection.decoder.expect_upgrade(&self.method);
        } else {
            connection.decoder.expect(&self.method);
        }
        self.out.clear();
        self.out.push(self.head.clone());
        self.link = Some(Link {
            connection,
            kept,
            answered: false,
            deaf: false,
            flushed: true,
            active: Instant::now(),
        });
        Ok(())
    }

    /// Sends and reads until something is to be told.
    async fn turn(&mut self) -> Result<Turn, UpstreamError> {
        loop {
            let sending = !self.out.is_empty() || self.link.as_ref().is_some_and(|link| !link.flushed);
            let wants_piece = !sending && !self.waits_for_continue && !self.body.is_complete();
            let deadline = self.deadline(sending, wants_piece);
            let Some(link) = &mut self.link else { return Err(UpstreamError::NoResponse) };
            let Connection { decoder, buffer, .. } = &mut link.connection;
            if let Some(event) = decoder.next(buffer)? {
                return Ok(Turn::Event(event));
            }
            tokio::select! {
                biased;
                moved = poll_fn(|context| link.poll(context, &mut self.out, sending)) => match moved {
                    Moved::Read(read) => {
                        if let Some(turn) = link.read(read, self.stage)? {
                            return Ok(turn);
                        }
                    }
                    Moved::Wrote(Ok(())) => link.active = Instant::now(),
                    Moved::Wrote(Err(_)) => {
                        (link.deaf, link.flushed) = (true, true);
                        self.out.clear();
                        self.body.refuse();
                    }
                },
                piece = self.body.next(), if wants_piece => self.body.frame(piece, &mut self.out)?,
                () = at(deadline) => return self.timed_out(),
            }
        }
    }

    /// Until when the origin must have done something; `None` while it is the client's turn.
    fn deadline(&self, sending: bool, wants_piece: bool) -> Option<Instant> {
        let settings = &self.shared.settings;
        let active = self.link.as_ref()?.active;
        let wait: Duration = match self.stage {
            Stage::Head if self.waits_for_continue && !sending => settings.continue_timeout,
            Stage::Head if wants_piece => return None,
            Stage::Head => settings.head_timeout,
            Stage::Body | Stage::Done => settings.body_timeout,
        };
        Some(active + wait)
    }

    fn timed_out(&mut self) -> Result<Turn, UpstreamError> {
        match self.stage {
            Stage::Head if self.waits_for_continue && self.out.is_empty() => Ok(Turn::ContinueTimeout),
            Stage::Head => Err(UpstreamError::HeadTimeout),
            Stage::Body | Stage::Done => Err(UpstreamError::BodyTimeout),
        }
    }

    /// Keeps the connection if request and response both came to their end on it.
    fn finish(&mut self) {
        self.stage = Stage::Done;
        let sent = self.out.is_empty() && self.body.is_complete();
        self.body.refuse();
        if let Some(link) = self.link.take() {
            let Link { connection, deaf, flushed, .. } = link;
            if sent && flushed && !deaf && connection.decoder.reusable(&connection.buffer).is_ok() {
                self.shared.keep(&self.origin, connection);
            }
        }
    }
}

impl Link {
    /// Reads before it writes, so that an early answer is seen.
    fn poll(&mut self, context: &mut Context<'_>, out: &mut Outgoing, sending: bool) -> Poll<Moved> {
        let Connection { stream, buffer, .. } = &mut self.connection;
        if buffer.capacity() - buffer.len() < READ / 8 {
            buffer.reserve(READ);
        }
        if let Poll::Ready(read) = pin!(stream.read_buf(buffer)).poll(context) {
            return Poll::Ready(Moved::Read(read));
        }
        if sending { self.poll_write(context, out).map(Moved::Wrote) } else { Poll::Pending }
    }

    /// Writes what fits, and sends what TLS holds once all is written.
    fn poll_write(&mut self, context: &mut Context<'_>, out: &mut Outgoing) -> Poll<io::Result<()>> {
        let mut stream = Pin::new(&mut self.connection.stream);
        if !out.is_empty() {
            let (slices, count) = out.slices();
            let written = ready!(stream.as_mut().poll_write_vectored(context, &slices[..count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            out.written(written);
            self.flushed = false;
            if !out.is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
        ready!(stream.poll_flush(context))?;
        self.flushed = true;
        Poll::Ready(Ok(()))
    }

    /// Judges what a read gave. `None` if the decoder should look again.
    fn read(&mut self, read: io::Result<usize>, stage: Stage) -> Result<Option<Turn>, UpstreamError> {
        match read {
            Ok(0) if self.answered => Ok(self.connection.decoder.eof()?.map(Turn::Event)),
            Ok(0) => self.unanswered(),
            Ok(_) => {
                self.answered = true;
                if stage == Stage::Body {
                    self.active = Instant::now();
                }
                Ok(None)
            }
            Err(_) if self.answered => Err(UpstreamError::Reset),
            Err(_) => self.unanswered(),
        }
    }

    fn unanswered(&self) -> Result<Option<Turn>, UpstreamError> {
        if self.kept { Ok(Some(Turn::Stale)) } else { Err(UpstreamError::NoResponse) }
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

//! Runs one exchange over HTTP/1.1, on a connection that no other exchange uses meanwhile. The
//! request is sent while the response is read. This module opens no connection and keeps none.

use crate::core::transport::Transport;
use crate::upstream::error::UpstreamError;
use crate::upstream::pool::Connection;
use crate::upstream::sending::{OutgoingBody, OutgoingRequest, RetryReason, Stage, WaitEnd, at};
use crate::upstream::settings::UpstreamSettings;
use bytes::{Bytes, BytesMut};
use foxy_http::{encode, framing};
use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncReadExt, AsyncWrite};

/// Bytes of buffer space for one read from the origin.
const READ_BYTES: usize = 32 << 10;

/// Length of a request line and the head's empty line, without the method and the target.
const LINE_OVERHEAD_BYTES: usize = "  HTTP/1.1\r\n\r\n".len();

/// The HTTP/1.1 connection of one exchange with an origin.
pub(crate) struct Http1Link {
    connection: Connection,
    out: OutgoingBody,
    /// True if the connection has served another request before.
    kept: bool,
    /// True if at least one byte of a response has arrived.
    answered: bool,
    /// True if writing failed. The origin may still have sent an answer that can be read.
    write_failed: bool,
    /// True if no written bytes wait in the TLS library.
    flushed: bool,
}

enum Http1Progress {
    Read(io::Result<usize>),
    Wrote(io::Result<()>),
}

impl Http1Link {
    /// Begins to send the head of a request. `kept` means that the connection has served another
    /// request before.
    pub(crate) fn open(mut connection: Connection, kept: bool, request: &OutgoingRequest) -> Self {
        if request.upgrade {
            connection.decoder.expect_upgrade(&request.method);
        } else {
            connection.decoder.expect(&request.method);
        }
        let mut headers = Cow::Borrowed(&request.headers);
        if !framing::says_body_length(&headers, request.body.length()) {
            framing::set_body_length(headers.to_mut(), request.body.length());
        }
        let line = request.method.as_str().len() + request.target.len() + LINE_OVERHEAD_BYTES;
        let mut head = BytesMut::with_capacity(line + headers.wire_length());
        encode::request_head(&request.method, &request.target, &headers, &mut head);
        let mut out = OutgoingBody::default();
        out.push(head.freeze());
        Self { connection, out, kept, answered: false, write_failed: false, flushed: true }
    }

    /// Sends the request and reads the response until there is an event to report.
    pub(crate) async fn turn(
        &mut self,
        request: &mut OutgoingRequest,
        settings: &UpstreamSettings,
    ) -> Result<WaitEnd, UpstreamError> {
        loop {
            let sending = !self.out.is_empty() || !self.flushed;
            let wants_piece = !sending && request.wants_piece();
            let deadline = request.deadline(sending, settings);
            let Connection { decoder, buffer, .. } = &mut self.connection;
            if let Some(event) = decoder.next(buffer)? {
                return Ok(WaitEnd::Event(event));
            }
            tokio::select! {
                biased;
                moved = poll_fn(|context| self.poll(context, sending)) => match moved {
                    Http1Progress::Read(read) => {
                        if let Some(turn) = self.read(read, request)? {
                            return Ok(turn);
                        }
                    }
                    Http1Progress::Wrote(Ok(())) => request.touch(),
                    Http1Progress::Wrote(Err(_)) => {
                        (self.write_failed, self.flushed) = (true, true);
                        self.out.clear();
                        request.body.refuse();
                    }
                },
                piece = request.body.next(), if wants_piece => {
                    request.taken = true;
                    request.body.frame(piece, &mut self.out)?;
                }
                () = at(deadline) => return request.timed_out(self.out.is_empty()),
            }
        }
    }

    /// Returns the connection for another request. Returns `None` unless both the request and the
    /// response are complete.
    pub(crate) fn finish(self, body_is_complete: bool) -> Option<Connection> {
        let sent = self.out.is_empty() && body_is_complete && self.flushed && !self.write_failed;
        let Connection { decoder, buffer, .. } = &self.connection;
        (sent && decoder.reusable(buffer).is_ok()).then_some(self.connection)
    }

    /// Returns true if at least one byte of a response has arrived.
    pub(crate) fn has_answered(&self) -> bool {
        self.answered
    }

    /// Returns the connection for a tunnel, and the bytes of the tunnel that were already read.
    pub(crate) fn into_tunnel(self) -> (Transport, Bytes) {
        (self.connection.stream, self.connection.buffer.freeze())
    }

    /// Reads first and then writes, so that the proxy notices an early answer.
    fn poll(&mut self, context: &mut Context<'_>, sending: bool) -> Poll<Http1Progress> {
        let Connection { stream, buffer, .. } = &mut self.connection;
        if buffer.capacity() - buffer.len() < READ_BYTES / 8 {
            buffer.reserve(READ_BYTES);
        }
        if let Poll::Ready(read) = pin!(stream.read_buf(buffer)).poll(context) {
            return Poll::Ready(Http1Progress::Read(read));
        }
        if sending { self.poll_write(context).map(Http1Progress::Wrote) } else { Poll::Pending }
    }

    /// Writes as many bytes as the socket accepts. Once all bytes are written, sends the bytes that
    /// the TLS library has buffered.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = Pin::new(&mut self.connection.stream);
        if !self.out.is_empty() {
            let (slices, count) = self.out.slices();
            let written = ready!(stream.as_mut().poll_write_vectored(context, &slices[..count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.out.written(written);
            self.flushed = false;
            if !self.out.is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
        ready!(stream.poll_flush(context))?;
        self.flushed = true;
        Poll::Ready(Ok(()))
    }

    /// Handles the result of a read. Returns `None` if bytes arrived, which the decoder should now
    /// parse.
    fn read(
        &mut self,
        read: io::Result<usize>,
        request: &mut OutgoingRequest,
    ) -> Result<Option<WaitEnd>, UpstreamError> {
        match read {
            Ok(0) if self.answered => Ok(self.connection.decoder.eof()?.map(WaitEnd::Event)),
            Ok(0) => self.unanswered(),
            Ok(_) => {
                self.answered = true;
                if request.stage == Stage::Body {
                    request.touch();
                }
                Ok(None)
            }
            Err(_) if self.answered => Err(UpstreamError::Reset),
            Err(_) => self.unanswered(),
        }
    }

    fn unanswered(&self) -> Result<Option<WaitEnd>, UpstreamError> {
        if self.kept {
            Ok(Some(WaitEnd::Retry(RetryReason::Lost)))
        } else {
            Err(UpstreamError::NoResponse)
        }
    }
}

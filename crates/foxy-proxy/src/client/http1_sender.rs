//! Sends answers as HTTP/1.1 text, in as few writes as the client's socket permits.

use crate::core::tags;
use crate::core::transport::WriteSide;
use crate::request::answered::{
    AnswerOptions, ClientTook, ConnectionFate, Framing, Opening, Progress, WriteEnd, within,
};
use crate::request::cache_status::{CacheStatus, NamedStatus};
use crate::request::reason::ErrorReason;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use foxy_http::encode::{self, ChunkHeader};
use foxy_http::{Headers, ResponseHead, Version};
use std::fmt::Write;
use std::io::{self, IoSlice};
use std::time::Duration;

const MAX_SLICES: usize = 8;

pub(crate) struct Http1Sender<'a> {
    half: WriteSide<'a>,
    limit: Duration,
    /// Bytes that the client must receive before the body, such as a head.
    pending: Bytes,
    framing: Framing,
    pub(crate) progress: &'a Progress,
    pub(crate) sent: u64,
}

impl<'a> Http1Sender<'a> {
    pub(crate) fn new(half: WriteSide<'a>, limit: Duration, progress: &'a Progress) -> Self {
        Self { half, limit, pending: Bytes::new(), framing: Framing::Empty, progress, sent: 0 }
    }

    pub(crate) fn begin(&mut self, options: AnswerOptions, opening: Opening<'_>) -> ConnectionFate {
        let mut out = if let Some(wire) = opening.wire {
            let mut out = BytesMut::with_capacity(wire.len() + 160);
            out.extend_from_slice(wire);
            out
        } else {
            let headers = tags::for_client(opening.headers);
            let mut out = BytesMut::with_capacity(headers.wire_length() + 256);
            encode::status_line(opening.status, opening.reason, &mut out);
            encode::header_lines(&headers, &mut out);
            out
        };
        if let Some(timing) = self.progress.server_timing(opening.outcome) {
            out.put_slice(format!("Server-Timing: {timing}\r\n").as_bytes());
        }
        if matches!(opening.outcome, CacheStatus::Error(ErrorReason::Upstream(_))) {
            self.progress.note_left(self.half.peer_has_left());
        }
        let status = self.progress.cache_status(opening.outcome);
        let after = end_head(&mut out, options, opening, status);
        self.pending = out.freeze();
        self.progress.open(opening.status, opening.outcome, self.pending.len() as u64);
        self.framing = opening.framing;
        after
    }

    pub(crate) async fn finish(&mut self, body: Bytes) -> Result<(), WriteEnd> {
        let pending = std::mem::take(&mut self.pending);
        self.write(&mut [pending, body]).await
    }

    pub(crate) async fn body(&mut self, data: Bytes) -> Result<(), WriteEnd> {
        let pending = std::mem::take(&mut self.pending);
        if self.framing == Framing::Chunked {
            let size = Bytes::copy_from_slice(ChunkHeader::new(data.len()).as_bytes());
            return self.write(&mut [pending, size, data, Bytes::from_static(encode::CRLF)]).await;
        }
        self.write(&mut [pending, data]).await
    }

    pub(crate) async fn end(&mut self, trailers: &Headers) -> Result<(), WriteEnd> {
        let pending = std::mem::take(&mut self.pending);
        let mut end = BytesMut::new();
        if self.framing == Framing::Chunked {
            encode::last_chunk(trailers, &mut end);
        }
        self.write(&mut [pending, end.freeze()]).await
    }

    pub(crate) async fn flush(&mut self) -> Result<(), WriteEnd> {
        let pending = std::mem::take(&mut self.pending);
        self.write(&mut [pending]).await
    }

    pub(crate) fn announce(&mut self, length: usize) {
        if self.framing == Framing::Chunked {
            let header = ChunkHeader::new(length);
            self.pending = Bytes::from([&self.pending, header.as_bytes()].concat());
        }
    }

    pub(crate) async fn part(
        &mut self,
        part: &mut Bytes,
        patience: impl Fn() -> Duration,
    ) -> Result<ClientTook, WriteEnd> {
        let mut pieces = [std::mem::take(&mut self.pending), std::mem::take(part)];
        let taken = loop {
            if self.write_now(&mut pieces)? == ClientTook::All {
                break ClientTook::All;
            }
            match within(patience(), self.half.writable()).await {
                Some(Ok(())) => {}
                Some(Err(_)) => return Err(WriteEnd::Gone),
                None => break ClientTook::Partly,
            }
        };
        [self.pending, *part] = pieces;
        Ok(taken)
    }

    pub(crate) async fn announced_is_sent(&mut self) -> Result<(), WriteEnd> {
        if self.framing == Framing::Chunked {
            return self.write(&mut [Bytes::from_static(encode::CRLF)]).await;
        }
        Ok(())
    }

    pub(crate) async fn head(&mut self, head: &ResponseHead) -> Result<(), WriteEnd> {
        let mut out = BytesMut::new();
        encode::response_head(head, &mut out);
        self.write(&mut [out.freeze()]).await
    }

    pub(crate) fn break_off(&self) {
        if self.framing == Framing::UntilClose {
            // If this call fails, the connection closes normally instead of with a TCP reset.
            let _ = self.half.set_zero_linger();
        }
    }

    pub(crate) async fn writable(&mut self) -> Result<(), WriteEnd> {
        match tokio::time::timeout(self.limit, self.half.writable()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(WriteEnd::Gone),
            Err(_) => Err(WriteEnd::Timeout),
        }
    }

    /// Writes all of `pieces`, in as few calls as the client's socket permits.
    async fn write(&mut self, pieces: &mut [Bytes]) -> Result<(), WriteEnd> {
        while self.write_now(pieces)? == ClientTook::Partly {
            self.writable().await?;
        }
        Ok(())
    }

    /// Writes as many bytes as the client's socket accepts without waiting.
    fn write_now(&mut self, pieces: &mut [Bytes]) -> Result<ClientTook, WriteEnd> {
        let mut first = 0;
        loop {
            while pieces.get(first).is_some_and(Bytes::is_empty) {
                first += 1;
            }
            if first == pieces.len() {
                return taken(self.half.try_flush());
            }
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let mut count = 0;
            for (slice, piece) in slices.iter_mut().zip(&pieces[first..]) {
                *slice = IoSlice::new(piece);
                count += 1;
            }
            match self.half.try_write_vectored(&slices[..count]) {
                Ok(written) => {
                    self.sent += written as u64;
                    self.progress.send(written as u64);
                    advance(&mut pieces[first..], written);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(ClientTook::Partly);
                }
                Err(_) => return Err(WriteEnd::Gone),
            }
        }
    }
}

/// Writes the last fields of a head: Age, Cache-Status, framing and Connection. The numbers are
/// written without `format!`, which is slower, because this code runs for every answer.
fn end_head(
    out: &mut BytesMut,
    options: AnswerOptions,
    opening: Opening<'_>,
    status: NamedStatus,
) -> ConnectionFate {
    if let Some(age) = opening.age {
        put_number(out, b"Age: ", age);
    }
    if opening.varies {
        out.put_slice(b"Vary: Accept-Encoding\r\n");
    }
    out.put_slice(b"Cache-Status: ");
    write!(out, "{status}").expect("a BytesMut takes all");
    out.put_slice(encode::CRLF);
    let after = match opening.framing {
        Framing::Length(length) => {
            put_number(out, b"Content-Length: ", length);
            options.keep
        }
        Framing::Chunked => {
            out.put_slice(b"Transfer-Encoding: chunked\r\n");
            options.keep
        }
        Framing::UntilClose => false,
        Framing::Empty => options.keep,
    };
    let line: &[u8] = match (after, options.version) {
        (false, _) => b"Connection: close\r\n\r\n",
        (true, Version::Http10) => b"Connection: keep-alive\r\n\r\n",
        (true, Version::Http11 | Version::Http2) => b"\r\n",
    };
    out.put_slice(line);
    if after { ConnectionFate::Keep } else { ConnectionFate::Close }
}

fn put_number(out: &mut BytesMut, name: &[u8], value: u64) {
    out.put_slice(name);
    out.put_slice(itoa::Buffer::new().format(value).as_bytes());
    out.put_slice(encode::CRLF);
}

fn taken(flushed: io::Result<()>) -> Result<ClientTook, WriteEnd> {
    match flushed {
        Ok(()) => Ok(ClientTook::All),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(ClientTook::Partly),
        Err(_) => Err(WriteEnd::Gone),
    }
}

fn advance(pieces: &mut [Bytes], mut written: usize) {
    for piece in pieces {
        let taken = written.min(piece.len());
        piece.advance(taken);
        written -= taken;
    }
}

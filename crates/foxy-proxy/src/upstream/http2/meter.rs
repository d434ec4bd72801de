//! Limits how many HTTP/2 frames without message content an origin may send, such as PING. A
//! *meter* sees all incoming bytes of a connection, and counts the frames by their headers (RFC
//! 9113 §4.1). The HTTP/2 library decodes the frames.

use crate::core::frames::{
    Allowance, FRAMES_A_REQUEST, FieldBlocks, FirstField, Frame, FrameEvent, FrameReader, flag,
    kind,
};
use crate::core::transport::Transport;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Largest number of response heads of one stream that may wait until the proxy reads them. Flow
/// control does not limit heads, only bodies.
const MAX_UNREAD_HEADS: u32 = 12;

/// The kind of message that an origin sent too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flood {
    /// Frames without message content: pings, settings, resets, priorities, and frames of unknown
    /// kinds.
    Frames,
    /// Response heads that arrive faster than the proxy reads them.
    Heads,
}

/// The response heads on one stream: the number that the proxy has not read, and the kind of the
/// first field in the last head.
#[derive(Debug)]
struct Heads {
    unread: u32,
    last: FirstField,
}

/// Whether the origin's first SETTINGS frame has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settings {
    Awaited,
    /// Only a part of the origin's SETTINGS frame has arrived so far.
    Coming,
    Known,
}

/// The state of a connection, as its incoming frames show it.
#[derive(Debug)]
pub(crate) struct Meter {
    reader: FrameReader,
    blocks: FieldBlocks,
    /// The stream whose field block (head or trailers) is arriving. The flag is true once the
    /// block's last frame has begun to arrive.
    block: Option<(u32, bool)>,
    allowance: Allowance,
    heads: HashMap<u32, Heads>,
    settings: Settings,
    leaving: bool,
    heard: Instant,
    flood: Option<Flood>,
}

impl Meter {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            reader: FrameReader::after(0),
            blocks: FieldBlocks::new(),
            block: None,
            allowance: Allowance::new(now),
            heads: HashMap::new(),
            settings: Settings::Awaited,
            leaving: false,
            heard: now,
            flood: None,
        }
    }

    /// Returns true if the origin's SETTINGS have arrived, which contain its limit on streams.
    pub(crate) fn settled(&self) -> bool {
        self.settings == Settings::Known
    }

    /// Returns true if the origin has announced that it accepts no more requests (GOAWAY).
    pub(crate) const fn leaving(&self) -> bool {
        self.leaving
    }

    /// Returns the time when bytes last arrived on the connection.
    pub(crate) const fn heard(&self) -> Instant {
        self.heard
    }

    pub(crate) const fn flood(&self) -> Option<Flood> {
        self.flood
    }

    pub(crate) fn opened(&mut self, stream: u32) {
        self.heads.insert(stream, Heads { unread: 0, last: FirstField::Regular });
        self.allowance.pays_for(FRAMES_A_REQUEST);
    }

    pub(crate) fn read_head(&mut self, stream: u32) {
        if let Some(heads) = self.heads.get_mut(&stream) {
            heads.unread = heads.unread.saturating_sub(1);
        }
    }

    /// Returns whether the last head or trailers of the stream began with a pseudo-field (such as
    /// `:status`) or with a regular field.
    pub(crate) fn last_block(&self, stream: u32) -> FirstField {
        self.heads.get(&stream).map_or(FirstField::Regular, |heads| heads.last)
    }

    pub(crate) fn closed(&mut self, stream: u32) {
        self.heads.remove(&stream);
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        self.allowance.sent(bytes);
    }

    /// Counts the frames in `bytes`, which arrived from the origin. After an error, the caller must
    /// close the connection.
    pub(crate) fn received(&mut self, mut bytes: &[u8], now: Instant) -> Result<(), Flood> {
        self.heard = now;
        while let Some(event) = self.reader.next(&mut bytes) {
            match event {
                FrameEvent::Header(frame) => {
                    let judged = self.frame(frame, now);
                    self.flood = self.flood.or(judged.err());
                    judged?;
                }
                FrameEvent::Payload(payload) if self.block.is_some() => {
                    self.blocks.payload(payload)
                }
                FrameEvent::Payload(_) => {}
            }
            if self.reader.is_at_boundary() {
                self.ended();
            }
        }
        Ok(())
    }

    fn frame(&mut self, frame: Frame, now: Instant) -> Result<(), Flood> {
        match frame.kind {
            kind::DATA => return Ok(()),
            kind::HEADERS => {
                self.block = Some((frame.stream, frame.has(flag::END_HEADERS)));
                self.blocks.frame(frame, false);
                if let Some(heads) = self.heads.get_mut(&frame.stream) {
                    heads.unread += 1;
                    return if heads.unread > MAX_UNREAD_HEADS {
                        Err(Flood::Heads)
                    } else {
                        Ok(())
                    };
                }
            }
            kind::CONTINUATION => {
                self.block = Some((frame.stream, frame.has(flag::END_HEADERS)));
                self.blocks.frame(frame, true);
            }
            kind::SETTINGS if !frame.has(flag::ACK) && self.settings == Settings::Awaited => {
                self.settings = Settings::Coming;
            }
            kind::GOAWAY => self.leaving = true,
            _ => {}
        }
        self.allowance.take(1, now).map_err(|_| Flood::Frames)
    }

    /// Notes that a frame has arrived completely.
    fn ended(&mut self) {
        if self.settings == Settings::Coming {
            self.settings = Settings::Known;
        }
        if let Some((stream, true)) = self.block.take()
            && let Some(heads) = self.heads.get_mut(&stream)
        {
            heads.last = self.blocks.first();
        }
    }
}

/// A connection to an origin. A meter sees all its incoming bytes.
pub(crate) struct Metered {
    stream: Transport,
    meter: Rc<RefCell<Meter>>,
}

impl Metered {
    pub(crate) fn new(stream: Transport, meter: Rc<RefCell<Meter>>) -> Self {
        Self { stream, meter }
    }

    fn count(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.meter.borrow_mut().sent(bytes);
        }
        written
    }
}

impl AsyncRead for Metered {
    /// Fails once the origin has sent too many frames or heads. [`Meter::flood`] then tells which
    /// kind of message it was.
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let judged = self.meter.borrow_mut().received(&buffer.filled()[before..], Instant::now());
        Poll::Ready(judged.map_err(|_| io::ErrorKind::InvalidData.into()))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;

//! Watches the bytes of a client's HTTP/2 connection for three purposes. It limits the number of
//! frames without message content. It finds trailers that begin with a pseudo-field. It counts the
//! response bytes that the socket has not accepted yet.

use crate::core::frames::{
    Allowance, FRAMES_A_REQUEST, FieldBlocks, FirstField, Frame, FrameEvent, FrameReader, PREFACE,
    flag, kind,
};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Number of response bytes that may wait for the socket of a connection. One head may exceed this
/// limit.
pub(crate) const MAX_UNSENT_BYTES: usize = 64 << 10;

/// The weight of a SETTINGS frame in the client's allowance of frames. A SETTINGS frame is
/// expensive, because it may change the windows of all streams.
const SETTINGS_COST: u64 = 16;

/// The proxy remembers up to this many streams with malformed trailers until it reads the trailers.
/// If a client sends more, its connection closes. A correct client sends no such trailers.
const MAX_MALFORMED_STREAMS: usize = 256;

/// Watches the frames of an HTTP/2 connection with a client, in both directions.
#[derive(Debug)]
pub(crate) struct Wire {
    incoming: RefCell<Incoming>,
    outgoing: RefCell<Outgoing>,
    /// Notified when the client sends too many frames, so that its connection closes.
    pub(crate) flood_notice: Notify,
}

/// The state of the frames from the client.
#[derive(Debug)]
struct Incoming {
    reader: FrameReader,
    blocks: FieldBlocks,
    /// The stream whose trailers are arriving. The flag is true once the last frame of these
    /// trailers has begun.
    trailers: Option<(u32, bool)>,
    in_block: bool,
    allowance: Allowance,
    /// The highest number of a stream that the client has opened.
    newest: u32,
    malformed: HashSet<u32>,
    flooded: bool,
}

/// The state of the frames to the client.
#[derive(Debug)]
struct Outgoing {
    reader: FrameReader,
    waiting: HashMap<u32, Unsent>,
    total: usize,
    wakers: Vec<Waker>,
}

/// Bytes of a stream's answer that the HTTP/2 library has accepted but the socket has not.
#[derive(Debug, Default)]
struct Unsent {
    head: usize,
    data: usize,
}

impl Wire {
    pub(crate) fn new(now: Instant) -> Self {
        let incoming = Incoming {
            reader: FrameReader::after(PREFACE.len()),
            blocks: FieldBlocks::new(),
            trailers: None,
            in_block: false,
            allowance: Allowance::new(now),
            newest: 0,
            malformed: HashSet::new(),
            flooded: false,
        };
        let outgoing = Outgoing {
            reader: FrameReader::after(0),
            waiting: HashMap::new(),
            total: 0,
            wakers: Vec::new(),
        };
        Self {
            incoming: RefCell::new(incoming),
            outgoing: RefCell::new(outgoing),
            flood_notice: Notify::new(),
        }
    }

    pub(crate) fn is_flooded(&self) -> bool {
        self.incoming.borrow().flooded
    }

    pub(crate) fn received(&self, bytes: &[u8], now: Instant) {
        let mut incoming = self.incoming.borrow_mut();
        let reset = |stream| self.outgoing.borrow_mut().forget(stream);
        if !incoming.flooded && incoming.take(bytes, now, reset).is_err() {
            incoming.flooded = true;
            self.flood_notice.notify_one();
        }
    }

    /// Notes that the client's socket has accepted `bytes`.
    pub(crate) fn sent(&self, bytes: &[u8]) {
        self.incoming.borrow_mut().allowance.sent(bytes.len());
        self.outgoing.borrow_mut().sent(bytes);
    }

    /// Returns true if the trailers of a stream began with a pseudo-field.
    pub(crate) fn has_malformed_trailers(&self, stream: u32) -> bool {
        self.incoming.borrow().malformed.contains(&stream)
    }

    /// Forgets a stream, because its request has ended.
    pub(crate) fn end_request(&self, stream: u32) {
        self.incoming.borrow_mut().malformed.remove(&stream);
    }

    /// Returns how many response bytes, at least one, the HTTP/2 library may receive now. Waits
    /// while the socket has not accepted enough of the earlier bytes.
    pub(crate) fn poll_room(&self, context: &Context<'_>) -> Poll<usize> {
        let mut outgoing = self.outgoing.borrow_mut();
        if outgoing.total < MAX_UNSENT_BYTES {
            return Poll::Ready(MAX_UNSENT_BYTES - outgoing.total);
        }
        if !outgoing.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            outgoing.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Notes that the HTTP/2 library has received a head of about `bytes` bytes for a stream.
    pub(crate) fn handed_head(&self, stream: u32, bytes: usize) {
        let mut outgoing = self.outgoing.borrow_mut();
        outgoing.total += bytes;
        outgoing.waiting.entry(stream).or_default().head += bytes;
    }

    pub(crate) fn handed_data(&self, stream: u32, bytes: usize) {
        let mut outgoing = self.outgoing.borrow_mut();
        outgoing.total += bytes;
        outgoing.waiting.entry(stream).or_default().data += bytes;
    }

    /// Notes that a stream was reset. The HTTP/2 library drops the bytes of this stream, so they no
    /// longer count.
    pub(crate) fn reset(&self, stream: u32) {
        self.outgoing.borrow_mut().forget(stream);
    }
}

/// The error after the client has sent too many frames.
struct Flooded;

impl Incoming {
    fn take(&mut self, mut bytes: &[u8], now: Instant, reset: impl Fn(u32)) -> Result<(), Flooded> {
        while let Some(event) = self.reader.next(&mut bytes) {
            match event {
                FrameEvent::Header(frame) => {
                    let cost = self.frame(frame, &reset);
                    self.allowance.take(cost, now).map_err(|_| Flooded)?;
                }
                FrameEvent::Payload(payload) if self.in_block => self.blocks.payload(payload),
                FrameEvent::Payload(_) => {}
            }
            if self.reader.is_at_boundary() {
                self.ended()?;
            }
        }
        Ok(())
    }

    /// Handles a frame from the client. Returns the number by which the frame reduces the client's
    /// allowance of frames.
    fn frame(&mut self, frame: Frame, reset: impl Fn(u32)) -> u64 {
        let is_last = frame.has(flag::END_HEADERS);
        match frame.kind {
            kind::HEADERS => {
                self.blocks.frame(frame, false);
                self.in_block = true;
                if frame.stream <= self.newest {
                    self.trailers = Some((frame.stream, is_last));
                    return 1;
                }
                (self.newest, self.trailers) = (frame.stream, None);
                self.allowance.pays_for(FRAMES_A_REQUEST);
                0
            }
            kind::CONTINUATION => {
                self.blocks.frame(frame, true);
                self.in_block = true;
                self.trailers = self.trailers.map(|(stream, _)| (stream, is_last));
                1
            }
            kind::RST_STREAM => {
                reset(frame.stream);
                1
            }
            kind::SETTINGS if !frame.has(flag::ACK) => SETTINGS_COST,
            // Flow control does not limit frames without data. It does not limit padding either,
            // because h2 releases padding at once. So such frames reduce the allowance.
            kind::DATA if frame.length == 0 && !frame.has(flag::END_STREAM) => 1,
            kind::DATA if frame.has(flag::PADDED) => 1,
            kind::DATA => 0,
            _ => 1,
        }
    }

    fn ended(&mut self) -> Result<(), Flooded> {
        if !std::mem::take(&mut self.in_block) {
            return Ok(());
        }
        if let Some((stream, true)) = self.trailers
            && self.blocks.first() == FirstField::Pseudo
        {
            self.malformed.insert(stream);
        }
        if self.malformed.len() > MAX_MALFORMED_STREAMS { Err(Flooded) } else { Ok(()) }
    }
}

impl Outgoing {
    fn sent(&mut self, mut bytes: &[u8]) {
        while let Some(event) = self.reader.next(&mut bytes) {
            let FrameEvent::Header(frame) = event else { continue };
            let Some(unsent) = self.waiting.get_mut(&frame.stream) else { continue };
            let gone = match frame.kind {
                kind::HEADERS => std::mem::take(&mut unsent.head),
                kind::DATA => {
                    let gone = frame.length.min(unsent.data);
                    unsent.data -= gone;
                    gone
                }
                _ => 0,
            };
            self.total -= gone;
            if unsent.head + unsent.data == 0 {
                self.waiting.remove(&frame.stream);
            }
        }
        self.wake();
    }

    fn forget(&mut self, stream: u32) {
        if let Some(Unsent { head, data }) = self.waiting.remove(&stream) {
            self.total -= head + data;
            self.wake();
        }
    }

    fn wake(&mut self) {
        if self.total <= MAX_UNSENT_BYTES / 2 {
            self.wakers.drain(..).for_each(Waker::wake);
        }
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;

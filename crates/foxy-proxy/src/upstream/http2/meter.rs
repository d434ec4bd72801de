//! What an origin may send over HTTP/2 besides messages: counted as the frames come in. It reads
//! frame headers (RFC 9113 §4.1) and nothing else; what frames mean is the business of the library
//! that decodes them.

use crate::core::frames::{
    Allowance, FRAMES_A_REQUEST, FieldBlocks, Frame, FrameReader, Passing, StartsWith, flag, kind,
};
use std::collections::HashMap;
use tokio::time::Instant;

/// Response heads of one stream that may wait to be read. Nothing else bounds them: they are under
/// no flow control.
const UNREAD_HEADS: u32 = 12;

/// What was more than an origin may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flood {
    /// Frames that carry nothing of a message: pings, settings, resets, priorities, unknown ones.
    Frames,
    /// Response heads that come faster than they are read.
    Heads,
}

/// The blocks of fields of one stream.
#[derive(Debug)]
struct Heads {
    unread: u32,
    last: StartsWith,
}

/// How far the origin's settings have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settings {
    Awaited,
    /// Their frame has begun.
    Coming,
    Known,
}

/// What is known of a connection from the frames that came in.
#[derive(Debug)]
pub(crate) struct Meter {
    reader: FrameReader,
    blocks: FieldBlocks,
    /// The stream whose block of fields passes, and whether its last frame has begun.
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

    /// Whether the origin's settings have come, so that the number of streams it allows is known.
    pub(crate) fn settled(&self) -> bool {
        self.settings == Settings::Known
    }

    /// Whether the origin has said that it takes no further requests (GOAWAY).
    pub(crate) const fn leaving(&self) -> bool {
        self.leaving
    }

    /// When anything last came.
    pub(crate) const fn heard(&self) -> Instant {
        self.heard
    }

    /// What was too much, once it was.
    pub(crate) const fn flood(&self) -> Option<Flood> {
        self.flood
    }

    /// A request was sent on this stream.
    pub(crate) fn opened(&mut self, stream: u32) {
        self.heads.insert(stream, Heads { unread: 0, last: StartsWith::Regular });
        self.allowance.pays_for(FRAMES_A_REQUEST);
    }

    /// A head of this stream was read.
    pub(crate) fn read_head(&mut self, stream: u32) {
        if let Some(heads) = self.heads.get_mut(&stream) {
            heads.unread = heads.unread.saturating_sub(1);
        }
    }

    /// What the last block of fields of this stream began with.
    pub(crate) fn last_block(&self, stream: u32) -> StartsWith {
        self.heads.get(&stream).map_or(StartsWith::Regular, |heads| heads.last)
    }

    /// Nobody reads this stream any more.
    pub(crate) fn closed(&mut self, stream: u32) {
        self.heads.remove(&stream);
    }

    /// Bytes went to the origin.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.allowance.sent(bytes);
    }

    /// Bytes came from the origin.
    ///
    /// # Errors
    /// They are more than it may send; the connection is to be closed.
    pub(crate) fn received(&mut self, mut bytes: &[u8], now: Instant) -> Result<(), Flood> {
        self.heard = now;
        while let Some(passing) = self.reader.next(&mut bytes) {
            match passing {
                Passing::Header(frame) => {
                    let judged = self.frame(frame, now);
                    self.flood = self.flood.or(judged.err());
                    judged?;
                }
                Passing::Payload(payload) if self.block.is_some() => self.blocks.payload(payload),
                Passing::Payload(_) => {}
            }
            if self.reader.is_between() {
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
                    return if heads.unread > UNREAD_HEADS { Err(Flood::Heads) } else { Ok(()) };
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

    /// A frame has come whole.
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

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;

//! What an origin may send over HTTP/2 besides messages: counted as the frames come in. It reads frame headers
//! (RFC 9113 §4.1) and nothing else; what frames mean is the business of the library that decodes them.

use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// The length of a frame's header.
const HEADER: usize = 9;

/// Response heads of one stream that may wait to be read. Nothing else bounds them: they are under no flow control.
const UNREAD_HEADS: u32 = 12;

/// What one frame that carries nothing of a message costs, in bytes sent to the origin: as requests are sent, windows
/// are updated. It is more than the answer to a ping or to settings, so that no frame pays for itself.
const FRAME: u64 = 64;

/// Frames without any of a message that may come at once, and each second after.
const FRAMES_AT_ONCE: u64 = 1000;
const FRAMES_A_SECOND: u64 = 100;

/// Frames without any of a message that each request pays for: its reset and a few updates of windows.
const FRAMES_A_REQUEST: u64 = 4;

/// What was more than an origin may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flood {
    /// Frames that carry nothing of a message: pings, settings, resets, priorities, unknown ones.
    Frames,
    /// Response heads that come faster than they are read.
    Heads,
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
    header: [u8; HEADER],
    filled: usize,
    /// Bytes of the present frame's payload that are still to come.
    payload: usize,
    budget: u64,
    counted: Instant,
    heads: HashMap<u32, u32>,
    settings: Settings,
    leaving: bool,
    heard: Instant,
    flood: Option<Flood>,
}

impl Meter {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            header: [0; HEADER],
            filled: 0,
            payload: 0,
            budget: FRAMES_AT_ONCE * FRAME,
            counted: now,
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
        self.heads.insert(stream, 0);
        self.earn(FRAMES_A_REQUEST * FRAME);
    }

    /// A head of this stream was read.
    pub(crate) fn read_head(&mut self, stream: u32) {
        if let Some(unread) = self.heads.get_mut(&stream) {
            *unread = unread.saturating_sub(1);
        }
    }

    /// Nobody reads this stream any more.
    pub(crate) fn closed(&mut self, stream: u32) {
        self.heads.remove(&stream);
    }

    /// Bytes went to the origin.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.earn(bytes as u64);
    }

    /// Bytes came from the origin.
    ///
    /// # Errors
    /// They are more than it may send; the connection is to be closed.
    pub(crate) fn received(&mut self, mut bytes: &[u8], now: Instant) -> Result<(), Flood> {
        self.heard = now;
        while !bytes.is_empty() {
            let skipped = self.payload.min(bytes.len());
            self.payload -= skipped;
            bytes = &bytes[skipped..];
            if self.payload == 0 && self.settings == Settings::Coming {
                self.settings = Settings::Known;
            }
            let taken = (HEADER - self.filled).min(bytes.len());
            self.header[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled == HEADER {
                self.filled = 0;
                let judged = self.frame(now);
                self.flood = self.flood.or(judged.err());
                judged?;
            }
        }
        Ok(())
    }

    fn frame(&mut self, now: Instant) -> Result<(), Flood> {
        const DATA: u8 = 0;
        const HEADERS: u8 = 1;
        const SETTINGS: u8 = 4;
        const GOAWAY: u8 = 7;
        let [high, middle, low, kind, flags, stream @ ..] = self.header;
        self.payload = u32::from_be_bytes([0, high, middle, low]) as usize;
        match kind {
            DATA => return Ok(()),
            HEADERS => {
                let stream = u32::from_be_bytes(stream) & (u32::MAX >> 1);
                if let Some(unread) = self.heads.get_mut(&stream) {
                    *unread += 1;
                    return if *unread > UNREAD_HEADS { Err(Flood::Heads) } else { Ok(()) };
                }
            }
            SETTINGS if flags & 1 == 0 && self.settings == Settings::Awaited => {
                self.settings = if self.payload == 0 { Settings::Known } else { Settings::Coming };
            }
            GOAWAY => self.leaving = true,
            _ => {}
        }
        self.pay(now)
    }

    fn pay(&mut self, now: Instant) -> Result<(), Flood> {
        let since =
            now.duration_since(self.counted).min(Duration::from_secs(FRAMES_AT_ONCE / FRAMES_A_SECOND));
        self.counted = now;
        self.earn(u64::try_from(since.as_micros()).unwrap_or(0) * FRAMES_A_SECOND * FRAME / 1_000_000);
        self.budget = self.budget.checked_sub(FRAME).ok_or(Flood::Frames)?;
        Ok(())
    }

    fn earn(&mut self, amount: u64) {
        self.budget = (self.budget + amount).min(FRAMES_AT_ONCE * FRAME);
    }
}

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;

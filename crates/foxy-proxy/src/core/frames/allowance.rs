//! How many frames that carry nothing of a message a peer may send: a number at once, more as time
//! passes, and more as bytes are sent to it, for which it updates windows.

use std::time::Duration;
use tokio::time::Instant;

/// What one frame costs, in bytes sent to the peer. It is more than the answer to a ping or to
/// settings, so that no frame pays for itself.
const FRAME: u64 = 64;

/// Frames that may come at once, and each second after.
pub(crate) const FRAMES_AT_ONCE: u64 = 1000;
pub(crate) const FRAMES_A_SECOND: u64 = 100;

/// Frames that each request pays for: its reset and a few updates of windows.
pub(crate) const FRAMES_A_REQUEST: u64 = 4;

/// What a peer may still send.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: u64,
    counted: Instant,
}

/// A peer sent more than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Allowance {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { left: FRAMES_AT_ONCE * FRAME, counted: now }
    }

    /// Bytes were sent to the peer.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.earn(bytes as u64);
    }

    /// A request or the like pays for so many frames.
    pub(crate) fn pays_for(&mut self, frames: u64) {
        self.earn(frames * FRAME);
    }

    /// As much as so many frames came.
    pub(crate) fn take(&mut self, frames: u64, now: Instant) -> Result<(), TooMany> {
        let since = now
            .saturating_duration_since(self.counted)
            .min(Duration::from_secs(FRAMES_AT_ONCE / FRAMES_A_SECOND));
        self.counted = now;
        self.earn(
            u64::try_from(since.as_micros()).unwrap_or(0) * FRAMES_A_SECOND * FRAME / 1_000_000,
        );
        self.left = self.left.checked_sub(frames * FRAME).ok_or(TooMany)?;
        Ok(())
    }

    fn earn(&mut self, amount: u64) {
        self.left = (self.left + amount).min(FRAMES_AT_ONCE * FRAME);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_too_many_once_they_are_for_the_time() {
        let now = Instant::now();
        let mut allowance = Allowance::new(now);
        for _ in 0..FRAMES_AT_ONCE {
            allowance.take(1, now).expect("not yet too many");
        }
        let later = now + Duration::from_secs(1);
        for _ in 0..FRAMES_A_SECOND {
            allowance.take(1, later).expect("time has passed");
        }
        assert_eq!(allowance.take(1, later), Err(TooMany));
    }

    #[test]
    fn a_frame_is_not_paid_for_by_its_answer_but_by_what_windows_are_for() {
        let run = |sent: usize| {
            let now = Instant::now();
            let mut allowance = Allowance::new(now);
            let mut frames = (0..100 * FRAMES_AT_ONCE).map(|_| {
                allowance.sent(sent);
                allowance.take(1, now)
            });
            frames.all(|taken| taken.is_ok())
        };
        assert!(!run(17), "the answer to a ping");
        assert!(run(1024));
    }
}

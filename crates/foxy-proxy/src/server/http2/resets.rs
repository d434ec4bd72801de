//! How many streams a client may give up. Each may have cost a look into the store or a request to
//! an origin, and no limit on open streams counts it any more (CVE-2023-44487).

use std::time::Duration;
use tokio::time::Instant;

/// Streams that may be given up at once: a browser that leaves a page gives up all it has open.
const AT_ONCE: u32 = 200;

/// How long it takes until one more may be given up.
const EACH: Duration = Duration::from_millis(50);

/// What is left of a client's allowance.
#[derive(Debug)]
pub(crate) struct Resets {
    left: u32,
    /// Up to when it was made up.
    at: Instant,
}

/// Whether a client may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetVerdict {
    Fine,
    TooMany,
}

impl Resets {
    pub(crate) fn new(now: Instant) -> Self {
        Self { left: AT_ONCE, at: now }
    }

    /// Takes one.
    pub(crate) fn one(&mut self, now: Instant) -> ResetVerdict {
        let regained = now.saturating_duration_since(self.at).as_millis() / EACH.as_millis();
        let regained = u32::try_from(regained).unwrap_or(u32::MAX);
        if regained >= AT_ONCE - self.left {
            *self = Self::new(now);
        } else {
            self.left += regained;
            self.at += EACH * regained;
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                ResetVerdict::Fine
            }
            None => ResetVerdict::TooMany,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_left_is_fine_and_a_flood_is_not() {
        let start = Instant::now();
        let mut resets = Resets::new(start);
        let mut taken = |count: u32, at: Instant| {
            (0..count).filter(|_| resets.one(at) == ResetVerdict::Fine).count()
        };
        assert_eq!(taken(AT_ONCE + 10, start), AT_ONCE as usize);
        assert_eq!(taken(10, start + EACH * 3), 3);
        assert_eq!(taken(AT_ONCE + 10, start + EACH * (AT_ONCE + 3)), AT_ONCE as usize);
    }
}

//! How long a body that is being stored may be held up by its store: for a while at once, and for
//! longer as the store takes more of it. Pure.

use std::time::Duration;

/// Parts that the store must confirm before a body may wait for it as long as at first. With one
/// second, a store that takes less than 16 MiB a second is too slow for a faster response, which is
/// not stored then.
const PARTS_FOR_ALL: u32 = 16;

/// How many times as long a body waits for each part while readers of its flight read it back:
/// without the store they would all have to ask the origin, or be cut.
const FOR_READERS: u32 = 10;

/// How long a body may still be held up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    left: Duration,
    most: Duration,
}

impl Patience {
    /// As long as `most` at once.
    pub(crate) const fn new(most: Duration) -> Self {
        Self { left: most, most }
    }

    /// How long to wait now.
    pub(crate) const fn left(&self) -> Duration {
        self.left
    }

    /// How long to wait for each part once the body has come.
    pub(crate) const fn most(&self) -> Duration {
        self.most
    }

    /// How long to wait for each part that readers of the flight read back.
    pub(crate) fn for_readers(&self) -> Duration {
        self.most * FOR_READERS
    }

    /// The body was held up that long.
    pub(crate) fn spend(&mut self, waited: Duration) {
        self.left = self.left.saturating_sub(waited);
    }

    /// The store has confirmed a part.
    pub(crate) fn earn(&mut self) {
        self.left = (self.left + self.most / PARTS_FOR_ALL).min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts that a store confirms at one a `pace` before the body stops waiting; no more than
    /// `parts`.
    fn confirmed(pace: Duration, parts: u32) -> u32 {
        let mut patience = Patience::new(Duration::from_secs(1));
        let mut waits = || {
            let in_time = pace < patience.left();
            patience.spend(pace);
            patience.earn();
            in_time
        };
        (0..parts).take_while(|_| waits()).count() as u32
    }

    #[test]
    fn a_body_waits_for_a_store_of_sixteen_mebibytes_a_second_however_long_it_is() {
        assert_eq!(confirmed(Duration::from_millis(60), 10_000), 10_000);
        assert_eq!(
            confirmed(Duration::from_millis(200), 10_000),
            6,
            "it waits two seconds at most"
        );
        assert_eq!(confirmed(Duration::from_secs(2), 10_000), 0);
    }
}

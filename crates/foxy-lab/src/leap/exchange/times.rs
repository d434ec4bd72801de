//! What one copy of a request took, and how that adds up. It measures nothing.

use std::time::Duration;

/// Durations of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time to connect; zero for a kept connection.
    pub connect: Duration,
    /// Time to the first byte, connecting included.
    pub first_byte: Duration,
    /// Time from the first byte to the last.
    pub transfer: Duration,
}

impl Times {
    /// Time to the last byte or the failure.
    pub fn whole(&self) -> Duration {
        self.first_byte + self.transfer
    }
}

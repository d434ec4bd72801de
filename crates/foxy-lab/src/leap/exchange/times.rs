//! What one copy of a request took, and how that adds up. It measures nothing.

use std::time::Duration;

/// What an exchange took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Until the connection was there; zero for a kept one.
    pub connect: Duration,
    /// Until the first byte of the answer, with the connection.
    pub first_byte: Duration,
    /// From the first byte to the last.
    pub transfer: Duration,
}

impl Times {
    /// Until the last byte, or the failure.
    pub fn whole(&self) -> Duration {
        self.first_byte + self.transfer
    }
}

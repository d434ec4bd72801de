//! The time limits for reading a request, and the ways in which a connection is lost. One limit
//! covers the whole request, so a client that sends single bytes cannot extend it.

use bytes::BytesMut;
use foxy_base::{Instant, clock};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

#[derive(Debug)]
pub struct RequestTimeout {
    idle: Duration,
    whole: Duration,
    begun: Option<Instant>,
}

impl RequestTimeout {
    pub const fn new(idle: Duration, whole: Duration) -> Self {
        Self { idle, whole, begun: None }
    }

    /// Reads up to `room` bytes. Returns false at the end of the connection or after the time
    /// limit. Once the request has begun (`begun`, or bytes in `input`), the limit for a whole
    /// request applies. Before, the idle limit applies.
    pub async fn read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        input: &mut BytesMut,
        begun: bool,
        room: usize,
    ) -> bool {
        if begun || !input.is_empty() {
            self.begun.get_or_insert_with(clock::monotonic);
        }
        let left = self
            .begun
            .map_or(self.idle, |begun| self.whole.saturating_sub(clock::monotonic().since(begun)));
        input.reserve(room);
        matches!(timeout(left, stream.read_buf(input)).await, Ok(Ok(1..)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Unanswered,
    Within,
    Reset,
}

impl Loss {
    /// Returns how the connection was lost. `error` is `None` for a normal close. `begun` tells
    /// whether a part of the answer had arrived.
    pub fn of(error: Option<&io::Error>, begun: bool) -> Self {
        match error.map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => Self::Reset,
            _ if begun => Self::Within,
            _ => Self::Unanswered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    fn block_on(work: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime")
            .block_on(work);
    }

    #[test]
    fn a_request_that_comes_byte_by_byte_must_still_be_whole_in_time() {
        block_on(async {
            let (mut client, mut stream) = tokio::io::duplex(64);
            let mut patience = RequestTimeout::new(Duration::from_secs(60), Duration::ZERO);
            let mut input = BytesMut::new();
            client.write_all(b"G").await.expect("sent");
            assert!(patience.read(&mut stream, &mut input, false, 16).await, "the first byte");
            assert!(!patience.read(&mut stream, &mut input, false, 16).await, "no more in time");
        });
    }

    #[test]
    fn a_client_may_say_nothing_for_a_while_before_a_request() {
        block_on(async {
            let (_client, mut stream) = tokio::io::duplex(64);
            let idle = Duration::from_millis(20);
            let (mut patience, before) =
                (RequestTimeout::new(idle, Duration::ZERO), clock::monotonic());
            assert!(!patience.read(&mut stream, &mut BytesMut::new(), false, 16).await);
            assert!(clock::monotonic().since(before) >= idle);
        });
    }
}

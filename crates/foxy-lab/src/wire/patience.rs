//! How long a client may take over a request: nothing may come for a while between requests, and a
//! request that has begun must be whole in time, however often a byte of it comes.

use bytes::BytesMut;
use foxy_base::{Instant, clock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

#[derive(Debug)]
pub struct Patience {
    idle: Duration,
    whole: Duration,
    begun: Option<Instant>,
}

impl Patience {
    pub const fn new(idle: Duration, whole: Duration) -> Self {
        Self { idle, whole, begun: None }
    }

    /// Reads up to `room` bytes; false at the end of the connection or after the time limit. A
    /// request has begun if `begun` is set or `input` has bytes.
    pub async fn read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        (input, begun): (&mut BytesMut, bool),
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
            let mut patience = Patience::new(Duration::from_secs(60), Duration::ZERO);
            let mut input = BytesMut::new();
            client.write_all(b"G").await.expect("sent");
            assert!(patience.read(&mut stream, (&mut input, false), 16).await, "the first byte");
            assert!(!patience.read(&mut stream, (&mut input, false), 16).await, "no more in time");
        });
    }

    #[test]
    fn a_client_may_say_nothing_for_a_while_before_a_request() {
        block_on(async {
            let (_client, mut stream) = tokio::io::duplex(64);
            let idle = Duration::from_millis(20);
            let (mut patience, before) = (Patience::new(idle, Duration::ZERO), clock::monotonic());
            assert!(!patience.read(&mut stream, (&mut BytesMut::new(), false), 16).await);
            assert!(clock::monotonic().since(before) >= idle);
        });
    }
}

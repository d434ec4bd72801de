//! Passes the answer of one path (the origin or a proxy) to the waiting client through a queue. The
//! queue is short, so a long body for a slow client uses little memory.

use crate::leap::PathFailure;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::{BodyLength, ResponseHead};
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

const ROOM: usize = 4;
/// The shortest delay that LEAP blames on the client. Task scheduling alone causes shorter delays.
const NOTICED: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub enum Piece {
    Head(ResponseHead, BodyLength),
    Body(Bytes),
    End,
    Failed(PathFailure),
}

#[derive(Debug)]
pub struct Tap {
    to: Option<Sender<Piece>>,
    patience: Duration,
    pub waited: Duration,
    /// Whether a slow client delayed the answer. If so, the measured times do not describe the
    /// proxy.
    pub held: bool,
}

/// Creates the queue. If the client reads so slowly that the queue stays full for `patience`, it
/// receives no more of the answer.
pub fn tap(patience: Duration) -> (Tap, Receiver<Piece>) {
    let (to, pieces) = channel(ROOM);
    (Tap { to: Some(to), patience, waited: Duration::ZERO, held: false }, pieces)
}

impl Tap {
    pub async fn give(&mut self, piece: Piece) {
        let Some(to) = &self.to else { return };
        let piece = match to.try_send(piece) {
            Ok(()) => return,
            Err(TrySendError::Full(piece)) => piece,
            Err(TrySendError::Closed(_)) => return self.to = None,
        };
        let begun = clock::monotonic();
        let given = timeout(self.patience, to.send(piece)).await;
        let waited = clock::monotonic().since(begun);
        self.waited += waited;
        self.held |= waited >= NOTICED;
        if !matches!(given, Ok(Ok(()))) {
            self.to = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stalled_client_is_waited_for_once_and_a_gone_client_never() {
        let patience = Duration::from_millis(20);
        let (mut tap, pieces) = tap(patience);
        for _ in 0..2 * ROOM {
            tap.give(Piece::Body(Bytes::from_static(b"x"))).await;
        }
        assert!(tap.held && tap.to.is_none());
        drop(pieces);
        let (mut tap, pieces) = super::tap(patience);
        drop(pieces);
        tap.give(Piece::End).await;
        assert!(!tap.held && tap.to.is_none() && tap.waited.is_zero());
    }
}

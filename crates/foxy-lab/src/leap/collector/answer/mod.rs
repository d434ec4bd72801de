//! An answer of an origin that several requests to the Collector (common parent proxy) share. One
//! exchange with the origin writes the answer. Each request reads it at its own speed.

pub mod spool;
#[cfg(test)]
mod spool_tests;

use super::failure::Failure;
use foxy_base::Instant;
use foxy_http::{BodyLength, ResponseHead};
use spool::{Body, Spool};
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;

#[derive(Clone, Debug)]
pub struct Start {
    pub head: ResponseHead,
    pub length: BodyLength,
    /// The names of the request fields that `Vary` lists, with their values in the request that
    /// started the fetch.
    pub depends: Vec<(String, Vec<u8>)>,
    /// The time from the start of the exchange to the answer's first byte, including the time to
    /// connect.
    pub first_byte: Duration,
    pub at: Instant,
    pub origin: Option<IpAddr>,
    pub failure: Option<Failure>,
    /// Whether the origin answered 304 and so confirmed an older answer. If so, this answer repeats
    /// the older body.
    pub confirms: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub at: Duration,
    pub failure: Option<Failure>,
}

/// The progress of the initiator, the request that started the fetch. Other requests for the answer
/// must not receive a byte before the initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initiator {
    Waiting,
    At(u64),
    /// The initiator (the request that started the fetch) has the whole answer, closed its
    /// connection, or stopped reading. The other requests no longer wait for the initiator.
    Left,
}

impl Initiator {
    pub fn has_begun(self) -> bool {
        self != Self::Waiting
    }

    pub fn has(self, end: u64) -> bool {
        match self {
            Self::Waiting => false,
            Self::At(bytes) => bytes >= end,
            Self::Left => true,
        }
    }
}

#[derive(Debug)]
pub struct AnswerProgress {
    pub start: Option<Rc<Start>>,
    pub body: Rc<Body>,
    pub marks: Marks,
    pub end: Option<End>,
    pub initiator: Initiator,
    /// The time that the initiator (the request that started the fetch) needed for the whole
    /// answer, from the end of its name look-up. `None` until then.
    pub whole: Option<Duration>,
}

#[derive(Debug)]
pub struct SharedAnswer {
    progress: RefCell<AnswerProgress>,
    changed: Notify,
}

impl SharedAnswer {
    pub fn new(spool: &Rc<Spool>) -> Self {
        let progress = AnswerProgress {
            start: None,
            body: Rc::new(Body::new(spool)),
            marks: Marks::default(),
            end: None,
            initiator: Initiator::Waiting,
            whole: None,
        };
        Self { progress: RefCell::new(progress), changed: Notify::new() }
    }

    pub fn see<R>(&self, look: impl FnOnce(&AnswerProgress) -> R) -> R {
        look(&self.progress.borrow())
    }

    pub fn change<R>(&self, act: impl FnOnce(&mut AnswerProgress) -> R) -> R {
        let result = act(&mut self.progress.borrow_mut());
        self.changed.notify_waiters();
        result
    }

    pub async fn until<R>(&self, look: impl Fn(&AnswerProgress) -> Option<R>) -> R {
        loop {
            let changed = self.changed.notified();
            if let Some(found) = self.see(&look) {
                return found;
            }
            changed.await;
        }
    }

    pub async fn add(
        &self,
        data: bytes::Bytes,
        at: Duration,
        evict: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let body = self.see(|progress| Rc::clone(&progress.body));
        body.add(data, evict).await?;
        self.change(|progress| progress.marks.add(body.length(), at));
        Ok(())
    }

    /// Takes over the body of an older answer, because the origin confirmed it with a 304. Requests
    /// receive the body with the pauses of its original transfer (LEAP paper, paper 002 in
    /// docs/figures.md, §3.3).
    pub fn take_over(&self, start: Start, older: &Self) {
        let (body, marks, end) =
            older.see(|older| (Rc::clone(&older.body), older.marks.clone(), older.end));
        self.change(|progress| {
            (progress.body, progress.marks, progress.end) = (body, marks, end);
            progress.start = Some(Rc::new(start));
        });
    }
}

impl AnswerProgress {
    pub fn after(&self, position: u64) -> Option<Result<Mark, End>> {
        self.marks.after(position).map(Ok).or_else(|| self.end.map(Err))
    }
}

const MOST: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub end: u64,
    pub at: Duration,
}

/// The times at which the pieces of a body arrived. A mark is an end position and its time. If a
/// body has more than `MOST` marks, each two neighbouring marks merge into one. When the Collector
/// (common parent proxy) replays the body, a merge delays some bytes by at most 1/64 of the
/// transfer time. No byte is early.
#[derive(Clone, Debug)]
pub struct Marks {
    marks: Vec<Mark>,
    /// The time span within which new pieces of the body share one mark (end position and time). It
    /// grows with each merge of marks.
    grain: Duration,
    begun: Duration,
}

impl Default for Marks {
    fn default() -> Self {
        Self { marks: Vec::new(), grain: Duration::from_micros(200), begun: Duration::ZERO }
    }
}

impl Marks {
    /// Records that the bytes up to position `end` had arrived at time `at`. Neither value may be
    /// smaller than in the previous call.
    pub fn add(&mut self, end: u64, at: Duration) {
        if let Some(last) = self.marks.last_mut()
            && at.saturating_sub(self.begun) <= self.grain
        {
            *last = Mark { end, at };
            return;
        }
        if self.marks.len() == MOST {
            let mut number = 0;
            self.marks.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.grain = self.grain.max(at / (MOST as u32 / 2));
        }
        self.begun = at;
        self.marks.push(Mark { end, at });
    }

    pub fn after(&self, position: u64) -> Option<Mark> {
        let next = self.marks.partition_point(|mark| mark.end <= position);
        self.marks.get(next).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn pieces_are_replayed_when_they_came() {
        let mut marks = Marks::default();
        marks.add(100, Duration::ZERO);
        marks.add(150, Duration::from_micros(100));
        marks.add(1000, ms(30));
        marks.add(1500, ms(90));
        let expected = [
            (0, Some(Mark { end: 150, at: Duration::from_micros(100) })),
            (149, Some(Mark { end: 150, at: Duration::from_micros(100) })),
            (150, Some(Mark { end: 1000, at: ms(30) })),
            (1200, Some(Mark { end: 1500, at: ms(90) })),
            (1500, None),
        ];
        for (position, mark) in expected {
            assert_eq!(marks.after(position), mark, "{position}");
        }
    }

    #[test]
    fn lesson_7_a_long_transfer_takes_constant_memory_and_no_byte_comes_early() {
        let mut marks = Marks::default();
        for piece in 1..=1_000_000 {
            marks.add(piece * 1448, ms(piece));
        }
        assert!(marks.marks.len() <= MOST && marks.marks.capacity() <= 2 * MOST);
        for piece in (1..1_000_000).step_by(997) {
            let mark = marks.after((piece - 1) * 1448).expect("it came");
            assert!(mark.at >= ms(piece) && mark.at <= ms(piece + 16_384), "{piece}: {mark:?}");
        }
        assert_eq!(
            marks.after(999_999 * 1448),
            Some(Mark { end: 1_000_000 * 1448, at: ms(1_000_000) })
        );
    }
}

//! An answer, from the moment somebody asks for it: one exchange with the origin writes it, and
//! everybody who asked reads it, each at a pace of its own. It does no IO but that of the spool.

pub mod marks;
pub mod spool;
#[cfg(test)]
mod spool_tests;

use super::failure::Failure;
use foxy_base::Instant;
use foxy_http::{BodyLength, ResponseHead};
use marks::{Mark, Marks};
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
    /// The request fields named by `Vary`, with the request's values.
    pub depends: Vec<(String, Vec<u8>)>,
    /// From the start of the exchange, connecting included.
    pub first_byte: Duration,
    pub at: Instant,
    pub origin: Option<IpAddr>,
    pub failure: Option<Failure>,
    /// The origin confirmed an older answer, whose body this answer repeats.
    pub confirms: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub at: Duration,
    pub failure: Option<Failure>,
}

/// How far the answer has reached the client of the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initiator {
    Waiting,
    At(u64),
    /// Has all of it, left, or stalled: followers no longer wait.
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
    /// Duration of the whole answer for the initiator's client, from the end of its name lookup.
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

    /// Takes over the whole body of an older answer that the origin confirmed. The transfer costs
    /// what it cost then (seed 002, §3.3).
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

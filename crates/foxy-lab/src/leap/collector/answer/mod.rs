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

/// How an answer begins, and what it cost to get there.
#[derive(Clone, Debug)]
pub struct Start {
    /// Its head, without what concerns one connection.
    pub head: ResponseHead,
    /// How its body ends.
    pub length: BodyLength,
    /// The fields that it depends on, as the request had them.
    pub depends: Vec<(String, Vec<u8>)>,
    /// From the beginning of the exchange until the first byte, the connection included.
    pub first_byte: Duration,
    /// When the first byte came.
    pub at: Instant,
    /// Whose answer it is.
    pub origin: Option<IpAddr>,
    /// Why it is the Collector's own.
    pub failure: Option<Failure>,
    /// Whether its body is the one of an older answer, which this one confirms.
    pub confirms: bool,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// When, since its first byte.
    pub at: Duration,
    /// Why it is not whole.
    pub failure: Option<Failure>,
}

/// How far the one is whose request began it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initiator {
    /// Its client has nothing yet.
    Waiting,
    /// Its client has the head and so many bytes of the body.
    At(u64),
    /// It has all of it, or has gone, or takes no more: nobody has to wait for it.
    Left,
}

impl Initiator {
    /// Whether followers may have the head.
    pub fn has_begun(self) -> bool {
        self != Self::Waiting
    }

    /// Whether followers may have bytes up to `end`.
    pub fn has(self, end: u64) -> bool {
        match self {
            Self::Waiting => false,
            Self::At(bytes) => bytes >= end,
            Self::Left => true,
        }
    }
}

/// What there is of an answer.
#[derive(Debug)]
pub struct AnswerProgress {
    /// How it begins, once that is known.
    pub start: Option<Rc<Start>>,
    /// Its body.
    pub body: Rc<Body>,
    /// When the body came.
    pub marks: Marks,
    /// How it ended, once it has.
    pub end: Option<End>,
    /// How far its initiator is.
    pub initiator: Initiator,
    /// What all of it took for the initiator's client, from when it was ready to be asked for.
    pub whole: Option<Duration>,
}

/// An answer, shared.
#[derive(Debug)]
pub struct SharedAnswer {
    progress: RefCell<AnswerProgress>,
    changed: Notify,
}

impl SharedAnswer {
    /// One of which nothing is known yet.
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

    /// Looks at it.
    pub fn see<R>(&self, look: impl FnOnce(&AnswerProgress) -> R) -> R {
        look(&self.progress.borrow())
    }

    /// Changes it, and tells everybody who waits.
    pub fn change<R>(&self, act: impl FnOnce(&mut AnswerProgress) -> R) -> R {
        let result = act(&mut self.progress.borrow_mut());
        self.changed.notify_waiters();
        result
    }

    /// Waits until there is what `look` wants.
    pub async fn until<R>(&self, look: impl Fn(&AnswerProgress) -> Option<R>) -> R {
        loop {
            let changed = self.changed.notified();
            if let Some(found) = self.see(&look) {
                return found;
            }
            changed.await;
        }
    }

    /// Adds a piece of the body that came `at` after the first byte; `evict` as for [`Body::add`].
    ///
    /// # Errors
    /// As [`Body::add`].
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

    /// Takes over the body of an older answer, whole as it is: the origin says that it still holds.
    /// Its transfer costs what it cost then (seed 002, §3.3).
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
    /// What comes after `position`: a mark, or the end.
    pub fn after(&self, position: u64) -> Option<Result<Mark, End>> {
        self.marks.after(position).map(Ok).or_else(|| self.end.map(Err))
    }
}

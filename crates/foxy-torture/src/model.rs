//! A model of the answers that a store may give. It follows from `foxy_store::contract` alone, and
//! knows no storage scheme and no disk.
//!
//! Requests for one key take effect in the order of their submission. For every key, the model
//! stores its puts. It also stores a floor: the number, in this order, of the latest put or removal
//! that succeeded. A `get` may return nothing. It may return a put that is not older than the floor
//! at the time of the `get`'s submission. It must not return an older put, nor a put that was
//! refused before the `get`.
//!
//! After a crash, a put without an answer is doubtful: its record may be stored or lost. Once a
//! `get` has returned a doubtful put, later gets must not return older puts, until the next crash.
//! After that crash they may, because the doubtful put may have been only in the system's cache. A
//! put that was refused because the device failed also becomes doubtful at a crash. The device may
//! have stored its record.

use crate::content::{self, RecordName};
use crate::violation::Violation;
use foxy_store::{Answer, RefusedReason, StoreReply, Ticket};
use std::collections::BTreeMap;

/// A request to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A `get` of a key.
    Get(u32),
    /// A `put` of a record.
    Put(RecordName),
    /// A `remove` of a key.
    Remove(u32),
    /// A request to close the store.
    Close,
}

/// The kind of an answer that keeps the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The store returned a record with the right bytes.
    Found,
    /// The store reported that it has no record of the key.
    Absent,
    /// The store reported success of a put, removal or close.
    Done,
    /// The store refused a put, removal or close.
    Refused,
}

/// The model's knowledge about a put. All requests and answers are numbered together in their
/// order; such a number is a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The put is not answered yet, or was answered `Stored`.
    Possible,
    /// The put had no answer at a crash, or failed before a crash. The record of the put may be
    /// stored or lost.
    Doubtful,
    /// The store refused the put. The number is the position of this answer.
    Refused(u64),
    /// The store refused the put because the device failed or was full. The number is the position
    /// of this answer.
    Failed(u64),
}

#[derive(Debug, Default)]
struct History {
    puts: BTreeMap<u64, (RecordName, Fate)>,
    floor: u64,
    /// Position of the newest doubtful put (a put without an answer before a crash) that a `get`
    /// has returned since the last crash.
    shown: u64,
}

#[derive(Debug)]
struct Open {
    asked: Asked,
    order: u64,
    floor: u64,
}

/// The model's knowledge about all keys, and the requests without an answer.
#[derive(Debug, Default)]
pub struct Model {
    order: u64,
    keys: BTreeMap<u32, History>,
    open: BTreeMap<Ticket, Open>,
    journal_doubted: bool,
}

impl Model {
    /// Notes that a request was sent to the store.
    pub fn ask(&mut self, ticket: Ticket, asked: Asked) {
        self.order += 1;
        let order = self.order;
        let floor = match asked {
            Asked::Get(key) | Asked::Remove(key) => {
                let history = self.keys.entry(key).or_default();
                history.floor.max(history.shown)
            }
            Asked::Put(name) => {
                let history = self.keys.entry(name.key).or_default();
                history.puts.insert(order, (name, Fate::Possible));
                history.floor
            }
            Asked::Close => 0,
        };
        self.open.insert(ticket, Open { asked, order, floor });
    }

    /// Checks an answer of the store.
    ///
    /// # Errors
    /// Returns the way in which the answer violates the store's contract.
    pub fn answer(&mut self, reply: &StoreReply) -> Result<Verdict, Violation> {
        let ticket = reply.ticket;
        let open = self.open.remove(&ticket).ok_or(Violation::AnsweredTwice(ticket))?;
        self.order += 1;
        match (open.asked, &reply.answer) {
            (Asked::Get(_), Answer::Absent(_)) => Ok(Verdict::Absent),
            (Asked::Get(key), Answer::Found(record)) => {
                let name = content::identify(record).ok_or(Violation::WrongBytes { key })?;
                self.check_found(key, name, &open)
            }
            (Asked::Put(name), Answer::Stored) => {
                self.raise_floor(name.key, open.order);
                Ok(Verdict::Done)
            }
            (Asked::Put(name), Answer::Refused(reason)) => {
                let fate = match reason {
                    RefusedReason::DeviceFailed(_) | RefusedReason::NoSpace => {
                        Fate::Failed(self.order)
                    }
                    _ => Fate::Refused(self.order),
                };
                self.keys.entry(name.key).or_default().puts.insert(open.order, (name, fate));
                Ok(Verdict::Refused)
            }
            (Asked::Remove(key), Answer::Removed) => {
                self.raise_floor(key, open.order);
                Ok(Verdict::Done)
            }
            (Asked::Close, Answer::Closed) => Ok(Verdict::Done),
            (Asked::Remove(_) | Asked::Close, Answer::Refused(_)) => Ok(Verdict::Refused),
            _ => Err(Violation::WrongKind(ticket)),
        }
    }

    /// Notes that the process died. Open requests of the process get no answers, and unanswered
    /// puts become doubtful: later gets may or may not find them.
    pub fn crash(&mut self) {
        for open in std::mem::take(&mut self.open).into_values() {
            if let Asked::Put(name) = open.asked {
                self.keys
                    .entry(name.key)
                    .or_default()
                    .puts
                    .insert(open.order, (name, Fate::Doubtful));
            }
        }
        for history in self.keys.values_mut() {
            history.shown = 0;
            for (_, fate) in history.puts.values_mut() {
                if matches!(fate, Fate::Failed(_)) {
                    *fate = Fate::Doubtful;
                }
            }
        }
    }

    /// Tells the model whether the disk is free of silent bit flips. A flip may damage the store's
    /// journal, which lists removed records. So from the first flip on, the model accepts records
    /// that were replaced or removed. It still checks their bytes.
    pub const fn trust_journal(&mut self, trusted: bool) {
        self.journal_doubted |= !trusted;
    }

    /// Returns the number of requests without an answer.
    pub fn open_requests(&self) -> usize {
        self.open.len()
    }

    /// Returns the oldest request without an answer.
    pub fn oldest_open(&self) -> Option<Ticket> {
        self.open.keys().next().copied()
    }

    fn check_found(
        &mut self,
        key: u32,
        name: RecordName,
        get: &Open,
    ) -> Result<Verdict, Violation> {
        if name.key != key {
            return Err(Violation::OtherKey { asked: key, found: name });
        }
        let history = self.keys.entry(key).or_default();
        let put = history.puts.iter().rev().find(|(_, (put, _))| *put == name);
        let Some((&order, &(_, fate))) = put else { return Err(Violation::WrongBytes { key }) };
        if order < get.floor && !self.journal_doubted {
            return Err(Violation::CameBack(name));
        }
        match fate {
            Fate::Refused(at) | Fate::Failed(at) if at < get.order => {
                return Err(Violation::RefusedPut(name));
            }
            Fate::Doubtful => history.shown = history.shown.max(order),
            Fate::Refused(_) | Fate::Failed(_) | Fate::Possible => {}
        }
        Ok(Verdict::Found)
    }

    fn raise_floor(&mut self, key: u32, order: u64) {
        let history = self.keys.entry(key).or_default();
        history.floor = history.floor.max(order);
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;

//! Runs a script: a production storage scheme on the simulated disk, in virtual time, one event at
//! a time. The model checks every answer. This module itself checks the limits of memory and disk,
//! and the operation ids. A script always causes the same events and bytes.

mod look;

use crate::content;
use crate::disk::Disk;
use crate::model::{Asked, Model};
use crate::script::{Script, Step};
use crate::subject::Subject;
use crate::tally::Tally;
use crate::violation::{Bound, Violation};
use foxy_base::{Instant, Random};
use foxy_device::{Device, IoDone, IoId, IoOp};
use foxy_store::{
    Answer, Lookup, Observer, Outbox, PlacementHint, Scheme, Site, StoreRequest, StoreStatus,
    Ticket,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of events in one `Settle` step. A storage scheme that causes more events is in an
/// endless loop.
const SETTLE_LIMIT: u32 = 50_000;

/// A violation of the store's contract (`foxy_store::contract`), and the step of the script that
/// caused it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Index in the script of the step at which the store violated its contract. The index is the
    /// number of steps if the violation came after the last step, or if the storage scheme
    /// panicked.
    pub step: usize,
    /// The way in which the store violated its contract.
    pub violation: Violation,
}

/// The result of running one script.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// A line for each event of the run: step of the script, request, look-up, disk operation,
    /// result and answer. [`explain`] fills this list, and [`run`] leaves it empty.
    pub log: Vec<String>,
    /// The first violation of the store's contract, if there was a violation.
    pub failure: Option<Failure>,
    /// Counts of the events up to the failure or the end.
    pub tally: Tally,
}

/// Runs a script against a subject, which is a storage scheme with its limits. A panic of the
/// scheme counts as a failure.
pub fn run(script: &Script, subject: &Subject) -> Outcome {
    crate::panics::caught(|| Run::new(script, subject).play(script)).unwrap_or_else(|text| {
        let failure = Failure { step: script.steps.len(), violation: Violation::Panicked(text) };
        Outcome { failure: Some(failure), ..Outcome::default() }
    })
}

/// Runs a script like [`run`], and keeps a log. Does not catch panics.
pub fn explain(script: &Script, subject: &Subject) -> Outcome {
    let mut run = Run::new(script, subject);
    run.log = Some(Vec::new());
    run.play(script)
}

struct Run<'a> {
    log: Option<Vec<String>>,
    subject: &'a Subject,
    disk: Disk,
    scheme: Box<dyn Scheme>,
    observer: Observer,
    lookup: Option<Arc<dyn Lookup>>,
    /// The `get` requests of keys for which a `Look` step had reported that the record is absent.
    looked_absent: HashMap<Ticket, u32>,
    looks: Vec<look::OpenLook>,
    model: Model,
    now: Instant,
    random: Random,
    out: Outbox,
    ready: Vec<IoDone>,
    in_flight: HashMap<IoId, usize>,
    buffer_bytes: usize,
    tickets: u64,
    tally: Tally,
}

impl<'a> Run<'a> {
    fn new(script: &Script, subject: &'a Subject) -> Self {
        let (mut random, observer) = (Random::new(script.seed), Observer::default());
        Self {
            log: None,
            subject,
            disk: Disk::new(random.next_u64()),
            scheme: (subject.scheme)(random.next_u64(), observer.clone()),
            observer,
            lookup: None,
            looked_absent: HashMap::new(),
            looks: Vec::new(),
            model: Model::default(),
            now: Instant::ZERO,
            random,
            out: Outbox::default(),
            ready: Vec::new(),
            in_flight: HashMap::new(),
            buffer_bytes: 0,
            tickets: 0,
            tally: Tally::default(),
        }
    }

    fn play(mut self, script: &Script) -> Outcome {
        let mut result = self.start();
        let mut at = 0;
        while result.is_ok() && at < script.steps.len() {
            result = self.step(script.steps[at]);
            if result.is_ok() {
                at += 1;
            }
        }
        if result.is_ok() {
            result = self.settle();
        }
        let failure = result.err().map(|violation| Failure { step: at, violation });
        Outcome { log: self.log.unwrap_or_default(), failure, tally: self.tally }
    }

    fn step(&mut self, step: Step) -> Result<(), Violation> {
        self.note(|| step.to_string());
        match step {
            Step::Get(key) => self.ask(Asked::Get(key)),
            Step::Look(key) => self.look(key),
            Step::Put(name) => self.ask(Asked::Put(name)),
            Step::Remove(key) => self.ask(Asked::Remove(key)),
            Step::Run(count) => self.run(count),
            Step::Settle => self.settle(),
            Step::Advance(milliseconds) => self.advance(milliseconds),
            Step::Crash(death) => {
                self.tally.crashes += 1;
                self.disk.die(death);
                self.reborn()
            }
            Step::Reopen => {
                self.ask(Asked::Close)?;
                self.settle()?;
                self.disk.die(crate::script::Death::Kill);
                self.reborn()
            }
            Step::Faults(faults) => {
                self.disk.set_faults(faults);
                self.model.trust_journal(faults.flips == 0);
                Ok(())
            }
        }
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(line());
        }
    }

    fn start(&mut self) -> Result<(), Violation> {
        self.lookup = self.scheme.lookup();
        self.scheme.start(self.now, &mut self.out);
        self.carry_out()
    }

    /// Simulates the start of a new process on the same disk.
    fn reborn(&mut self) -> Result<(), Violation> {
        self.model.crash();
        self.out = Outbox::default();
        self.ready.clear();
        self.in_flight.clear();
        self.looked_absent.clear();
        self.looks.clear();
        self.buffer_bytes = 0;
        self.observer = Observer::default();
        self.scheme = (self.subject.scheme)(self.random.next_u64(), self.observer.clone());
        self.start()
    }

    fn ask(&mut self, asked: Asked) -> Result<(), Violation> {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.note(|| format!("  request {}: {asked:?}", ticket.0));
        self.model.ask(ticket, asked);
        if let Asked::Get(key) = asked
            && self.says_absent(key)
        {
            self.looked_absent.insert(ticket, key);
        }
        let request = match asked {
            Asked::Get(key) => StoreRequest::Get { ticket, key: content::key(key) },
            Asked::Remove(key) => StoreRequest::Remove { ticket, key: content::key(key) },
            Asked::Close => StoreRequest::Close { ticket },
            Asked::Put(name) => StoreRequest::Put {
                ticket,
                key: content::key(name.key),
                record: content::record(name),
                hint: PlacementHint {
                    site: Site(u64::from(name.key % 3)),
                    size: u64::from(name.size),
                    ..PlacementHint::default()
                },
            },
        };
        self.scheme.on_request(request, self.now, &mut self.out);
        self.carry_out()
    }

    /// Submits the storage scheme's operations to the disk, and passes the scheme's answers to the
    /// model. Checks the limits of the scheme.
    fn carry_out(&mut self) -> Result<(), Violation> {
        for (id, op) in std::mem::take(&mut self.out.operations) {
            let bytes = match &op {
                IoOp::Read { buffer, .. } | IoOp::Write { buffer, .. } => buffer.len(),
                _ => 0,
            };
            if self.in_flight.insert(id, bytes).is_some() {
                return Err(Violation::ReusedId(id.0));
            }
            self.buffer_bytes += bytes;
            self.note(|| format!("    {} {op:?}", id.0));
            self.disk.submit(id, op, self.now);
        }
        for reply in std::mem::take(&mut self.out.replies) {
            self.note(|| format!("  request {}: {}", reply.ticket.0, brief(&reply.answer)));
            let looked_absent = self.looked_absent.remove(&reply.ticket);
            if let (Some(key), Answer::Found(_)) = (looked_absent, &reply.answer) {
                return Err(Violation::LookedAbsent { key });
            }
            self.tally.count(self.model.answer(&reply)?);
        }
        let limits = &self.subject.limits;
        // A power failure may bring removed files back. The store removes them while it opens, so
        // the limit does not hold before the opening ends.
        if self.observer.status.get() != StoreStatus::Opening {
            within(Bound::DiskBytes, limits.disk_bytes, self.disk.bytes())?;
        }
        within(Bound::OperationsInFlight, limits.operations, self.in_flight.len() as u64)?;
        within(Bound::BufferBytes, limits.buffer_bytes, self.buffer_bytes as u64)
    }

    /// Lets one event happen: the next step of a look-up, the next completion of the disk, or a
    /// deadline of the storage scheme. Returns false if no event is due by `until`.
    fn happen(&mut self, until: Instant) -> Result<bool, Violation> {
        if !self.looks.is_empty() && self.random.chance(0.5) {
            return self.go_on_with_a_look();
        }
        self.disk.reap(self.now, &mut self.ready);
        if self.ready.is_empty() {
            let deadline = self.scheme.deadline();
            let completion = self.disk.next_completion();
            let Some(next) = deadline.into_iter().chain(completion).min() else {
                return self.go_on_with_a_look();
            };
            if next > until {
                return self.go_on_with_a_look();
            }
            self.now = self.now.max(next);
            if deadline.is_some_and(|deadline| deadline <= self.now) {
                self.scheme.on_deadline(self.now, &mut self.out);
                self.carry_out()?;
                return Ok(true);
            }
            self.disk.reap(self.now, &mut self.ready);
        }
        if !self.ready.is_empty() {
            let which = usize::try_from(self.random.below(self.ready.len() as u64)).unwrap_or(0);
            let done = self.ready.swap_remove(which);
            self.buffer_bytes -= self.in_flight.remove(&done.id).unwrap_or(0);
            self.tally.completions += 1;
            self.note(|| format!("    {} {:?}", done.id.0, done.result));
            self.scheme.on_io_done(done, self.now, &mut self.out);
            self.carry_out()?;
        }
        Ok(true)
    }

    fn run(&mut self, count: u32) -> Result<(), Violation> {
        for _ in 0..count {
            if !self.happen(Instant(u64::MAX))? {
                break;
            }
        }
        Ok(())
    }

    fn advance(&mut self, milliseconds: u32) -> Result<(), Violation> {
        let until = self.now + Duration::from_millis(u64::from(milliseconds));
        for _ in 0..SETTLE_LIMIT {
            if !self.happen(until)? {
                break;
            }
        }
        self.now = self.now.max(until);
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Violation> {
        for _ in 0..SETTLE_LIMIT {
            let idle = self.in_flight.is_empty() && self.model.open_requests() == 0;
            if idle || !self.happen(Instant(u64::MAX))? {
                break;
            }
        }
        self.model.oldest_open().map_or(Ok(()), |ticket| Err(Violation::NeverAnswered(ticket)))
    }
}

fn brief(answer: &Answer) -> String {
    match answer {
        Answer::Found(record) => format!("Found {:?}", content::identify(record)),
        other => format!("{other:?}"),
    }
}

fn within(what: Bound, limit: u64, seen: u64) -> Result<(), Violation> {
    if seen > limit { Err(Violation::OverBound { what, limit, seen }) } else { Ok(()) }
}

//! Commits the ledger, which says which record files are no longer valid. A commit writes all
//! changed blocks, then one sync makes them durable. The answer to a removal waits for the commit
//! with its change. Changes for which no answer waits, such as evictions, are committed after a
//! delay.

use super::{LEDGER, MAX_ATTEMPTS, Ufs, UfsJob, UfsPhase};
use foxy_device::{IoDone, IoError, IoOp, IoOutput};
use foxy_store::contract::{Answer, Key, Outbox, RefusedReason, Ticket};
use foxy_store::status::{OpenStoreError, StoreStatus};
use std::collections::HashMap;

const MAX_IN_FLIGHT: usize = 16;

/// The commit in progress, and the answers that wait for this commit or the next commit.
#[derive(Debug, Default)]
pub(super) struct Commit {
    /// Numbers of the changed blocks of the ledger that this commit must still write.
    blocks: Vec<u32>,
    writing: usize,
    failed: Option<IoError>,
    running: bool,
    /// Number of the current commit. Between two commits, the number of the last commit.
    round: u64,
    failures: u8,
    /// Keys whose removed record could return after a crash. The value is the number of the commit
    /// that makes the removal durable.
    unsettled: HashMap<Key, u64>,
    waiting: Vec<WaitingAnswer>,
}

/// An answer that waits for a commit.
#[derive(Debug)]
struct WaitingAnswer {
    round: u64,
    ticket: Ticket,
    key: Key,
    answer: Answer,
}

impl Commit {
    /// Notes that a record of the key was removed. The next commit includes the removal.
    pub(super) fn unsettle(&mut self, key: Key) {
        self.unsettled.insert(key, self.round + 1);
    }

    /// Returns true after `MAX_ATTEMPTS` failed commits in a row. A store that opens or closes then
    /// makes no further attempt.
    pub(super) const fn gives_up(&self) -> bool {
        self.failures >= MAX_ATTEMPTS
    }
}

impl Ufs {
    /// Answers a change at once if no older record of the key could return after a crash. Otherwise
    /// answers after the commit that makes the removal of that record durable.
    pub(super) fn answer_when_settled(
        &mut self,
        ticket: Ticket,
        key: Key,
        answer: Answer,
        out: &mut Outbox,
    ) {
        match self.commit.unsettled.get(&key) {
            None => self.finish_change(ticket, key, answer, out),
            Some(&round) => {
                self.commit.waiting.push(WaitingAnswer { round, ticket, key, answer });
                self.begin_commit(out);
            }
        }
    }

    pub(super) fn begin_commit(&mut self, out: &mut Outbox) {
        if self.commit.running
            || !self.ledger.has_changed()
            || matches!(self.phase, UfsPhase::Closed | UfsPhase::Saving(_))
        {
            return;
        }
        self.commit_by = None;
        self.commit.running = true;
        self.commit.failed = None;
        self.commit.round += 1;
        self.commit.blocks = self.ledger.begin();
        self.write_blocks(out);
    }

    fn write_blocks(&mut self, out: &mut Outbox) {
        while self.commit.writing < MAX_IN_FLIGHT
            && let Some(block) = self.commit.blocks.pop()
        {
            let (offset, buffer) = self.ledger.page_of(block, &self.secret);
            self.commit.writing += 1;
            self.submit(IoOp::Write { file: LEDGER, offset, buffer }, UfsJob::CommitWrite, out);
        }
    }

    pub(super) fn commit_written(&mut self, done: &IoDone, out: &mut Outbox) {
        self.commit.writing -= 1;
        let asked = done.buffer.as_ref().map_or(0, |buffer| buffer.len());
        match done.result {
            Ok(IoOutput::Moved { count }) if count == asked => {}
            Err(error) => self.commit.failed = Some(error),
            Ok(_) => self.commit.failed = Some(IoError::Device),
        }
        if self.commit.failed.is_some() {
            self.commit.blocks.clear();
        }
        self.write_blocks(out);
        if self.commit.writing > 0 {
            return;
        }
        match self.commit.failed {
            Some(error) => self.commit_synced(Some(error), out),
            None => self.submit(IoOp::Sync { file: LEDGER }, UfsJob::CommitSync, out),
        }
    }

    pub(super) fn commit_synced(&mut self, failed: Option<IoError>, out: &mut Outbox) {
        let round = self.commit.round;
        self.commit.running = false;
        self.ledger.finish(failed.is_none());
        match failed {
            None => {
                self.commit.failures = 0;
                self.commit.unsettled.retain(|_, settled_after| *settled_after > round);
            }
            Some(_) => {
                self.commit.failures = self.commit.failures.saturating_add(1);
                self.commit
                    .unsettled
                    .values_mut()
                    .for_each(|settled_after| *settled_after = round + 1);
            }
        }
        let (ready, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.commit.waiting)
            .into_iter()
            .partition(|waiting| waiting.round <= round);
        self.commit.waiting = waiting;
        for WaitingAnswer { ticket, key, answer, .. } in ready {
            let answer = match failed {
                None => answer,
                Some(error) => {
                    self.undo_put(key, out);
                    Answer::Refused(RefusedReason::DeviceFailed(error))
                }
            };
            self.finish_change(ticket, key, answer, out);
        }
        if !self.commit.waiting.is_empty() {
            self.begin_commit(out);
        }
        if self.ledger.has_changed() && self.commit_by.is_none() && !self.commit.running {
            self.commit_by = Some(self.now + self.settings.store.flush_after);
        }
        self.settle_opening(failed, out);
    }

    /// During an opening, handles the end of a commit. The store starts to serve once the ledger
    /// (the list of valid record files) is durable and correct: it excludes all files that the scan
    /// did not add to the index.
    fn settle_opening(&mut self, failed: Option<IoError>, out: &mut Outbox) {
        if !matches!(self.phase, UfsPhase::Settling) {
            return;
        }
        match failed {
            None if !self.ledger.has_changed() => self.serve(),
            Some(error) if self.commit.gives_up() => {
                self.fail_for_good(OpenStoreError::Device(error))
            }
            _ => self.begin_commit(out),
        }
    }

    pub(super) fn serve(&mut self) {
        self.phase = UfsPhase::Serving;
        self.observer.status.set(StoreStatus::Serving);
        self.update_gauges();
    }
}

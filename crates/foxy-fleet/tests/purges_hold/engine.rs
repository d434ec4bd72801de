//! A simulated engine, with one log and the records. It can lose entries.

use foxy_base::Random;
use foxy_fleet::purges::engine::{Append, Appended, LogView, MAX_VIEW_ENTRIES};
use foxy_fleet::purges::entry::Process;
use foxy_fleet::purges::lease::MemberRecord;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct SimEngine {
    pub incarnation: u64,
    pub is_up: bool,
    log: Vec<(u64, Vec<u8>)>,
    highest: u64,
    records: BTreeMap<Process, MemberRecord>,
}

impl SimEngine {
    pub fn new() -> Self {
        Self { incarnation: 1, is_up: true, ..Self::default() }
    }

    pub fn append(&mut self, append: &Append) -> Appended {
        if append.position <= self.highest {
            return Appended::Taken;
        }
        self.highest = append.position;
        if append.drops_earlier {
            self.log.clear();
        }
        self.log.push((append.position, append.bytes.clone()));
        Appended::Done
    }

    pub fn write(&mut self, record: Option<&MemberRecord>, gone: &[Process]) {
        if let Some(record) = record {
            self.records.insert(record.process.clone(), record.clone());
        }
        gone.iter().for_each(|process| drop(self.records.remove(process)));
    }

    pub fn records(&self) -> Vec<MemberRecord> {
        self.records.values().cloned().collect()
    }

    pub fn log(&self, after: u64) -> LogView {
        let is_next = |entry: &&(u64, Vec<u8>)| entry.0 > after;
        LogView {
            first: self.log.first().map_or(0, |(position, _)| *position),
            tail: self.highest,
            count: self.log.len() as u64,
            last: self.log.last().map(|(_, bytes)| bytes.clone()),
            entries: self.log.iter().filter(is_next).take(MAX_VIEW_ENTRIES).cloned().collect(),
            records: Vec::new(),
        }
    }

    /// Starts again without the last `lost` entries. If entries are lost, some records are lost
    /// too.
    pub fn restart(&mut self, lost: usize, random: &mut Random) {
        self.incarnation += 1;
        self.is_up = true;
        self.log.truncate(self.log.len().saturating_sub(lost));
        self.highest = self.log.last().map_or(0, |(position, _)| *position);
        if lost > 0 {
            self.records.retain(|_, _| random.chance(0.5));
        }
    }

    /// Removes an entry from the log, as Redis's XDEL does.
    pub fn remove_one(&mut self, random: &mut Random) {
        if !self.log.is_empty() {
            let number = random.below(self.log.len() as u64) as usize;
            self.log.remove(number);
        }
    }

    /// Takes the last entries out of the log, and forgets that the log had them.
    pub fn roll_back(&mut self, lost: usize) {
        self.log.truncate(self.log.len().saturating_sub(lost));
        self.highest = self.log.last().map_or(self.highest, |(position, _)| *position);
    }

    /// Drops the oldest entries except `keep`, as Redis does with a limit of the log's length.
    pub fn trim(&mut self, keep: usize) {
        let more = self.log.len().saturating_sub(keep);
        self.log.drain(..more);
    }
}

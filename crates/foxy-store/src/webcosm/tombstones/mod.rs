//! What is forgotten, who waits for it, and which facts only the journal knows yet: the journal in
//! memory. It does no IO.
//!
//! A fact is born in the journal, goes into the summary of the segment that each log writes at the
//! time, and is dropped from the journal once those summaries are durable. A summary lives longer
//! than anything in its log that the fact is about, because each log gives segments up in the order
//! in which they were written.

pub(crate) mod forget;
pub(crate) mod io_sequence;

use crate::contract::{Key, Record, Ticket};
use crate::layout::{PAGE, Region};
use crate::one_file::journal::{BLOCK_BYTES, Forget};
use crate::webcosm::format::geometry::{LogName, Position, Segment, Sequence};
use crate::webcosm::format::summary::Fact;
use crate::webcosm::index::Tag;
use foxy_device::IoError;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// The tag of facts that say a whole segment is void: it ended without a summary. No key has it.
const VOID: Tag = Tag(u64::MAX);

/// The tag of what every block says besides its facts. No key has it either.
const MARK: Tag = Tag(u64::MAX - 1);

impl Fact {
    /// That a segment is not to be looked for.
    #[must_use]
    pub fn void(segment: Segment) -> Self {
        Self::void_at(segment, 0)
    }

    /// The same, because the slot it would lie in is retired.
    #[must_use]
    pub fn retired(segment: Segment) -> Self {
        Self::void_at(segment, 1)
    }

    fn void_at(segment: Segment, page: u32) -> Self {
        let mut up_to = [Position::default(); 2];
        up_to[segment.log as usize] = Position::new(segment, page);
        Self { tag: VOID, up_to }
    }

    /// Whether it says that the slot of a segment that is void is retired.
    #[must_use]
    pub fn retires(&self) -> bool {
        self.voided().is_some_and(|segment| *self == Self::retired(segment))
    }

    /// The segment that is void, if it says that.
    #[must_use]
    pub fn voided(&self) -> Option<Segment> {
        let log =
            if self.up_to[1] == Position::default() { LogName::Main } else { LogName::Probation };
        (self.tag == VOID).then(|| self.up_to[log as usize].segment())
    }

    /// Of each log, the first segment that counts and the first whose summary may not be durable.
    #[must_use]
    pub fn mark(marks: [(Sequence, Sequence); 2]) -> Self {
        let pack = |(tail, durable_end)| Position(u64::from(tail) << 32 | u64::from(durable_end));
        Self { tag: MARK, up_to: marks.map(pack) }
    }

    /// What a mark says, if it is one.
    #[must_use]
    pub fn marked(&self) -> Option<[(Sequence, Sequence); 2]> {
        (self.tag == MARK)
            .then(|| self.up_to.map(|packed| ((packed.0 >> 32) as Sequence, packed.0 as Sequence)))
    }

    /// As the journal has it.
    #[must_use]
    pub fn to_forget(self) -> Forget {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&self.tag.0.to_le_bytes());
        key[8..].copy_from_slice(&self.up_to[1].0.to_le_bytes());
        Forget { key: Key(key), up_to: self.up_to[0].0 }
    }

    /// From the journal.
    #[must_use]
    pub fn of_forget(forget: &Forget) -> Self {
        let (mut tag, mut probation) = ([0; 8], [0; 8]);
        tag.copy_from_slice(&forget.key.0[..8]);
        probation.copy_from_slice(&forget.key.0[8..]);
        let up_to = [forget.up_to, u64::from_le_bytes(probation)].map(Position);
        Self { tag: Tag(u64::from_le_bytes(tag)), up_to }
    }
}

/// Someone waits for a fact to be durable.
#[derive(Debug)]
pub struct Wanted {
    /// Whose request it is.
    pub ticket: Ticket,
    /// Whose record.
    pub key: Key,
    /// Its tag.
    pub tag: Tag,
    /// What is to be stored then; nothing for a removal.
    pub record: Option<Record>,
    /// Bytes of the whole object that the record belongs to.
    pub whole: u64,
}

impl Wanted {
    fn length(&self) -> usize {
        self.record.as_ref().map_or(0, Record::len)
    }
}

/// The journal in memory.
#[derive(Debug, Default)]
pub struct Forgetting {
    /// Who waits for the next commit.
    pub queue: VecDeque<Wanted>,
    waiting: HashMap<Tag, u32>,
    /// Bytes of the records that wait.
    pub bytes: usize,
    /// Facts that no summary of each log has yet.
    unsealed: [Vec<Fact>; 2],
    /// Facts that the journal does not have either.
    pub unwritten: Vec<Fact>,
    sealed: [VecDeque<(Sequence, Vec<Fact>)>; 2],
    half: Option<Region>,
    /// Where the next commit goes.
    pub next_block: u32,
    /// Why nothing can be appended any more.
    pub broken: Option<IoError>,
    /// The journal has no room until summaries are durable.
    pub crowded: bool,
}

impl Forgetting {
    /// Appends go to this half from now on, after the blocks already in it.
    pub const fn begin(&mut self, half: Region, next_block: u32) {
        self.half = Some(half);
        self.next_block = next_block;
    }

    /// Blocks of a journal half.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.half.map_or(0, |half| half.pages * PAGE as u32 / BLOCK_BYTES as u32)
    }

    /// Lets a request wait.
    pub fn enqueue(&mut self, wanted: Wanted) {
        *self.waiting.entry(wanted.tag).or_default() += 1;
        self.bytes += wanted.length();
        self.queue.push_back(wanted);
    }

    /// One waits no more.
    pub fn arrived(&mut self, wanted: &Wanted) {
        self.bytes -= wanted.length();
        if let Some(count) = self.waiting.get_mut(&wanted.tag) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(&wanted.tag);
            }
        }
    }

    /// Whether a request of this tag waits.
    #[must_use]
    pub fn awaits(&self, tag: Tag) -> bool {
        self.waiting.contains_key(&tag)
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Nobody waits any more.
    pub fn give_up(&mut self) -> Vec<Ticket> {
        self.waiting.clear();
        self.bytes = 0;
        self.queue.drain(..).map(|wanted| wanted.ticket).collect()
    }

    /// A fact is to be kept.
    pub fn add(&mut self, fact: Fact) {
        self.unsealed.iter_mut().for_each(|unsealed| unsealed.push(fact));
    }

    /// Facts that no summary of a log has yet.
    #[must_use]
    pub const fn unsealed(&self, log: LogName) -> usize {
        self.unsealed[log as usize].len()
    }

    /// Takes facts for the summary of a segment.
    pub fn seal(&mut self, Segment { log, sequence }: Segment, most: usize) -> Vec<Fact> {
        let unsealed = &mut self.unsealed[log as usize];
        let facts: Vec<_> = unsealed.drain(..most.min(unsealed.len())).collect();
        self.sealed[log as usize].push_back((sequence, facts.clone()));
        facts
    }

    /// A summary could not be written: its facts need another.
    pub fn unseal(&mut self, Segment { log, sequence }: Segment) {
        let sealed = &mut self.sealed[log as usize];
        if let Some(place) = sealed.iter().position(|(other, _)| *other == sequence) {
            let (_, facts) = sealed.remove(place).expect("just found");
            self.unsealed[log as usize].extend(facts);
        }
    }

    /// Summaries of a log's segments before `end` are durable.
    pub fn release(&mut self, log: LogName, end: Sequence) {
        self.sealed[log as usize].retain(|(sequence, _)| *sequence >= end);
    }

    /// All facts that the journal must keep.
    #[must_use]
    pub fn needed(&self) -> Vec<Fact> {
        let sealed = self.sealed.iter().flatten().flat_map(|(_, facts)| facts);
        let all: BTreeSet<_> = sealed.chain(self.unsealed.iter().flatten()).copied().collect();
        all.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_kept_until_both_its_summaries_are_durable() {
        let segment = |log, sequence| Segment { log, sequence };
        let fact = |n| Fact { tag: Tag(n), up_to: [Position(4096); 2] };
        let mut forgetting = Forgetting::default();
        (1..4).for_each(|n| forgetting.add(fact(n)));
        assert_eq!(forgetting.seal(segment(LogName::Main, 5), 2), [fact(1), fact(2)]);
        assert_eq!(forgetting.seal(segment(LogName::Main, 6), 9), [fact(3)]);
        assert_eq!(forgetting.seal(segment(LogName::Probation, 1), 9), [fact(1), fact(2), fact(3)]);
        forgetting.release(LogName::Main, 6);
        assert_eq!(forgetting.needed(), [fact(1), fact(2), fact(3)]);
        forgetting.release(LogName::Probation, 2);
        assert_eq!(forgetting.needed(), [fact(3)]);
        forgetting.unseal(segment(LogName::Main, 6));
        forgetting.release(LogName::Main, 9);
        assert_eq!(forgetting.needed(), [fact(3)], "its summary failed");
    }

    #[test]
    fn facts_come_back_from_the_journal() {
        let void = Segment { log: LogName::Probation, sequence: 12 };
        let marks = [(1, 2), (3, u32::MAX)];
        for fact in [
            Fact { tag: Tag(77), up_to: [Position(3), Position(9)] },
            Fact::void(void),
            Fact::mark(marks),
        ] {
            assert_eq!(Fact::of_forget(&fact.to_forget()), fact);
        }
        assert_eq!(Fact::void(void).voided(), Some(void));
        assert_eq!(
            Fact::void(Segment { log: LogName::Main, sequence: 0 })
                .voided()
                .map(|void| void.sequence),
            Some(0)
        );
        let retired = Fact::retired(void);
        assert_eq!(
            (retired.voided(), retired.retires(), Fact::void(void).retires()),
            (Some(void), true, false)
        );
        assert_eq!((Fact::mark(marks).marked(), Fact::mark(marks).voided()), (Some(marks), None));
    }
}

//! W-TinyLFU (Einziger, Friedman and Manes, ACM ToS 2017), weighted by bytes: newcomers live in a
//! window of a hundredth of the space; what leaves it is a candidate that stays only if it was
//! asked for more often, by the sketch, than whoever would go for it. The rest is a segmented LRU,
//! four fifths of it protected. A candidate that loses is named as the victim; one that nobody had
//! to make room for by the next insertion is in, so an owner that evicts in batches has fewer
//! judged.

mod sketch;

use super::{Policy, PolicySettings, place};
use crate::lru::{Links, Lru as Order};
pub(super) use sketch::Sketch;

/// Where an entry is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Segment {
    #[default]
    Window,
    Candidate,
    Probation,
    Protected,
}

#[derive(Clone, Default)]
struct LfuSlot {
    key_hash: u64,
    size: u64,
    segment: Segment,
}

#[derive(Default)]
struct Queue {
    order: Order,
    bytes: u64,
}

/// The policy.
pub(super) struct WTinyLfu {
    links: Vec<Links>,
    slots: Vec<LfuSlot>,
    /// By [`Segment`].
    queues: [Queue; 4],
    window_target: u64,
    protected_target: u64,
    sketch: Sketch,
    entries: usize,
}

impl WTinyLfu {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        let window_target = settings.capacity / 100;
        Self {
            links: Vec::new(),
            slots: Vec::new(),
            queues: Default::default(),
            window_target,
            protected_target: (settings.capacity - window_target) / 5 * 4,
            sketch: Sketch::default(),
            entries: 0,
        }
    }

    fn coldest(&self, segment: Segment) -> Option<u32> {
        self.queues[segment as usize].order.coldest()
    }

    fn bytes(&self, segment: Segment) -> u64 {
        self.queues[segment as usize].bytes
    }

    fn push(&mut self, entry: u32, segment: Segment) {
        let slot = &mut self.slots[entry as usize];
        slot.segment = segment;
        let queue = &mut self.queues[segment as usize];
        queue.bytes += slot.size;
        queue.order.push(&mut self.links, entry);
    }

    fn unlink(&mut self, entry: u32) {
        let slot = &self.slots[entry as usize];
        let queue = &mut self.queues[slot.segment as usize];
        queue.bytes -= slot.size;
        queue.order.remove(&mut self.links, entry);
    }

    fn shift(&mut self, entry: u32, to: Segment) {
        self.unlink(entry);
        self.push(entry, to);
    }

    /// Moves the coldest of a segment on while it holds more than `target` bytes.
    fn overflow(&mut self, from: Segment, target: u64, to: Segment) {
        while self.bytes(from) > target
            && let Some(entry) = self.coldest(from)
        {
            self.shift(entry, to);
        }
    }

    fn frequency(&self, entry: u32) -> u8 {
        self.sketch.frequency(self.slots[entry as usize].key_hash)
    }
}

impl Policy for WTinyLfu {
    fn insert(&mut self, entry: u32, key_hash: u64, size: u64) {
        while let Some(candidate) = self.coldest(Segment::Candidate) {
            self.shift(candidate, Segment::Probation);
        }
        self.entries += 1;
        self.sketch.fit(self.entries);
        self.sketch.add(key_hash);
        place(&mut self.links, entry);
        *place(&mut self.slots, entry) = LfuSlot { key_hash, size, segment: Segment::Window };
        self.push(entry, Segment::Window);
        self.overflow(Segment::Window, self.window_target, Segment::Candidate);
    }

    fn touch(&mut self, entry: u32) {
        let LfuSlot { key_hash, segment, .. } = self.slots[entry as usize];
        self.sketch.add(key_hash);
        let to = if segment == Segment::Window { Segment::Window } else { Segment::Protected };
        self.shift(entry, to);
        self.overflow(Segment::Protected, self.protected_target, Segment::Probation);
    }

    fn victim(&mut self) -> Option<u32> {
        let incumbent =
            self.coldest(Segment::Probation).or_else(|| self.coldest(Segment::Protected));
        match (self.coldest(Segment::Candidate), incumbent) {
            (Some(candidate), Some(incumbent)) => {
                let admitted = self.frequency(candidate) > self.frequency(incumbent);
                Some(if admitted { incumbent } else { candidate })
            }
            (candidate, incumbent) => {
                candidate.or(incumbent).or_else(|| self.coldest(Segment::Window))
            }
        }
    }

    fn remove(&mut self, entry: u32) {
        self.unlink(entry);
        self.entries -= 1;
    }

    fn coldest_first(&mut self) -> Vec<u32> {
        let segments =
            [Segment::Candidate, Segment::Probation, Segment::Protected, Segment::Window];
        let (links, queues) = (&mut self.links, &self.queues);
        segments
            .iter()
            .flat_map(|&segment| queues[segment as usize].order.coldest_first(links))
            .collect()
    }

    fn memory(&self) -> usize {
        self.links.capacity() * size_of::<Links>()
            + self.slots.capacity() * size_of::<LfuSlot>()
            + self.sketch.memory()
    }
}

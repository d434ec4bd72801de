//! Simple models of the policies, written from their definitions with plain lists and full scans. A
//! test checks that a policy and its model evict the same entries.

use super::super::w_tiny_lfu::Sketch;
use super::{CAPACITY, PolicyName};
use foxy_store::worth::Distance;

/// A simple, slow implementation of a policy.
pub(super) trait Model {
    fn insert(&mut self, entry: u32, key_hash: u64, size: u64);
    fn touch(&mut self, entry: u32);
    fn victim(&mut self) -> Option<u32>;
    fn remove(&mut self, entry: u32);
}

pub(super) fn of(name: PolicyName) -> Box<dyn Model> {
    let ranked = |key| Box::new(Ranked { key, items: Vec::new(), age: 0.0, uses: 0 });
    match name {
        PolicyName::Lru | PolicyName::LruThreshold => {
            Box::new(Line { moves: true, items: Vec::new() })
        }
        PolicyName::Fifo => Box::new(Line { moves: false, items: Vec::new() }),
        PolicyName::HeapLru => ranked(|_, _, _, number| number as f64),
        PolicyName::Gdsf => ranked(|age, frequency, size, _| age + frequency / size.max(1) as f64),
        PolicyName::Lfuda => ranked(|age, frequency, _, _| age + frequency),
        PolicyName::S3Fifo => Box::new(S3Fifo::default()),
        PolicyName::Sieve => Box::new(Sieve::default()),
        PolicyName::WTinyLfu => Box::new(WTinyLfu::default()),
        PolicyName::Webcosm => Box::new(Webcosm::default()),
    }
}

/// A model of LRU and FIFO: entries in the order of their last use or of their arrival.
struct Line {
    moves: bool,
    items: Vec<u32>,
}

impl Model for Line {
    fn insert(&mut self, entry: u32, _: u64, _: u64) {
        self.items.push(entry);
    }

    fn touch(&mut self, entry: u32) {
        if self.moves {
            self.remove(entry);
            self.items.push(entry);
        }
    }

    fn victim(&mut self) -> Option<u32> {
        self.items.first().copied()
    }

    fn remove(&mut self, entry: u32) {
        self.items.retain(|&other| other != entry);
    }
}

struct RankedItem {
    entry: u32,
    size: u64,
    frequency: f64,
    key: f64,
    number: u64,
}

/// A model of the heap policies. `key` computes an entry's key from age, frequency, size and the
/// number of the last use.
struct Ranked {
    key: fn(f64, f64, u64, u64) -> f64,
    items: Vec<RankedItem>,
    age: f64,
    uses: u64,
}

impl Model for Ranked {
    fn insert(&mut self, entry: u32, _: u64, size: u64) {
        self.items.push(RankedItem { entry, size, frequency: 0.0, key: 0.0, number: 0 });
        self.touch(entry);
    }

    fn touch(&mut self, entry: u32) {
        self.uses += 1;
        let item = self.items.iter_mut().find(|item| item.entry == entry).expect("present");
        item.frequency += 1.0;
        item.number = self.uses;
        item.key = (self.key)(self.age, item.frequency, item.size, item.number);
    }

    fn victim(&mut self) -> Option<u32> {
        let before = |a: &&RankedItem, b: &&RankedItem| {
            a.key.total_cmp(&b.key).then(a.number.cmp(&b.number))
        };
        let item = self.items.iter().min_by(before)?;
        self.age = item.key;
        Some(item.entry)
    }

    fn remove(&mut self, entry: u32) {
        self.items.retain(|item| item.entry != entry);
    }
}

/// A model of SIEVE: entries from oldest to newest, each with its bit for "used". The hand is the
/// index of an entry. It never evicts the newest entry.
#[derive(Default)]
struct Sieve {
    items: Vec<(u32, bool)>,
    hand: Option<u32>,
}

impl Sieve {
    fn index(&self, entry: u32) -> usize {
        self.items.iter().position(|item| item.0 == entry).expect("present")
    }
}

impl Model for Sieve {
    fn insert(&mut self, entry: u32, _: u64, _: u64) {
        self.items.push((entry, false));
    }

    fn touch(&mut self, entry: u32) {
        let index = self.index(entry);
        self.items[index].1 = true;
    }

    fn victim(&mut self) -> Option<u32> {
        let turns = self.items.len().saturating_sub(1).max(1);
        let mut index = self.hand.map_or(0, |hand| self.index(hand)) % turns;
        loop {
            let (entry, visited) = self.items.get_mut(index)?;
            if !*visited {
                self.hand = Some(*entry);
                return self.hand;
            }
            *visited = false;
            index = (index + 1) % turns;
        }
    }

    fn remove(&mut self, entry: u32) {
        let index = self.index(entry);
        self.items.remove(index);
        if self.hand == Some(entry) {
            self.hand =
                self.items.get(index).map(|item| item.0).filter(|_| index + 1 < self.items.len());
        }
    }
}

#[derive(Clone, Copy)]
struct Item {
    entry: u32,
    key_hash: u64,
    size: u64,
    frequency: u32,
}

fn take(list: &mut Vec<Item>, entry: u32) -> Option<Item> {
    let index = list.iter().position(|item| item.entry == entry)?;
    Some(list.remove(index))
}

fn bytes(list: &[Item]) -> u64 {
    list.iter().map(|item| item.size).sum()
}

/// A model of S3-FIFO: three lists from oldest to newest. If an entry of the ghost list is
/// requested again, its place in this list stays empty until it is the oldest.
#[derive(Default)]
struct S3Fifo {
    small: Vec<Item>,
    main: Vec<Item>,
    ghost: Vec<Option<Item>>,
    named: Option<u32>,
}

impl S3Fifo {
    fn leave_ghost(&mut self, key_hash: u64) -> bool {
        let found =
            self.ghost.iter_mut().find(|gone| gone.is_some_and(|gone| gone.key_hash == key_hash));
        found.is_some_and(|gone| gone.take().is_some())
    }
}

impl Model for S3Fifo {
    fn insert(&mut self, entry: u32, key_hash: u64, size: u64) {
        let known = self.leave_ghost(key_hash);
        let list = if known { &mut self.main } else { &mut self.small };
        list.push(Item { entry, key_hash, size, frequency: 0 });
    }

    fn touch(&mut self, entry: u32) {
        let mut all = self.small.iter_mut().chain(&mut self.main);
        let item = all.find(|item| item.entry == entry).expect("present");
        item.frequency = (item.frequency + 1).min(3);
    }

    fn victim(&mut self) -> Option<u32> {
        loop {
            let from_small = self.main.is_empty()
                || !self.small.is_empty() && bytes(&self.small) >= CAPACITY / 10;
            let list = if from_small { &mut self.small } else { &mut self.main };
            let oldest = *list.first()?;
            if oldest.frequency == 0 || from_small && oldest.frequency == 1 {
                self.named = Some(oldest.entry);
                return self.named;
            }
            list.remove(0);
            let frequency = if from_small { 0 } else { oldest.frequency - 1 };
            self.main.push(Item { frequency, ..oldest });
        }
    }

    fn remove(&mut self, entry: u32) {
        let named = self.named.take_if(|named| *named == entry).is_some();
        let Some(item) = take(&mut self.small, entry) else {
            take(&mut self.main, entry).expect("present");
            return;
        };
        if !named {
            return;
        }
        self.leave_ghost(item.key_hash);
        self.ghost.push(Some(item));
        let kept =
            |ghost: &[Option<Item>]| ghost.iter().flatten().map(|item| item.size).sum::<u64>();
        while self.ghost.len() > self.small.len() + self.main.len()
            || kept(&self.ghost) > CAPACITY - CAPACITY / 10
        {
            self.ghost.remove(0);
        }
    }
}

/// A model of W-TinyLFU: four lists from the least to the most recently used entry. The model uses
/// the policy's own sketch of use counts, which has separate tests.
#[derive(Default)]
struct WTinyLfu {
    window: Vec<Item>,
    candidates: Vec<Item>,
    probation: Vec<Item>,
    protected: Vec<Item>,
    sketch: Sketch,
}

impl Model for WTinyLfu {
    fn insert(&mut self, entry: u32, key_hash: u64, size: u64) {
        self.probation.append(&mut self.candidates);
        self.window.push(Item { entry, key_hash, size, frequency: 0 });
        let all = [&self.window, &self.probation, &self.protected];
        self.sketch.fit(all.iter().map(|list| list.len()).sum());
        self.sketch.add(key_hash);
        while bytes(&self.window) > CAPACITY / 100 {
            self.candidates.push(self.window.remove(0));
        }
    }

    fn touch(&mut self, entry: u32) {
        if let Some(item) = take(&mut self.window, entry) {
            self.sketch.add(item.key_hash);
            return self.window.push(item);
        }
        let lists = [&mut self.candidates, &mut self.probation, &mut self.protected];
        let item = lists.into_iter().find_map(|list| take(list, entry)).expect("present");
        self.sketch.add(item.key_hash);
        self.protected.push(item);
        while bytes(&self.protected) > (CAPACITY - CAPACITY / 100) * 4 / 5 {
            self.probation.push(self.protected.remove(0));
        }
    }

    fn victim(&mut self) -> Option<u32> {
        let incumbent = self.probation.first().or(self.protected.first());
        let seen = |item: &Item| self.sketch.frequency(item.key_hash);
        let loser = match (self.candidates.first(), incumbent) {
            (Some(candidate), Some(incumbent)) if seen(candidate) > seen(incumbent) => {
                Some(incumbent)
            }
            (Some(candidate), _) => Some(candidate),
            (None, incumbent) => incumbent.or(self.window.first()),
        };
        loser.map(|item| item.entry)
    }

    fn remove(&mut self, entry: u32) {
        let lists =
            [&mut self.window, &mut self.candidates, &mut self.probation, &mut self.protected];
        lists.into_iter().find_map(|list| take(list, entry)).expect("present");
    }
}

/// A model of the rules of webcosm: two lists from oldest to newest. `frequency` contains the use
/// counts. The ghost list has at most eight places. A hash that was taken from this list leaves its
/// place empty.
#[derive(Default)]
struct Webcosm {
    main: Vec<Item>,
    probation: Vec<Item>,
    ghost: Vec<Option<u64>>,
    was_full: bool,
    allowance: i64,
    named: Option<u32>,
}

impl Webcosm {
    fn distance(&self, size: u64) -> Distance {
        let count = self.main.len() + self.probation.len();
        let mean = (bytes(&self.main) + bytes(&self.probation)) / (count as u64).max(1);
        Distance::between(size, mean)
    }

    fn allow(&mut self, quarters: u64) {
        let most = 4 * (CAPACITY as i64 / 256);
        self.allowance = (self.allowance + quarters as i64).min(most.max(self.allowance));
    }

    fn leave_ghost(&mut self, key_hash: u64) -> bool {
        let found = self.ghost.iter_mut().find(|gone| **gone == Some(key_hash));
        found.is_some_and(|gone| gone.take().is_some())
    }
}

impl Model for Webcosm {
    fn insert(&mut self, entry: u32, key_hash: u64, size: u64) {
        let (distance, is_known) = (self.distance(size), self.leave_ghost(key_hash));
        let waits = self.was_full && distance.is_large() && !is_known && size <= CAPACITY / 16;
        let list = if waits { &mut self.probation } else { &mut self.main };
        list.push(Item { entry, key_hash, size, frequency: u32::from(distance.first_uses()) });
    }

    fn touch(&mut self, entry: u32) {
        let mut all = self.main.iter_mut().chain(&mut self.probation);
        let item = all.find(|item| item.entry == entry).expect("present");
        item.frequency = (item.frequency + 1).min(3);
        let size = item.size;
        self.allow(size);
    }

    fn victim(&mut self) -> Option<u32> {
        self.was_full = true;
        loop {
            let from_main = bytes(&self.probation) <= CAPACITY / 8 && !self.main.is_empty();
            let list = if from_main { &self.main } else { &self.probation };
            let oldest = *list.first().or(self.main.first())?;
            if self.named == Some(oldest.entry) {
                return self.named;
            }
            self.allow(4 * oldest.size / 32);
            let uses = self.distance(oldest.size).uses_after_copy(oldest.frequency as u8);
            if let Some(uses) = uses.filter(|_| self.allowance > 0) {
                self.allowance -= 4 * oldest.size as i64;
                take(&mut self.main, oldest.entry);
                take(&mut self.probation, oldest.entry);
                self.main.push(Item { frequency: u32::from(uses), ..oldest });
            } else {
                self.named = Some(oldest.entry);
            }
        }
    }

    fn remove(&mut self, entry: u32) {
        take(&mut self.main, entry);
        let item = take(&mut self.probation, entry);
        let named = self.named.take_if(|named| *named == entry);
        if let Some(item) = item.filter(|_| named.is_some()) {
            self.leave_ghost(item.key_hash);
            self.ghost.push(Some(item.key_hash));
            if self.ghost.len() > 8 {
                self.ghost.remove(0);
            }
        }
    }
}

//! The Collector's table of answers. The table decides how to answer each request: with a stored
//! answer, by a running fetch, or by a new fetch. A new fetch can also ask the origin whether a
//! stored answer is still current.
//!
//! Each answer has an entry, its slot. [`Table::find`] makes a slot for a running fetch.
//! [`Table::head`] records the `Vary` fields of the answer, and [`Table::stands`] marks the answer
//! complete. After the lifetime of the answer, the table deletes the slot or keeps it for
//! revalidation.

pub mod condition;
pub mod lifetime;
#[cfg(test)]
mod tests;

use crate::wire::key::RequestKey;
use foxy_base::Instant;
use foxy_http::Headers;
use lifetime::Lifetime;
use std::collections::{BTreeSet, HashMap};

/// The number of a slot (an entry of the table). The table never uses a number again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u64);

#[derive(Debug, PartialEq, Eq)]
pub enum Decision<T> {
    Answer(T),
    Fetch(Slot, T),
    /// Ask the origin whether an older answer (the third value) is still current. The result goes
    /// to the new slot and its answer (the first two values).
    Validate(Slot, T, T),
}

#[derive(Debug)]
struct Known<T> {
    answer: T,
    key: u128,
    /// The request fields that the answer's `Vary` lists, with their values in the request of the
    /// fetch. The list is empty until the head arrives.
    depends: Vec<(String, Vec<u8>)>,
    /// The time at which the origin sent or confirmed the answer, and the lifetime from then on.
    /// `None` while the fetch runs.
    stands: Option<(Instant, Lifetime)>,
    /// The memory of the slot (an entry of the table) in bytes, without the body of its answer.
    weight: usize,
    used: u64,
}

#[derive(Debug)]
pub struct Table<T> {
    slots: HashMap<Slot, Known<T>>,
    by_key: HashMap<u128, Vec<Slot>>,
    by_use: BTreeSet<(u64, Slot)>,
    ends: BTreeSet<(Instant, Slot)>,
    clock: u64,
    weight: usize,
    most: usize,
    evicted: u64,
}

impl<T: Clone> Table<T> {
    /// Creates an empty table. `most` is the memory limit in bytes of all slots (entries) together,
    /// without bodies.
    pub fn new(most: usize) -> Self {
        Self {
            slots: HashMap::new(),
            by_key: HashMap::new(),
            by_use: BTreeSet::new(),
            ends: BTreeSet::new(),
            clock: 0,
            weight: 0,
            most,
            evicted: 0,
        }
    }

    /// Decides how to answer a request. `make` creates an empty answer if the request needs a new
    /// slot (entry).
    pub fn find(
        &mut self,
        asked: &RequestKey,
        fields: &Headers,
        now: Instant,
        make: impl FnOnce() -> T,
    ) -> Decision<T> {
        self.forget(now);
        let strict = asked.reload || asked.conditional.is_some();
        let whole = self.matching(asked.key, fields);
        let usable = whole.filter(|slot| self.is_usable(*slot, strict, now));
        let short = || {
            let short = self.matching(asked.conditional?, fields)?;
            self.is_usable(short, strict, now).then_some(short)
        };
        if let Some(slot) = usable.or_else(short) {
            return Decision::Answer(self.touch(slot));
        }
        let stale =
            whole.filter(|slot| asked.conditional.is_none() && self.can_be_asked_about(*slot));
        let stale = stale.map(|slot| self.touch(slot));
        let (answer, slot) = (make(), Slot(self.clock));
        self.clock += 1;
        let key = asked.conditional.unwrap_or(asked.key);
        let known = Known {
            answer: answer.clone(),
            key,
            depends: Vec::new(),
            stands: None,
            weight: 0,
            used: 0,
        };
        self.slots.insert(slot, known);
        self.by_key.entry(key).or_default().push(slot);
        match stale {
            Some(stale) => Decision::Validate(slot, answer, stale),
            None => Decision::Fetch(slot, answer),
        }
    }

    fn matching(&self, key: u128, fields: &Headers) -> Option<Slot> {
        let slots = self.by_key.get(&key)?;
        slots.iter().rev().copied().find(|slot| depends_alike(&self.slots[slot].depends, fields))
    }

    /// Whether the answer in a slot (an entry of the table) may answer a request. A reload or a
    /// conditional request (`strict`) needs an answer that the origin sent or confirmed in the last
    /// three minutes. The answer of a fetch that is still running may always be used.
    fn is_usable(&self, slot: Slot, strict: bool, now: Instant) -> bool {
        self.slots[&slot].stands.is_none_or(|(heard, lifetime)| {
            let fresh =
                if strict { lifetime.fresh.min(lifetime::AT_LEAST) } else { lifetime.fresh };
            now.since(heard) < fresh
        })
    }

    fn can_be_asked_about(&self, slot: Slot) -> bool {
        self.slots[&slot].stands.is_some_and(|(_, lifetime)| lifetime.validated)
    }

    fn touch(&mut self, slot: Slot) -> T {
        let (clock, known) = (self.clock, self.slots.get_mut(&slot).expect("it was just found"));
        if known.stands.is_some() {
            self.by_use.remove(&(known.used, slot));
            self.by_use.insert((clock, slot));
        }
        known.used = clock;
        self.clock += 1;
        known.answer.clone()
    }

    /// Records that the head of the answer in a slot (an entry of the table) has arrived. If the
    /// answer to a conditional request is a whole answer and no 304, it also serves requests
    /// without a condition.
    pub fn head(
        &mut self,
        slot: Slot,
        asked: &RequestKey,
        request: &Headers,
        answer: &Headers,
        whole: bool,
    ) {
        let Some(known) = self.slots.get_mut(&slot) else { return };
        known.depends = depends(request, answer);
        if whole && known.key != asked.key {
            let old = std::mem::replace(&mut known.key, asked.key);
            self.leave(old, slot);
            self.by_key.entry(asked.key).or_default().push(slot);
        }
    }

    /// Marks the answer of a slot (entry) as complete and removes older answers to equal requests.
    /// Then removes the least recently used slots until the table is within its memory limit.
    pub fn stands(&mut self, slot: Slot, lifetime: Lifetime, weight: usize, now: Instant) {
        let Some(known) = self.slots.get_mut(&slot) else { return };
        (known.stands, known.weight) = (Some((now, lifetime)), weight);
        let (key, depends) = (known.key, known.depends.clone());
        self.by_use.insert((known.used, slot));
        self.weight += weight;
        if !lifetime.validated {
            self.ends.insert((now + lifetime.fresh, slot));
        }
        let is_older = |other: &&Slot| {
            let known = &self.slots[*other];
            **other < slot && known.stands.is_some() && known.depends == depends
        };
        let older: Vec<Slot> = self.by_key[&key].iter().filter(is_older).copied().collect();
        for other in older {
            self.remove(other);
        }
        while self.weight > self.most && self.evict() {}
    }

    /// Removes a slot (an entry of the table). A request that already reads its answer can read on.
    pub fn remove(&mut self, slot: Slot) {
        let Some(known) = self.slots.remove(&slot) else { return };
        self.leave(known.key, slot);
        self.by_use.remove(&(known.used, slot));
        self.weight -= known.weight;
        if let Some((heard, lifetime)) = known.stands {
            self.ends.remove(&(heard + lifetime.fresh, slot));
        }
    }

    fn leave(&mut self, key: u128, slot: Slot) {
        if let Some(slots) = self.by_key.get_mut(&key) {
            slots.retain(|other| *other != slot);
            if slots.is_empty() {
                self.by_key.remove(&key);
            }
        }
    }

    pub fn evict(&mut self) -> bool {
        let oldest = self.by_use.first().map(|&(_, slot)| slot);
        oldest.is_some_and(|slot| {
            self.remove(slot);
            self.evicted += 1;
            true
        })
    }

    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    pub fn forget(&mut self, now: Instant) {
        while let Some(&(end, slot)) = self.ends.first()
            && end <= now
        {
            self.remove(slot);
        }
    }

    #[cfg(test)]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }
}

pub fn depends(request: &Headers, answer: &Headers) -> Vec<(String, Vec<u8>)> {
    let names = answer.tokens("vary").filter_map(|name| std::str::from_utf8(name).ok());
    names.map(|name| (name.to_ascii_lowercase(), value(request, name))).collect()
}

fn value(fields: &Headers, name: &str) -> Vec<u8> {
    fields.get_all(name).collect::<Vec<_>>().join(&b',')
}

/// Whether the request has the values that the answer's `Vary` demands. `Vary: *` names no field to
/// compare. The Collector (common parent proxy) shares such an answer with every request, although
/// a normal cache must not.
pub fn depends_alike(depends: &[(String, Vec<u8>)], fields: &Headers) -> bool {
    depends.iter().all(|(name, expected)| name == "*" || value(fields, name) == *expected)
}

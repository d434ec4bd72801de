//! The mailbox: the queue of requests for a shard's thread. The mailbox decides whether a new
//! request must wake the thread. [`crate::shard`] contains the lock around the mailbox, and wakes
//! the thread.

use crate::contract::{Key, RefusedReason};
use crate::key_map::KeySet;
use crate::settings::REMOVAL_FACTOR;
use crate::shard::Reply;
use crate::shard::engine::{Ask, Wake};
use std::collections::VecDeque;
use std::time::Duration;

/// Longest time for which a small put waits, so that the thread can process several puts together.
/// Waking the thread for each put would cost more than the put itself.
pub const MAX_DOZE: Duration = Duration::from_millis(1);

/// Puts of fewer bytes than this are small. A larger put wakes the thread at once. It is part of a
/// larger object, and its caller waits for the answer before it sends the next part.
const SMALL_PUT_BYTES: usize = 64 << 10;

/// Largest number of layout visits that wait for the thread. A layout visit is a function that
/// inspects the store's layout.
const MAX_VISITS: usize = 16;

/// When the thread next reads its mailbox if no request wakes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// The thread reads the mailbox before it sleeps.
    Awake,
    /// The thread sleeps, and reads the mailbox after [`MAX_DOZE`] at the latest.
    Dozing,
    /// The thread reads the mailbox only after it is woken.
    Asleep,
}

/// The requests that wait for the thread of a shard.
pub struct Mailbox {
    waiting: VecDeque<Wake<Reply>>,
    /// Number of bytes in all waiting puts.
    bytes: usize,
    /// Number of waiting layout visits (functions that inspect the store's layout).
    visits: usize,
    open: bool,
    thread: Attention,
    /// Whether a small put arrived after the thread last slept. If so, more small puts may follow
    /// soon.
    gathering: bool,
    /// Keys of the puts that wait in the mailbox.
    put: KeySet,
    /// Keys of the puts that the thread took from the mailbox last. The storage scheme may not have
    /// received all of these puts yet.
    taken: KeySet,
}

impl Mailbox {
    pub fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            visits: 0,
            open: true,
            thread: Attention::Awake,
            gathering: false,
            put: KeySet::default(),
            taken: KeySet::default(),
        }
    }

    pub const fn is_open(&self) -> bool {
        self.open
    }

    /// Returns whether a put of this key may still be on its way from the caller to the storage
    /// scheme.
    pub fn awaits(&self, key: Key) -> bool {
        self.put.contains(&key) || self.taken.contains(&key)
    }

    /// Returns the reason to refuse a request, or `None`. At most `requests` requests and `bytes`
    /// bytes of puts may wait in the mailbox. An empty mailbox accepts a put of any size.
    pub fn refuses(&self, ask: &Ask, requests: usize, bytes: usize) -> Option<RefusedReason> {
        if !self.open {
            return Some(RefusedReason::Closed);
        }
        let full = match ask {
            Ask::Remove(_) => self.waiting.len() >= REMOVAL_FACTOR * requests,
            Ask::Get(_) | Ask::Put(..) => {
                self.waiting.len() >= requests
                    || !self.waiting.is_empty() && self.bytes + length(ask) > bytes
            }
        };
        full.then_some(RefusedReason::Busy)
    }

    /// Returns whether one more layout visit (a function that inspects the store's layout) may wait
    /// in the mailbox.
    pub const fn accepts_visit(&self) -> bool {
        self.open && self.visits < MAX_VISITS
    }

    /// Adds an event to the mailbox. Returns whether the caller must wake the shard's thread.
    pub fn post(&mut self, wake: Wake<Reply>) -> bool {
        let small = is_small_put(&wake);
        let late = match self.thread {
            Attention::Awake => false,
            Attention::Dozing => !small,
            Attention::Asleep => true,
        };
        self.gathering |= small;
        if late {
            self.thread = Attention::Awake;
        }
        self.visits += usize::from(matches!(wake, Wake::Visit(_)));
        if let Wake::Request(ask, _) = &wake {
            self.bytes += length(ask);
            if let Ask::Put(key, ..) = ask {
                self.put.insert(*key);
            }
        }
        self.waiting.push_back(wake);
        late
    }

    /// Takes all waiting events: swaps them with the empty list `batch`. The thread calls this
    /// method after it has processed the events that it took before.
    pub fn take(&mut self, batch: &mut VecDeque<Wake<Reply>>) {
        self.thread = Attention::Awake;
        (self.bytes, self.visits) = (0, 0);
        self.taken.clear();
        std::mem::swap(&mut self.put, &mut self.taken);
        std::mem::swap(&mut self.waiting, batch);
    }

    /// Returns how the thread may sleep, or `None` if events are waiting. If more small puts may
    /// follow, the thread sleeps only briefly.
    pub fn rest(&mut self) -> Option<Attention> {
        if !self.waiting.is_empty() {
            return None;
        }
        self.thread =
            if std::mem::take(&mut self.gathering) { Attention::Dozing } else { Attention::Asleep };
        Some(self.thread)
    }

    /// Closes the mailbox and returns all events that still wait in it.
    pub fn shut(&mut self) -> VecDeque<Wake<Reply>> {
        self.open = false;
        std::mem::take(&mut self.waiting)
    }
}

/// Returns whether the event is a small put, which may wait for further puts before the thread
/// wakes.
fn is_small_put(wake: &Wake<Reply>) -> bool {
    matches!(wake, Wake::Request(Ask::Put(_, record, _), _) if record.len() < SMALL_PUT_BYTES)
}

fn length(ask: &Ask) -> usize {
    match ask {
        Ask::Put(_, record, _) => record.len(),
        Ask::Get(_) | Ask::Remove(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{PlacementHint, Record};

    const KEY: Key = Key([7; 16]);

    fn put(length: usize) -> Wake<Reply> {
        let record = Record { body: vec![0; length].into(), ..Record::default() };
        Wake::Request(Ask::Put(KEY, record, PlacementHint::default()), Box::new(|_| {}))
    }

    fn get() -> Wake<Reply> {
        Wake::Request(Ask::Get(KEY), Box::new(|_| {}))
    }

    #[test]
    fn small_puts_alone_do_not_wake_a_dozing_thread() {
        let mut mailbox = Mailbox::new();
        for (before, attention, wake, late) in [
            (put(1), Attention::Dozing, put(SMALL_PUT_BYTES - 1), false),
            (put(1), Attention::Dozing, put(SMALL_PUT_BYTES), true),
            (put(1), Attention::Dozing, get(), true),
            (put(SMALL_PUT_BYTES), Attention::Asleep, put(1), true),
            (get(), Attention::Asleep, get(), true),
        ] {
            mailbox.take(&mut VecDeque::new());
            assert!(mailbox.rest().is_some());
            mailbox.take(&mut VecDeque::new());
            assert!(!mailbox.post(before), "awake");
            assert_eq!(mailbox.rest(), None, "something waits");
            let mut batch = VecDeque::new();
            mailbox.take(&mut batch);
            assert_eq!((batch.len(), mailbox.rest()), (1, Some(attention)));
            assert_eq!(mailbox.post(wake), late, "{attention:?}");
        }
    }

    #[test]
    fn a_put_is_awaited_until_the_thread_comes_back_for_more() {
        let (mut mailbox, mut batch) = (Mailbox::new(), VecDeque::new());
        assert!(!mailbox.awaits(KEY) && !mailbox.post(put(1)) && mailbox.awaits(KEY));
        mailbox.take(&mut batch);
        assert!(mailbox.awaits(KEY));
        batch.clear();
        mailbox.take(&mut batch);
        assert!(!mailbox.awaits(KEY));
    }

    #[test]
    fn one_put_is_taken_at_any_size_and_none_once_it_is_shut() {
        let mut mailbox = Mailbox::new();
        let large = Ask::Put(
            KEY,
            Record { body: vec![0; 100].into(), ..Record::default() },
            PlacementHint::default(),
        );
        assert_eq!(mailbox.refuses(&large, 3, 10), None);
        assert!(!mailbox.post(put(1)));
        assert_eq!(mailbox.refuses(&large, 3, 10), Some(RefusedReason::Busy));
        assert_eq!(mailbox.refuses(&Ask::Get(KEY), 3, 10), None);
        assert_eq!(mailbox.refuses(&Ask::Get(KEY), 1, 10), Some(RefusedReason::Busy));
        assert_eq!(mailbox.shut().len(), 1);
        assert_eq!(mailbox.refuses(&Ask::Get(KEY), 3, 10), Some(RefusedReason::Closed));
    }
}

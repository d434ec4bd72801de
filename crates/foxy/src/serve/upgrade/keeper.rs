//! Purge keepers around an upgrade. A *purge keeper* removes purged responses from the cache, and
//! makes the purge durable. After the upgrade, the old process passes its purges on to the new
//! process, because only that process may write the purge lists.

use super::link::{Link, MAX_PACKET_BYTES, Message};
use foxy_proxy::cache::purge::journal::{self, Series};
use foxy_proxy::cache::purge::{NotPurged, Order, PurgeKeeper, PurgeReply, number};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// Largest size in bytes of the purges in a packet. The rest of the packet is for the message.
const MAX_CONTENT_BYTES: usize = MAX_PACKET_BYTES - 1024;

/// A purge keeper that passes each purge on to an inner keeper. An upgrade replaces the inner
/// keeper while foxy runs.
pub struct SwitchingKeeper(RwLock<Arc<dyn PurgeKeeper>>);

impl SwitchingKeeper {
    pub fn new(keeper: Arc<dyn PurgeKeeper>) -> Self {
        Self(RwLock::new(keeper))
    }

    /// Passes purges on to `keeper` from now on.
    pub fn replace(&self, keeper: Arc<dyn PurgeKeeper>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keeper;
    }
}

impl PurgeKeeper for SwitchingKeeper {
    fn purge(&self, orders: Vec<Order>, reply: PurgeReply) {
        self.0.read().unwrap_or_else(PoisonError::into_inner).purge(orders, reply);
    }
}

struct WaitingPurge {
    orders: Vec<Order>,
    reply: PurgeReply,
}

/// The purge keeper of the old process. It sends each purge to the new process.
pub struct RemoteKeeper {
    link: Arc<Link>,
    /// Purges that the new process has not answered, by the number of their message. `None` after
    /// the new process has ended.
    waiting: Mutex<Option<BTreeMap<u64, WaitingPurge>>>,
}

impl RemoteKeeper {
    pub fn new(link: Arc<Link>) -> Self {
        Self { link, waiting: Mutex::new(Some(BTreeMap::new())) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<BTreeMap<u64, WaitingPurge>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes the new process's answer on to the client of the purge.
    pub fn answered(&self, message: u64, latest: Option<u64>) {
        let waiting = self.lock().as_mut().and_then(|waiting| waiting.remove(&message));
        if let Some(WaitingPurge { reply, .. }) = waiting {
            reply(latest.ok_or(NotPurged::NotDurable));
        }
    }

    /// Accepts no more purges, because the new process has ended. `keeper` executes the purges that
    /// have no answer.
    pub fn give_back(&self, keeper: &dyn PurgeKeeper) {
        let waiting = self.lock().take().unwrap_or_default();
        for WaitingPurge { orders, reply } in waiting.into_values() {
            keeper.purge(orders, reply);
        }
    }
}

impl PurgeKeeper for RemoteKeeper {
    fn purge(&self, orders: Vec<Order>, reply: PurgeReply) {
        let mut lock = self.lock();
        let Some(waiting) = lock.as_mut() else {
            drop(lock);
            return reply(Err(NotPurged::Stopping));
        };
        let content = encode(&orders);
        let message = waiting.last_key_value().map_or(0, |(last, _)| last + 1);
        let is_sent = content.len() <= MAX_CONTENT_BYTES
            && self.link.send(&Message::Purge(message), &content, None, Duration::ZERO);
        if is_sent {
            waiting.insert(message, WaitingPurge { orders, reply });
            return;
        }
        drop(lock);
        reply(Err(NotPurged::Busy));
    }
}

fn encode(orders: &[Order]) -> Vec<u8> {
    let mut content = Vec::new();
    let latest = orders.len() as u64;
    journal::append(
        &mut content,
        0,
        Series { era: 1, set: 1, place: 1 },
        latest,
        &number(orders, 0),
    );
    content
}

/// Decodes the purges of a packet.
pub fn decode(content: &[u8]) -> Option<Vec<Order>> {
    let journal = journal::read(content).ok()?;
    Some(journal.rules.into_iter().map(|rule| rule.order).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::WallTime;
    use foxy_proxy::cache::purge::{Named, Purges, Strength};
    use std::sync::mpsc::channel;

    fn orders(count: usize) -> Vec<Order> {
        let scope = |page| Named::Url.scopes(&format!("http://a.test/{page}")).expect("a URL")[0];
        let order = |page| Order {
            scope: scope(page),
            strength: Strength::Hard,
            at: WallTime::from_seconds(7),
        };
        (0..count).map(order).collect()
    }

    #[test]
    fn purges_reach_the_new_process_and_return_after_its_end() {
        let (link, other) = Link::pair().expect("a pair");
        let keeper = RemoteKeeper::new(Arc::new(link));
        let (sender, answers) = channel();
        let reply = |sender: &std::sync::mpsc::Sender<_>| -> PurgeReply {
            let sender = sender.clone();
            Box::new(move |answer| sender.send(answer).expect("the test waits"))
        };
        keeper.purge(orders(100), reply(&sender));
        keeper.purge(orders(2), reply(&sender));
        keeper.purge(orders(4096), reply(&sender));
        assert_eq!(answers.recv(), Ok(Err(NotPurged::Busy)), "too much for a packet");
        let other = Link::new(other);
        let packet = other.receive(None).expect("sent");
        assert_eq!(packet.message, Message::Purge(0));
        assert_eq!(decode(&packet.content), Some(orders(100)));
        keeper.answered(0, Some(100));
        assert_eq!(answers.recv(), Ok(Ok(100)));
        let own = Purges::in_memory();
        keeper.give_back(&*own.keeper);
        assert_eq!(answers.recv(), Ok(Ok(2)), "the second purge is executed here");
        keeper.purge(orders(1), reply(&sender));
        assert_eq!(answers.recv(), Ok(Err(NotPurged::Stopping)));
    }
}

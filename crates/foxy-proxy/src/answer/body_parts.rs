//! Stored bodies sent in parts: each is read when the client can take it, and let go when the
//! client takes nothing, so that clients that never read hold next to no memory. Those who want the
//! same part at the same time share it.

use crate::cache::shared_parts::{HeldPart, NoPart};
use crate::cache::storage::{PART, part_key};
use crate::client::sender::Sender;
use crate::core::counters::Counter;
use crate::request::sent::ClientTook;
use crate::request::sent::{Short, UnsentRest};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_store::Key;
use std::time::Duration;

/// How long a part is held for a client that takes nothing; it is read again when the client goes
/// on.
const HELD: Duration = Duration::from_secs(1);

/// The same while others wait for parts.
const HELD_WHILE_OTHERS_WAIT: Duration = Duration::from_millis(100);

/// A body in parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartsOf {
    /// The key of what it is the body of.
    pub(crate) object: Key,
    /// The fill's random number.
    pub(crate) fill: u64,
    /// Bytes it has, or of a body that is still coming: whole parts that are stored.
    pub(crate) length: u64,
}

/// Sends what `rest` names of a body all of which was stored.
pub(crate) async fn send(
    worker: &Worker,
    sender: &mut Sender<'_>,
    body: PartsOf,
    rest: UnsentRest,
) -> Result<(), Short> {
    let sent = send_stored(worker, sender, body, rest).await;
    if matches!(sent, Err(Short::Gone | Short::Rest(_))) {
        worker.counters.add(Counter::LostParts, 1);
    }
    sent
}

/// Sends what `rest` names of a body up to a part that is not stored. The first part is read before
/// the head, if that waits, goes out.
pub(crate) async fn send_stored(
    worker: &Worker,
    sender: &mut Sender<'_>,
    body: PartsOf,
    mut rest: UnsentRest,
) -> Result<(), Short> {
    let parts = &worker.shared.parts;
    let patience = || if parts.is_full() { HELD_WHILE_OTHERS_WAIT } else { HELD };
    let mut nothing_sent = true;
    while rest.at < rest.end {
        let Some(part) = read(worker, body, rest.at / PART as u64, rest.opened).await else {
            return Err(if nothing_sent { Short::Gone } else { Short::Rest(rest) });
        };
        let mut left = wanted_of(part.bytes(), &rest);
        let stop = rest.at + left.len() as u64;
        (nothing_sent, rest.opened) = (false, true);
        let taken = sender.part(&mut left, patience).await?;
        rest.at = stop - left.len() as u64;
        drop((left, part));
        if taken == ClientTook::Partly {
            sender.flush().await?;
            sender.writable().await?;
        }
    }
    Ok(sender.flush().await?)
}

/// One part, whole: as others have it now, from memory, or from the store.
async fn read(worker: &Worker, body: PartsOf, number: u64, begun: bool) -> Option<HeldPart> {
    let memory = &worker.shared.cache.memory;
    let storage = worker.shared.cache.storage()?;
    let key = part_key(body.object, body.fill, number);
    let read = async {
        if let Some(part) = memory.part(key) {
            worker.counters.add(Counter::MemoryParts, 1);
            return Some(part);
        }
        worker.counters.add(Counter::StoreParts, 1);
        storage.part(key).await
    };
    let part = match worker.shared.parts.get(key, storage.patience_for_part(begun), read).await {
        Ok(part) => part,
        Err(NoPart::Absent) => return None,
        Err(NoPart::Late) => {
            worker.counters.add(Counter::StoreTimeouts, 1);
            return None;
        }
    };
    memory.offer_part(key, part.bytes());
    let expected = (PART as u64).min(body.length - number * PART as u64);
    (part.bytes().len() as u64 == expected).then_some(part)
}

/// The bytes of the part at `rest.at` that are still to be sent.
fn wanted_of(part: &Bytes, rest: &UnsentRest) -> Bytes {
    let before = rest.at / PART as u64 * PART as u64;
    let position =
        |at: u64| usize::try_from(at - before).map_or(part.len(), |at| at.min(part.len()));
    part.slice(position(rest.at)..position(rest.end))
}

//! Confirms a purge when the node's manifest has it, so that it also holds if this node loses its
//! disk or another node reads its records.

use crate::cold::state::{TierState, WaitingPurge};
use foxy_proxy::cache::purge::{NotPurged, Order, PurgeKeeper, PurgeReply};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Largest number of purges that wait for the manifest.
const MAX_WAITING: usize = 1024;

/// Makes purges durable on this node, and then in the cold tier.
pub(crate) struct ColdKeeper {
    inner: Arc<dyn PurgeKeeper>,
    state: Arc<TierState>,
}

impl ColdKeeper {
    pub(crate) fn new(inner: Arc<dyn PurgeKeeper>, state: Arc<TierState>) -> Self {
        Self { inner, state }
    }
}

impl PurgeKeeper for ColdKeeper {
    fn purge(&self, orders: Vec<Order>, reply: PurgeReply) {
        let state = Arc::clone(&self.state);
        let then = move |answer| match answer {
            Ok(moment) => wait_for_manifest(&state, WaitingPurge { moment, reply }),
            Err(why) => reply(Err(why)),
        };
        self.inner.purge(orders, Box::new(then));
    }
}

fn wait_for_manifest(state: &TierState, purge: WaitingPurge) {
    // After an upgrade, the new process has confirmed the purge.
    if state.has_ended.load(Ordering::Acquire) {
        return purge.confirm();
    }
    // The fleet's engine has the purge.
    if state.has_engine {
        state.changed();
        return purge.confirm();
    }
    let mut waiting = state.waiting();
    if waiting.len() >= MAX_WAITING {
        drop(waiting);
        return (purge.reply)(Err(NotPurged::Busy));
    }
    waiting.push(purge);
    drop(waiting);
    state.changed();
}

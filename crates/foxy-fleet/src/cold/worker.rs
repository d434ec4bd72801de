//! The thread that talks to the store.

use crate::cold::gathering;
use crate::cold::publishing::Publisher;
use crate::cold::reading::{self, ReadRequest};
use crate::cold::remote::Remote;
use crate::cold::state::{Offered, TierState, WaitingPurge, stopped};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{mpsc, watch};

/// Runs until `stop`. Then writes the gathered records and the manifest, within time limits.
pub async fn run(
    state: &Arc<TierState>,
    remote: &Remote,
    offers: mpsc::Receiver<Offered>,
    reads: mpsc::Receiver<ReadRequest>,
    stop: watch::Receiver<bool>,
) {
    let (gathered, has_gathered) = watch::channel(false);
    let gathering = async {
        gathering::run(state, remote, offers, stop).await;
        gathered.send_replace(true);
    };
    let serving = async {
        tokio::select! {
            () = reading::run(state, remote, reads) => {}
            () = stopped(has_gathered.clone()) => {}
        }
    };
    let publishing = Publisher::new(state, remote).run(has_gathered.clone());
    tokio::join!(gathering, serving, publishing);
    state.has_ended.store(true, Ordering::Release);
    state.waiting().drain(..).for_each(WaitingPurge::fail);
}

//! The requests that wait for one disk, in the order it serves them.

use super::counts::RequestKind;
use super::profile::Scheduling;
use foxy_base::Instant;
use std::collections::{BTreeMap, VecDeque};

/// Names one request of a device; never used twice.
pub(super) type RequestId = u64;

/// A request as the disk sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskRequest {
    pub(super) id: RequestId,
    pub(super) kind: RequestKind,
    /// Its first sector.
    pub(super) address: u64,
    pub(super) sectors: u64,
    pub(super) arrival: Instant,
}

#[derive(Debug)]
pub(super) enum DriveQueue {
    Fifo(VecDeque<DiskRequest>),
    CLook(BTreeMap<(u64, RequestId), DiskRequest>),
}

impl DriveQueue {
    pub(super) const fn new(scheduling: Scheduling) -> Self {
        match scheduling {
            Scheduling::Fifo => Self::Fifo(VecDeque::new()),
            Scheduling::CLook => Self::CLook(BTreeMap::new()),
        }
    }

    pub(super) fn push(&mut self, request: DiskRequest) {
        match self {
            Self::Fifo(queue) => queue.push_back(request),
            Self::CLook(queue) => drop(queue.insert((request.address, request.id), request)),
        }
    }

    /// The next one to serve, with the head before the sector `head`.
    pub(super) fn pop(&mut self, head: u64) -> Option<DiskRequest> {
        match self {
            Self::Fifo(queue) => queue.pop_front(),
            Self::CLook(queue) => {
                let next = queue.range((head, 0)..).next().or_else(|| queue.first_key_value());
                let key = *next?.0;
                queue.remove(&key)
            }
        }
    }
}

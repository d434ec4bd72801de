//! The contract between the store and its users, and the interface that every scheme implements.
//!
//! 1. A `Get` returns `Absent`, or exactly the record of the last finished `Put` of that key, byte
//!    for byte. This holds after a crash at any point, even with torn, lost or corrupted writes: a
//!    record that fails a check is a miss.
//! 2. A `Put` that is refused, fails or is overtaken leaves the key absent or as it was, never
//!    anything else. If a failing device refused the write, the new record may still appear after a
//!    crash: no software can undo what a broken disk stored.
//! 3. After `Removed`, or after a `Stored` that replaced a record, the old record never returns,
//!    even after a crash. The store makes only this change durable before the answer. A put of a
//!    new key needs no sync.
//! 4. Every request receives exactly one answer. A refusal names its reason.
//! 5. Memory and disk use stay within the limits that the scheme was created with.
//!
//! This module uses no clock, IO or threads. The loop that drives a scheme is in `shard`.

use crate::settings::{RECORD_BODY_LIMIT, RECORD_HEAD_LIMIT};
use bytes::Bytes;
use foxy_base::Instant;
use foxy_base::random::split_mix;
use foxy_device::{FileId, IoBuffer, IoDone, IoError, IoId, IoOp};
use std::fmt;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// The name of a record: a 128-bit hash that the caller computes from its own key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The key of a name: its XXH3 hash. An attacker can choose two names with one hash. So if
    /// strangers choose names, store the name in the record's head and compare it after a get.
    pub fn of(name: &[u8]) -> Self {
        Self(xxh3_128(name).to_le_bytes())
    }

    /// A well-mixed hash that is unpredictable without the secret `mix`.
    pub fn hash(self, mix: u64) -> u64 {
        let (mut low, mut high) = ([0; 8], [0; 8]);
        low.copy_from_slice(&self.0[..8]);
        high.copy_from_slice(&self.0[8..]);
        split_mix(&mut (u64::from_le_bytes(low) ^ u64::from_le_bytes(high).rotate_left(23) ^ mix))
    }
}

/// Matches an answer to its request. The caller chooses the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// The origin server of a record. A scheme can store the records of one site together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(pub u64);

/// How long a record is likely to stay useful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// The lifetime is unknown.
    #[default]
    Unknown,
    /// Fresh for minutes at most.
    Short,
    /// Fresh for days or more.
    Long,
}

/// All that the store knows about the web object behind a record.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlacementHint {
    /// The origin server.
    pub site: Site,
    /// Size in bytes of the whole object that the record belongs to.
    pub size: u64,
    /// How long the record is likely to stay useful.
    pub lifetime: Lifetime,
}

/// A stored record: two byte strings that the store does not interpret. The caller describes `body`
/// in `head`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The caller's metadata.
    pub head: Bytes,
    /// The content.
    pub body: Bytes,
}

impl Record {
    /// Bytes of head and body together.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Whether head and body are within the limits of the store.
    pub fn is_within_limits(&self) -> bool {
        self.head.len() <= RECORD_HEAD_LIMIT && self.body.len() <= RECORD_BODY_LIMIT
    }

    /// Whether both are empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A request to a scheme.
#[derive(Debug)]
pub enum StoreRequest {
    /// Reads a record: `Found` or `Absent`.
    Get {
        /// Matches the answer to this request.
        ticket: Ticket,
        /// The key of the record.
        key: Key,
    },
    /// Stores or replaces a record: `Stored` or `Refused`.
    Put {
        /// Matches the answer to this request.
        ticket: Ticket,
        /// The key of the record.
        key: Key,
        /// The record.
        record: Record,
        /// Helps the scheme to choose a place.
        hint: PlacementHint,
    },
    /// Removes a record durably: `Removed`, or `Refused` if the record may still exist.
    Remove {
        /// Matches the answer to this request.
        ticket: Ticket,
        /// The key of the record.
        key: Key,
    },
    /// Writes buffered records and a checkpoint, then answers `Closed`. Later requests are refused.
    Close {
        /// Matches the answer to this request.
        ticket: Ticket,
    },
}

impl StoreRequest {
    /// The ticket for the answer.
    pub const fn ticket(&self) -> Ticket {
        match self {
            Self::Get { ticket, .. }
            | Self::Put { ticket, .. }
            | Self::Remove { ticket, .. }
            | Self::Close { ticket } => *ticket,
        }
    }
}

/// Why a get found no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AbsentReason {
    /// The index has no entry for the key.
    NotIndexed,
    /// The place named by the index contains another key or an older record.
    KeyMismatch,
    /// The bytes on disk do not match their checksum.
    ChecksumMismatch,
    /// The device failed or returned too few bytes.
    DeviceFailed(IoError),
    /// Too many requests are waiting.
    Busy,
    /// The store is still rebuilding its index.
    Recovering,
    /// The store is closed.
    Closed,
}

/// Why a record was not stored or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusedReason {
    /// The record exceeds the size limit (LRU-TH), or the scheme cannot store records of this size.
    TooLarge,
    /// Too many requests or bytes are waiting.
    Busy,
    /// The disk is full.
    NoSpace,
    /// The device failed.
    DeviceFailed(IoError),
    /// The scheme stores nothing.
    StoresNothing,
    /// The store is still rebuilding its index.
    Recovering,
    /// The store is closed.
    Closed,
}

impl fmt::Display for RefusedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::TooLarge => "the record is too large for the store",
            Self::Busy => "too many requests wait for the store",
            Self::NoSpace => "the disk is full",
            Self::DeviceFailed(error) => return write!(f, "the disk failed: {error}"),
            Self::StoresNothing => "the store keeps nothing",
            Self::Recovering => "the store still rebuilds its index",
            Self::Closed => "the store is closed",
        };
        f.write_str(text)
    }
}

impl std::error::Error for RefusedReason {}

/// The answer to a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The record; its checksums are correct.
    Found(Record),
    /// There is no record, for the reason given.
    Absent(AbsentReason),
    /// The put is finished: every later get finds the record.
    Stored,
    /// The store did not put or remove the record.
    Refused(RefusedReason),
    /// The record is removed and never returns.
    Removed,
    /// Everything is written. The scheme accepts no more requests.
    Closed,
}

/// An answer and the request it belongs to.
#[derive(Debug, PartialEq, Eq)]
pub struct StoreReply {
    /// The ticket of the request.
    pub ticket: Ticket,
    /// The answer.
    pub answer: Answer,
}

/// Operations for the device and answers for the callers, both in order.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Disk operations to submit.
    pub operations: Vec<(IoId, IoOp)>,
    /// Answers to deliver.
    pub replies: Vec<StoreReply>,
}

impl Outbox {
    /// Queues an operation for the device.
    pub fn submit(&mut self, id: IoId, op: IoOp) {
        self.operations.push((id, op));
    }

    /// Queues the answer to a put. `Ok(None)` queues nothing, because the answer follows later.
    pub fn reply_to_put(&mut self, ticket: Ticket, put: Result<Option<Answer>, RefusedReason>) {
        if let Some(answer) = put.unwrap_or_else(|reason| Some(Answer::Refused(reason))) {
            self.reply(ticket, answer);
        }
    }

    /// Queues an answer.
    pub fn reply(&mut self, ticket: Ticket, answer: Answer) {
        self.replies.push(StoreReply { ticket, answer });
    }
}

/// Reads bytes of an open file if the system has them in memory, otherwise returns `None`.
/// Arguments: file, byte offset, length.
pub type ReadNow<'a> = dyn FnMut(FileId, u64, usize) -> Option<IoBuffer> + 'a;

/// The result of a lookup.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// No record is stored under the key.
    Absent,
    /// The record; its checksums are correct.
    Found(Record),
    /// The lookup cannot decide: send the request to the scheme.
    Unsure,
}

/// Answers gets on any thread, without the scheme's thread and without waiting for a disk.
pub trait Lookup: Send + Sync {
    /// Looks up a key and reads its record with `read`. Finds every put that the scheme has
    /// accepted.
    fn look(&self, key: Key, read: &mut ReadNow<'_>) -> Look;
}

/// A storage scheme: a state machine without IO. The shard, the simulator or a test drives it.
pub trait Scheme {
    /// Starts recovery. Called once, before any other method.
    fn start(&mut self, now: Instant, out: &mut Outbox);
    /// Processes a request. The answer appears in `out`, in this call or a later one.
    fn on_request(&mut self, request: StoreRequest, now: Instant, out: &mut Outbox);
    /// Processes a finished disk operation.
    fn on_io_done(&mut self, done: IoDone, now: Instant, out: &mut Outbox);
    /// When the scheme next needs a call of [`Scheme::on_deadline`].
    fn deadline(&self) -> Option<Instant>;
    /// Called once the deadline has passed.
    fn on_deadline(&mut self, now: Instant, out: &mut Outbox);
    /// The runs of free slots, each as first slot and length, to measure fragmentation (R31, R32).
    /// Empty for schemes without slots in one file.
    fn free_runs(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }
    /// A lookup for other threads, if the scheme has such a lookup. Called before
    /// [`Scheme::start`].
    fn lookup(&self) -> Option<Arc<dyn Lookup>> {
        None
    }
}

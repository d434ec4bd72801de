//! The contract between the store and its users, and the seam every scheme implements.
//!
//! 1. A `Get` answers `Absent`, or exactly the record of the last finished `Put` of that key, byte
//!    for byte. This holds across crashes at any point, torn, lost and corrupted writes included: a
//!    doubt is a miss.
//! 2. A `Put` that is refused, fails or is overtaken leaves the key absent or as it was; never
//!    anything else. One that a failing device refused may still come to light after a crash:
//!    nobody can take back what a broken disk kept.
//! 3. After `Removed`, or after a `Stored` that replaced a record, the old record never comes back,
//!    crash or not. (That is what is made durable before the answer; a fill of a new key costs no
//!    sync.)
//! 4. Every request is answered exactly once, with a named reason when the answer is no.
//! 5. Memory and disk stay within the limits the scheme was made with.
//!
//! No clock, no IO, no threads here: see `shard` for the loop that feeds a scheme.

use crate::settings::{RECORD_BODY_LIMIT, RECORD_HEAD_LIMIT};
use bytes::Bytes;
use foxy_base::Instant;
use foxy_base::random::split_mix;
use foxy_device::{FileId, IoBuffer, IoDone, IoError, IoId, IoOp};
use std::fmt;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// The name of a record: 128 bits of a hash that the caller makes of its own key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The key of a name: its XXH3 hash. Keep the name in the record's head where others choose
    /// names, and compare: two names can be made to have one hash.
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

/// Pairs a reply with its request. The caller chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Records of one origin server share a site, so that a scheme can store them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(pub u64);

/// How long a record is likely to be of use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// Nothing is known.
    #[default]
    Unknown,
    /// Fresh for minutes at most.
    Short,
    /// Fresh for days or more.
    Long,
}

/// Everything that the store learns of the web.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlacementHint {
    /// The origin server.
    pub site: Site,
    /// Size in bytes of the whole object the record belongs to.
    pub size: u64,
    /// How long the record is likely to be of use.
    pub lifetime: Lifetime,
}

/// A stored record: two opaque byte strings. `head` is for the caller's description of `body`.
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
    /// Gets a record: `Found` or `Absent`.
    Get {
        /// Pairs the answer.
        ticket: Ticket,
        /// The record.
        key: Key,
    },
    /// Stores or replaces a record: `Stored` or `Refused`.
    Put {
        /// Pairs the answer.
        ticket: Ticket,
        /// The record.
        key: Key,
        /// The content.
        record: Record,
        /// Hints for its placement.
        hint: PlacementHint,
    },
    /// Removes a record durably: `Removed`, or `Refused` when the record may still be there.
    Remove {
        /// Pairs the answer.
        ticket: Ticket,
        /// The record.
        key: Key,
    },
    /// Writes buffered records and a checkpoint, then answers `Closed`. Later requests are refused.
    Close {
        /// Pairs the answer.
        ticket: Ticket,
    },
}

impl StoreRequest {
    /// The ticket of the answer.
    pub const fn ticket(&self) -> Ticket {
        match self {
            Self::Get { ticket, .. }
            | Self::Put { ticket, .. }
            | Self::Remove { ticket, .. }
            | Self::Close { ticket } => *ticket,
        }
    }
}

/// Why a record is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AbsentReason {
    /// The index does not have the key.
    NotIndexed,
    /// The place in the index has another key or an older generation.
    KeyMismatch,
    /// The bytes do not have their checksum.
    ChecksumMismatch,
    /// The device failed or returned fewer bytes.
    DeviceFailed(IoError),
    /// Too many requests wait.
    Busy,
    /// The index is not rebuilt yet.
    Recovering,
    /// The store has closed.
    Closed,
}

/// Why a record was not stored or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusedReason {
    /// The record is above the size threshold (LRU-TH) or larger than the scheme can hold.
    TooLarge,
    /// Too many requests or bytes wait.
    Busy,
    /// The disk is full.
    NoSpace,
    /// The device failed.
    DeviceFailed(IoError),
    /// The scheme stores nothing.
    StoresNothing,
    /// The index is not rebuilt yet.
    Recovering,
    /// The store has closed.
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

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The record, verified.
    Found(Record),
    /// No record.
    Absent(AbsentReason),
    /// The put is finished: every later get finds the record.
    Stored,
    /// The put or removal did not happen.
    Refused(RefusedReason),
    /// The record is gone for good.
    Removed,
    /// Everything is written; the scheme takes no more requests.
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

/// Operations for the device and replies for the callers, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Disk work to submit.
    pub operations: Vec<(IoId, IoOp)>,
    /// Answers to deliver.
    pub replies: Vec<StoreReply>,
}

impl Outbox {
    /// Queues an operation.
    pub fn submit(&mut self, id: IoId, op: IoOp) {
        self.operations.push((id, op));
    }

    /// Queues the answer to a put, unless it comes later.
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

/// Reads bytes of an open file, if that needs no wait for a disk. Arguments: file, byte offset,
/// length.
pub type ReadNow<'a> = dyn FnMut(FileId, u64, usize) -> Option<IoBuffer> + 'a;

/// The result of a lookup.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// No record is stored under the key.
    Absent,
    /// The record, verified.
    Found(Record),
    /// The scheme must be asked.
    Unsure,
}

/// Answers gets of a scheme on any thread, without the scheme's thread and without waiting for a
/// disk.
pub trait Lookup: Send + Sync {
    /// Looks up a key; `read` reads its record. A put counts once the scheme has taken it.
    fn look(&self, key: Key, read: &mut ReadNow<'_>) -> Look;
}

/// A storage scheme: pure, driven by the shard, the simulator or a torture test.
pub trait Scheme {
    /// Begins recovery. Called once, before anything else.
    fn start(&mut self, now: Instant, out: &mut Outbox);
    /// Takes a request. The answer comes in some outbox, now or later.
    fn on_request(&mut self, request: StoreRequest, now: Instant, out: &mut Outbox);
    /// Takes the completion of an operation.
    fn on_io_done(&mut self, done: IoDone, now: Instant, out: &mut Outbox);
    /// When the scheme next wants [`Scheme::on_deadline`].
    fn deadline(&self) -> Option<Instant>;
    /// Called once the deadline has passed.
    fn on_deadline(&mut self, now: Instant, out: &mut Outbox);
    /// The free runs of slots, as first slot and length, for figures of fragmentation (R31, R32).
    /// Empty for schemes without slots in one file.
    fn free_runs(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }
    /// Lookups on other threads. Called before [`Scheme::start`].
    fn lookup(&self) -> Option<Arc<dyn Lookup>> {
        None
    }
}

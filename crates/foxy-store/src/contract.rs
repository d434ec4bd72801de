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

/// What names a record: 128 bits of a hash the caller makes of its own key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The key of a name: its XXH3 hash. Keep the name in the record's head where others choose
    /// names, and compare: two names can be made to have one hash.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        Self(xxh3_128(name).to_le_bytes())
    }

    /// A well-mixed hash that nobody without the secret `mix` can foresee.
    pub fn hash(self, mix: u64) -> u64 {
        let (mut low, mut high) = ([0; 8], [0; 8]);
        low.copy_from_slice(&self.0[..8]);
        high.copy_from_slice(&self.0[8..]);
        split_mix(&mut (u64::from_le_bytes(low) ^ u64::from_le_bytes(high).rotate_left(23) ^ mix))
    }
}

/// Pairs a reply with its request; chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Records of one origin server share a site, so that a scheme can keep them together.
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

/// All that the store learns of the web.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlacementHint {
    /// Whose record it is.
    pub site: Site,
    /// Size in bytes of the whole object the record belongs to.
    pub size: u64,
    /// How long it is likely to be of use.
    pub lifetime: Lifetime,
}

/// What is stored: two opaque byte strings. `head` is for the caller's description of `body`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The caller's metadata.
    pub head: Bytes,
    /// The content.
    pub body: Bytes,
}

impl Record {
    /// Bytes of head and body together.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Whether head and body are each as long as the store takes.
    #[must_use]
    pub fn is_within_limits(&self) -> bool {
        self.head.len() <= RECORD_HEAD_LIMIT && self.body.len() <= RECORD_BODY_LIMIT
    }

    /// Whether both are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a caller can ask.
#[derive(Debug)]
pub enum StoreRequest {
    /// Asks for a record: `Found` or `Absent`.
    Get {
        /// Pairs the answer.
        ticket: Ticket,
        /// Which record.
        key: Key,
    },
    /// Stores or replaces a record: `Stored` or `Refused`.
    Put {
        /// Pairs the answer.
        ticket: Ticket,
        /// Which record.
        key: Key,
        /// Its content.
        record: Record,
        /// Where it might be put.
        hint: PlacementHint,
    },
    /// Forgets a record, durably: `Removed` or `Refused` (then the caller must not rely on it being
    /// gone).
    Remove {
        /// Pairs the answer.
        ticket: Ticket,
        /// Which record.
        key: Key,
    },
    /// Writes out what is buffered and a checkpoint, then answers `Closed`. Requests after it are
    /// refused.
    Close {
        /// Pairs the answer.
        ticket: Ticket,
    },
}

impl StoreRequest {
    /// The ticket its answer will carry.
    #[must_use]
    pub const fn ticket(&self) -> Ticket {
        match self {
            Self::Get { ticket, .. }
            | Self::Put { ticket, .. }
            | Self::Remove { ticket, .. }
            | Self::Close { ticket } => *ticket,
        }
    }
}

/// Why a record is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AbsentReason {
    /// The index does not know the key.
    NotIndexed,
    /// What lies where the index points belongs to another key or an older generation.
    KeyMismatch,
    /// The bytes read do not have the checksum they were written with.
    ChecksumMismatch,
    /// The device failed, or gave fewer bytes than asked.
    DeviceFailed(IoError),
    /// Too many requests wait already.
    Busy,
    /// The index is not rebuilt yet.
    Recovering,
    /// The store has closed.
    Closed,
}

/// Why a record was not stored or not forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusedReason {
    /// Above the size threshold (LRU-TH) or larger than the scheme can hold.
    TooLarge,
    /// Too many requests or too many bytes wait already.
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
    /// The put is finished: visible to every later get.
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
    /// The request's ticket.
    pub ticket: Ticket,
    /// What came of it.
    pub answer: Answer,
}

/// What a scheme wants done, in order: disk work for the device, replies for the callers.
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

/// Reads so many bytes of an open file from an offset, if that needs no waiting for a disk.
pub type ReadNow<'a> = dyn FnMut(FileId, u64, usize) -> Option<IoBuffer> + 'a;

/// What a look gives.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing is stored under the key, for certain.
    Absent,
    /// The record, verified.
    Found(Record),
    /// It takes more than a look: the scheme must be asked.
    Unsure,
}

/// Answers gets for a scheme, on any thread, where neither its own thread nor waiting for a disk is
/// needed.
pub trait Lookup: Send + Sync {
    /// Looks a key up, and for its record into what `read` gives at once. A put counts from when
    /// the scheme has taken it.
    fn look(&self, key: Key, read: &mut ReadNow<'_>) -> Look;
}

/// A storage scheme: pure, driven by the shard loop, the simulator or a torture test.
pub trait Scheme {
    /// Begins recovery; called once, before anything else.
    fn start(&mut self, now: Instant, out: &mut Outbox);
    /// Takes a request. It is answered through some outbox, now or later.
    fn on_request(&mut self, request: StoreRequest, now: Instant, out: &mut Outbox);
    /// Takes the completion of an operation it queued.
    fn on_io_done(&mut self, done: IoDone, now: Instant, out: &mut Outbox);
    /// When it next wants [`Scheme::on_deadline`], if at all.
    fn deadline(&self) -> Option<Instant>;
    /// Called once the deadline has passed.
    fn on_deadline(&mut self, now: Instant, out: &mut Outbox);
    /// The free runs of slots in its file, as first slot and length, for pictures of fragmentation
    /// (R31, R32); none from schemes that do not keep records in slots of one file.
    fn free_runs(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }
    /// What can be asked of it past the shard's thread; called before [`Scheme::start`].
    fn lookup(&self) -> Option<Arc<dyn Lookup>> {
        None
    }
}

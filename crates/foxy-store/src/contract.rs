//! The contract between the store and its users, and the interface that every storage scheme
//! implements.
//!
//! 1. A `Get` returns `Absent`, or exactly the record of the last finished `Put` of that key. This
//!    holds after a crash at any point, even with torn, lost or corrupted writes. A record that
//!    fails a check counts as absent.
//! 2. If a `Put` is refused, fails or is overtaken by a later request, the key has no record or its
//!    earlier record. There is one exception: after a failed write, the new record may appear after
//!    a crash, because a broken disk may have stored it.
//! 3. After `Removed`, or after a `Stored` that replaced a record, the old record never returns,
//!    even after a crash. The store makes this change durable before it answers. A put of a new key
//!    waits for no sync.
//! 4. Every request receives exactly one answer. A refusal names its reason.
//! 5. Memory and disk use stay within the limits in the scheme's settings.
//!
//! This module uses no clock, IO or threads. The module `shard` contains the loop that runs a
//! scheme.

use crate::map::LayoutView;
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
    /// Computes the key of a name: its XXH3 hash. An attacker can find two names with the same
    /// hash. If strangers choose the names, store the name in the record's head and compare it
    /// after a get.
    pub fn of(name: &[u8]) -> Self {
        Self(xxh3_128(name).to_le_bytes())
    }

    /// Returns a hash of the key that nobody can predict without the secret number `mix`.
    pub fn hash(self, mix: u64) -> u64 {
        let (mut low, mut high) = ([0; 8], [0; 8]);
        low.copy_from_slice(&self.0[..8]);
        high.copy_from_slice(&self.0[8..]);
        split_mix(&mut (u64::from_le_bytes(low) ^ u64::from_le_bytes(high).rotate_left(23) ^ mix))
    }
}

/// Identifies a request. The caller chooses the number, and the answer repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// The origin server that a record came from. A storage scheme can store the records of one site
/// together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(pub u64);

/// The expected time for which a record stays useful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// The lifetime is unknown.
    #[default]
    Unknown,
    /// The record stays fresh for minutes at most.
    Short,
    /// The record stays fresh for days or more.
    Long,
}

/// All that the store knows about the web object (such as an image) to which a record belongs.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlacementHint {
    /// The origin server of the object.
    pub site: Site,
    /// Size in bytes of the whole object. The record may be only a part of the object.
    pub size: u64,
    /// The expected time for which the record stays useful.
    pub lifetime: Lifetime,
}

/// A stored record: two byte strings that the store does not interpret. The caller usually
/// describes the content of `body` in `head`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The caller's description of the body.
    pub head: Bytes,
    /// The body of the record. The store does not interpret it.
    pub body: Bytes,
}

impl Record {
    /// Returns the number of bytes of head and body together.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Returns whether head and body are within the size limits of the store.
    pub fn is_within_limits(&self) -> bool {
        self.head.len() <= RECORD_HEAD_LIMIT && self.body.len() <= RECORD_BODY_LIMIT
    }

    /// Returns whether head and body are both empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A request to a storage scheme.
#[derive(Debug)]
pub enum StoreRequest {
    /// Reads a record. The answer is `Found` or `Absent`.
    Get {
        /// Number of the request, which the answer repeats.
        ticket: Ticket,
        /// The key of the record to read.
        key: Key,
    },
    /// Stores or replaces a record. The answer is `Stored` or `Refused`.
    Put {
        /// Number of the request, which the answer repeats.
        ticket: Ticket,
        /// The key under which to store the record.
        key: Key,
        /// The record to store.
        record: Record,
        /// Describes the record's web object, so that the storage scheme can choose a good place on
        /// disk.
        hint: PlacementHint,
    },
    /// Removes a record durably. The answer is `Removed`, or `Refused` if a get may still find the
    /// record.
    Remove {
        /// Number of the request, which the answer repeats.
        ticket: Ticket,
        /// The key of the record to remove.
        key: Key,
    },
    /// Closes the store: the store writes the buffered records and the state that the next opening
    /// needs, then answers `Closed`. The store refuses later requests.
    Close {
        /// Number of the request, which the answer repeats.
        ticket: Ticket,
    },
}

impl StoreRequest {
    /// Returns the request's ticket (number), which the answer repeats.
    pub const fn ticket(&self) -> Ticket {
        match self {
            Self::Get { ticket, .. }
            | Self::Put { ticket, .. }
            | Self::Remove { ticket, .. }
            | Self::Close { ticket } => *ticket,
        }
    }
}

/// The reason why a get found no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AbsentReason {
    /// The index has no entry for the key.
    NotIndexed,
    /// The index entry leads to the record of another key, or to an older record.
    KeyMismatch,
    /// The bytes on disk do not match their checksum.
    ChecksumMismatch,
    /// The device failed, or a read returned too few bytes.
    DeviceFailed(IoError),
    /// Too many requests are waiting for the store.
    Busy,
    /// The store is still rebuilding its index.
    Recovering,
    /// The store is closed.
    Closed,
}

/// The reason why a record was not stored or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusedReason {
    /// The record exceeds the size limit in the settings, or is too large for the storage scheme.
    TooLarge,
    /// Too many requests, or too many bytes of puts, are waiting for the store.
    Busy,
    /// The disk is full.
    NoSpace,
    /// The device failed.
    DeviceFailed(IoError),
    /// The storage scheme never stores records.
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
            Self::StoresNothing => "the storage scheme stores nothing",
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
    /// The record that the get asked for, with correct checksums.
    Found(Record),
    /// There is no record, for the reason given.
    Absent(AbsentReason),
    /// The put is finished. Every later get finds the record.
    Stored,
    /// The store did not store or remove the record.
    Refused(RefusedReason),
    /// The record is removed and never returns, even after a crash.
    Removed,
    /// The store is closed: everything is written, and later requests are refused.
    Closed,
}

/// An answer and the request it belongs to.
#[derive(Debug, PartialEq, Eq)]
pub struct StoreReply {
    /// The ticket (number) of the request.
    pub ticket: Ticket,
    /// Answer to the request with this ticket.
    pub answer: Answer,
}

/// The output of a storage scheme: operations for the device and answers for the callers. The lists
/// are in the order in which to process them.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Operations that the device must start, each with its number.
    pub operations: Vec<(IoId, IoOp)>,
    /// Answers to deliver to the callers.
    pub replies: Vec<StoreReply>,
}

impl Outbox {
    /// Queues an operation for the device.
    pub fn submit(&mut self, id: IoId, op: IoOp) {
        self.operations.push((id, op));
    }

    /// Queues the answer to a put. `Ok(None)` queues nothing, because the storage scheme answers
    /// this put later.
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

/// A function that returns bytes of an open file if the operating system has them in memory,
/// without waiting for the disk. Otherwise returns `None`. The arguments of the function are the
/// file, the byte offset and the length in bytes.
pub type ReadNow<'a> = dyn FnMut(FileId, u64, usize) -> Option<IoBuffer> + 'a;

/// The result of a lookup.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// No record is stored under the key.
    Absent,
    /// The record of the key, with correct checksums.
    Found(Record),
    /// The lookup cannot decide whether there is a record. The caller must send the request to the
    /// storage scheme.
    Unsure,
}

/// The bytes that a lookup must read to answer a `get` request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    /// The open file that contains the record.
    pub file: FileId,
    /// Byte offset in the file at which to start the read.
    pub offset: u64,
    /// Number of bytes to read.
    pub length: usize,
}

/// The first step of a lookup: where the record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// No record is stored under the key.
    Absent,
    /// The caller must read these bytes, and pass them to [`Lookup::verify`].
    At(RecordPlace),
    /// The lookup cannot decide whether there is a record, as with [`Look::Unsure`].
    Unsure,
}

/// Answers `get` requests on any thread. A lookup does not wait for the storage scheme's thread or
/// for the disk. Between its two steps, [`Lookup::find`] and [`Lookup::verify`], the caller reads
/// from the disk. The read may take any time, and the store may change during the read.
pub trait Lookup: Send + Sync {
    /// Returns where to read the record of a key. A lookup finds the records of all puts that the
    /// storage scheme has accepted, or returns `Unsure`.
    fn find(&self, key: Key) -> Find;

    /// Verifies the bytes that the caller read at `place`, which [`Lookup::find`] returned for
    /// `key`. Returns `None` if the bytes are not the record, or the record is no longer the newest
    /// record of the key. The caller must then send the request to the storage scheme.
    fn verify(&self, key: Key, place: RecordPlace, buffer: IoBuffer) -> Option<Record>;

    /// Looks up a key. The caller's function `read` reads the bytes of the record, and this method
    /// verifies them. If `read` returns `None` or the bytes are wrong, returns [`Look::Unsure`].
    fn look(&self, key: Key, read: &mut ReadNow<'_>) -> Look {
        let place = match self.find(key) {
            Find::Absent => return Look::Absent,
            Find::Unsure => return Look::Unsure,
            Find::At(place) => place,
        };
        let record = read(place.file, place.offset, place.length)
            .and_then(|buffer| self.verify(key, place, buffer));
        record.map_or(Look::Unsure, Look::Found)
    }

    /// Reads a record after the store has closed, if the record was on disk when the store closed.
    /// `read` may wait for the disk. If another process has overwritten the record after that, the
    /// checksum is wrong, and the result is `None`.
    fn read_lent(&self, _key: Key, _read: &mut ReadNow<'_>) -> Option<Record> {
        None
    }

    /// Returns a view of the storage scheme's layout for any thread, if the scheme has a layout.
    fn layout(&self) -> Option<&dyn LayoutView> {
        None
    }
}

/// A storage scheme: the rules by which a store arranges its records on disk. It is a state machine
/// without IO, which a shard (a thread), a simulator or a test runs.
pub trait Scheme {
    /// Opens the store and recovers its records. The caller must call this method once, before all
    /// other methods.
    fn start(&mut self, now: Instant, out: &mut Outbox);
    /// Processes a request. The answer is added to `out`, in this call or in a later call.
    fn on_request(&mut self, request: StoreRequest, now: Instant, out: &mut Outbox);
    /// Processes a finished disk operation.
    fn on_io_done(&mut self, done: IoDone, now: Instant, out: &mut Outbox);
    /// Returns the time at which the caller must call [`Scheme::on_deadline`] next, or `None` if no
    /// work is planned.
    fn deadline(&self) -> Option<Instant>;
    /// Does the work that is due at the deadline. The caller calls this method after the deadline
    /// has passed.
    fn on_deadline(&mut self, now: Instant, out: &mut Outbox);
    /// Returns all runs of free slots (units of disk space), each as first slot and number of
    /// slots. The lab computes from them how fragmented the disk is (requirements R31 and R32 of
    /// `foxy figure requirements`). Storage schemes without slots return nothing.
    fn free_runs(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }
    /// Returns the storage scheme's lookup for other threads, if any. The caller calls this method
    /// before [`Scheme::start`].
    fn lookup(&self) -> Option<Arc<dyn Lookup>> {
        None
    }
    /// Returns a view of the layout for the thread that runs the storage scheme. Returns `None` if
    /// the scheme keeps each record in a file of its own, or if [`Scheme::lookup`] has the view.
    fn layout(&self) -> Option<&dyn LayoutView> {
        None
    }
}

//! A stored response: the values that the caching rules need, the head as it will be sent, and the
//! body. A body above 1 MiB is stored in parts, each of which is one record of the store.

use crate::cache::part_keys::PartKeys;
use crate::cache::purge::{Cleared, PurgeBook, Stamp, Verdict};
use crate::cache::stored_form::{PurgeEffect, RecordDescription, url_of};
use crate::core::{PurgeDoubt, View, tags};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use foxy_base::{WallTime, clock};
use foxy_http::{Headers, ResponseHead};
use foxy_rules::freshness::{StoredTimes, lifetime};
use foxy_rules::partial::are_of_one;
use foxy_rules::reuse::Stored as Facts;
use foxy_rules::{Policy, ResponseControl, Vary};
use foxy_store::Key;
use foxy_store::settings::RECORD_BODY_LIMIT;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The suffix of the cache key under which partial content of a URL is stored.
const PART_NAME: &[u8] = b"\npart";

/// A cache key. The store finds a record by the hash. The proxy then compares the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheKey {
    /// `scheme://authority/path?query`. The key of a variant continues with a line end and the
    /// variant's secondary key.
    pub text: Bytes,
    /// The hash of the text.
    pub hash: Key,
}

impl CacheKey {
    /// Creates a key from `text`, with its hash.
    pub fn new(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        let hash = Key::of(&text);
        Self { text, hash }
    }

    /// Returns the key under which the cache stores partial content of the URL whose key is `self`.
    /// Keys of variants are longer, so they never equal the returned key.
    pub fn part(&self) -> Self {
        Self::new([&self.text[..], PART_NAME].concat())
    }

    pub(crate) fn list_of(&self, variant: &Self, vary: Vary) -> Option<VaryList> {
        let mut rest = variant.text.strip_prefix(&self.text[..])?.strip_prefix(b"\n")?;
        Some(VaryList { vary, salt: rest.try_get_u64().ok()? })
    }

    /// Returns true if this is the key of a variant of `base`. Keys of variants are longer than
    /// keys of parts.
    pub(crate) fn is_variant_of(&self, base: &Self) -> bool {
        self.text.len() > base.text.len() + PART_NAME.len()
    }

    /// Returns the key of one variant of this URL. A variant is one of several responses, chosen by
    /// the headers in `list`. `secondary` contains the request's values of these headers.
    pub(crate) fn variant(&self, list: &VaryList, secondary: &[u8]) -> Self {
        let mut text = BytesMut::from(&self.text[..]);
        text.put_u8(b'\n');
        text.put_u64(list.salt);
        text.put_slice(secondary);
        Self::new(text.freeze())
    }
}

/// The Vary list of a URL: the names of the request headers that choose among its responses, the
/// variants. Each variant's key contains the salt (a random number) of the list. A new list has a
/// new salt, so look-ups no longer find the variants of the old list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryList {
    pub vary: Vary,
    pub salt: u64,
}

/// The body of a stored response: its bytes, or a number. The keys of the body's parts (1 MiB each)
/// are computed from this number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredBody {
    Whole(Bytes),
    Parts { fill: u64 },
}

/// A stored response, with the values that decide about its reuse.
#[derive(Clone, Debug)]
pub struct Stored {
    pub key: Bytes,
    /// The head without hop-by-hop fields, Age and Content-Length.
    pub head: Arc<ResponseHead>,
    /// The status line and header lines as HTTP/1.1 text. Age, Cache-Status, framing and the final
    /// empty line are left out, because each answer adds its own. foxy's internal field with
    /// surrogate keys and cache tags is left out, too, because no client receives it.
    pub wire: Bytes,
    pub times: StoredTimes,
    pub lifetime: u64,
    pub control: ResponseControl,
    pub length: u64,
    pub body: StoredBody,
    pub begun: Stamp,
    pub cleared: Cleared,
    /// The reason why this node does not know whether a purge affects this response. The cache
    /// never stores a response that has such a reason.
    pub doubt: Option<PurgeDoubt>,
    /// Whether the response was offered to the cold tier.
    pub offered: Offered,
}

/// Whether a response was offered to the cold tier, since the node read or fetched it. Contains the
/// number of hits before the offer was settled.
#[derive(Debug, Default)]
pub struct Offered(AtomicU32);

/// The number of hits of a response that must not be offered again.
const SETTLED: u32 = u32::MAX;

impl Offered {
    /// Notes a hit. Returns true if the response must be offered now: at the first hit, and until
    /// the offer is settled, at the second, fourth, eighth hit, and so on.
    pub fn is_due(&self) -> bool {
        self.0.load(Ordering::Relaxed) != SETTLED
            && (self.0.fetch_add(1, Ordering::Relaxed) + 1).is_power_of_two()
    }

    /// Notes that the response need not be offered again.
    pub fn settle(&self) {
        self.0.store(SETTLED, Ordering::Relaxed);
    }
}

impl Clone for Offered {
    fn clone(&self) -> Self {
        Self(AtomicU32::new(self.0.load(Ordering::Relaxed)))
    }
}

impl Stored {
    /// Creates a stored response. `head` must be without hop-by-hop fields, Age and Content-Length.
    /// The cache treats the response as purged until the caller sets the number of the last purge
    /// before its fetch.
    pub fn new(
        key: Bytes,
        head: &ResponseHead,
        policy: Policy,
        times: StoredTimes,
        length: u64,
        body: StoredBody,
    ) -> Self {
        let (wire, head) = head.written();
        Self::written(key, head, wire, policy, times, length, body)
    }

    pub(crate) fn described(&self, purges: Option<&PurgeBook>) -> RecordDescription {
        let StoredTimes { received, initial_age } = self.times;
        let fresh_for = self.lifetime.saturating_sub(initial_age).saturating_mul(1000);
        let expires = WallTime(received.0.saturating_add(fresh_for));
        let (expires, purge) = match purges.map(|purges| purges.judge(self)) {
            None | Some(Verdict::Untouched) => (expires, None),
            Some(Verdict::Stale { since }) => (expires.min(since), Some(PurgeEffect::Stale)),
            Some(Verdict::InDoubt(_)) => (expires, Some(PurgeEffect::Unconfirmed)),
            Some(Verdict::Gone) => (expires, Some(PurgeEffect::Removed)),
        };
        let is_partial = self.key.ends_with(PART_NAME);
        RecordDescription {
            url: url_of(&self.key),
            is_variant: self.key.contains(&b'\n') && !is_partial,
            status: Some(self.head.status),
            length: self.length,
            received: Some(received),
            expires: Some(expires),
            parts: match self.body {
                StoredBody::Whole(_) => 1,
                StoredBody::Parts { .. } => self.length.div_ceil(RECORD_BODY_LIMIT as u64).max(1),
            },
            part_keys: self.part_keys(),
            is_partial,
            purge,
        }
    }

    /// Returns the keys of the records that contain the body. Returns `None` if the response's own
    /// record contains it.
    pub(crate) fn part_keys(&self) -> Option<PartKeys> {
        let StoredBody::Parts { fill } = self.body else { return None };
        Some(PartKeys { object: self.object(), fill, length: self.length })
    }

    /// Returns the response with the lifetime and cache directives of `policy`.
    pub(crate) fn with_policy(&self, policy: Policy) -> Self {
        let view = View(&self.head.headers);
        let control = policy.control(&view);
        let received = clock::civil(self.times.received);
        let lifetime =
            lifetime(self.head.status, &view, &control, &policy, received, &self.key).seconds();
        Self { lifetime, control, ..self.clone() }
    }

    /// Creates a stored response from `head` and `wire`, which is `head` as HTTP/1.1 text. Removes
    /// the fields that no client receives from `wire`.
    pub(crate) fn written(
        key: Bytes,
        head: ResponseHead,
        wire: Bytes,
        policy: Policy,
        times: StoredTimes,
        length: u64,
        body: StoredBody,
    ) -> Self {
        let view = View(&head.headers);
        let control = policy.control(&view);
        let received = clock::civil(times.received);
        let lifetime = lifetime(head.status, &view, &control, &policy, received, &key).seconds();
        let wire = text_for_client(&head).unwrap_or(wire);
        Self {
            lifetime,
            control,
            wire,
            key,
            head: Arc::new(head),
            times,
            length,
            body,
            begun: Stamp::default(),
            cleared: Cleared::default(),
            doubt: None,
            offered: Offered::default(),
        }
    }

    /// Returns the key from which the keys of the body's parts are computed. It is the response's
    /// own key, or the key of the URL if the response is stored as slices (aligned MiB).
    pub fn object(&self) -> Key {
        let url = self.key.strip_suffix(PART_NAME).filter(|url| !url.contains(&b'\n'));
        Key::of(url.unwrap_or(&self.key))
    }

    pub fn is_of_slices(&self) -> bool {
        self.head.status == 200
            && self.key.ends_with(PART_NAME)
            && matches!(self.body, StoredBody::Parts { .. })
    }

    pub fn facts(&self) -> Facts<'_> {
        Facts { control: &self.control, lifetime: self.lifetime, times: self.times }
    }

    /// Returns true if both responses are partial responses of the same representation and are
    /// equally fresh.
    pub(crate) fn is_of_one_with(&self, other: &Self) -> bool {
        self.lifetime == other.lifetime
            && self.control == other.control
            && are_of_one(&View(&self.head.headers), &View(&other.head.headers))
    }

    pub(crate) fn without_body(&self) -> Self {
        Self { body: StoredBody::Whole(Bytes::new()), ..self.clone() }
    }

    pub fn weight(&self) -> u64 {
        let body = match &self.body {
            StoredBody::Whole(body) => body.len(),
            StoredBody::Parts { .. } => 0,
        };
        (self.key.len() + 2 * self.wire.len() + body + 512) as u64
    }
}

/// Returns the HTTP/1.1 text of `head` without the fields that clients do not receive. Returns
/// `None` if clients receive all fields.
pub(crate) fn text_for_client(head: &ResponseHead) -> Option<Bytes> {
    match tags::for_client(&head.headers) {
        Cow::Borrowed(_) => None,
        Cow::Owned(headers) => Some(ResponseHead { headers, ..head.clone() }.written().0),
    }
}

/// Removes Age and Content-Length, because each answer adds its own values.
pub(crate) fn strip(headers: &mut Headers) {
    headers.remove_all(["age", "content-length"]);
}

/// The key under which a response is stored, and its Vary list if the response is a variant.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    pub(crate) key: CacheKey,
    pub(crate) list: Option<VaryList>,
    /// True if the Vary list must be stored together with the response.
    pub(crate) has_new_list: bool,
}

impl From<CacheKey> for Placement {
    fn from(key: CacheKey) -> Self {
        Self { key, list: None, has_new_list: false }
    }
}

/// The content of a record of the store: a response, or the Vary list of a URL together with the
/// text of the URL's key.
#[derive(Clone, Debug)]
pub enum Entry {
    Response(Box<Stored>),
    Varies(Bytes, VaryList),
}

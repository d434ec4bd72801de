//! A stored response: what the rules need of it, the head as it goes out, and the body or where its
//! parts are. Its form as a record's head is in `stored_form`.

use crate::cache::purge::{Cleared, Stamp};
use crate::core::View;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use foxy_base::clock;
use foxy_http::{Headers, ResponseHead};
use foxy_rules::freshness::{StoredTimes, lifetime};
use foxy_rules::partial::are_of_one;
use foxy_rules::reuse::Stored as Facts;
use foxy_rules::{Policy, ResponseControl, Role, Vary};
use foxy_store::Key;
use std::sync::Arc;

/// What the key of what is known of a URL's response but for the whole ends in.
const PART_NAME: &[u8] = b"\npart";

/// A cache key: the text that is compared, and the hash that finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheKey {
    /// `scheme://authority/path?query`, and for a variant its secondary key after a line end.
    pub text: Bytes,
    /// Its name in memory and store.
    pub hash: Key,
}

impl CacheKey {
    /// The key of a text.
    pub fn new(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        let hash = Key::of(&text);
        Self { text, hash }
    }

    /// The key of a part of the response under this one. No variant's key is like it: they are
    /// longer.
    pub fn part(&self) -> Self {
        Self::new([&self.text[..], PART_NAME].concat())
    }

    /// The list a variant's key was made with, given the names it chose by.
    pub fn list_of(&self, variant: &Self, vary: Vary) -> Option<VaryList> {
        let mut rest = variant.text.strip_prefix(&self.text[..])?.strip_prefix(b"\n")?;
        Some(VaryList { vary, salt: rest.try_get_u64().ok()? })
    }

    /// Whether it is the key of a variant of that URL. A variant's key is longer than that of the
    /// part.
    pub(crate) fn is_variant_of(&self, base: &Self) -> bool {
        self.text.len() > base.text.len() + PART_NAME.len()
    }

    /// The key of one variant under this one.
    pub fn variant(&self, list: &VaryList, secondary: &[u8]) -> Self {
        let mut text = BytesMut::from(&self.text[..]);
        text.put_u8(b'\n');
        text.put_u64(list.salt);
        text.put_slice(secondary);
        Self::new(text.freeze())
    }
}

/// The request headers that chose among the responses of a URL. What is stored under another salt
/// is out of reach: a list that was invalidated takes its variants with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryList {
    /// The names.
    pub vary: Vary,
    /// Random, drawn when the list was first made.
    pub salt: u64,
}

/// The body of a stored response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredBody {
    /// All of it.
    Whole(Bytes),
    /// In the store, as parts of one fill.
    Parts {
        /// The fill's random number.
        fill: u64,
    },
}

/// A stored response.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The whole key text.
    pub key: Bytes,
    /// The response's head, without hop-by-hop fields, Age and framing.
    pub head: Arc<ResponseHead>,
    /// Status line and header lines as they go out, without Age, Cache-Status, framing and the end
    /// of the head.
    pub wire: Bytes,
    /// When it was received.
    pub times: StoredTimes,
    /// Freshness lifetime in seconds.
    pub lifetime: u64,
    /// What its Cache-Control says, or its targeted field.
    pub control: ResponseControl,
    /// Body length in bytes.
    pub length: u64,
    /// The body.
    pub body: StoredBody,
    /// When its fetch began, among the purges.
    pub begun: Stamp,
    /// Up to which purge it is known to be untouched.
    pub cleared: Cleared,
}

impl Stored {
    /// A stored response from a head without hop-by-hop fields, Age and framing. Every purge is
    /// about it until it is said when its fetch began.
    pub fn new(
        key: Bytes,
        head: &ResponseHead,
        policy: Policy,
        times: StoredTimes,
        length: u64,
        body: StoredBody,
    ) -> Self {
        let (wire, head) = head.written();
        Self::written(key, (head, wire), policy, times, length, body)
    }

    /// As [`Stored::new`], of a head that is written already as it goes out.
    pub(crate) fn written(
        key: Bytes,
        (head, wire): (ResponseHead, Bytes),
        policy: Policy,
        times: StoredTimes,
        length: u64,
        body: StoredBody,
    ) -> Self {
        let view = View(&head.headers);
        let control = ResponseControl::for_role(&view, policy.role);
        let received = clock::civil(times.received);
        Self {
            lifetime: lifetime(
                head.status,
                &view,
                &control,
                policy.negative_lifetime,
                received,
                &key,
            )
            .seconds(),
            control,
            wire,
            key,
            head: Arc::new(head),
            times,
            length,
            body,
            begun: Stamp::default(),
            cleared: Cleared::default(),
        }
    }

    /// For whom it was stored, as far as that makes a difference.
    pub const fn role(&self) -> Role {
        if self.control.targeted { Role::Gateway } else { Role::Proxy }
    }

    /// The name its body's parts are stored under: its own, or that of the URL whose slices it
    /// knows.
    pub fn object(&self) -> Key {
        let url = self.key.strip_suffix(PART_NAME).filter(|url| !url.contains(&b'\n'));
        Key::of(url.unwrap_or(&self.key))
    }

    /// Whether it is what is known of an object by slices: any of its parts may be absent.
    pub fn is_of_slices(&self) -> bool {
        self.head.status == 200
            && self.key.ends_with(PART_NAME)
            && matches!(self.body, StoredBody::Parts { .. })
    }

    /// What the rules ask for.
    pub fn facts(&self) -> Facts<'_> {
        Facts { control: &self.control, lifetime: self.lifetime, times: self.times }
    }

    /// Whether another response is of the same representation, and fresh for as long.
    pub(crate) fn is_of_one_with(&self, other: &Self) -> bool {
        self.lifetime == other.lifetime
            && self.control == other.control
            && are_of_one(&View(&self.head.headers), &View(&other.head.headers))
    }

    /// The same without its body.
    pub(crate) fn without_body(&self) -> Self {
        Self { body: StoredBody::Whole(Bytes::new()), ..self.clone() }
    }

    /// Bytes it takes in memory, about.
    pub fn weight(&self) -> u64 {
        let body = match &self.body {
            StoredBody::Whole(body) => body.len(),
            StoredBody::Parts { .. } => 0,
        };
        (self.key.len() + 2 * self.wire.len() + body + 512) as u64
    }
}

/// Removes what is not stored: the previous caches' Age, and the framing, which is made anew for
/// each answer.
pub(crate) fn strip(headers: &mut Headers) {
    headers.remove_all(["age", "content-length"]);
}

/// The place of a response in the cache.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    pub(crate) key: CacheKey,
    /// The list that leads to the key of a variant.
    pub(crate) list: Option<VaryList>,
    /// Whether the list must be stored too.
    pub(crate) has_new_list: bool,
}

impl From<CacheKey> for Placement {
    fn from(key: CacheKey) -> Self {
        Self { key, list: None, has_new_list: false }
    }
}

/// What is found under a key.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A response.
    Response(Box<Stored>),
    /// The names that choose among several.
    Varies(Bytes, VaryList),
}

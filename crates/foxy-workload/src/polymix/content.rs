//! The documents of PolyMix-4. A document's name determines its type, size, cachability, times of
//! change and images. So a benchmark's client and origin agree on them without communication.

use crate::distribution::{exponential, floor, lognormal, uniform, zipf_count};
use crate::object::BodyStream;
use foxy_base::random::{Random, split_mix};
use std::fmt;

const KIB: f64 = 1024.0;
const DAY: f64 = 86_400.0;
/// Largest number of images in a page. The number is drawn by `zipf_count(13)`.
pub(super) const MAX_IMAGES: u32 = 13;

/// A type of document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A page that contains images.
    Html,
    /// An image in a page.
    Image,
    /// A large file.
    Download,
    /// Any other type.
    Other,
}

impl Kind {
    /// Types of documents that clients request directly, with their share of all objects in
    /// thousandths. Clients request images only after the page that contains them.
    pub const DIRECT: [(Self, u32); 3] =
        [(Self::Html, 150), (Self::Download, 5), (Self::Other, 195)];

    /// Returns the name of the type in URLs and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Image => "image",
            Self::Download => "download",
            Self::Other => "other",
        }
    }

    /// Returns the media type of documents of this type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html",
            Self::Image => "image/png",
            Self::Download => "application/x-tar",
            Self::Other => "application/octet-stream",
        }
    }

    const fn cachable_share(self) -> f64 {
        match self {
            Self::Html => 0.90,
            Self::Image => 0.80,
            Self::Download => 0.95,
            Self::Other => 0.72,
        }
    }

    /// Draws a body size in bytes.
    fn size(self, random: &mut Random) -> f64 {
        match self {
            Self::Html => exponential(random, 8.5 * KIB),
            Self::Image => exponential(random, 4.5 * KIB),
            Self::Download => lognormal(random, 300.0 * KIB, 300.0 * KIB),
            Self::Other => lognormal(random, 25.0 * KIB, 10.0 * KIB),
        }
    }

    /// Draws the time in seconds between two changes of a document.
    fn life(self, random: &mut Random) -> f64 {
        match self {
            Self::Html => lognormal(random, 7.0 * DAY, DAY),
            Self::Image => lognormal(random, 30.0 * DAY, 7.0 * DAY),
            Self::Download => lognormal(random, 182.5 * DAY, 30.0 * DAY),
            Self::Other => uniform(random, DAY, 365.0 * DAY),
        }
    }
}

/// The part of a document's name that is equal for all documents of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// Number of the world, which is the seed of the run. Different worlds have different
    /// documents.
    pub number: u64,
    /// Number by which the time between two changes of a document is divided.
    pub time_scale: u32,
    /// Number by which the time is divided that a server waits before it answers.
    pub delay_scale: u32,
}

/// The name of a document: `/p/SEED-T-D/TYPE/NUMBER/IMAGE`. T is the time scale, and D is the delay
/// scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Document {
    /// The part of the name that is equal for all documents of the run.
    pub world: World,
    /// PolyMix content type of the page, or of a document that is requested without a page.
    pub container: Kind,
    /// Number of this page or document within its content type.
    pub number: u64,
    /// Number of the image in its page, from 1. It is 0 for the page itself.
    pub image: u32,
}

/// The properties that follow from a document's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    /// Type of the document.
    pub kind: Kind,
    /// Body length in bytes.
    pub size: u64,
    /// Whether a cache may store the document.
    pub cachable: bool,
    /// The times at which the document changes.
    pub life: LifeCycle,
}

/// The times at which a document changes: every `length` seconds from `offset` on. `offset` is in
/// seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifeCycle {
    length: u64,
    offset: u64,
}

impl LifeCycle {
    /// Returns the version of the document at the time `second`, in seconds since the Unix epoch.
    /// It is the number of changes before this time.
    pub const fn version(self, second: u64) -> u64 {
        second.saturating_sub(self.offset) / self.length
    }

    /// Returns the time at which `version` began, in seconds since the Unix epoch. The response
    /// field Last-Modified contains this time.
    pub const fn changed(self, version: u64) -> u64 {
        self.offset + version * self.length
    }
}

impl Document {
    /// Parses a path. Returns `None` if it names no document.
    pub fn parse(path: &str) -> Option<Self> {
        fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
        }
        let mut parts = path.strip_prefix("/p/")?.split('/');
        let mut world = parts.next()?.split('-');
        let world = World {
            number: number(world.next()?)?,
            time_scale: number(world.next()?).filter(|&scale| scale > 0)?,
            delay_scale: number(world.next()?)
                .filter(|&scale| scale > 0)
                .filter(|_| world.next().is_none())?,
        };
        let container = parts.next()?;
        let (container, _) = Kind::DIRECT.into_iter().find(|(kind, _)| kind.name() == container)?;
        let document = Self {
            world,
            container,
            number: number(parts.next()?)?,
            image: number(parts.next()?)?,
        };
        let is_whole = parts.next().is_none();
        (is_whole && document.image <= document.images()).then_some(document)
    }

    /// Returns a hash of the document's name. All properties of the document follow from this hash.
    pub fn key(&self) -> u64 {
        let mut state = self.world.number ^ 0x706f_6c79_6d69_7834;
        let mut key = split_mix(&mut state);
        for part in [self.container as u64, self.number, u64::from(self.image)] {
            state = key ^ part;
            key = split_mix(&mut state);
        }
        key
    }

    /// Returns the number of images in the page.
    pub fn images(&self) -> u32 {
        match self.container {
            Kind::Html => {
                let page = Self { image: 0, ..*self };
                zipf_count(&mut Random::new(page.key() ^ 1), MAX_IMAGES)
            }
            _ => 0,
        }
    }

    /// Returns the name of an image in this page.
    pub const fn with_image(self, image: u32) -> Self {
        Self { image, ..self }
    }

    /// Returns the number of the document's server, below `servers`. Consecutive numbers of
    /// documents belong to consecutive servers. A page and its images are on one server.
    pub fn server(&self, servers: u32) -> u32 {
        u32::try_from(self.number % u64::from(servers.max(1))).unwrap_or(0)
    }

    /// Returns the properties of the document.
    pub fn nature(&self) -> Nature {
        let mut random = Random::new(self.key());
        let kind = if self.image == 0 { self.container } else { Kind::Image };
        let cachable = random.chance(kind.cachable_share());
        let size = floor(kind.size(&mut random)).max(1);
        let length = floor(kind.life(&mut random) / f64::from(self.world.time_scale)).max(1);
        Nature { kind, size, cachable, life: LifeCycle { length, offset: random.below(length) } }
    }

    /// Returns the bytes of the document's body at a version.
    pub fn body(&self, version: u64) -> BodyStream {
        BodyStream::new(self.key(), version)
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let World { number, time_scale, delay_scale } = self.world;
        let container = self.container.name();
        write!(
            f,
            "/p/{number}-{time_scale}-{delay_scale}/{container}/{}/{}",
            self.number, self.image
        )
    }
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;

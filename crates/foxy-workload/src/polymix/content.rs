//! Documents of PolyMix-4. Type, size, cachability, life cycle and images are functions of the
//! name, so that client and origin agree without communication.

use crate::distribution::{exponential, floor, lognormal, uniform, zipf_count};
use crate::object::BodyStream;
use foxy_base::random::{Random, split_mix};
use std::fmt;

const KIB: f64 = 1024.0;
const DAY: f64 = 86_400.0;
/// Images in a page: zipf(13).
pub(super) const MAX_IMAGES: u32 = 13;

/// The type of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A page with images.
    Html,
    /// An image in a page.
    Image,
    /// A download.
    Download,
    /// Another type.
    Other,
}

impl Kind {
    /// Directly requested types, with their share of all objects in per mille.
    pub const DIRECT: [(Self, u32); 3] =
        [(Self::Html, 150), (Self::Download, 5), (Self::Other, 195)];

    /// The name in URLs and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Image => "image",
            Self::Download => "download",
            Self::Other => "other",
        }
    }

    /// The media type.
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

    /// Body length in bytes.
    fn size(self, random: &mut Random) -> f64 {
        match self {
            Self::Html => exponential(random, 8.5 * KIB),
            Self::Image => exponential(random, 4.5 * KIB),
            Self::Download => lognormal(random, 300.0 * KIB, 300.0 * KIB),
            Self::Other => lognormal(random, 25.0 * KIB, 10.0 * KIB),
        }
    }

    /// Seconds between changes.
    fn life(self, random: &mut Random) -> f64 {
        match self {
            Self::Html => lognormal(random, 7.0 * DAY, DAY),
            Self::Image => lognormal(random, 30.0 * DAY, 7.0 * DAY),
            Self::Download => lognormal(random, 182.5 * DAY, 30.0 * DAY),
            Self::Other => uniform(random, DAY, 365.0 * DAY),
        }
    }
}

/// The common part of all document names of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// Each number has its own documents.
    pub number: u64,
    /// Divisor of life cycles.
    pub time_scale: u32,
    /// Divisor of the think time of servers.
    pub delay_scale: u32,
}

/// The name of a document: `/p/WORLD-TIME-DELAY/TYPE/NUMBER/IMAGE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Document {
    /// Common part of the run.
    pub world: World,
    /// Type of the directly requested document.
    pub container: Kind,
    /// Number within the type.
    pub number: u64,
    /// Number of the image in the page, from 1; 0 is the page itself.
    pub image: u32,
}

/// The properties of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    /// Type of the document.
    pub kind: Kind,
    /// Body length in bytes.
    pub size: u64,
    /// Whether a cache may store the document.
    pub cachable: bool,
    /// Times of change.
    pub life: LifeCycle,
}

/// A document changes every `length` seconds from `offset`, in seconds since the Unix epoch, on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifeCycle {
    length: u64,
    offset: u64,
}

impl LifeCycle {
    /// The version at `second`: the number of changes.
    pub const fn version(self, second: u64) -> u64 {
        second.saturating_sub(self.offset) / self.length
    }

    /// The start of `version`: its Last-Modified.
    pub const fn changed(self, version: u64) -> u64 {
        self.offset + version * self.length
    }
}

impl Document {
    /// Reads a path. `None` if it does not name a document.
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

    /// A hash of the name.
    pub fn key(&self) -> u64 {
        let mut state = self.world.number ^ 0x706f_6c79_6d69_7834;
        let mut key = split_mix(&mut state);
        for part in [self.container as u64, self.number, u64::from(self.image)] {
            state = key ^ part;
            key = split_mix(&mut state);
        }
        key
    }

    /// Number of images in the page.
    pub fn images(&self) -> u32 {
        match self.container {
            Kind::Html => {
                let page = Self { image: 0, ..*self };
                zipf_count(&mut Random::new(page.key() ^ 1), MAX_IMAGES)
            }
            _ => 0,
        }
    }

    /// The image `image` of the page.
    pub const fn with_image(self, image: u32) -> Self {
        Self { image, ..self }
    }

    /// The number of the server, below `servers`. A page and its images share a server.
    pub fn server(&self, servers: u32) -> u32 {
        let page = Self { image: 0, ..*self };
        let server = Random::new(page.key() ^ 2).below(u64::from(servers));
        u32::try_from(server).unwrap_or(0)
    }

    /// The properties.
    pub fn nature(&self) -> Nature {
        let mut random = Random::new(self.key());
        let kind = if self.image == 0 { self.container } else { Kind::Image };
        let cachable = random.chance(kind.cachable_share());
        let size = floor(kind.size(&mut random)).max(1);
        let length = floor(kind.life(&mut random) / f64::from(self.world.time_scale)).max(1);
        Nature { kind, size, cachable, life: LifeCycle { length, offset: random.below(length) } }
    }

    /// The body of a version.
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

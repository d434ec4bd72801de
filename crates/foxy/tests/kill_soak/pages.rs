//! The pages of the soak test, which kills and restarts foxy many times. The seed determines the
//! properties of a page. Page, language and version determine every byte of a body.

use foxy_base::random::{Random, split_mix};

/// Languages that clients can request. The first entry means that `Accept-Language` is missing.
pub const LANGUAGES: [&str; 3] = ["", "de", "fr"];

/// A body consists of repetitions of this number of bytes. The number is prime, so bytes at the
/// wrong offset of a buffer are noticed.
const PERIOD: usize = 65_521;

/// Largest number of bytes to compare or send at once.
pub const PIECE: usize = 32 << 10;

/// The kind of validator in a page's responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validator {
    Nothing,
    Tag,
    Date,
}

#[derive(Clone, Debug)]
pub struct Page {
    pub number: usize,
    /// Whether the page has a variant for each language.
    pub varies: bool,
    /// Number of seconds for which a response is fresh.
    pub max_age: u64,
    pub validator: Validator,
    /// Whether responses contain `Date`.
    pub dated: bool,
    pub chunked: bool,
    /// Whether the origin answers a range request with this range, instead of the whole body.
    pub ranges: bool,
    /// Whether clients send only plain GET and HEAD requests for this page.
    pub quiet: bool,
    base: u64,
}

impl Page {
    pub fn new(seed: u64, number: usize) -> Self {
        let mut random = Random::new(seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let base = match random.below(20) {
            0 => (1 << 20) + random.below(2 << 20),
            1..=3 => (64 << 10) + random.below(400 << 10),
            4..=9 => 4_000 + random.below(30_000),
            _ => 100 + random.below(2_000),
        };
        let validator =
            [Validator::Tag, Validator::Date, Validator::Nothing][below(&mut random, 3)];
        Self {
            number,
            varies: random.chance(0.5),
            max_age: [1, 2, 3, 3600, 3600][below(&mut random, 5)],
            validator,
            dated: random.chance(0.5),
            chunked: random.chance(0.3),
            ranges: validator == Validator::Tag && random.chance(0.7),
            quiet: number.is_multiple_of(3),
            base,
        }
    }

    /// Creates a small page whose fetch is slow during a storm (a burst of thousands of requests).
    /// It stays fresh for long, and has no variants and no validator, so only a complete fetch can
    /// replace its stored response.
    pub const fn plain(number: usize) -> Self {
        Self {
            number,
            varies: false,
            max_age: 3600,
            validator: Validator::Nothing,
            dated: true,
            chunked: false,
            ranges: false,
            quiet: false,
            base: 2_000,
        }
    }

    /// Returns the number of the variant that a client with this language receives.
    pub const fn variant(&self, language: usize) -> usize {
        if self.varies { language } else { 0 }
    }

    /// Returns the length in bytes of the body of a version.
    pub fn length(&self, variant: usize, version: u64) -> u64 {
        self.base + tag(self.number, variant, version) % (self.base / 3 + 1)
    }
}

pub fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).expect("below a number that fits")
}

/// Returns a number (the tag) that identifies the body of a version.
pub fn tag(number: usize, variant: usize, version: u64) -> u64 {
    let mut state = (number as u64) << 40 ^ (variant as u64) << 32 ^ version;
    split_mix(&mut state)
}

/// Random bytes. Each body repeats them, starting at a different place.
pub struct Pattern(Vec<u8>);

impl Pattern {
    pub fn new() -> Self {
        let mut random = Random::new(1);
        let mut bytes = vec![0; PERIOD];
        random.fill(&mut bytes);
        bytes.extend_from_within(..PIECE);
        Self(bytes)
    }

    /// Returns bytes of the body `tag`, from offset `at`: at most `most` bytes, and at most
    /// [`PIECE`] bytes.
    pub fn piece(&self, tag: u64, at: u64, most: u64) -> &[u8] {
        let start = usize::try_from((tag % PERIOD as u64 + at) % PERIOD as u64).expect("small");
        &self.0[start..start + usize::try_from(most.min(PIECE as u64)).expect("small")]
    }

    /// Returns whether `bytes` are the bytes of the body `tag` from offset `at` on.
    pub fn is(&self, tag: u64, mut at: u64, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let right = self.piece(tag, at, bytes.len() as u64);
            let (now, rest) = bytes.split_at(right.len());
            if now != right {
                return false;
            }
            at += right.len() as u64;
            bytes = rest;
        }
        true
    }
}

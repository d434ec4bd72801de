//! The pages of the soak: what each is like follows from the seed, and every byte of a body follows
//! from page, language and version.

use foxy_base::random::{Random, split_mix};

/// The languages a client may ask for. The first is no `Accept-Language` at all.
pub const LANGUAGES: [&str; 3] = ["", "de", "fr"];

/// Bytes after which a body repeats: a prime number, so that no byte stands at its place in another
/// part too.
const PERIOD: usize = 65_521;

/// Bytes that are compared and sent at a time, at most.
pub const PIECE: usize = 32 << 10;

/// The validator of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validator {
    Nothing,
    Tag,
    Date,
}

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    pub number: usize,
    /// Whether it has a version for each language.
    pub varies: bool,
    /// Seconds for which an answer is fresh.
    pub max_age: u64,
    pub validator: Validator,
    /// Whether answers carry `Date`.
    pub dated: bool,
    pub chunked: bool,
    /// Whether the origin answers a range with that range.
    pub ranges: bool,
    /// Whether clients leave it alone but for plain requests.
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

    /// A small page that is fresh for long, has no variants and no validator: only its own fetches
    /// renew it.
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

    /// Which of its variants a client that asks for this language gets.
    pub const fn variant(&self, language: usize) -> usize {
        if self.varies { language } else { 0 }
    }

    /// How long the body of a version is.
    pub fn length(&self, variant: usize, version: u64) -> u64 {
        self.base + tag(self.number, variant, version) % (self.base / 3 + 1)
    }
}

pub fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).expect("below a number that fits")
}

/// Tells the bodies of all versions apart.
pub fn tag(number: usize, variant: usize, version: u64) -> u64 {
    let mut state = (number as u64) << 40 ^ (variant as u64) << 32 ^ version;
    split_mix(&mut state)
}

/// The bytes that all bodies are made of.
pub struct Pattern(Vec<u8>);

impl Pattern {
    pub fn new() -> Self {
        let mut random = Random::new(1);
        let mut bytes = vec![0; PERIOD];
        random.fill(&mut bytes);
        bytes.extend_from_within(..PIECE);
        Self(bytes)
    }

    /// At most `most` bytes, and at most [`PIECE`], of the body with this tag from this place on.
    pub fn piece(&self, tag: u64, at: u64, most: u64) -> &[u8] {
        let start = usize::try_from((tag % PERIOD as u64 + at) % PERIOD as u64).expect("small");
        &self.0[start..start + usize::try_from(most.min(PIECE as u64)).expect("small")]
    }

    /// Whether these are the bytes of that body from that place on.
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

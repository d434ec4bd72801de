//! The parts of a row in the table of settings: key, flag, kind of value, default and
//! documentation.

use super::rows::Written;
use super::squid::CacheDir;
use super::store_choice::StoreChoice;
use super::values::{OriginUrl, Output};
use foxy_base::ByteSize;
use foxy_proxy::intercept::HostPattern;
use foxy_proxy::upstream::Cidr;
use foxy_schemes::policy::POLICIES;
use foxy_schemes::{PolicyName, SCHEMES, SchemeName};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Returns the field of [`Written`] that stores a value.
pub type Slot<T> = fn(&mut Written) -> &mut Option<T>;

/// Bounds of most settings that are times.
pub const MIN_SPAN: Duration = Duration::from_millis(10);
pub const MAX_SPAN: Duration = Duration::from_secs(86_400);

/// The words that a setting accepts. Each has a text that explains it.
pub type Words = &'static [(&'static str, &'static str)];

pub struct Setting {
    /// Name in the settings file: `name`, or `table.name`.
    pub key: &'static str,
    /// The flag's name without the dashes.
    pub flag: Option<&'static str>,
    /// Heading of the chapter in the documentation and the help.
    pub chapter: &'static str,
    pub kind: Kind,
    pub default: Preset,
    /// Lines of the documentation. Each starts with a space.
    pub lines: &'static [&'static str],
}

impl Setting {
    pub fn doc(&self) -> String {
        self.lines.concat().trim_start().to_owned()
    }

    /// Help text for the command line: the first sentence of the documentation without its full
    /// stop.
    pub fn summary(&self) -> String {
        let doc = self.doc();
        let sentence = doc.split_once(". ").map_or(&*doc, |(first, _)| first);
        sentence.strip_suffix('.').unwrap_or(sentence).to_owned()
    }
}

/// The value of a setting that is not written.
pub enum Preset {
    /// Values as on the command line. A list has several.
    Fixed(&'static [&'static str]),
    /// A value that is found at start-up, described in prose.
    Computed(&'static str),
    /// No value. The text says what this means.
    Nothing(&'static str),
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed([]) => f.write_str("none"),
            Self::Fixed(texts) => f.write_str(&texts.join(", ")),
            Self::Computed(prose) => f.write_str(prose),
            Self::Nothing(prose) => write!(f, "none: {prose}"),
        }
    }
}

/// The kind of value of a setting, with the bounds and the field that stores the value.
pub enum Kind {
    Address(Slot<SocketAddr>),
    AddressOrOff(Slot<Option<SocketAddr>>),
    Output(Slot<Output>),
    File(Slot<PathBuf>),
    Folder(Slot<PathBuf>),
    Stores(Slot<Vec<StoreChoice>>),
    CacheDirs(Slot<Vec<CacheDir>>),
    Size { slot: Slot<ByteSize>, at_least: ByteSize, at_most: ByteSize },
    Span { slot: Slot<Duration>, at_least: Duration, at_most: Duration },
    Count { slot: Slot<usize>, at_least: usize, at_most: usize },
    Choice { slot: Slot<&'static str>, words: Words },
    Scheme(Slot<SchemeName>),
    Policy(Slot<PolicyName>),
    Networks(Slot<Vec<Cidr>>),
    Ports(Slot<Vec<u16>>),
    Hosts(Slot<Vec<HostPattern>>),
    Files(Slot<Vec<PathBuf>>),
    NameServers(Slot<Vec<SocketAddr>>),
    Origin(Slot<OriginUrl>),
}

/// How users write values of a kind.
pub struct Notation {
    /// Placeholder in the help of the command line.
    pub placeholder: &'static str,
    /// An example of one value, as on the command line.
    pub example: &'static str,
    /// Whether the setting accepts several values.
    pub is_list: bool,
    /// Whether the value is a TOML integer in the file.
    pub is_number: bool,
}

const fn one(placeholder: &'static str, example: &'static str) -> Notation {
    Notation { placeholder, example, is_list: false, is_number: false }
}

const fn list(placeholder: &'static str, example: &'static str) -> Notation {
    Notation { is_list: true, ..one(placeholder, example) }
}

const fn number(notation: Notation) -> Notation {
    Notation { is_number: true, ..notation }
}

impl Kind {
    pub const fn size(slot: Slot<ByteSize>, at_least: u64, at_most: u64) -> Self {
        Self::Size { slot, at_least: ByteSize(at_least), at_most: ByteSize(at_most) }
    }

    pub const fn span(slot: Slot<Duration>) -> Self {
        Self::Span { slot, at_least: MIN_SPAN, at_most: MAX_SPAN }
    }

    pub const fn span_from_zero(slot: Slot<Duration>) -> Self {
        Self::Span { slot, at_least: Duration::ZERO, at_most: MAX_SPAN }
    }

    pub const fn count(slot: Slot<usize>, at_least: usize, at_most: usize) -> Self {
        Self::Count { slot, at_least, at_most }
    }

    pub const fn choice(slot: Slot<&'static str>, words: Words) -> Self {
        Self::Choice { slot, words }
    }

    pub const fn notation(&self) -> Notation {
        match self {
            Self::Address(_) => one("ADDRESS", "127.0.0.1:3128"),
            Self::AddressOrOff(_) => one("ADDRESS|off", "127.0.0.1:3129"),
            Self::Output(_) => one("PATH|-|off", "/var/log/foxy/access.log"),
            Self::File(_) => one("FILE", "/etc/foxy/token"),
            Self::Folder(_) => one("FOLDER", "/etc/foxy/ca"),
            Self::Stores(_) => list("PATH[,OPTION=VALUE]", "/var/cache/foxy"),
            Self::CacheDirs(_) => list("LINE", "ufs /var/spool/foxy 100 16 256"),
            Self::Size { .. } => one("SIZE", "10G"),
            Self::Span { .. } => one("TIME", "30s"),
            Self::Count { .. } => number(one("N", "2")),
            Self::Choice { words, .. } => one("NAME", words[0].0),
            Self::Scheme(_) => one("NAME", SCHEMES[0].text),
            Self::Policy(_) => one("NAME", POLICIES[0].text),
            Self::Networks(_) => list("CIDR", "10.0.0.0/8"),
            Self::Ports(_) => number(list("PORT", "443")),
            Self::Hosts(_) => list("HOST", "example.org"),
            Self::Files(_) => list("FILE", "/etc/foxy/a.pem"),
            Self::NameServers(_) => list("ADDRESS[:PORT]", "192.0.2.53"),
            Self::Origin(_) => one("URL", "http://127.0.0.1:8080"),
        }
    }

    /// The only words that the setting accepts, with their explanations. Empty for other kinds.
    pub fn words(&self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Choice { words, .. } => words.to_vec(),
            Self::Scheme(_) => SCHEMES.iter().map(|row| (row.text, row.summary)).collect(),
            Self::Policy(_) => POLICIES.iter().map(|row| (row.text, row.summary)).collect(),
            _ => Vec::new(),
        }
    }
}

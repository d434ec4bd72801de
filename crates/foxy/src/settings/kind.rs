//! What a row of the table of settings is made of.

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

/// Where a value of some type goes in the settings as written.
pub type Slot<T> = fn(&mut Written) -> &mut Option<T>;

/// Words a setting can take, each with what it means.
pub type Words = &'static [(&'static str, &'static str)];

/// One setting.
pub struct Setting {
    /// Its name in the file: `name`, or `table.name`.
    pub key: &'static str,
    /// Its flag, without the dashes, when it has one.
    pub flag: Option<&'static str>,
    /// The chapter it belongs to.
    pub area: Area,
    /// Type, bounds and place.
    pub kind: Kind,
    /// What holds when it is not given.
    pub default: Preset,
    /// What it does. The first sentence is also its help on the command line.
    pub doc: &'static str,
}

impl Setting {
    /// The first sentence of its documentation, without the full stop.
    pub fn summary(&self) -> &'static str {
        let sentence = self.doc.split_once(". ").map_or(self.doc, |(first, _)| first);
        sentence.strip_suffix('.').unwrap_or(sentence)
    }
}

/// What holds when a setting is not given.
pub enum Preset {
    /// This text, as on the command line; several for a list.
    Fixed(&'static [&'static str]),
    /// Something found at start-up; the prose says what.
    Computed(&'static str),
    /// No value; the prose says what that means.
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

/// What kind of value a setting takes, its bounds, and where it goes.
pub enum Kind {
    /// A local address with port.
    Address(Slot<SocketAddr>),
    /// The same, or the word `off`.
    AddressOrOff(Slot<Option<SocketAddr>>),
    /// Where lines go: a path, `-` for standard output, or `off`.
    Output(Slot<Output>),
    /// A file.
    File(Slot<PathBuf>),
    /// A folder.
    Folder(Slot<PathBuf>),
    /// One or more folders, each with options of its own.
    Stores(Slot<Vec<StoreChoice>>),
    /// One or more lines as Squid writes them after `cache_dir`.
    CacheDirs(Slot<Vec<CacheDir>>),
    /// Bytes.
    Size {
        /// Its place.
        slot: Slot<ByteSize>,
        /// Bound.
        at_least: ByteSize,
        /// Bound.
        at_most: ByteSize,
    },
    /// A span of time.
    Span {
        /// Its place.
        slot: Slot<Duration>,
        /// Bound.
        at_least: Duration,
        /// Bound.
        at_most: Duration,
    },
    /// A whole number of things.
    Count {
        /// Its place.
        slot: Slot<usize>,
        /// Bound.
        at_least: usize,
        /// Bound.
        at_most: usize,
    },
    /// One of a few words.
    Choice {
        /// Its place.
        slot: Slot<&'static str>,
        /// The words.
        words: Words,
    },
    /// A row of the store's table of schemes.
    Scheme(Slot<SchemeName>),
    /// A row of the store's table of replacement policies.
    Policy(Slot<PolicyName>),
    /// One or more networks in CIDR notation.
    Networks(Slot<Vec<Cidr>>),
    /// One or more TCP ports.
    Ports(Slot<Vec<u16>>),
    /// One or more hosts.
    Hosts(Slot<Vec<HostPattern>>),
    /// One or more files.
    Files(Slot<Vec<PathBuf>>),
    /// One or more addresses of DNS servers, with or without a port.
    NameServers(Slot<Vec<SocketAddr>>),
    /// An origin server: `http://HOST[:PORT]` or `https://HOST[:PORT]`.
    Origin(Slot<OriginUrl>),
}

/// Bytes within bounds.
pub const fn size(slot: Slot<ByteSize>, at_least: u64, at_most: u64) -> Kind {
    Kind::Size { slot, at_least: ByteSize(at_least), at_most: ByteSize(at_most) }
}

/// A time from 10 ms to a day.
pub const fn span(slot: Slot<Duration>) -> Kind {
    Kind::Span { slot, at_least: Duration::from_millis(10), at_most: Duration::from_secs(86_400) }
}

/// A time from nothing to a day.
pub const fn span_from_zero(slot: Slot<Duration>) -> Kind {
    Kind::Span { slot, at_least: Duration::ZERO, at_most: Duration::from_secs(86_400) }
}

/// A whole number within bounds.
pub const fn count(slot: Slot<usize>, at_least: usize, at_most: usize) -> Kind {
    Kind::Count { slot, at_least, at_most }
}

/// One of these words.
pub const fn choice(slot: Slot<&'static str>, words: Words) -> Kind {
    Kind::Choice { slot, words }
}

impl Kind {
    /// Whether it can be given several times.
    pub const fn is_list(&self) -> bool {
        matches!(
            self,
            Self::Stores(_)
                | Self::CacheDirs(_)
                | Self::Networks(_)
                | Self::Ports(_)
                | Self::Hosts(_)
                | Self::Files(_)
                | Self::NameServers(_)
        )
    }

    /// Whether the file writes it as a TOML integer.
    pub const fn is_number(&self) -> bool {
        matches!(self, Self::Count { .. } | Self::Ports(_))
    }

    /// The words it can be, each with what it means; none for what is no word.
    pub fn words(&self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Choice { words, .. } => words.to_vec(),
            Self::Scheme(_) => SCHEMES.iter().map(|row| (row.text, row.summary)).collect(),
            Self::Policy(_) => POLICIES.iter().map(|row| (row.text, row.summary)).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether the file may also write it as a TOML integer, without a unit.
    pub const fn takes_plain_bytes(&self) -> bool {
        matches!(self, Self::Size { .. })
    }

    /// A value as the file writes it.
    pub fn example(&self) -> String {
        let text = match self {
            Self::Address(_) => "\"127.0.0.1:3128\"",
            Self::AddressOrOff(_) => "\"127.0.0.1:3129\" or \"off\"",
            Self::Output(_) => "\"/var/log/foxy/access.log\", \"-\" or \"off\"",
            Self::File(_) => "\"/etc/foxy/token\"",
            Self::Folder(_) => "\"/etc/foxy/ca\"",
            Self::CacheDirs(_) => "\"ufs /var/spool/foxy 100 16 256\"",
            Self::Stores(_) => "\"/var/cache/foxy\" or [\"/disk1/foxy\", \"/disk2/foxy\"]",
            Self::Size { .. } => "\"10G\"",
            Self::Span { .. } => "\"30s\"",
            Self::Count { .. } => "2",
            Self::Choice { words, .. } => return format!("{:?}", words[0].0),
            Self::Scheme(_) => return format!("{:?}", SCHEMES[0].text),
            Self::Policy(_) => return format!("{:?}", POLICIES[0].text),
            Self::Networks(_) => "\"10.0.0.0/8\" or [\"10.0.0.0/8\", \"fd00::/8\"]",
            Self::Ports(_) => "443 or [443, 8443]",
            Self::Hosts(_) => "\"example.org\" or [\"example.org\", \"*.example.net\"]",
            Self::Files(_) => "\"/etc/foxy/a.pem\" or [\"/etc/foxy/a.pem\", \"/etc/foxy/b.pem\"]",
            Self::NameServers(_) => "\"192.0.2.53\" or [\"192.0.2.53\", \"127.0.0.1:5353\"]",
            Self::Origin(_) => "\"http://127.0.0.1:8080\"",
        };
        text.to_owned()
    }

    /// The placeholder in the command line's help.
    pub const fn placeholder(&self) -> &'static str {
        match self {
            Self::Address(_) => "ADDRESS",
            Self::AddressOrOff(_) => "ADDRESS|off",
            Self::Output(_) => "PATH|-|off",
            Self::File(_) => "FILE",
            Self::Folder(_) => "FOLDER",
            Self::Hosts(_) => "HOST",
            Self::Stores(_) => "PATH[,OPTION=VALUE]",
            Self::CacheDirs(_) => "LINE",
            Self::Size { .. } => "SIZE",
            Self::Span { .. } => "TIME",
            Self::Count { .. } => "N",
            Self::Choice { .. } | Self::Scheme(_) | Self::Policy(_) => "NAME",
            Self::Networks(_) => "CIDR",
            Self::Ports(_) => "PORT",
            Self::Files(_) => "FILE",
            Self::NameServers(_) => "ADDRESS[:PORT]",
            Self::Origin(_) => "URL",
        }
    }
}

/// What a group of settings is about; a chapter of the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Addresses and threads.
    Network,
    /// What may be relayed to whom.
    Access,
    /// The cache on disk.
    Store,
    /// The cache in memory.
    Memory,
    /// How long to wait for whom.
    Timeouts,
    /// How much of anything.
    Limits,
    /// What is written down, and stopping.
    Operation,
}

impl Area {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Network,
        Self::Access,
        Self::Store,
        Self::Memory,
        Self::Timeouts,
        Self::Limits,
        Self::Operation,
    ];

    /// Its heading.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Network => "Addresses and threads",
            Self::Access => "What may be relayed",
            Self::Store => "The cache on disk",
            Self::Memory => "The cache in memory",
            Self::Timeouts => "Timeouts",
            Self::Limits => "Limits",
            Self::Operation => "Operation",
        }
    }
}

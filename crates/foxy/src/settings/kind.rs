//! Types for a row in the table of settings: key, flag, default and documentation. A row also has
//! the kind of value, such as a size or a list of addresses.

use super::fleet::EngineUrl;
use super::listen_address::ListenAddress;
use super::rows::Written;
use super::squid::CacheDir;
use super::store_choice::StoreChoice;
use super::values::Output;
use foxy_base::{ByteSize, Cidr, HostPattern};
use foxy_proxy::upstream::{NoProxy, OriginServer, Parent};
use foxy_rules::coding::{Coding, MediaRange};
use foxy_schemes::policy::POLICIES;
use foxy_schemes::{PolicyName, SCHEMES, SchemeName};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Function that returns the field of [`Written`] for a setting.
pub type Slot<T> = fn(&mut Written) -> &mut Option<T>;

/// Shortest time that most settings of times accept. [`MAX_SPAN`] is the longest.
pub const MIN_SPAN: Duration = Duration::from_millis(10);
pub const MAX_SPAN: Duration = Duration::from_secs(86_400);

/// All words that a setting accepts, each with an explanation.
pub type Words = &'static [(&'static str, &'static str)];

pub struct Setting {
    /// Name of the setting in the configuration file: `name` or `table.name`.
    pub key: &'static str,
    /// Name of the command-line flag without the dashes. `None` if the setting has no flag.
    pub flag: Option<&'static str>,
    /// Heading of the chapter in the documentation and the help.
    pub chapter: &'static str,
    pub kind: Kind,
    pub default: Preset,
    /// Lines of the documentation. Each line starts with a space.
    pub lines: &'static [&'static str],
}

impl Setting {
    pub fn doc(&self) -> String {
        self.lines.concat().trim_start().to_owned()
    }

    /// Returns the help text of the flag: the first sentence of the documentation without its full
    /// stop.
    pub fn summary(&self) -> String {
        let doc = self.doc();
        let sentence = doc.split_once(". ").map_or(&*doc, |(first, _)| first);
        sentence.strip_suffix('.').unwrap_or(sentence).to_owned()
    }
}

/// The default: what applies if the user does not give the setting.
pub enum Preset {
    /// The default, written as on the command line. A list can have several values.
    Fixed(&'static [&'static str]),
    /// foxy computes the default at start-up. Contains a description.
    Computed(&'static str),
    /// The setting has no value by default. The text says how foxy then behaves.
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

/// The kind of value of a setting, with its bounds and the field that stores it.
pub enum Kind {
    Listen(Slot<Vec<ListenAddress>>),
    Output(Slot<Output>),
    File(Slot<PathBuf>),
    Folder(Slot<PathBuf>),
    Stores(Slot<Vec<StoreChoice>>),
    CacheDirs(Slot<Vec<CacheDir>>),
    Size {
        slot: Slot<ByteSize>,
        at_least: ByteSize,
        at_most: ByteSize,
    },
    Span {
        slot: Slot<Duration>,
        at_least: Duration,
        at_most: Duration,
    },
    Count {
        slot: Slot<usize>,
        at_least: usize,
        at_most: usize,
    },
    Choice {
        slot: Slot<&'static str>,
        words: Words,
    },
    Scheme(Slot<SchemeName>),
    Policy(Slot<PolicyName>),
    Networks(Slot<Vec<Cidr>>),
    Ports(Slot<Vec<u16>>),
    Hosts(Slot<Vec<HostPattern>>),
    Files(Slot<Vec<PathBuf>>),
    NameServers(Slot<Vec<SocketAddr>>),
    Origin(Slot<OriginServer>),
    Engine(Slot<EngineUrl>),
    Parents(Slot<Vec<Parent>>),
    NoProxies(Slot<Vec<NoProxy>>),
    Codings(Slot<Vec<Coding>>),
    MediaTypes(Slot<Vec<MediaRange>>),
    /// A text that `read` accepts and puts into its usual form.
    Text {
        slot: Slot<String>,
        read: ReadText,
        notation: Notation,
    },
    Texts {
        slot: Slot<Vec<String>>,
        read: ReadText,
        notation: Notation,
    },
}

/// Returns a text in its usual form. The error says what is wrong.
pub type ReadText = fn(&str) -> Result<String, String>;

/// Describes how users write values of a kind.
#[derive(Clone, Copy)]
pub struct Notation {
    /// Placeholder of the value in `--help`, such as `SIZE`.
    pub placeholder: &'static str,
    /// Example of a value on the command line.
    pub example: &'static str,
    /// Whether the setting accepts several values.
    pub is_list: bool,
    /// Whether a TOML file contains the value as an integer.
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

    pub const fn text(
        slot: Slot<String>,
        read: ReadText,
        placeholder: &'static str,
        example: &'static str,
    ) -> Self {
        Self::Text { slot, read, notation: one(placeholder, example) }
    }

    pub const fn texts(
        slot: Slot<Vec<String>>,
        read: ReadText,
        placeholder: &'static str,
        example: &'static str,
    ) -> Self {
        Self::Texts { slot, read, notation: list(placeholder, example) }
    }

    pub const fn choice(slot: Slot<&'static str>, words: Words) -> Self {
        Self::Choice { slot, words }
    }

    pub const fn notation(&self) -> Notation {
        match self {
            Self::Listen(_) => list("ADDRESS|off", "127.0.0.1:3128"),
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
            Self::Engine(_) => one("URL", "redis://127.0.0.1:6379"),
            Self::Parents(_) => list("URL|off", "http://proxy.example:3128"),
            Self::NoProxies(_) => list("HOST", "example.org"),
            Self::Codings(_) => list("CODING", "zstd"),
            Self::MediaTypes(_) => list("TYPE", "text/css"),
            Self::Text { notation, .. } | Self::Texts { notation, .. } => *notation,
        }
    }

    /// Returns all words that a setting with a fixed choice accepts, with their explanations.
    /// Returns an empty list for other kinds.
    pub fn words(&self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Choice { words, .. } => words.to_vec(),
            Self::Scheme(_) => SCHEMES.iter().map(|row| (row.text, row.summary)).collect(),
            Self::Policy(_) => POLICIES.iter().map(|row| (row.text, row.summary)).collect(),
            _ => Vec::new(),
        }
    }
}

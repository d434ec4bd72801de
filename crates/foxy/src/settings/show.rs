//! From values back to the text of a TOML file, as `foxy check` prints it.

use super::kind::Kind;
use super::rows::Written;
use super::units::show_duration;
use super::values::exact;
use super::values::{OriginUrl, Output};
use std::fmt::{self, Display};

/// The value as the file writes it; none when nothing is set.
pub fn value(kind: &Kind, written: &mut Written) -> Option<String> {
    Some(match kind {
        Kind::Address(slot) => quoted(slot(written).as_ref()?),
        Kind::AddressOrOff(slot) => {
            slot(written).as_ref()?.map_or_else(|| quoted(&"off"), |address| quoted(&address))
        }
        Kind::Output(slot) => quoted(slot(written).as_ref()?),
        Kind::File(slot) | Kind::Folder(slot) => quoted(&slot(written).as_ref()?.display()),
        Kind::Stores(slot) => list(slot(written).as_ref()?, quoted),
        Kind::CacheDirs(slot) => list(slot(written).as_ref()?, |line| quoted(&line.text)),
        Kind::Size { slot, .. } => quoted(&exact(slot(written).as_ref().copied()?)),
        Kind::Span { slot, .. } => quoted(&show_duration(slot(written).as_ref().copied()?)),
        Kind::Count { slot, .. } => slot(written).as_ref()?.to_string(),
        Kind::Scheme(slot) => quoted(slot(written).as_ref()?),
        Kind::Policy(slot) => quoted(slot(written).as_ref()?),
        Kind::Choice { slot, .. } => quoted(slot(written).as_ref()?),
        Kind::Networks(slot) => list(slot(written).as_ref()?, quoted),
        Kind::NameServers(slot) => list(slot(written).as_ref()?, quoted),
        Kind::Ports(slot) => list(slot(written).as_ref()?, u16::to_string),
        Kind::Hosts(slot) => list(slot(written).as_ref()?, quoted),
        Kind::Files(slot) => list(slot(written).as_ref()?, |path| quoted(&path.display())),
        Kind::Origin(slot) => quoted(slot(written).as_ref()?),
    })
}

fn quoted(value: &impl Display) -> String {
    toml::Value::from(value.to_string()).to_string()
}

fn list<T>(values: &[T], show: impl Fn(&T) -> String) -> String {
    format!("[{}]", values.iter().map(show).collect::<Vec<_>>().join(", "))
}

impl Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Standard => f.write_str("-"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Display for OriginUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.scheme.as_str();
        if self.host.contains(':') {
            write!(f, "{scheme}://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

//! Reads and checks the settings of a fleet.

use super::complaint::Complaint;
#[cfg(feature = "fleet")]
use super::listen_address::ListenAddress;
use super::rows::{FleetChapter, Settings, Written};
use std::fmt;
#[cfg(feature = "fleet")]
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// The URL of a fleet's engine. `Display` and `Debug` hide credentials and parameters.
#[derive(Clone, PartialEq, Eq)]
pub struct EngineUrl(String);

impl EngineUrl {
    /// Returns the whole URL, which may contain a password.
    #[cfg(feature = "fleet")]
    pub fn with_secrets(&self) -> &str {
        &self.0
    }
}

impl FromStr for EngineUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        check_engine(text)?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (url, parameters) =
            self.0.split_once('?').map_or((&*self.0, ""), |(url, _)| (url, "?***"));
        match (url.split_once("://"), url.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => write!(f, "{scheme}://***@{host}{parameters}"),
            _ => write!(f, "{url}{parameters}"),
        }
    }
}

impl fmt::Debug for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EngineUrl({self})")
    }
}

/// Parses a member of a fleet, and returns its usual form.
#[cfg(feature = "fleet")]
pub fn member(text: &str) -> Result<String, String> {
    let read: Result<foxy_fleet::Member, _> = text.parse();
    read.map(|member| member.to_string()).map_err(|error| format!("{text:?}: {error}"))
}

/// Parses the name of a fleet's member, and returns its usual form.
#[cfg(feature = "fleet")]
pub fn member_name(text: &str) -> Result<String, String> {
    let read: Result<foxy_fleet::MemberId, _> = text.parse();
    read.map(|id| id.to_string()).map_err(|error| format!("{text:?}: {error}"))
}

/// Reads the name of the DNS records that describe the members.
#[cfg(feature = "fleet")]
pub fn member_records(text: &str) -> Result<String, String> {
    let read: Result<foxy_fleet::found::MemberRecords, _> = text.parse();
    read.map(|records| records.to_string()).map_err(|error| format!("{text:?}: {error}"))
}

/// Checks the URL of an engine. The error does not repeat the URL.
#[cfg(feature = "fleet")]
fn check_engine(text: &str) -> Result<(), String> {
    let checked = foxy_fleet::purges::address::EngineAddress::new(text, None);
    let remedy = "write a URL such as redis://127.0.0.1:6379 or nats://127.0.0.1:4222";
    checked.map(|_| ()).map_err(|error| format!("{error}; {remedy}"))
}

/// Accepts every URL. Without the cargo feature `fleet`, foxy later refuses all settings of a
/// fleet.
#[cfg(not(feature = "fleet"))]
fn check_engine(_: &str) -> Result<(), String> {
    Ok(())
}

/// Accepts every text. Without the cargo feature `fleet`, foxy later refuses all settings of a
/// fleet.
#[cfg(not(feature = "fleet"))]
pub fn member(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Accepts every text. Without the cargo feature `fleet`, foxy later refuses all settings of a
/// fleet.
#[cfg(not(feature = "fleet"))]
pub fn member_name(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Accepts every text. Without the cargo feature `fleet`, foxy later refuses all settings of a
/// fleet.
#[cfg(not(feature = "fleet"))]
pub fn member_records(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

#[cfg(feature = "fleet")]
impl FleetChapter {
    /// Returns the DNS records that describe the members. Returns `None` if the settings list the
    /// members, or without a fleet.
    pub fn records(&self) -> Option<foxy_fleet::found::MemberRecords> {
        self.node.as_ref()?;
        let text = self.members_from.as_ref()?;
        Some(text.parse().expect("`member_records` has read the text"))
    }

    /// Returns the names of all members of the fleet.
    pub fn member_names(&self) -> Vec<Box<str>> {
        self.all_members().iter().map(|member| member.id.as_str().into()).collect()
    }

    /// Returns all members. If DNS gives the members, this node is always a member, because its
    /// record may appear after its start.
    fn all_members(&self) -> Vec<foxy_fleet::Member> {
        let read = |text: &String| text.parse().expect("`member` has read the text");
        let mut all: Vec<foxy_fleet::Member> = self.members.iter().map(read).collect();
        let Some(id) = self.records().and(self.node.as_ref()) else { return all };
        let id: foxy_fleet::MemberId = id.parse().expect("`member_name` has read the name");
        if all.iter().all(|member| member.id != id) {
            let listens = self.listen.iter().flat_map(ListenAddress::sockets).next();
            let address = listens.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into());
            let host = match address {
                SocketAddr::V4(v4) => v4.ip().to_string(),
                SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
            };
            let weight = all.iter().map(|member| member.weight).max().unwrap_or(1);
            all.push(foxy_fleet::Member { id, host, port: address.port(), weight });
        }
        all
    }

    /// Returns the members of the fleet, as this node sees them. Returns `None` without a fleet.
    ///
    /// # Errors
    /// The reason why the settings describe no fleet.
    pub fn fleet(&self) -> Option<Result<foxy_fleet::Members, String>> {
        let own = self.node.as_ref()?.parse().expect("`member_name` has read the name");
        Some(foxy_fleet::Members::new(self.all_members(), &own).map_err(|error| error.to_string()))
    }
}

/// Returns a complaint if settings of a fleet need a missing setting, or if the listed members
/// cannot form a fleet.
pub fn complaint(settings: &Settings, written: &Written) -> Option<Complaint> {
    let fleet = &settings.fleet;
    let by_dns = fleet.members_from.is_some();
    let members = if by_dns { "fleet.members-from" } else { "fleet.members" };
    let needed = [
        (members, by_dns || !fleet.members.is_empty()),
        ("fleet.listen", !fleet.listen.is_empty()),
        ("fleet.certificate", fleet.certificate.is_some()),
        ("fleet.key", fleet.key.is_some()),
        ("fleet.ca", !fleet.ca.is_empty()),
    ];
    let find = |wanted: bool| needed.iter().find(|(_, is_given)| *is_given == wanted);
    let alone = |key, needed| (key, format!("`{key}` does nothing without `{needed}`"));
    let credentials = "fleet.engine-credentials-file";
    let (key, message) = match (&fleet.node, find(true), find(false)) {
        _ if fleet.engine.is_none() && fleet.engine_credentials_file.is_some() => {
            alone(credentials, "fleet.engine")
        }
        _ if by_dns && !fleet.members.is_empty() => {
            (members, "give either `fleet.members` or `fleet.members-from`".into())
        }
        (None, None, _) if fleet.engine.is_none() => return None,
        (None, None, _) => alone("fleet.engine", "fleet.node"),
        (None, Some((key, _)), _) => alone(*key, "fleet.node"),
        (Some(_), _, Some((missing, _))) => {
            ("fleet.node", format!("`fleet.node` needs `{missing}`; give it (docs/fleet.md)"))
        }
        (Some(_), _, None) => ("fleet.members", unusable(fleet)?),
    };
    Some(Complaint { message, source: written.sources.get(key).cloned() })
}

#[cfg(feature = "fleet")]
fn unusable(fleet: &FleetChapter) -> Option<String> {
    fleet.fleet()?.err().map(|error| format!("`fleet.members`: {error}"))
}

#[cfg(not(feature = "fleet"))]
fn unusable(_: &FleetChapter) -> Option<String> {
    Some("this foxy was built without the feature `fleet`; build it with this feature".into())
}

//! Reads and checks the settings of a fleet.

use super::complaint::Complaint;
use super::rows::{FleetChapter, Settings, Written};

/// Reads a member of a fleet.
#[cfg(feature = "fleet")]
pub fn member(text: &str) -> Result<String, String> {
    let read: Result<foxy_fleet::Member, _> = text.parse();
    read.map(|member| member.to_string()).map_err(|error| format!("{text:?}: {error}"))
}

/// Reads the name of a member.
#[cfg(feature = "fleet")]
pub fn member_name(text: &str) -> Result<String, String> {
    let read: Result<foxy_fleet::MemberId, _> = text.parse();
    read.map(|id| id.to_string()).map_err(|error| format!("{text:?}: {error}"))
}

/// Reads the URL of an engine.
#[cfg(feature = "fleet")]
pub fn engine(text: &str) -> Result<String, String> {
    let checked = foxy_fleet::purges::redis::RedisEngine::new(text);
    checked.map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Without the feature, foxy refuses every fleet later.
#[cfg(not(feature = "fleet"))]
pub fn engine(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Without the feature, foxy refuses every fleet later.
#[cfg(not(feature = "fleet"))]
pub fn member(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Without the feature, foxy refuses every fleet later.
#[cfg(not(feature = "fleet"))]
pub fn member_name(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

impl FleetChapter {
    /// Returns the members of the fleet, as this node sees them. Returns `None` without a fleet.
    ///
    /// # Errors
    /// The reason why the settings describe no fleet.
    #[cfg(feature = "fleet")]
    pub fn fleet(&self) -> Option<Result<foxy_fleet::Members, String>> {
        let own = self.node.as_ref()?.parse().expect("`member_name` has read the name");
        let read = |text: &String| text.parse().expect("`member` has read the text");
        let members = self.members.iter().map(read).collect();
        Some(foxy_fleet::Members::new(members, &own).map_err(|error| error.to_string()))
    }
}

/// Returns a complaint if settings of a fleet need a missing setting, or if the members make no
/// fleet.
pub fn complaint(settings: &Settings, written: &Written) -> Option<Complaint> {
    let fleet = &settings.fleet;
    let needed = [
        ("fleet.members", !fleet.members.is_empty()),
        ("fleet.listen", !fleet.listen.is_empty()),
        ("fleet.certificate", fleet.certificate.is_some()),
        ("fleet.key", fleet.key.is_some()),
        ("fleet.ca", !fleet.ca.is_empty()),
    ];
    let find = |wanted: bool| needed.iter().find(|(_, is_given)| *is_given == wanted);
    let (key, message) = match (&fleet.node, find(true), find(false)) {
        (None, None, _) if fleet.engine.is_none() => return None,
        (None, None, _) => {
            ("fleet.engine", "`fleet.engine` does nothing without `fleet.node`".to_owned())
        }
        (None, Some((key, _)), _) => (*key, format!("`{key}` does nothing without `fleet.node`")),
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

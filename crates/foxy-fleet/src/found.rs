//! Finds the members of a fleet by DNS. The name of a member comes from its record, so that the
//! certificate of the member can prove the name (docs/decisions/fleet-members.md).

use crate::member::{BadMember, MAX_WEIGHT, Member};
use foxy_proxy::upstream::{NameResolver, ResolveError, ServiceRecord};
use futures_util::future::try_join_all;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The records that describe all members of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberRecords {
    /// The addresses of a name. Every member has this port.
    Addresses {
        /// The name with the records.
        name: String,
        /// The port of every member.
        port: u16,
    },
    /// The SRV records of a name.
    Services {
        /// The name with the records.
        name: String,
    },
}

/// The text of [`MemberRecords`] is no DNS name, or its port is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRecords;

impl fmt::Display for BadRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "write NAME:PORT for A and AAAA records, or a NAME for SRV records, such as \
             _fleet._tcp.foxy.example",
        )
    }
}

impl std::error::Error for BadRecords {}

impl FromStr for MemberRecords {
    type Err = BadRecords;

    fn from_str(text: &str) -> Result<Self, BadRecords> {
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port.parse().map_err(|_| BadRecords)?)),
            None => (text, None),
        };
        let is_sound = |label: &str| {
            let byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            (1..=63).contains(&label.len()) && label.bytes().all(byte)
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        if name.len() > 253 || !name.split('.').all(is_sound) || port == Some(0) {
            return Err(BadRecords);
        }
        let name = name.to_lowercase();
        Ok(match port {
            Some(port) => Self::Addresses { name, port },
            None => Self::Services { name },
        })
    }
}

impl fmt::Display for MemberRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addresses { name, port } => write!(f, "{name}:{port}"),
            Self::Services { name } => f.write_str(name),
        }
    }
}

/// The reason why DNS gave no members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// The name could not be looked up.
    Lookup(ResolveError),
    /// The target of this SRV record makes no member.
    Target(String, BadMember),
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lookup(error) => write!(f, "{error}"),
            Self::Target(target, why) => write!(f, "the SRV record of {target:?}: {why}"),
        }
    }
}

impl std::error::Error for NotFound {}

impl MemberRecords {
    /// Asks DNS for all members. The order of the records does not change the result.
    ///
    /// # Errors
    /// DNS gives no members, or a record makes no member.
    pub async fn find(&self, resolver: &NameResolver) -> Result<Vec<Member>, NotFound> {
        let mut members: Vec<_> = match self {
            Self::Addresses { name, port } => {
                let found = resolver.all_addresses(name).await.map_err(NotFound::Lookup)?;
                found.into_iter().map(|address| at_address(address, *port)).collect()
            }
            Self::Services { name } => {
                let found = resolver.all_services(name).await.map_err(NotFound::Lookup)?;
                let found = found.into_iter().map(|record| async move {
                    let address = address_of(&record, resolver).await?;
                    of_service(&record, address)
                });
                try_join_all(found).await?
            }
        };
        members.sort_by(|one, two| one.id.cmp(&two.id));
        Ok(members)
    }
}

/// Returns an address of a target, so that nodes still connect while DNS fails. Returns `None` if
/// the target has no address.
async fn address_of(
    record: &ServiceRecord,
    resolver: &NameResolver,
) -> Result<Option<IpAddr>, NotFound> {
    match resolver.all_addresses(&record.target).await {
        Ok(addresses) => Ok(addresses.into_iter().min()),
        Err(ResolveError::NoSuchHost) => Ok(None),
        Err(error) => Err(NotFound::Lookup(error)),
    }
}

fn host_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}

/// Returns the member with an address. Its name is the address with hyphens, such as `10-0-0-1`.
/// The name of an IPv6 address has eight groups.
fn at_address(address: IpAddr, port: u16) -> Member {
    let address = address.to_canonical();
    let name = match address {
        IpAddr::V4(v4) => v4.octets().map(|part| part.to_string()).join("-"),
        IpAddr::V6(v6) => v6.segments().map(|part| format!("{part:x}")).join("-"),
    };
    let id = name.parse().expect("digits and hyphens make a name");
    Member { id, host: host_of(address), port, weight: 1 }
}

/// Returns the member that an SRV record describes. Its name is the first label of the target.
fn of_service(record: &ServiceRecord, address: Option<IpAddr>) -> Result<Member, NotFound> {
    let ServiceRecord { target, port, weight } = record;
    let refused = |why| NotFound::Target(target.clone(), why);
    let id = target.split('.').next().unwrap_or_default().parse().map_err(refused)?;
    if *port == 0 {
        return Err(refused(BadMember::Url));
    }
    let weight = u32::from(*weight).clamp(1, MAX_WEIGHT);
    let host = address.map_or_else(|| target.clone(), host_of);
    Ok(Member { id, host, port: *port, weight })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_and_shown() {
        for (text, shown) in [
            ("Foxy.example.:3130", Ok("foxy.example:3130")),
            ("_fleet._tcp.foxy.example", Ok("_fleet._tcp.foxy.example")),
            ("", Err(BadRecords)),
            ("a..example", Err(BadRecords)),
            ("a.example:0", Err(BadRecords)),
            ("a.example:x", Err(BadRecords)),
            ("https://a.example", Err(BadRecords)),
        ] {
            let read = text.parse().map(|records: MemberRecords| records.to_string());
            assert_eq!(read, shown.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn the_name_of_a_member_is_its_address_with_hyphens() {
        for (address, member) in [
            ("10.0.0.1", "10-0-0-1 https://10.0.0.1:7 weight=1"),
            ("::ffff:10.0.0.1", "10-0-0-1 https://10.0.0.1:7 weight=1"),
            ("fd00::1", "fd00-0-0-0-0-0-0-1 https://[fd00::1]:7 weight=1"),
            ("::", "0-0-0-0-0-0-0-0 https://[::]:7 weight=1"),
        ] {
            let found = at_address(address.parse().expect("an address"), 7);
            assert_eq!(found.to_string(), member);
            assert_eq!(member.parse(), Ok(found), "the list can contain the member");
        }
    }

    #[test]
    fn the_name_of_a_member_is_the_first_label_of_the_target() {
        let found = |target: &str, port, weight| {
            let record = ServiceRecord { target: target.into(), port, weight };
            of_service(&record, None).map(|member| member.to_string())
        };
        let shown = |text: &str| Ok(text.to_owned());
        assert_eq!(found("foxy-0.a.test", 7, 0), shown("foxy-0 https://foxy-0.a.test:7 weight=1"));
        assert_eq!(found("b.test", 7, 5000), shown("b https://b.test:7 weight=1000"));
        let record = ServiceRecord { target: "c.test".into(), port: 7, weight: 2 };
        let found_at = of_service(&record, Some("fd00::1".parse().expect("an address")));
        assert_eq!(
            found_at.map(|member| member.to_string()),
            shown("c https://[fd00::1]:7 weight=2")
        );
        let refused = |target: &str, why| Err(NotFound::Target(target.into(), why));
        assert_eq!(found("x_y.test", 7, 1), refused("x_y.test", BadMember::Name));
        assert_eq!(found("b.test", 0, 1), refused("b.test", BadMember::Url));
    }
}

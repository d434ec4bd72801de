//! The members of a fleet: the name, address and weight of each node. Also says which of the
//! members is this process.

use foxy_http::Authority;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Largest number of members in a fleet.
pub const MAX_MEMBERS: usize = 64;
/// Largest weight of a member, which determines how many keys the member owns.
pub const MAX_WEIGHT: u32 = 1000;
/// Largest number of bytes in a member's name: the limit of a DNS label (RFC 1035 §2.3.4).
const MAX_NAME: usize = 63;

/// The name of a member: a DNS label in lower case. The certificate of the member contains the
/// name as a DNS name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId(Arc<str>);

impl MemberId {
    /// Returns the member's name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for MemberId {
    type Err = BadMember;

    fn from_str(text: &str) -> Result<Self, BadMember> {
        let is_sound =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = (1..=MAX_NAME).contains(&text.len())
            && text.bytes().all(is_sound)
            && !text.starts_with('-')
            && !text.ends_with('-');
        if is_name { Ok(Self(text.into())) } else { Err(BadMember::Name) }
    }
}

/// A node of the fleet, as the operator lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Name of the member.
    pub id: MemberId,
    /// Host where other nodes reach the member. An IPv6 address has brackets.
    pub host: String,
    /// TCP port where other nodes reach the member.
    pub port: u16,
    /// Weight of the member. The number of keys that a member owns is in proportion to its weight.
    pub weight: u32,
}

/// The reason why a text does not describe a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadMember {
    /// The name is not a DNS label in lower case.
    Name,
    /// The URL is missing, or is not `https://HOST:PORT`.
    Url,
    /// The weight is not a number between 1 and [`MAX_WEIGHT`].
    Weight,
    /// The text has more words than name, URL and weight.
    TooMuch,
}

impl fmt::Display for BadMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => {
                f.write_str(
                    "a node's name has 1 to 63 lower-case letters, digits and hyphens, and no \
                     hyphen at its beginning or end",
                )?;
            }
            Self::Url => f.write_str("a node's URL is https://HOST:PORT")?,
            Self::Weight => write!(f, "a node's weight is a number from 1 to {MAX_WEIGHT}")?,
            Self::TooMuch => f.write_str("a node has a name, a URL and perhaps a weight")?,
        }
        f.write_str("; write for example: a https://10.0.0.1:3130 weight=2")
    }
}

impl std::error::Error for BadMember {}

impl FromStr for Member {
    type Err = BadMember;

    /// Reads a member from a text of the form `NAME https://HOST:PORT [weight=N]`.
    fn from_str(text: &str) -> Result<Self, BadMember> {
        let mut words = text.split_whitespace();
        let id = words.next().ok_or(BadMember::Name)?.parse()?;
        let url = words.next().and_then(|url| url.strip_prefix("https://"));
        let authority = url.map(|rest| rest.strip_suffix('/').unwrap_or(rest));
        let authority = authority.and_then(|text| Authority::parse(text.as_bytes()));
        let Some(Authority { host, port: Some(port @ 1..) }) = authority else {
            return Err(BadMember::Url);
        };
        let weight = match words.next() {
            None => 1,
            Some(word) => {
                let digits = word.strip_prefix("weight=").ok_or(BadMember::TooMuch)?;
                let weight = digits.parse().ok();
                weight
                    .filter(|weight| (1..=MAX_WEIGHT).contains(weight))
                    .ok_or(BadMember::Weight)?
            }
        };
        if words.next().is_some() {
            return Err(BadMember::TooMuch);
        }
        Ok(Self { id, host: host.to_ascii_lowercase(), port, weight })
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, host, port, weight } = self;
        write!(f, "{id} https://{host}:{port} weight={weight}")
    }
}

/// All members of a fleet in the order of the operator's list, and the position of this node in the
/// list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    all: Arc<[Member]>,
    own: usize,
}

/// The reason why foxy refuses a list of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadFleet {
    /// No member of the list has the name of this node.
    NoOwn(MemberId),
    /// Two members have this name.
    Twice(MemberId),
    /// The list has more than [`MAX_MEMBERS`] members.
    TooMany,
}

impl fmt::Display for BadFleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOwn(id) => write!(f, "the members do not include this node, `{id}`"),
            Self::Twice(id) => write!(f, "two members have the name `{id}`; change one"),
            Self::TooMany => write!(f, "a fleet has at most {MAX_MEMBERS} members"),
        }
    }
}

impl std::error::Error for BadFleet {}

impl Members {
    /// Creates the list of the members `all`. This node has the name `own`.
    ///
    /// # Errors
    /// Returns an error if the list lacks this node, contains a name twice, or is too long.
    pub fn new(all: Vec<Member>, own: &MemberId) -> Result<Self, BadFleet> {
        if all.len() > MAX_MEMBERS {
            return Err(BadFleet::TooMany);
        }
        let is_twice = |at: &usize| all[..*at].iter().any(|member| member.id == all[*at].id);
        if let Some(at) = (0..all.len()).find(is_twice) {
            return Err(BadFleet::Twice(all[at].id.clone()));
        }
        let position = all.iter().position(|member| member.id == *own);
        let own = position.ok_or_else(|| BadFleet::NoOwn(own.clone()))?;
        Ok(Self { all: all.into(), own })
    }

    /// Returns all members of the fleet, including this node.
    pub fn all(&self) -> &[Member] {
        &self.all
    }

    /// Returns the position of this node among all members.
    pub const fn own_position(&self) -> usize {
        self.own
    }

    /// Returns this node as a member of the fleet.
    pub fn own(&self) -> &Member {
        &self.all[self.own]
    }

    /// Returns the position of the member with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|member| member.id.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_and_shown() {
        for (text, shown) in [
            ("a https://10.0.0.1:3130", "a https://10.0.0.1:3130 weight=1"),
            (" node-2  https://B.test:1/ weight=30", "node-2 https://b.test:1 weight=30"),
            ("6 https://[::1]:9", "6 https://[::1]:9 weight=1"),
        ] {
            let member: Member = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(member.to_string(), shown);
            assert_eq!(shown.parse(), Ok(member));
        }
    }

    #[test]
    fn other_texts_are_no_members() {
        for (text, expected) in [
            ("", BadMember::Name),
            ("A https://a.test:1", BadMember::Name),
            ("a.b https://a.test:1", BadMember::Name),
            ("-a https://a.test:1", BadMember::Name),
            ("a", BadMember::Url),
            ("a http://a.test:1", BadMember::Url),
            ("a https://a.test", BadMember::Url),
            ("a https://a.test:0", BadMember::Url),
            ("a https://a.test:1/path", BadMember::Url),
            ("a https://u@a.test:1", BadMember::Url),
            ("a https://a.test:1 weight=0", BadMember::Weight),
            ("a https://a.test:1 weight=1001", BadMember::Weight),
            ("a https://a.test:1 height=1", BadMember::TooMuch),
            ("a https://a.test:1 weight=1 more", BadMember::TooMuch),
        ] {
            assert_eq!(text.parse::<Member>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn a_fleet_contains_its_own_node_and_no_name_twice() {
        let list = |names: &[&str]| -> Vec<Member> {
            let text = |name: &&str| format!("{name} https://{name}.test:1");
            names.iter().map(|name| text(name).parse().expect("a member")).collect()
        };
        let id = |name: &str| name.parse::<MemberId>().expect("a name");
        let fleet = Members::new(list(&["a", "b"]), &id("b")).expect("a fleet");
        assert_eq!((fleet.own_position(), fleet.own().host.as_str()), (1, "b.test"));
        assert_eq!((fleet.position("a"), fleet.position("c")), (Some(0), None));
        assert_eq!(Members::new(list(&["a"]), &id("c")), Err(BadFleet::NoOwn(id("c"))));
        let twice = Members::new(list(&["a", "b", "a"]), &id("b"));
        assert_eq!(twice, Err(BadFleet::Twice(id("a"))));
        let many = vec![fleet.own().clone(); MAX_MEMBERS + 1];
        assert_eq!(Members::new(many, &id("b")), Err(BadFleet::TooMany));
    }
}

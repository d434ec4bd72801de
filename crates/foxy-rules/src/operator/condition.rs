//! The conditions of a rule. A rule matches if all its conditions hold. A condition with several
//! values holds if at least one value matches.

use super::facts::{RequestFacts, SharedFacts, UrlFacts};
use super::host::HostCondition;
use super::path::decoded;
use super::pattern::Pattern;
use super::readings::Readings;
use super::url::UrlPattern;
use crate::fields::Fields;
use foxy_base::{Cidr, CivilTime, WallTime};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The conditions of a rule, which must all hold. A list holds if one of its values matches, or if
/// it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Networks to which the client's address may belong.
    pub clients: Vec<Cidr>,
    /// Names of users. The client must have logged in as this user.
    pub users: Vec<Pattern>,
    /// Methods of the request, in upper case.
    pub methods: Vec<String>,
    /// Schemes of the URL: `http` and `https`.
    pub schemes: Vec<String>,
    /// Hosts of the URL.
    pub hosts: Vec<HostCondition>,
    /// Ports in the URL, or the default ports of its scheme.
    pub ports: Vec<PortRange>,
    /// Patterns for the whole path, without the query.
    pub paths: Vec<Pattern>,
    /// Regular expressions, of which at least one must match a part of the URL.
    pub urls: Vec<UrlPattern>,
    /// Parameters that the URL's query must contain.
    pub query: Vec<NamedPattern>,
    /// Header fields that the request must contain.
    pub headers: Vec<NamedPattern>,
    /// Days of the week in UTC on which the rule matches.
    pub days: Option<Days>,
    /// Time of day in UTC at which the rule matches.
    pub hours: Option<Hours>,
    /// Patterns for the media type of the response, without parameters and in lower case.
    pub content_types: Vec<Pattern>,
    /// Status codes of the response.
    pub statuses: Vec<u16>,
    /// Smallest and largest body length in bytes. A response that does not announce its length does
    /// not match.
    pub size: Option<RangeInclusive<u64>>,
}

/// The first condition of a rule that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant has the name of its condition")]
pub enum Missed {
    Client,
    User,
    Method,
    Scheme,
    Host,
    Port,
    Path,
    Url,
    Query,
    Header,
    Days,
    Hours,
    ContentType,
    Status,
    Size,
    Unless,
    /// A condition is about the response, but there is no response to check.
    Response,
}

impl Missed {
    /// Returns the key of the condition in the configuration file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::User => "user",
            Self::Method => "method",
            Self::Scheme => "scheme",
            Self::Host => "host",
            Self::Port => "port",
            Self::Path => "path",
            Self::Url => "url",
            Self::Query => "query",
            Self::Header => "header",
            Self::Days => "days",
            Self::Hours => "hours",
            Self::ContentType => "content-type",
            Self::Status => "status",
            Self::Size => "size",
            Self::Unless => "unless",
            Self::Response => "response",
        }
    }
}

/// How conditions treat a request that servers may read in different ways. If in doubt, a rule that
/// refuses requests matches, and a rule that grants something does not. For exceptions, it is the
/// other way round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matching {
    /// Which readings of the path and of the method must match.
    readings: Readings,
    /// Whether methods are compared without regard to case, so that `delete` matches DELETE. Some
    /// servers accept methods in lower case.
    ignores_method_case: bool,
}

impl Matching {
    /// Returns how the conditions in `when` treat an ambiguous request. `grants` says whether the
    /// rule grants (true) or refuses (false) something. `None` means that it does neither.
    pub(super) const fn condition(grants: Option<bool>) -> Self {
        match grants {
            Some(true) => Self { readings: Readings::Every, ignores_method_case: false },
            Some(false) => Self { readings: Readings::Any, ignores_method_case: true },
            None => Self { readings: Readings::Normal, ignores_method_case: true },
        }
    }

    /// Returns how the conditions in `unless` treat an ambiguous request. `grants` has the same
    /// meaning as in [`Self::condition`].
    pub(super) const fn exception(grants: Option<bool>) -> Self {
        match grants {
            Some(true) => Self::condition(Some(false)),
            Some(false) => Self::condition(Some(true)),
            None => Self { readings: Readings::Normal, ignores_method_case: false },
        }
    }
}

impl Conditions {
    /// Checks the conditions against a request. Returns the first condition that does not hold.
    pub(super) fn check_request<F: Fields>(
        &self,
        facts: &RequestFacts<'_, F>,
        matching: Matching,
    ) -> Result<(), Missed> {
        self.check_url(&facts.url, matching.readings)?;
        let is_client =
            || facts.client.is_some_and(|ip| self.clients.iter().any(|net| net.contains(ip)));
        let is_user =
            || facts.user.is_some_and(|user| self.users.iter().any(|p| p.matches(user.as_bytes())));
        holds(self.clients.is_empty() || is_client(), Missed::Client)?;
        holds(self.users.is_empty() || is_user(), Missed::User)?;
        holds(self.methods.is_empty() || self.has_method(facts, matching), Missed::Method)?;
        let has_field = |wanted: &NamedPattern| {
            facts.fields.values(&wanted.name).any(|value| wanted.accepts(value))
        };
        holds(is_any(&self.headers, has_field), Missed::Header)?;
        holds(self.days.is_none_or(|days| days.contains(facts.now)), Missed::Days)?;
        holds(self.hours.is_none_or(|hours| hours.contains(facts.now)), Missed::Hours)
    }

    /// Returns whether a method of the list is the method of the request. Many servers replace the
    /// method by the value of a field such as X-HTTP-Method-Override, so this value is another
    /// reading of the method.
    fn has_method<F: Fields>(&self, facts: &RequestFacts<'_, F>, matching: Matching) -> bool {
        let is_listed = self.methods.iter().any(|method| {
            method == facts.method
                || (matching.ignores_method_case && method.eq_ignore_ascii_case(facts.method))
        });
        let is_other_listed = |value: &[u8]| {
            let value = value.trim_ascii();
            self.methods.iter().any(|method| method.as_bytes().eq_ignore_ascii_case(value))
        };
        let mut others = METHOD_FIELDS.iter().flat_map(|name| facts.fields.values(name));
        match matching.readings {
            Readings::Normal => is_listed,
            Readings::Any => is_listed || others.any(is_other_listed),
            Readings::Every => is_listed && others.all(is_other_listed),
        }
    }

    /// Checks the conditions against a response. Returns the first condition that does not hold.
    pub(super) fn check_shared(&self, facts: &SharedFacts<'_>) -> Result<(), Missed> {
        self.check_url(&facts.url, Readings::Normal)?;
        let is_type = |pattern: &Pattern| {
            facts.content_type.as_ref().is_some_and(|found| pattern.matches(found.as_bytes()))
        };
        holds(is_any(&self.content_types, is_type), Missed::ContentType)?;
        holds(is_any(&self.statuses, |&status| status == facts.status), Missed::Status)?;
        let has_size =
            |size: &RangeInclusive<u64>| facts.length.is_some_and(|length| size.contains(&length));
        holds(self.size.as_ref().is_none_or(has_size), Missed::Size)
    }

    pub(super) fn check_url(&self, url: &UrlFacts<'_>, readings: Readings) -> Result<(), Missed> {
        holds(is_any(&self.schemes, |scheme| scheme == url.scheme), Missed::Scheme)?;
        holds(is_any(&self.hosts, |host| host.matches(&url.host, url.address)), Missed::Host)?;
        holds(is_any(&self.ports, |ports| ports.0.contains(&url.port)), Missed::Port)?;
        let is_path = |path: &[u8]| is_any(&self.paths, |pattern| pattern.matches(path));
        holds(url.has_path(readings, is_path), Missed::Path)?;
        let is_url = |path: &[u8]| {
            let text = url.text(path);
            self.urls.iter().any(|url| url.matches(&text))
        };
        holds(self.urls.is_empty() || url.has_path(readings, is_url), Missed::Url)?;
        let has_parameter = |wanted: &NamedPattern| {
            let query = url.query.unwrap_or_default();
            let is_in = |separators: &[u8]| {
                query.split(|byte| separators.contains(byte)).any(|it| wanted.is_parameter(it))
            };
            // Some servers also split at `;`.
            is_in(b"&") || (readings == Readings::Any && is_in(b"&;"))
        };
        holds(is_any(&self.query, has_parameter), Missed::Query)
    }

    /// Returns whether a condition is about the client or about this request alone. An effect on
    /// content that all clients share may not depend on such a condition.
    pub(super) fn is_about_request(&self) -> bool {
        let Self { clients, users, methods, headers, days, hours, .. } = self;
        !(clients.is_empty() && users.is_empty() && methods.is_empty() && headers.is_empty())
            || days.is_some()
            || hours.is_some()
    }

    /// Returns whether a condition is about the response (content type, status or size).
    pub(super) fn is_about_response(&self) -> bool {
        !self.content_types.is_empty() || !self.statuses.is_empty() || self.size.is_some()
    }

    /// Returns whether a condition is about the client's address or user.
    pub(super) fn is_about_client(&self) -> bool {
        !self.clients.is_empty() || !self.users.is_empty()
    }
}

/// Fields that replace the method at many servers, also with `_` for `-` as in CGI.
const METHOD_FIELDS: [&str; 6] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x_http_method",
    "x_http_method_override",
    "x_method_override",
];

/// Decodes a name or value in a query as HTML forms encode it: `+` is a blank.
fn form_decoded(text: &[u8]) -> Vec<u8> {
    let blank = |&byte: &u8| if byte == b'+' { b' ' } else { byte };
    decoded(&text.iter().map(blank).collect::<Vec<u8>>())
}

fn holds(condition: bool, missed: Missed) -> Result<(), Missed> {
    if condition { Ok(()) } else { Err(missed) }
}

fn is_any<T>(values: &[T], matches: impl FnMut(&T) -> bool) -> bool {
    values.is_empty() || values.iter().any(matches)
}

/// A range of ports, written `443` or `8000-8999`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRange(pub RangeInclusive<u16>);

impl FromStr for PortRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse::<u16>(), last.trim().parse::<u16>()) {
            (Ok(first @ 1..), Ok(last)) if first <= last => Ok(Self(first..=last)),
            _ => Err(format!("`{text}` is not a port; write 443 or 8000-8999")),
        }
    }
}

/// A name, with or without a pattern for its value. Written `NAME` or `NAME: PATTERN` for header
/// fields, `NAME` or `NAME=PATTERN` for query parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPattern {
    /// Name of the header field or query parameter.
    pub name: String,
    /// Pattern for the value. `None` accepts every value.
    pub value: Option<Pattern>,
}

impl NamedPattern {
    /// Returns whether this is the parameter of a query, written `NAME` or `NAME=VALUE`.
    fn is_parameter(&self, parameter: &[u8]) -> bool {
        let mut parts = parameter.splitn(2, |&byte| byte == b'=').map(form_decoded);
        parts.next().is_some_and(|name| name.trim_ascii() == self.name.as_bytes())
            && self.accepts(&parts.next().unwrap_or_default())
    }

    fn accepts(&self, value: &[u8]) -> bool {
        self.value.as_ref().is_none_or(|pattern| pattern.matches(value.trim_ascii()))
    }
}

/// Days of the week, written `mon`, `tue`, … or `mon-fri`. Bit 0 is Monday.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Days(u8);

const DAY_NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl Days {
    /// Returns the days of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn contains(self, now: WallTime) -> bool {
        // Day 0 is Monday. 1 January 1970 was a Thursday, which is day 3.
        self.0 >> ((now.seconds() / 86_400 + 3) % 7) & 1 == 1
    }
}

impl FromStr for Days {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number =
            |name: &str| DAY_NAMES.iter().position(|day| day.eq_ignore_ascii_case(name.trim()));
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(format!("`{text}` is not a day; write mon, tue, … sun or mon-fri"));
        };
        let length = (last + 7 - first) % 7;
        Ok(Self((0..=length).fold(0, |days, step| days | 1 << ((first + step) % 7))))
    }
}

/// A time of day in UTC, written `08:00-18:00`. The end does not belong to the range. A range such
/// as `22:00-06:00` passes midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    /// Start of the range in minutes since midnight.
    from: u64,
    until: u64,
}

impl Hours {
    fn contains(self, now: WallTime) -> bool {
        let time = CivilTime::of(now);
        let minute = time.hour * 60 + time.minute;
        if self.from <= self.until {
            (self.from..self.until).contains(&minute)
        } else {
            minute >= self.from || minute < self.until
        }
    }
}

impl FromStr for Hours {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let minutes = |text: &str| {
            let (hour, minute) = text.trim().split_once(':')?;
            let (hour, minute): (u8, u8) = (hour.parse().ok()?, minute.parse().ok()?);
            let minutes = u64::from(hour) * 60 + u64::from(minute);
            (minute < 60 && minutes <= 24 * 60).then_some(minutes)
        };
        let range = text.split_once('-').and_then(|(from, to)| minutes(from).zip(minutes(to)));
        match range {
            Some((from, until)) if from != until => Ok(Self { from, until }),
            _ => Err(format!("`{text}` is not a time of day; write 08:00-18:00 (UTC)")),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.0.start(), self.0.end());
        if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THURSDAY_NOON: WallTime = WallTime::from_seconds(12 * 3600);

    #[test]
    fn days_and_hours_are_in_utc_and_may_pass_the_end() {
        let day = |text: &str| text.parse::<Days>().expect(text).contains(THURSDAY_NOON);
        assert!(day("thu") && day("mon-fri") && day("sat-thu"));
        assert!(!day("fri") && !day("fri-wed"));
        let hour = |text: &str| text.parse::<Hours>().expect(text).contains(THURSDAY_NOON);
        assert!(hour("12:00-12:01") && hour("08:00-18:00") && hour("22:00-12:30"));
        assert!(!hour("12:01-18:00") && !hour("08:00-12:00") && !hour("22:00-06:00"));
    }

    #[test]
    fn texts_that_are_no_days_hours_or_ports_are_refused() {
        for text in [
            "307445734561825861:00-1:00",
            "",
            "noon",
            "8-18",
            "25:00-26:00",
            "08:60-09:00",
            "08:00-08:00",
        ] {
            assert!(text.parse::<Hours>().is_err(), "{text}");
        }
        for text in ["", "monday", "mon-", "1"] {
            assert!(text.parse::<Days>().is_err(), "{text}");
        }
        for text in ["", "http", "9-8", "70000"] {
            assert!(text.parse::<PortRange>().is_err(), "{text}");
        }
    }
}

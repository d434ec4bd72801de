//! Converts the values of Squid's ACLs to conditions of foxy's rules, separately for each type of
//! ACL.

use super::super::condition_text::literal_expression;
use super::super::terms::{Facets, TermFlaw};
use super::acl::networks;
use super::regex;
use std::net::IpAddr;

/// A value of an `acl` line.
#[derive(Clone, Debug)]
pub struct AclWord {
    pub text: String,
    /// Whether `-i` stands before the value.
    pub ignore_case: bool,
}

impl AclWord {
    pub fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), ignore_case: false }
    }
}

/// The conditions of an ACL, of which one must hold (`branches`), and the values for which rules
/// have no condition (`lost`).
#[derive(Debug, Default)]
pub struct Expressed {
    pub branches: Vec<Facets>,
    pub lost: Vec<TermFlaw>,
}

/// A type of ACL: its name in Squid, the key of the condition in a rule, and the conversion of a
/// value. The conversion returns no value if no request to foxy can match.
struct AclType(&'static str, &'static str, fn(&AclWord) -> Result<Vec<String>, String>);

const TYPES: &[AclType] = &[
    AclType("src", "client", client),
    AclType("dst", "host", destination),
    AclType("dstdomain", "host", domain),
    AclType("port", "port", |word| Ok(vec![word.text.clone()])),
    AclType("method", "method", |word| Ok(vec![word.text.to_ascii_uppercase()])),
    AclType("proto", "scheme", scheme),
    AclType("url_regex", "url", |word| {
        regex::url_regex(&word.text, word.ignore_case).map(|regex| vec![regex]).map_err(with(word))
    }),
    AclType("urlpath_regex", "url", |word| {
        regex::path_regex(&word.text, word.ignore_case).map(|regex| vec![regex]).map_err(with(word))
    }),
    AclType("dstdom_regex", "url", host),
    AclType("browser", "header", |word| field("User-Agent", word)),
    AclType("referer_regex", "header", |word| field("Referer", word)),
    // The first word of a `req_header` ACL names the header field.
    AclType("req_header", "header", |word| field("", word)),
    AclType("rep_mime_type", "content-type", media_type),
    AclType("http_status", "status", statuses),
];

/// Types of ACLs that foxy's rules cannot express, with the reason.
const UNKNOWN_TYPES: &[(&str, &str)] = &[
    ("time", "hours of rules are in UTC; if the original's clock is in UTC, give --utc"),
    ("arp", "foxy does not see hardware addresses"),
    ("eui64", "foxy does not see hardware addresses"),
    ("maxconn", "rules do not count connections; see `limits.connections-per-client`"),
    ("external", "foxy calls no helper program"),
    ("srcdomain", "foxy does not look up the names of clients"),
    ("srcdom_regex", "foxy does not look up the names of clients"),
    ("localport", "rules do not see the listener"),
    ("myportname", "rules do not see the listener"),
    ("localip", "rules do not see the listener"),
];

fn with<E: ToString>(word: &AclWord) -> impl Fn(E) -> String {
    let text = word.text.clone();
    move |error| format!("`{text}`: {}", error.to_string())
}

/// Returns the conditions that match the same requests as the ACL `name` of the type `kind`.
pub fn express<'w>(
    name: &str,
    kind: &str,
    mut words: impl Iterator<Item = &'w AclWord>,
) -> Result<Expressed, TermFlaw> {
    let flaw = |why: String| TermFlaw::NoEquivalent { name: name.to_owned(), why };
    if asks(kind) {
        return Err(TermFlaw::Credentials(name.to_owned()));
    }
    let Some(AclType(_, key, convert)) = TYPES.iter().find(|row| row.0 == kind) else {
        let known = UNKNOWN_TYPES.iter().find(|row| row.0 == kind);
        let why = known.map_or("no rule has this condition", |(_, why)| why);
        return Err(flaw(format!("{kind}: {why}")));
    };
    let (mut values, mut lost) = (Vec::new(), Vec::new());
    let of_field = (kind == "req_header").then(|| words.next()).flatten();
    for word in words {
        let converted = match of_field {
            Some(name) => field(&name.text, word),
            None => convert(word),
        };
        match converted {
            Ok(more) => {
                let new: Vec<String> =
                    more.into_iter().filter(|value| !values.contains(value)).collect();
                values.extend(new);
            }
            Err(why) => lost.push(flaw(why)),
        }
        if kind == "dst" && !is_always_refused(&word.text) {
            lost.push(flaw(format!(
                "{}: rules see only addresses in URLs, not the addresses of names; foxy refuses \
                 private networks to all clients, until `allow-destination` lists them",
                word.text
            )));
        }
    }
    let branches =
        if values.is_empty() { Vec::new() } else { vec![Facets::from([(*key, values)])] };
    Ok(Expressed { branches, lost })
}

/// Returns whether ACLs of this type ask clients for credentials.
pub fn asks(kind: &str) -> bool {
    matches!(kind, "proxy_auth" | "proxy_auth_regex")
}

/// Converts a list of users, or of expressions for users.
pub fn users<'w>(
    name: &str,
    kind: &str,
    words: impl Iterator<Item = &'w AclWord>,
) -> Result<Expressed, TermFlaw> {
    let mut expressed = Expressed::default();
    let mut users = Vec::new();
    for word in words {
        let literal = || format!("^{}$", literal_expression(&word.text));
        let posix = if kind == "proxy_auth" { literal() } else { word.text.clone() };
        match regex::field_pattern(&posix, word.ignore_case) {
            Some(pattern) => users.push(pattern),
            None => expressed.lost.push(TermFlaw::NoEquivalent {
                name: name.to_owned(),
                why: format!("`{}`: rules compare users with patterns, not expressions", word.text),
            }),
        }
    }
    if !users.is_empty() {
        expressed.branches.push(Facets::from([("user", users)]));
    }
    Ok(expressed)
}

fn client(word: &AclWord) -> Result<Vec<String>, String> {
    networks(&word.text).ok_or_else(|| format!("{} is not a network", word.text))
}

fn destination(word: &AclWord) -> Result<Vec<String>, String> {
    networks(&word.text).ok_or_else(|| format!("{} is not a network", word.text))
}

/// Returns whether foxy refuses all addresses of this network anyway, also when a host name leads
/// there. Private networks do not count, because operators list their own networks in
/// `allow-destination`.
fn is_always_refused(text: &str) -> bool {
    const REFUSED: [&str; 6] =
        ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "::1/128", "::/128", "fe80::/10"];
    let parsed =
        |text: &str| text.parse().or_else(|_| text.parse::<IpAddr>().map(ipnet::IpNet::from));
    let refused = |network: &String| {
        let network = parsed(network);
        network.is_ok_and(|network| {
            REFUSED.iter().flat_map(|text| parsed(text)).any(|all| all.contains(&network))
        })
    };
    networks(text).is_some_and(|networks| networks.iter().all(refused))
}

fn domain(word: &AclWord) -> Result<Vec<String>, String> {
    let name = word.text.to_ascii_lowercase();
    Ok(vec![match name.strip_prefix('.') {
        Some(name) => name.to_owned(),
        None if name.parse::<IpAddr>().is_ok() => name,
        None => format!("={name}"),
    }])
}

fn host(word: &AclWord) -> Result<Vec<String>, String> {
    let regex = regex::host_regex(&word.text, word.ignore_case);
    let why = || format!("`{}`: write the names as `host` of a rule", word.text);
    regex.map(|regex| vec![regex]).ok_or_else(why)
}

fn scheme(word: &AclWord) -> Result<Vec<String>, String> {
    let scheme = word.text.to_ascii_lowercase();
    // Clients never ask foxy for other schemes such as FTP.
    Ok(matches!(scheme.as_str(), "http" | "https").then_some(scheme).into_iter().collect())
}

fn field(name: &str, word: &AclWord) -> Result<Vec<String>, String> {
    let pattern = regex::field_pattern(&word.text, word.ignore_case);
    let why = || format!("`{}`: rules compare fields with patterns, not expressions", word.text);
    pattern.map(|pattern| vec![format!("{name}: {pattern}")]).ok_or_else(why)
}

fn media_type(word: &AclWord) -> Result<Vec<String>, String> {
    let pattern = regex::field_pattern(&word.text, word.ignore_case);
    let why = || format!("`{}`: rules compare media types with patterns", word.text);
    pattern.map(|pattern| vec![pattern]).ok_or_else(why)
}

/// Converts a status such as `404`, or a range such as `500-599`, to statuses.
fn statuses(word: &AclWord) -> Result<Vec<String>, String> {
    let (first, last) = word.text.split_once('-').unwrap_or((&word.text, &word.text));
    match (first.parse::<u16>(), last.parse::<u16>()) {
        (Ok(first), Ok(last)) if first <= last && last < 600 => {
            Ok((first.max(200)..=last).map(|status| status.to_string()).collect())
        }
        _ => Err(format!("`{}` is not a status", word.text)),
    }
}

/// Converts an ACL of times. Each line has days, hours or both.
pub fn times(name: &str, lines: &[Vec<AclWord>]) -> Result<Expressed, TermFlaw> {
    let flaw = |why: &str| TermFlaw::NoEquivalent { name: name.to_owned(), why: why.to_owned() };
    let mut expressed = Expressed::default();
    for line in lines {
        let mut facets = Facets::new();
        for word in line {
            if word.text.contains(':') {
                let hours = hours(&word.text).ok_or_else(|| flaw("this time is not readable"))?;
                facets.insert("hours", vec![hours]);
            } else {
                let days = word.text.chars().map(day);
                let days: Option<Vec<_>> = days.collect();
                let days = days.ok_or_else(|| flaw("this day is not readable"))?;
                facets.entry("days").or_default().extend(days.into_iter().map(ToOwned::to_owned));
            }
        }
        expressed.branches.push(facets);
    }
    Ok(expressed)
}

const fn day(letter: char) -> Option<&'static str> {
    Some(match letter {
        'S' => "sun",
        'M' => "mon",
        'T' => "tue",
        'W' => "wed",
        'H' => "thu",
        'F' => "fri",
        'A' => "sat",
        'D' => "mon-fri",
        _ => return None,
    })
}

/// Converts `h1:m1-h2:m2`. In Squid the last minute is part of the period, in foxy it is not.
fn hours(text: &str) -> Option<String> {
    let minutes = |text: &str| {
        let (hour, minute) = text.split_once(':')?;
        Some(hour.parse::<u32>().ok()? * 60 + minute.parse::<u32>().ok()?)
    };
    let (from, to) = text.split_once('-')?;
    let (from, to) = (minutes(from)?, (minutes(to)? + 1).min(24 * 60));
    let show = |time: u32| format!("{:02}:{:02}", time / 60, time % 60);
    (from < to).then(|| format!("{}-{}", show(from), show(to)))
}

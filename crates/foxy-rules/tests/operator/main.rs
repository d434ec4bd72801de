//! Tests the operators' rules with a table of conditions. Also compares random rules with a plain
//! reference implementation.

mod cases;
mod reference;

use foxy_base::WallTime;
use foxy_rules::operator::{
    Conditions, Days, Effects, NamedPattern, OperatorRule, RequestFacts, path_pattern,
};
use std::fmt::Display;
use std::str::FromStr;

/// Parses conditions such as `host=a.test path=/x/*,/y client=10.0.0.0/8`.
fn conditions(text: &str) -> Conditions {
    let mut when = Conditions::default();
    for part in text.split_whitespace() {
        let (name, values) = part.split_once('=').expect(part);
        let mut values = values.split(',');
        match name {
            "client" => when.clients = all(values),
            "user" => when.users = all(values),
            "method" => when.methods = all(values),
            "scheme" => when.schemes = all(values),
            "host" => when.hosts = all(values),
            "port" => when.ports = all(values),
            "path" => when.paths = values.map(|path| path_pattern(path).expect(path)).collect(),
            "query" => when.query = values.map(|value| named(value, '=')).collect(),
            "header" => when.headers = values.map(|value| named(value, ':')).collect(),
            "days" => when.days = all(values).into_iter().reduce(Days::with),
            "hours" => when.hours = values.next().map(parsed),
            other => panic!("{other}"),
        }
    }
    when
}

fn all<'a, T: FromStr<Err: Display>>(texts: impl Iterator<Item = &'a str>) -> Vec<T> {
    texts.map(parsed).collect()
}

fn parsed<T: FromStr<Err: Display>>(text: &str) -> T {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn named(text: &str, mark: char) -> NamedPattern {
    let (name, value) = text.split_once(mark).map_or((text, None), |(a, b)| (a, Some(b)));
    NamedPattern { name: name.to_owned(), value: value.map(parsed) }
}

/// A request written as text, such as `GET http://a.test/x @10.0.0.1 ~alice Name:value`. `@` marks
/// the client, `~` the user. The time of the request is Thursday noon in UTC.
#[derive(Clone, Debug)]
struct Asked<'a> {
    method: &'a str,
    scheme: &'a str,
    host: &'a str,
    port: u16,
    path: &'a str,
    client: Option<&'a str>,
    user: Option<&'a str>,
    fields: Vec<(&'a str, &'a str)>,
}

impl<'a> Asked<'a> {
    fn new(text: &'a str) -> Self {
        let mut words = text.split_whitespace();
        let method = words.next().expect(text);
        let url = words.next().expect(text);
        let (scheme, rest) = url.split_once("://").expect(text);
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().expect(text)),
            _ => (authority, if scheme == "https" { 443 } else { 80 }),
        };
        let fields = Vec::new();
        let mut asked = Self { method, scheme, host, port, path, client: None, user: None, fields };
        for word in words {
            match word.split_at(1) {
                ("@", client) => asked.client = Some(client),
                ("~", user) => asked.user = Some(user),
                _ => asked.fields.push(word.split_once(':').expect(word)),
            }
        }
        asked
    }

    fn facts(&self) -> RequestFacts<'_, &[(&'a str, &'a str)]> {
        const THURSDAY_NOON: WallTime = WallTime::from_seconds(12 * 3600);
        let (url, path) = ((self.scheme, self.host, self.port), self.path.as_bytes());
        let mut facts = RequestFacts::new(url, path, self.method, &self.fields[..], THURSDAY_NOON);
        facts.user = self.user;
        match self.client {
            Some(client) => facts.from_client(client.parse().expect(client)),
            None => facts,
        }
    }
}

fn rule(name: &str, when: Conditions, then: Effects) -> OperatorRule {
    OperatorRule { name: name.to_owned(), when, unless: Vec::new(), then }
}

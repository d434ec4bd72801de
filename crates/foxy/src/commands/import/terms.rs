//! Terms: conjunctions of access conditions with exceptions. Writes a term as `when` and `unless`
//! of a rule.

use super::host_set::HostSet;
use super::range_set::{AddressSet, PortSet, RangeTexts};
use foxy_rules::operator::Redirect;
use std::collections::BTreeMap;
use std::fmt;
use toml::{Table, Value};

/// Largest number of rules for the requests of a line.
const MOST_TERMS: usize = 32;

/// Conditions that must all hold. For each key of `when`, one of the listed values must match.
pub type Facets = BTreeMap<&'static str, Vec<String>>;

/// A condition on requests: all of `when` must hold, and none of the exceptions in `unless`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessTerm {
    pub when: Facets,
    pub unless: Vec<Facets>,
}

/// Returns the effects of a rule that has only the effect `key`.
pub fn effect(key: &str, value: impl Into<Value>) -> Table {
    Table::from_iter([(key.to_owned(), value.into())])
}

/// Returns the effect of a rule that redirects clients. Returns `None` if foxy refuses such a
/// redirect.
pub fn redirect(status: u16, from: Option<&str>, to: &str) -> Option<Table> {
    Redirect::new(status, from, to).ok()?;
    let mut table = Table::from_iter([("status".to_owned(), Value::from(i64::from(status)))]);
    table.extend(from.map(|from| ("from".to_owned(), Value::from(from))));
    table.insert("to".into(), to.into());
    Some(effect("redirect", table))
}

/// The reason why no rule can express a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermFlaw {
    /// A rule has only one condition for each key, but two conditions on this key must hold
    /// together.
    TwoConditions(&'static str),
    /// No list (ACL) has this name.
    Undefined(String),
    /// The list (ACL) asks clients for credentials, but foxy will have no users. Where Squid asks
    /// again, foxy would go on to the next rules, which may allow the request.
    Credentials(String),
    /// The exceptions need too many rules.
    TooMany,
    /// Rules cannot express the list (ACL) `name`.
    NoEquivalent { name: String, why: String },
}

impl fmt::Display for TermFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoConditions(key) => {
                write!(f, "a rule of foxy can have only one condition on `{key}`")
            }
            Self::Undefined(name) => write!(f, "the list `{name}` is not defined"),
            Self::Credentials(name) => {
                write!(
                    f,
                    "`{name}` asks for credentials; foxy without users does not, so later rules may \
                     allow the client"
                )
            }
            Self::TooMany => f.write_str("the earlier lines have too many conditions"),
            Self::NoEquivalent { name, why } => write!(f, "`{name}`: {why}"),
        }
    }
}

impl AccessTerm {
    /// Adds a condition on `key`. Returns `None` if then no request can match the term (condition
    /// with exceptions).
    pub fn and(mut self, key: &'static str, values: &[String]) -> Result<Option<Self>, TermFlaw> {
        let values = match self.when.get(key) {
            None => values.to_vec(),
            Some(present) => common(key, present, values)?,
        };
        if values.is_empty() {
            return Ok(None);
        }
        self.when.insert(key, values);
        Ok(Some(self))
    }

    /// Adds an exception: the term (condition with exceptions) does not hold if all of `facets`
    /// hold.
    #[must_use]
    pub fn and_not(mut self, facets: &Facets) -> Self {
        let same = self.unless.iter_mut().find_map(|old| match (only(old), only(facets)) {
            (Some((old_key, _)), Some((key, values))) if old_key == key => {
                Some((old.get_mut(key)?, values))
            }
            _ => None,
        });
        match same {
            Some((old, values)) => {
                let new: Vec<_> = values.iter().filter(|value| !old.contains(value)).collect();
                old.extend(new.into_iter().cloned());
            }
            None => self.unless.push(facets.clone()),
        }
        self
    }

    /// Returns whether the term (condition with exceptions) holds for every request.
    pub fn is_always(&self) -> bool {
        self.when.is_empty() && self.unless.is_empty()
    }

    /// Returns a rule with this term (condition with exceptions) as its condition and `then` as its
    /// effect.
    pub fn rule(&self, name: &str, then: Table) -> Table {
        let mut rule = Table::from_iter([("name".to_owned(), Value::from(name))]);
        let table = |facets: &Facets| {
            let entries = facets.iter().map(|(key, values)| (key.to_string(), written(values)));
            Value::Table(entries.collect())
        };
        if !self.when.is_empty() {
            rule.insert("when".into(), table(&self.when));
        }
        match self.unless.as_slice() {
            [] => {}
            [single] => {
                rule.insert("unless".into(), table(single));
            }
            several => {
                rule.insert("unless".into(), several.iter().map(table).collect::<Vec<_>>().into());
            }
        }
        rule.insert("then".into(), Value::Table(then));
        rule
    }
}

/// Returns the TOML form of a list: a single value stands alone. Numbers such as ports are TOML
/// integers.
pub fn written(values: &[String]) -> Value {
    let value = |text: &String| match text.parse::<u16>() {
        Ok(number) => Value::Integer(number.into()),
        Err(_) => Value::String(text.clone()),
    };
    match values {
        [single] => value(single),
        values => Value::Array(values.iter().map(value).collect()),
    }
}

fn only(facets: &Facets) -> Option<(&'static str, &Vec<String>)> {
    let mut entries = facets.iter();
    let (key, values) = entries.next()?;
    entries.next().is_none().then_some((*key, values))
}

/// Returns the list that matches exactly the requests that both lists match. Fails if the import
/// cannot intersect lists of this key.
fn common(key: &'static str, a: &[String], b: &[String]) -> Result<Vec<String>, TermFlaw> {
    fn cut<T: RangeTexts>(a: &[String], b: &[String]) -> Option<Vec<String>> {
        Some(T::read(a)?.intersection(&T::read(b)?).texts())
    }
    let values = match key {
        "client" => cut::<AddressSet>(a, b),
        "host" => cut::<HostSet>(a, b),
        "port" => cut::<PortSet>(a, b),
        "user" if a.iter().chain(b).any(|name| name.contains(['*', '?', '[', '{', '('])) => None,
        "method" | "scheme" | "user" => {
            Some(a.iter().filter(|value| b.contains(value)).cloned().collect())
        }
        _ if a == b => Some(a.to_vec()),
        _ => None,
    };
    values.ok_or(TermFlaw::TwoConditions(key))
}

/// Returns the conjunction of both terms (conditions with exceptions). Returns `None` if no request
/// can match both.
pub fn within(term: &AccessTerm, scope: &AccessTerm) -> Result<Option<AccessTerm>, TermFlaw> {
    let start = Some(term.clone());
    let joined = scope.when.iter().try_fold(start, |term, (key, values)| match term {
        Some(term) => term.and(key, values),
        None => Ok(None),
    })?;
    Ok(joined.map(|joined| {
        scope.unless.iter().fold(joined, |joined, facets: &Facets| joined.and_not(facets))
    }))
}

/// Returns terms that together match the requests that one of `terms` matches and `other` does not.
pub fn without_all(terms: &[AccessTerm], other: &AccessTerm) -> Result<Vec<AccessTerm>, TermFlaw> {
    let parts = terms.iter().map(|term| without(term, other)).collect::<Result<Vec<_>, _>>()?;
    let all: Vec<AccessTerm> = parts.into_iter().flatten().collect();
    if all.len() > MOST_TERMS {
        return Err(TermFlaw::TooMany);
    }
    Ok(all)
}

fn without(term: &AccessTerm, other: &AccessTerm) -> Result<Vec<AccessTerm>, TermFlaw> {
    let whole = AccessTerm { when: other.when.clone(), unless: Vec::new() };
    if within(term, &whole) == Ok(None) {
        return Ok(vec![term.clone()]);
    }
    let mut parts = Vec::new();
    if !other.when.is_empty() {
        parts.push(term.clone().and_not(&other.when));
    }
    for exception in &other.unless {
        let inside = AccessTerm { when: exception.clone(), unless: Vec::new() };
        parts.extend(within(&inside, term)?);
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facets(key: &'static str, values: &[&str]) -> Facets {
        Facets::from([(key, texts(values))])
    }

    fn texts(values: &[&str]) -> Vec<String> {
        values.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn conditions_on_one_key_are_cut_and_exceptions_joined() {
        let term =
            AccessTerm::default().and("port", &texts(&["80-90"])).expect("one").expect("some");
        let term = term.and("port", &texts(&["85-99"])).expect("cut").expect("some");
        assert_eq!(term.when, facets("port", &["85-90"]));
        let none = term.clone().and("port", &texts(&["1"]));
        assert_eq!(none, Ok(None));
        let flaw = term.and("path", &texts(&["/a"])).expect("one").expect("some");
        assert_eq!(flaw.and("path", &texts(&["/b"])), Err(TermFlaw::TwoConditions("path")));
        let term = AccessTerm::default().and_not(&facets("host", &["a.test"]));
        let term = term.and_not(&facets("host", &["b.test"])).and_not(&facets("port", &["80"]));
        assert_eq!(term.unless, [facets("host", &["a.test", "b.test"]), facets("port", &["80"])]);
    }
}

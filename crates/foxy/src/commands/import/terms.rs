//! Conjunctions of access conditions, and their form as the `when` and `unless` of a rule.

use super::range_set::{AddressSet, PortSet, RangeTexts};
use std::collections::BTreeMap;
use std::fmt;
use toml::{Table, Value};

/// Conditions of a rule: for each key of `when`, a list of values of which one must match.
pub type Facets = BTreeMap<&'static str, Vec<String>>;

/// Conditions that must hold, and conditions that must not all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessTerm {
    pub when: Facets,
    pub unless: Facets,
}

/// Why no rule can contain a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermFlaw {
    /// Two conditions on the same key must hold.
    TwoConditions(&'static str),
    /// Several conditions must not hold, and a rule has one `unless`.
    TwoExceptions,
    /// The list of this name is not defined.
    Undefined(String),
    /// The list asks clients for their names, and foxy would pass clients without a name to the
    /// next rules.
    Credentials(String),
    /// The condition has no equivalent.
    NoEquivalent { name: String, why: String },
}

impl fmt::Display for TermFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoConditions(key) => write!(f, "a rule has one condition on `{key}`"),
            Self::TwoExceptions => f.write_str("a rule has one `unless`"),
            Self::Undefined(name) => write!(f, "`{name}` is not defined"),
            Self::Credentials(name) => {
                write!(f, "`{name}` asks for credentials, and the next rules may allow others")
            }
            Self::NoEquivalent { name, why } => write!(f, "`{name}`: {why}"),
        }
    }
}

impl AccessTerm {
    /// Adds a condition. Returns `None` if the term can then never hold.
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

    /// Adds the condition that not all of `facets` hold.
    pub fn and_not(mut self, facets: &Facets) -> Result<Option<Self>, TermFlaw> {
        if self.unless.is_empty() {
            self.unless = facets.clone();
            return Ok(Some(self));
        }
        if let (Some((key, values)), Some((old_key, old))) = (only(facets), only(&self.unless)) {
            if key == old_key {
                let mut all = old.clone();
                all.extend(values.iter().filter(|value| !old.contains(value)).cloned());
                self.unless = Facets::from([(key, all)]);
                return Ok(Some(self));
            }
            if let Some(rest) = complement(key, values) {
                return self.and(key, &rest);
            }
            if let Some(rest) = complement(old_key, old) {
                self.unless = facets.clone();
                return self.and(old_key, &rest);
            }
        }
        Err(TermFlaw::TwoExceptions)
    }

    /// Returns whether the term always holds.
    pub fn is_always(&self) -> bool {
        self.when.is_empty() && self.unless.is_empty()
    }

    /// Returns the rule with these conditions.
    pub fn rule(&self, name: &str, then: Table) -> Table {
        let mut rule = Table::from_iter([("name".to_owned(), Value::from(name))]);
        for (key, facets) in [("when", &self.when), ("unless", &self.unless)] {
            if !facets.is_empty() {
                let entries = facets.iter().map(|(key, values)| (key.to_string(), written(values)));
                rule.insert(key.into(), Value::Table(entries.collect()));
            }
        }
        rule.insert("then".into(), Value::Table(then));
        rule
    }
}

/// Returns one value alone, or a list. Ports are numbers.
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

/// Returns the values that match whenever both lists match.
fn common(key: &'static str, a: &[String], b: &[String]) -> Result<Vec<String>, TermFlaw> {
    fn cut<T: RangeTexts>(a: &[String], b: &[String]) -> Option<Vec<String>> {
        Some(T::read(a)?.intersection(&T::read(b)?).texts())
    }
    let values = match key {
        "client" => cut::<AddressSet>(a, b),
        "port" => cut::<PortSet>(a, b),
        "method" | "scheme" | "user" => {
            Some(a.iter().filter(|value| b.contains(value)).cloned().collect())
        }
        _ if a == b => Some(a.to_vec()),
        _ => None,
    };
    values.ok_or(TermFlaw::TwoConditions(key))
}

fn complement(key: &str, values: &[String]) -> Option<Vec<String>> {
    match key {
        "client" => Some(AddressSet::read(values)?.complement().texts()),
        "port" => Some(PortSet::read(values)?.complement().texts()),
        "scheme" => {
            let both = ["http", "https"].iter().map(ToString::to_string);
            Some(both.filter(|scheme| !values.contains(scheme)).collect())
        }
        _ => None,
    }
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
        let term = term.expect("one").expect("some").and_not(&facets("host", &["b.test"]));
        assert_eq!(
            term.expect("joined").expect("some").unless,
            facets("host", &["a.test", "b.test"])
        );
    }

    #[test]
    fn a_second_exception_becomes_a_condition_if_its_complement_is_a_list() {
        let start = || AccessTerm::default().and_not(&facets("host", &["a.test"]));
        let term = start().expect("one").expect("some").and_not(&facets("port", &["80"]));
        let term = term.expect("complement").expect("some");
        assert_eq!(term.when, facets("port", &["1-79", "81-65535"]));
        assert_eq!(term.unless, facets("host", &["a.test"]));
        let flaw = start().expect("one").expect("some").and_not(&facets("method", &["GET"]));
        assert_eq!(flaw, Err(TermFlaw::TwoExceptions));
    }
}
